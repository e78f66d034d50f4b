package config

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newView(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "view",
		Short: "Show the contexts file, without its secrets",
		Long:  `Show the contexts file as YAML (or JSON with -o json). Tokens are shown as REDACTED.`,
		Example: `  svcctl config view
  svcctl config view -o json`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runView(st) },
	}
}

func runView(st *command.State) error {
	f, err := st.Settings()
	if err != nil {
		return err
	}
	p := st.Printer()
	if p.ForPeople() {
		p.Format = output.FormatYAML
	}
	return p.Print(output.Result{Value: f.Redacted(), Names: f.Names()})
}
