package collection

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newDescribe(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "describe [NAMESPACE] COLLECTION",
		Aliases: []string{"get"},
		Short:   "Show the fields, indexes and searches of a collection, and what you may do",
		Example: `  svcctl collection describe blog articles
  svcctl collection describe blog articles -o yaml`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			return runDescribe(ctx, st, namespace, rest[0])
		}),
	}
}

func runDescribe(ctx context.Context, st *command.State, namespace, name string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	col, err := c.DescribeCollection(ctx, namespace, name)
	if err != nil {
		return err
	}
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: col, Names: []string{"collection/" + col.Name}})
	}
	f := output.NewFields()
	f.Add("Collection", col.Name)
	f.Add("Strict fields", col.StrictFields)
	if len(col.Languages) > 0 {
		f.Add("Languages", strings.Join(col.Languages, ", "))
	}
	if col.Singleton {
		f.Add("Singleton", col.Singleton)
	}
	f.Add("Projections", strings.Join(col.Projections, ", "))
	f.Add("You may", Rights(col.YourPermissions))
	if err := f.Write(p.W); err != nil {
		return err
	}
	fields := output.NewTable("FIELD", "TYPE", "RULES", "INDEX")
	addFields(fields, "", col.Fields)
	st.FitTable(fields)
	if err := p.Section("Fields", fields); err != nil {
		return err
	}
	if err := p.Section("Indexes", index.Table(st, col.Indexes)); err != nil || len(col.Search) == 0 {
		return err
	}
	searches := output.NewTable("SEARCH", "MODE", "OF")
	for _, s := range col.Search {
		of := strings.Join(append(s.Fields, s.Sources...), ", ")
		if s.Eval {
			of = "eval of " + of
		}
		searches.Row(s.Name, s.Mode, of)
	}
	st.FitTable(searches)
	return p.Section("Searches", searches)
}

// addFields lists fields with their dotted paths.
func addFields(t *output.Table, prefix string, fields []api.FieldDescription) {
	for _, f := range fields {
		t.Row(prefix+f.Name, f.Type, FieldRules(f), strings.Join(f.Index, ", "))
		addFields(t, prefix+f.Name+".", f.SubFields)
	}
}

// FieldRules says what a value must be: "required, readonly, max 80, refers to authors.slug".
func FieldRules(f api.FieldDescription) string {
	var out []string
	if f.Required {
		out = append(out, "required")
	}
	if f.Readonly {
		out = append(out, "readonly")
	}
	if f.Translated {
		out = append(out, "translated")
	}
	switch v := f.Validator.(type) {
	case nil:
	case string:
		for rule := range strings.SplitSeq(v, ",") {
			out = append(out, strings.Replace(strings.TrimSpace(rule), "=", " ", 1))
		}
	case map[string]any:
		for _, rule := range slices.Sorted(maps.Keys(v)) {
			if rule == "required" {
				if !f.Required && v[rule] == true {
					out = slices.Insert(out, 0, rule)
				}
				continue
			}
			out = append(out, ruleText(rule, v[rule]))
		}
	}
	if foreign, ok := f.Meta["foreign"].(map[string]any); ok {
		to := fmt.Sprint(foreign["collection"])
		if key, ok := foreign["key"].(string); ok {
			to += "." + key
		}
		out = append(out, "refers to "+to)
	}
	return strings.Join(out, ", ")
}

func ruleText(rule string, arg any) string {
	switch a := arg.(type) {
	case bool:
		if a {
			return rule
		}
		return "not " + rule
	case string:
		return rule + " " + a
	case []any:
		texts := make([]string, len(a))
		for i, v := range a {
			texts[i] = fmt.Sprint(v)
		}
		return rule + " " + strings.Join(texts, "|")
	}
	raw, err := json.Marshal(arg)
	if err != nil {
		return rule + " " + fmt.Sprint(arg)
	}
	return rule + " " + string(raw)
}
