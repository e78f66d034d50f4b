package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List your tokens; administrators see everybody's",
		Example:           `  svcctl token list -o wide`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), st) },
	}
}

func runList(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	return command.List[api.Token]{
		Items: c.Tokens().All(ctx, client.Query{}),
		None:  "no tokens: svcctl token create makes one",
		Name:  func(t api.Token) string { return "token/" + t.ID },
		Table: table,
	}.Print(st)
}
