package asset

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl asset.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("asset", "See the public folders of a project, and get files of them", newList(st), newGet(st, nil))
	cmd.Aliases = []string{"assets"}
	return cmd
}
