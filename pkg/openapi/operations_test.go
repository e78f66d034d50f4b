package openapi_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const filesConfig = `
namespace: blog
collections:
  - name: library
    fields:
      - {name: title, type: string, validator: required}
      - {name: file, type: file, validator: required}
      - name: links
        type: "object[]"
        subFields: [{name: url, type: string, validator: required}]
    permissions: {public: {methods: {}}, user: {methods: {get: {count: true}, post: {bulk: true}, put: {bulk: true}, delete: true}}}
  - name: settings
    meta: {singleton: true}
    fields: [{name: text, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {get: true, post: true, put: true, delete: true}}}
`

// TestWrites has records that may be written, and such that may not.
func TestWrites(t *testing.T) {
	doc := encoded(t, seenBy(t, load(t, "", filesConfig), admin()))
	for _, tt := range []struct {
		schema, body string
		valid        bool
	}{
		{"library.create", `{"title": "a", "file": {"src": "data:,x", "path": "a.txt"}}`, true},
		{"library.create", `{"title": "a", "file": {"path": "a.txt"}}`, false},
		{"library.create", `{"title": "a", "file": {"src": "", "path": ""}}`, false},
		{"library.create", `{"title": "a"}`, false},
		{"library.form", `{"title": "a"}`, true}, // the file is a part beside it
		{"library.form", `{"title": "a", "file": {"alt": "of it"}}`, true},
		{"library.form", `{"file": {"alt": "of it"}}`, false},
		{"library.update", `{"file": {"alt": "of what is there"}}`, true},
		{"library.update", `{"links": [{"url": "a"}]}`, true},
		{"library.update", `{"links": [{}]}`, false}, // lists are replaced
		{"svc.JSONPatch", `[{"op": "add", "path": "/a~1b/-", "value": 1}]`, true},
		{"svc.JSONPatch", `[{"op": "add", "path": "a", "value": 1}]`, false},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaOf(t, doc, tt.schema).Validate(value); (err == nil) != tt.valid {
			t.Errorf("%s: %s: %v", tt.schema, tt.body, err)
		}
	}
}

// TestActionLists: an action takes the items of a list one by one, since commas may be in them. Those of a collection's parameters are names.
func TestActionLists(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project.yaml": "namespace: blog\nactions:\n  - name: echo\n    hooks: {handle: {type: javascript, file: echo.js}}\n" +
			"    permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}\n    meta: {methods: {get: {query: [{name: ids, type: 'string[]'}]}}}\n",
		"echo.js": "module.exports = (ctx) => ctx.query",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type parameter struct {
		Name, Style string
		Explode     *bool
	}
	var got struct {
		Paths map[string]map[string]struct{ Parameters []parameter }
	}
	if err := json.Unmarshal(encoded(t, seenBy(t, load(t, dir, ""), admin())), &got); err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Paths["/_/blog/_/actions/echo"]["get"].Parameters {
		if p.Name == "ids" {
			if p.Explode != nil || p.Style != "" { // by default, each item is a parameter
				t.Errorf("%+v", p)
			}
			return
		}
	}
	t.Error("there is no parameter ids")
}

// TestOperations: what a path takes is what the service takes there, and each operation has a name of its own.
func TestOperations(t *testing.T) {
	doc := encoded(t, seenBy(t, load(t, "", filesConfig), admin()))
	var got struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name string }
		}
	}
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for path, want := range map[string]string{
		"/_/blog/library": "delete get post put", "/_/blog/library/{id}": "delete get patch put", "/_/blog/library/_count": "get",
		"/_/blog/settings": "delete get post put", "/_/blog/settings/{id}": "delete get patch put",
	} {
		if diff := cmp.Diff(want, strings.Join(slices.Sorted(maps.Keys(got.Paths[path])), " ")); diff != "" {
			t.Error(path, diff)
		}
		for verb, op := range got.Paths[path] {
			if other := seen[op.OperationID]; other != "" || op.OperationID == "" {
				t.Errorf("%s %s is called %q, as %s", verb, path, op.OperationID, other)
			}
			seen[op.OperationID] = path
			for _, p := range op.Parameters {
				if p.Name == "replace" && strings.HasSuffix(path, "library") {
					t.Error("a bulk update replaces nothing, and has it as a parameter")
				}
			}
		}
	}
}
