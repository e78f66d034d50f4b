package index

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl index.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("index", "See the indexes of collections, and make them as declared",
		NewList(st, "index", "list", "ls"), newDiff(st), newSync(st))
}
