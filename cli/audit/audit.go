package audit

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl audit.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("audit", "See who did what, and check that the log of it is intact", newList(st), newVerify(st))
}

// projectFlag chooses the log.
func projectFlag(cmd *cobra.Command, st *command.State, project *string) {
	cmd.Flags().StringVar(project, "project", "", "the log of this project's records, in place of the service's own")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"project": st.CompleteNamespaces})
}
