package project_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

// A rule that compares two fields needs the other one, and one that it can be compared with.
func TestRulesAcrossFields(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"{gt: {field: n}}":       "",
		"{gt: {field: o.n}}":     "",
		"{gt: {field: nope}}":    `there is no field "nope" beside it`,
		"{gt: {field: o.nope}}":  `there is no field "o.nope" beside it`,
		"{gt: {field: list.n}}":  `there is no field "list.n" beside it`,
		"{gt: {field: x}}":       "a field can't be compared with itself",
		"{gt: {field: s}}":       "s is of type string, which is not the same",
		"{gt: {filed: n}}":       "gt takes a value, or {field: <another field of the same object>}",
		"{min: {field: n}}":      "min takes",
		"{eq: {field: ''}}":      "eq takes a value, or {field: <another field of the same object>}",
		"{eq: {field: n, a: 1}}": "eq takes a value, or {field: <another field of the same object>}",
	} {
		dir := write(t, `
-- project.yaml --
namespace: blog
collections:
  - name: a
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields:
      - {name: x, type: number, validator: `+rule+`}
      - {name: n, type: number}
      - {name: s, type: string}
      - {name: o, type: object, subFields: [{name: n, type: number}]}
      - {name: list, type: "object[]", subFields: [{name: n, type: number}]}
`)
		_, problems := project.Load(dir, "project.yaml", env)
		var text strings.Builder
		for _, p := range problems {
			text.WriteString(p.Message)
		}
		got := text.String()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}
