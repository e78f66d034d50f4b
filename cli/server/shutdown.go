package server

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newShutdown(st *command.State) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "shutdown",
		Short: "Stop the service",
		Long: `Stop the service that answers, as a SIGTERM does: it takes no more requests, finishes those in flight and ends. Other
instances go on, and whatever watches over the process may start it again. It takes the right server.shutdown.`,
		Example:           `  svcctl server shutdown --yes`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runShutdown(cmd.Context(), st, yes) },
	}
	command.YesFlag(cmd, &yes)
	return cmd
}

func runShutdown(ctx context.Context, st *command.State, yes bool) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	if err := st.Confirm(yes, fmt.Sprintf("Stop the service at %s?", c.Server())); err != nil {
		return err
	}
	if err := c.Shutdown(ctx); err != nil {
		return err
	}
	st.Notef("%s is stopping", c.Server())
	return nil
}
