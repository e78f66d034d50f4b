package project

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/schema"
)

func newSchema(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of config file",
		Long: `Print the JSON Schema of a kind of config file, made from the types that the service loads, so that editors complete
and check. Without KIND it is that of the project file. Kinds: ` + strings.Join(schema.Kinds(), ", ") + `.`,
		Example: `  svcctl project schema > project.schema.json
  svcctl project schema collection`,
		Args: command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return schema.Kinds(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			kind := "project"
			if len(args) == 1 {
				kind = args[0]
			}
			return runSchema(st, kind)
		},
	}
}

func runSchema(st *command.State, kind string) error {
	data, err := schema.JSONSchema(kind)
	if err != nil {
		return command.Usagef("there is no kind %q: want one of %s", kind, strings.Join(schema.Kinds(), ", "))
	}
	p := st.Printer()
	if p.Format != output.FormatYAML {
		p.Format = output.FormatJSON
	}
	return p.Print(output.Result{Value: json.RawMessage(data)})
}
