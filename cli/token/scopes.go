package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newScopes(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "scopes",
		Short:             "List the scopes that you can give a token now",
		Example:           `  svcctl token scopes`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runScopes(cmd.Context(), st) },
	}
}

func runScopes(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	scopes, err := c.TokenScopes(ctx)
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		st.Notef("none: you have no rights that a token could have; docs/security.md says which there are")
	}
	t := output.NewTable("SCOPE")
	for _, s := range scopes {
		t.Row(s)
	}
	return st.Printer().Print(output.Result{Value: scopes, Table: t, Names: scopes})
}
