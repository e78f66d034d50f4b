package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/svcctl/svc/pkg/access"
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

const othersConfig = `
namespace: blog
collections:
  - name: books
    fields:
      - {name: title, type: string}
      - {name: state, type: string}
      - {name: stock, type: number, readonly: true}
      - {name: author, type: string, meta: {foreign: {collection: people}}}
      - {name: agent, type: string, meta: {foreign: {collection: agents}}}
      - {name: shadow, type: string, meta: {foreign: {collection: people}}}
      - {name: cover, type: file}
      - {name: draft, type: file}
    permissions:
      public: {methods: {get: {allow: true, lookup: true}, post: true, put: true}, readonlyFields: [state], hiddenFields: [shadow, draft]}
      user: {methods: {}}
  - name: plain
    fields: [{name: author, type: string, meta: {foreign: {collection: people}}}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: people
    fields: [{name: name, type: string}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: agents
    fields: [{name: name, type: string}]
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
`

// TestOthers: of relations to what the asker may not read, of hidden files, and of fields that they can't write, there is nothing where they would be of use.
func TestOthers(t *testing.T) {
	doc := encoded(t, seenBy(t, load(t, "", othersConfig), access.Anonymous()))
	var got struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct {
					Enum  []string
					Items struct{ Enum []string }
				}
			}
			RequestBody struct{ Content map[string]json.RawMessage }
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	enum := func(path, parameter string) string {
		for _, p := range got.Paths[path]["get"].Parameters {
			if p.Name == parameter {
				return strings.Join(append(p.Schema.Enum, p.Schema.Items.Enum...), " ")
			}
		}
		return "none"
	}
	schemas := got.Components.Schemas
	properties := func(name string) string { return strings.Join(slices.Sorted(maps.Keys(schemas[name].Properties)), " ") }
	for _, tt := range []struct{ what, got, want string }{
		{"lookup", enum("/_/blog/books", "lookup"), "author"},
		{"lookup without the right", enum("/_/blog/plain", "lookup"), "none"},
		{"files", enum("/_/blog/books/{id}/{field}/{name}", "field"), "cover"},
		{"what is created", properties("books.create"), "agent author cover title"},
		{"what is changed", properties("books.update"), "_rev agent author cover title"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, tt.got, tt.want)
		}
	}
	for field, looked := range map[string]bool{"author": true, "agent": false} {
		if is := strings.Contains(string(schemas["books"].Properties[field]), "$ref"); is != looked {
			t.Errorf("%s can be a record: %v, want %v", field, is, looked)
		}
	}
	if strings.Contains(string(schemas["plain"].Properties["author"]), "$ref") {
		t.Error("without lookup a relation is described as a record")
	}
	for verb, op := range map[string]string{"post": "/_/blog/books", "put": "/_/blog/books/{id}"} {
		if form := string(got.Paths[op][verb].RequestBody.Content["multipart/form-data"]); !strings.Contains(form, `"cover"`) || strings.Contains(form, `"draft"`) {
			t.Errorf("%s takes %s", verb, form)
		}
	}
	if strings.Contains(string(doc), "shadow") || strings.Contains(string(doc), "draft") {
		t.Error("what is hidden is told of")
	}
}

// TestNamesOfFields: names are spelt out where there are no others, and not too many.
func TestNamesOfFields(t *testing.T) {
	for _, tt := range []struct {
		name, strict string
		fields       int
		spelt        bool
	}{
		{"few", "true", 3, true}, {"undeclared ones as well", "false", 3, false}, {"very many", "true", 1000, false},
	} {
		var config strings.Builder
		config.WriteString("namespace: n\ncollections:\n  - name: c\n    strictFields: " + tt.strict + "\n    permissions: {public: {methods: {get: true}}, user: {methods: {}}}\n    fields:\n")
		for i := range tt.fields {
			fmt.Fprintf(&config, "      - {name: f%d, type: string}\n", i)
		}
		doc := encoded(t, seenBy(t, load(t, "", config.String()), access.Anonymous()))
		for schema, name := range map[string]string{"c.field": `"f0"`, "c.order": `"-f0"`} {
			if err := schemaOf(t, doc, schema).Validate("nothing"); (err != nil) != tt.spelt {
				t.Errorf("%s: %s is spelt out: %v, want %v", tt.name, schema, err != nil, tt.spelt)
			}
			if err := schemaOf(t, doc, schema).Validate(strings.Trim(name, `"`)); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

// TestWhatScriptsHide: fields of actions that are hidden are no parameters, a list that a script makes has no changes to follow, and who deletes one record does not
// delete many.
func TestWhatScriptsHide(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"run.js": "module.exports = () => []\n", "project.yaml": `
namespace: n
collections:
  - name: made
    fields: [{name: title, type: string}]
    hooks: {get: {handle: {type: javascript, file: run.js}}}
    permissions: {public: {methods: {get: true, delete: true}}, user: {methods: {}}}
  - name: stored
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {get: true, delete: {bulk: true}}}, user: {methods: {}}}
actions:
  - name: act
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
    hooks: {handle: {type: javascript, file: run.js}}
    meta:
      methods:
        get: {query: [{name: shown, type: string}, {name: veiled, type: string, hidden: true}, {name: fixed, type: string, readonly: true}]}
        post: {data: [{name: shown, type: string}, {name: in, type: object, subFields: [{name: veiled, type: string, hidden: true}]}, {name: fixed, type: string, readonly: true}]}
  - name: closed
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
    hooks: {handle: {type: javascript, file: run.js}}
    meta: {methods: {post: {data: [{name: shown, type: string}]}}}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc := encoded(t, seenBy(t, load(t, dir, ""), access.Anonymous()))
	var got struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/_/n/made": "get", "/_/n/made/_changes": "", "/_/n/stored": "delete get", "/_/n/stored/_changes": "get", "/_/n/_/actions/act": "get post", "/_/n/_/actions/closed": "post",
	} {
		if verbs := strings.Join(slices.Sorted(maps.Keys(got.Paths[path])), " "); verbs != want {
			t.Errorf("%s: %q, want %q", path, verbs, want)
		}
	}
	if !strings.Contains(string(doc), "shown") || strings.Contains(string(doc), "veiled") || strings.Contains(string(doc), "fixed") {
		t.Error("what is hidden, or can't be given, is told of")
	}
	for path, want := range map[string]string{
		"/_/n/_/actions/act":    `{"type":"object","properties":{"shown":{"type":["string","null"]},"in":{"type":["object","null"]}},"additionalProperties":false}`, // in takes veiled
		"/_/n/_/actions/closed": `{"type":"object","properties":{"shown":{"type":["string","null"]}},"additionalProperties":false}`,
	} {
		if !strings.Contains(string(doc), `"application/json":{"schema":`+want) {
			t.Errorf("%s does not take %s", path, want)
		}
	}
}
