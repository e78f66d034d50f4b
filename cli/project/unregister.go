package project

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

type unregisterOptions struct {
	st        *command.State
	Namespace string
	Yes       bool
}

func newUnregister(st *command.State, runF func(context.Context, *unregisterOptions) error) *cobra.Command {
	opts := &unregisterOptions{st: st}
	cmd := &cobra.Command{
		Use:   "unregister NAMESPACE",
		Short: "Make the service forget a project; its data stays",
		Long: `Make the service forget a project: its namespace is served no longer. Its files and its data stay; when it is
registered again, everything is there as before.`,
		Example:           `  svcctl project unregister shop --yes`,
		Args:              command.Args(cobra.ExactArgs(1)), // never by a default: the name must be said
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Namespace = args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUnregister(cmd.Context(), opts)
		},
	}
	command.YesFlag(cmd, &opts.Yes)
	return cmd
}

func runUnregister(ctx context.Context, opts *unregisterOptions) error {
	c, p, err := find(ctx, opts.st, opts.Namespace)
	if err != nil {
		return err
	}
	if err := opts.st.Confirm(opts.Yes, fmt.Sprintf("Unregister project %s at %s?", p.Namespace, c.Server())); err != nil {
		return err
	}
	if _, err := c.Projects().Delete(ctx, p.ID); err != nil {
		return err
	}
	opts.st.Notef("project %s is unregistered; its data stays", p.Namespace)
	return nil
}
