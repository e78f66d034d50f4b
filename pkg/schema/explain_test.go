package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/schema"
)

// Every member that the schemas have is explained, at every depth that is not a circle.
func TestExplainAll(t *testing.T) {
	t.Parallel()
	seen := 0
	var walk func(path string, depth int)
	walk = func(path string, depth int) {
		x, err := schema.Explain(path)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if x.Type == "" || x.Path != path {
			t.Errorf("%s: %+v", path, x)
		}
		for _, m := range x.Members {
			if depth > 0 {
				walk(path+"."+m.Path, depth-1)
			}
		}
	}
	for _, kind := range schema.Kinds() {
		walk(kind, 2)
	}
	if seen < 200 {
		t.Errorf("only %d paths were looked at", seen)
	}
}

// What a list may have in it, and what rules mean, are told, too; a word that is no member of the project file is looked for in other files.
func TestExplainFinds(t *testing.T) {
	t.Parallel()
	if x, err := schema.Explain("collection.fields.index"); err != nil || fmt.Sprint(x.Values) != "[single unique text sparse background]" {
		t.Errorf("%+v, %v", x, err)
	}
	x, err := schema.Explain("field.validator")
	if err != nil || len(x.Members) == 0 {
		t.Fatal(x, err)
	}
	for _, m := range x.Members {
		if m.Description == "" {
			t.Errorf("the rule %s has no description", m.Path)
		}
	}
	for path, want := range map[string]string{
		"search":              `search: there is no "search"; did you mean collection.search?`,
		"validator":           `validator: there is no "validator"; did you mean field.validator?`,
		"colection":           `colection: there is no "colection"; did you mean "collections"?`,
		"snaphot":             `snaphot: there is no "snaphot"; did you mean "snapshots"?`,
		"feild":               `feild: there is no "feild"; did you mean "field"?`,
		"project.search":      `project.search: there is no "search"; there are actions, `,
		"nonsense":            `nonsense: there is no "nonsense"; there are actions, `,
		"collections.nothere": `collections.nothere: there is no "nothere"; there are audit, `,
	} {
		if _, err := schema.Explain(path); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	if x, err := schema.Explain("project.namespace"); err != nil || x.Pattern == "" || strings.Contains(x.Pattern, "env") {
		t.Errorf("project.namespace: %+v, %v", x, err) // that a variable may stand there goes without saying
	}
	for path, want := range map[string]schema.Explanation{
		"collection.name":               {Type: "string", Required: true, Description: "The name in paths and in the store."},
		"collections.name":              {Type: "string", Required: true, Description: "The name in paths and in the store."},
		"snapshotPath":                  {Type: "string", Default: "snapshots", Description: "Directory of snapshots, relative to the config's directory."},
		"project.collections":           {Type: "list of path of a file or object", Description: "The collections, each an object or the path of a file."},
		"collection.projections.select": {Type: "path of a file or object or null", Required: true, Description: "Paths with 1 to take or 0 to leave out; null for the whole record."},
		"collection.projections.any":    {Type: "path of a file or object"},
		"permissions.team:x.methods":    {Type: "path of a file or object", Required: true, Description: "The operations."},
	} {
		got, err := schema.Explain(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got.Type != want.Type || got.Required != want.Required || got.Default != want.Default || got.Description != want.Description {
			t.Errorf("%s: %+v", path, *got)
		}
	}
	for path, want := range map[string]string{
		"":                         "there is no",
		"nonsense":                 "there are ",
		"collection.feilds":        `did you mean "fields"?`,
		"collection.name.more":     "nothing stands below it",
		"permissions.nobody":       "there are public, user",
		"collection.fields.type..": "nothing stands below it",
	} {
		if _, err := schema.Explain(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
