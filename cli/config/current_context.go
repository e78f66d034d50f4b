package config

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newCurrentContext(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "current-context",
		Short:             "Show the name of the current context",
		Example:           `  svcctl config current-context`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runCurrentContext(st) },
	}
}

func runCurrentContext(st *command.State) error {
	f, err := st.Settings()
	if err != nil {
		return err
	}
	name := f.CurrentContext
	if name == "" {
		return &command.Error{
			Exit: command.ExitNotFound, Code: "context_not_found", Message: "there is no current context",
			Hint: "svcctl config use-context chooses one, svcctl login makes one",
		}
	}
	p := st.Printer()
	if !p.Structured() {
		p.Format = output.FormatName
	}
	return p.Print(output.Result{Value: map[string]string{"current-context": name}, Names: []string{name}})
}
