package server

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newRotateKeys(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-keys",
		Short: "Have a new key sign logins",
		Long: `Make a new key that signs logins from now on: on the service that answers at once, on other instances on the same store
within a minute. Nobody is logged out: what older keys signed stays good until it expires. It takes an administrator.`,
		Example:           `  svcctl server rotate-keys`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runRotateKeys(cmd.Context(), st) },
	}
}

func runRotateKeys(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	key, err := c.RotateKeys(ctx)
	if err != nil {
		return err
	}
	t := output.NewTable("KEY", "AGE")
	t.Row(key.ID, output.Age(st.Now(), key.CreatedAt.Time))
	return st.Printer().Print(output.Result{Value: key, Table: t, Names: []string{"key/" + key.ID}})
}
