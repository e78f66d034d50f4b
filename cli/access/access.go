package access

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl access.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("access", "See who may do what, and why", newExplain(st))
}
