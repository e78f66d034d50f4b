package audit

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl audit.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("audit", "See who did what, and check that the log of it is intact", newList(st), newGet(st), newVerify(st))
}

// noArgs refuses arguments, of which a namespace is the likely one, since other nouns take it so.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("%s takes no argument", cmd.CommandPath()),
		Hint: fmt.Sprintf("for the log of a project: %s -n %s", cmd.CommandPath(), args[0]),
	}
}
