package server

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl server.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("server", "Stop the service, change its keys", newRotateKeys(st), newShutdown(st))
}
