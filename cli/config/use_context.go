package config

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
)

func newUseContext(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "use-context NAME",
		Short:             "Make a context the current one",
		Example:           `  svcctl config use-context prod`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteContexts,
		RunE:              func(_ *cobra.Command, args []string) error { return runUseContext(st, args[0]) },
	}
}

func runUseContext(st *command.State, name string) error {
	err := st.UpdateSettings(func(f *settings.File) error {
		if _, ok := f.Context(name); !ok {
			return noContext(name, f.Names())
		}
		f.CurrentContext = name
		return nil
	})
	if err == nil {
		st.Notef("the current context is %s", name)
	}
	return err
}
