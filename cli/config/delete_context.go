package config

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
)

func newDeleteContext(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "delete-context NAME",
		Short: "Remove a context",
		Long: `Remove a context, together with its server and its credential where no other context uses them. A login in it is
not ended at the service; svcctl logout does that.`,
		Example:           `  svcctl config delete-context staging`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: st.CompleteContexts,
		RunE:              func(_ *cobra.Command, args []string) error { return runDeleteContext(st, args[0]) },
	}
}

func runDeleteContext(st *command.State, name string) error {
	err := st.UpdateSettings(func(f *settings.File) error {
		if !f.DeleteContext(name) {
			return noContext(name, f.Names())
		}
		return nil
	})
	if err == nil {
		st.Notef("removed context %s", name)
	}
	return err
}
