package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

// resource is a kind of things as svcctl api-resources lists it.
type resource struct {
	Name       string   `json:"name"`
	ShortNames []string `json:"shortNames"`
	Namespaced bool     `json:"namespaced"`
	Kind       string   `json:"kind"`
	Command    string   `json:"command"` // of which svcctl get takes its verbs
	Verbs      []string `json:"verbs"`
}

// newResources makes svcctl api-resources, for whoever looks there for what svcctl get can show.
func newResources(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds of things that svcctl get shows",
		Long: `List the kinds of things that svcctl get shows, with their short names, whether they belong to a project (and so take a namespace), and the
command that has their verbs: svcctl get snap -n blog is svcctl snapshot list -n blog, and svcctl snapshot has what else can be done with one.`,
		Example: `  svcctl api-resources
  svcctl api-resources -o name`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, _ []string) error {
			t := output.NewTable("NAME", "SHORTNAMES", "NAMESPACED", "KIND", "COMMAND", "+VERBS")
			var list []resource
			var names []string
			for _, k := range getKinds(st) {
				r := resource{
					Name: k.plural, ShortNames: strings.Fields(k.short), Namespaced: k.inProject, Kind: k.singular(), Command: "svcctl " + k.noun.Name(),
				}
				for _, verb := range k.noun.Commands() {
					r.Verbs = append(r.Verbs, verb.Name())
				}
				slices.Sort(r.Verbs)
				list, names = append(list, r), append(names, r.Name)
				t.Row(r.Name, strings.Join(r.ShortNames, ","), r.Namespaced, r.Kind, r.Command, strings.Join(r.Verbs, ","))
			}
			return st.Printer().Print(output.Result{Value: map[string]any{"items": list}, Table: t, Names: names})
		},
	}
}
