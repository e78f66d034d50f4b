package config

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/settings"
)

func newGetContexts(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "get-contexts",
		Aliases:           []string{"list"},
		Short:             "List the contexts",
		Example:           `  svcctl config get-contexts`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runGetContexts(st) },
	}
}

func runGetContexts(st *command.State) error {
	f, err := st.Settings()
	if err != nil {
		return err
	}
	table := output.NewTable("CURRENT", "NAME", "SERVER", "USER", "CREDENTIAL", "NAMESPACE")
	for _, c := range f.Contexts {
		current, address := "", ""
		if c.Name == f.CurrentContext {
			current = "*"
		}
		if s, ok := f.Server(c.Server); ok {
			address = s.Shown()
		}
		kind := "none"
		if u, ok := f.User(c.User); ok {
			kind = u.Kind(st.Now())
		}
		table.Row(current, c.Name, address, c.User, kind, c.Namespace)
	}
	if table.Len() == 0 {
		st.Notef("no contexts yet: svcctl login or svcctl config set-context makes one")
	}
	contexts := f.Contexts
	if contexts == nil {
		contexts = []settings.Context{}
	}
	return st.Printer().Print(output.Result{
		Value: map[string]any{"items": contexts, "current-context": f.CurrentContext},
		Table: table, Names: f.Names(),
	})
}
