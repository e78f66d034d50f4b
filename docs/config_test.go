package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

var update = flag.Bool("update", false, "write config.md anew")

// TestConfigDoc keeps config.md what the types of config files say.
func TestConfigDoc(t *testing.T) {
	t.Parallel()
	want := configDoc(t)
	if *update {
		if err := os.WriteFile("config.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("config.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("config.md is not what config files may hold; make docs writes it (-want +got):\n%s", diff)
	}
}

// shape is the part of a JSON Schema that the reference shows.
type shape struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Pattern     string            `json:"pattern"`
	Enum        []any             `json:"enum"`
	Default     any               `json:"default"`
	Required    []string          `json:"required"`
	Properties  map[string]*shape `json:"properties"`
	Items       *shape            `json:"items"`
	AnyOf       []*shape          `json:"anyOf"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Patterns    map[string]*shape `json:"patternProperties"`
	Defs        map[string]*shape `json:"$defs"`
}

const refPrefix = "#/$defs/"

func configDoc(t *testing.T) string {
	t.Helper()
	data, err := schema.JSONSchema("project")
	if err != nil {
		t.Fatal(err)
	}
	var root shape
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(head)
	known := notYetKeys(t, &root)
	reached := reachable(&root, known)
	for _, name := range order(&root) {
		fmt.Fprintf(&b, "## %s\n\n", name)
		if !reached[name] {
			b.WriteString("Not in this version: what leads here is refused.\n\n")
		}
		table(&b, name, root.Defs[name], known)
	}
	b.WriteString(searching())
	b.WriteString("## Field types and rules\n\nTypes: `" + strings.Join(fieldtype.Names(), "`, `") +
		"`.\n\nRules of a `validator`, as an object (`{min: 1, max: 100}`) or a tag string (`required,min=1`): `" +
		strings.Join(fieldtype.RuleNames(), "`, `") + "`. `min` and `max` are the length of a string or a list, and the value of a number. `gt`, `gte`, `lt`, `lte`, `before`, `after`, `eq` and `ne` " +
		"take a value, or `{field: startsAt}`, another field of the same object (a path may lead down from there, through objects): where both have a value, they are " +
		"compared whenever one of the two is written, unless one of them is hidden from who writes. `exists` asks that the record which the field refers to (`meta.foreign`) is there and that who " +
		"writes may read it; what the field held before may stay.\n")
	return b.String()
}

// order lists the objects: what most projects use first, then the rest by name.
func order(root *shape) []string {
	out := []string{
		"Project", "Collection", "Field", "FieldMeta", "Foreign", "Permissions", "PermissionSet", "Methods", "MethodRights", "Index",
		"Projection", "QueryLimits", "Bulk", "CollectionMeta", "QueryParam", "Admin", "AdminToken", "Upload", "ProjectMeta", "Legacy",
	}
	for _, name := range slices.Sorted(maps.Keys(root.Defs)) {
		if !slices.Contains(out, name) && len(root.Defs[name].Properties) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// mark says of a key of the reference that this version doesn't do it.
type mark struct {
	at   string // Object.key
	what string // the values that are meant; "" is all of them
	to   string // the object that only those values lead to
}

// refused says where the reference has each row of the table of what this version refuses.
func refused() map[string][]mark {
	return map[string][]mark{
		"a relation to another project": {{at: "Foreign.namespace", what: "another project"}},
	}
}

// notYetKeys gives what a key's meaning begins with, by Object.key. It fails when the table of what is refused and
// refused differ, or a key is not there.
func notYetKeys(t *testing.T, root *shape) map[string]keyNote {
	t.Helper()
	notes := map[string]keyNote{}
	places := refused()
	if diff := cmp.Diff(slices.Sorted(slices.Values(project.NotYet())), slices.Sorted(maps.Keys(places))); diff != "" {
		t.Errorf("refused is not the table of pkg/project/unsupported.go (-table +refused):\n%s", diff)
	}
	for _, marks := range places {
		for _, m := range marks {
			if _, twice := notes[m.at]; twice {
				t.Errorf("%s is marked twice", m.at)
			}
			if m.what == "" {
				notes[m.at] = keyNote{text: "**Not in this version: refused.** ", closed: true}
			} else {
				notes[m.at] = keyNote{text: "**Not in this version, refused: " + m.what + ".** ", to: m.to}
			}
		}
	}
	for at := range notes {
		object, key, _ := strings.Cut(at, ".")
		if root.Defs[object] == nil || root.Defs[object].Properties[key] == nil {
			t.Errorf("there is no key %s", at)
		}
	}
	return notes
}

// keyNote is what the reference says first of a key.
type keyNote struct {
	text   string
	closed bool   // nothing behind the key is used
	to     string // the object behind the key that is not used
}

// reachable gives the objects that a config may have in this version.
func reachable(root *shape, notes map[string]keyNote) map[string]bool {
	reached := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if reached[name] || root.Defs[name] == nil {
			return
		}
		reached[name] = true
		for key, p := range root.Defs[name].Properties {
			note := notes[name+"."+key]
			for _, next := range refs(p) {
				if !note.closed && next != note.to {
					visit(next)
				}
			}
		}
		for _, p := range root.Defs[name].Patterns {
			for _, next := range refs(p) {
				visit(next)
			}
		}
	}
	visit("Project")
	return reached
}

// refs gives the objects that a value may be or hold.
func refs(s *shape) []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.Ref != "" {
		out = append(out, strings.TrimPrefix(s.Ref, refPrefix))
	}
	for _, option := range s.AnyOf {
		out = append(out, refs(option)...)
	}
	for _, p := range s.Properties {
		out = append(out, refs(p)...)
	}
	out = append(out, refs(s.Items)...)
	var more shape
	if json.Unmarshal(s.Additional, &more) == nil {
		out = append(out, refs(&more)...)
	}
	return out
}

func table(b *strings.Builder, object string, s *shape, notes map[string]keyNote) {
	b.WriteString("| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[key]
		if key == "$schema" {
			continue
		}
		name := "`" + key + "`"
		if slices.Contains(s.Required, key) {
			name += " (required)"
		}
		def := ""
		if p.Default != nil {
			text, err := json.Marshal(p.Default)
			if err != nil {
				continue
			}
			def = "`" + string(text) + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, cell(typeOf(p)), def, notes[object+"."+key].text+cell(p.Description))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Patterns)) {
		for prefix, row := range map[string]string{
			"[Tt][Oo][Kk][Ee][Nn]": "| `token:<VALUE>`, `token:sha256:<hex>` | [PermissionSet](#permissionset) |  | Who sends that token in the header Token. |\n",
			"team:":                "| `team:<slug>` | [PermissionSet](#permissionset) |  | Members of that team, beside the set user. |\n",
		} {
			if strings.HasPrefix(key, "^"+prefix) {
				b.WriteString(row)
			}
		}
	}
	b.WriteString("\n")
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s) }

// typeOf says in a few words what a value may be.
func typeOf(s *shape) string {
	switch {
	case s == nil:
		return "anything"
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, refPrefix)
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case len(s.Enum) > 0 && len(s.Enum) <= 16:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", v)
		}
		return strings.Join(words, ", ")
	case len(s.AnyOf) > 0:
		var words []string
		for _, option := range s.AnyOf {
			if word := typeOf(option); !isPath(option) && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		return strings.Join(words, " or ")
	case s.Items != nil:
		return "list of " + typeOf(s.Items)
	case s.Type == nil:
		return "anything"
	}
	if list, ok := s.Type.([]any); ok {
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = fmt.Sprint(v)
		}
		return strings.Join(words, " or ")
	}
	if s.Type == "object" {
		var inner shape
		if json.Unmarshal(s.Additional, &inner) == nil && len(s.Additional) > 5 {
			return "map to " + typeOf(&inner)
		}
	}
	return fmt.Sprint(s.Type)
}

// isPath tells the path of a file, which may stand in the place of every object, and ${env:NAME}, which may in that of every text.
func isPath(s *shape) bool {
	return strings.HasPrefix(s.Pattern, `\.(yaml`) || strings.HasPrefix(s.Pattern, `\$\{`)
}

const head = `# Config files

<!-- Written by make docs from the types in pkg/schema and the table in pkg/project/unsupported.go. -->

A project is a directory with ` + "`project.yaml` (or `.yml`, `.json`)" + `. Files are YAML, or JSON with comments, told apart by their
ending. Wherever an object may stand, a string is the path of a file that holds it, relative to the file it stands in; it stays
inside the project's directory. In a list, a pattern such as ` + "`collections/*.yaml`" + ` stands for the files that
match (` + "`*`, `?`, `[a-z]`" + `, one level of folders each; not hidden ones, nor the file it stands in), in the order of their names; one
that matches none is an error. ` + "`${env:NAME}` and `${file:PATH}`" + ` are replaced in values and in keys; one that is missing is an
error. An unknown key is an error that names the nearest known one. All problems are reported at once, up to 1000, each as
` + "`file:line:column: path: message`." + ` The projects in ` + "`projects/`" + ` show most of what is here.

A config has at most 1000 files of 1 MiB each, 1,000,000 values (what an alias, ` + "`<<`" + ` or a reference names counts each time), 1000 patterns, keys of 1000 bytes,
64 levels, fields times languages of 500,000, and patterns of fields whose programs have 1,000,000 steps together. An object written in lines of YAML has about 10,000 keys, for the sake of what reads it; in JSON there may be more.

` + "`svcctl project init DIR`" + ` writes a small project to start from, ` + "`svcctl project validate DIR`" + ` checks a directory without a service,
` + "`svcctl project render DIR`" + ` prints its config as one file, with what is referred to in its place and secrets as ` + "`***`" + `,
` + "`svcctl project fmt DIR --check`" + ` finds files whose form is untidy, which ` + "`-w`" + ` mends without a change of what they say, and
` + "`svcctl project explain collection.fields.meta.widget`" + ` says what a member is. ` + "`svcctl project schema project`" + ` (collection, fields,
permissions, …) prints the JSON Schema for an editor: name it in a first line ` + "`# yaml-language-server: $schema=…`" + `, which init writes, or
the key ` + "`$schema`." + `

## What this version does not do

Some keys are part of the format, but this version of svcd does not act on them. Most are **refused**, since a job that never
runs would be worse than a config that does not load:

- of a field: relations to another project.

What is for editors (labels, widgets, sections, …) is checked, kept, and given back by the collection routes.

Below, keys are marked with **Not in this version: refused.**

`
