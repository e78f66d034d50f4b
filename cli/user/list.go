package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List the users that you may see",
		Example:           `  svcctl user list -o wide`,
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
	users := []api.User{}
	var names []string
	for u, err := range c.Users(ctx, client.Query{}) {
		if err != nil {
			return err
		}
		users = append(users, u)
		names = append(names, "user/"+u.Username)
	}
	if len(users) == 0 {
		st.Notef("no users that you may see: svcctl user create makes one")
	}
	return st.Printer().Print(output.Result{
		Value: map[string]any{"items": users}, Table: table(st, users...), Names: names,
	})
}
