package project

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// runExplainAll lists all members below a path. One that is of the kind of something around it, such as the fields of a field, is not entered.
func runExplainAll(st *command.State, path string) error {
	x, err := schema.Explain(path)
	if errs.KindOf(err) == errs.Invalid && err != nil {
		return command.Usagef("%v", err)
	}
	if err != nil {
		return err
	}
	t := output.NewTable("PATH", "TYPE", "DESCRIPTION")
	result := output.Result{Table: t}
	var all []schema.Explanation
	var walk func(x *schema.Explanation, at string) error
	walk = func(x *schema.Explanation, at string) error {
		for _, m := range x.Members {
			if strings.HasPrefix(m.Path, "<") { // any name: what it is stands at the member
				continue
			}
			here := at + "." + m.Path
			line := m
			line.Path, line.Members = here, nil
			all, result.Names = append(all, line), append(result.Names, here)
			required := ""
			if m.Required {
				required = " (required)"
			}
			t.Row(here, m.Type+required, m.Description)
			if slices.Contains(strings.Split(at, "."), m.Path) {
				continue
			}
			below, err := schema.Explain(here)
			if err != nil { // it has no members
				continue
			}
			if err := walk(below, here); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(x, path); err != nil {
		return err
	}
	result.Value = map[string]any{"items": all}
	st.FitTable(t)
	return st.Printer().Print(result)
}
