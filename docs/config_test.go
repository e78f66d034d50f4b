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
	for _, name := range order(&root) {
		fmt.Fprintf(&b, "## %s\n\n", name)
		table(&b, root.Defs[name])
	}
	b.WriteString("## Field types and rules\n\nTypes: `" + strings.Join(fieldtype.Names(), "`, `") +
		"`.\n\nRules of a `validator`, as an object (`{min: 1, max: 100}`) or a tag string (`required,min=1`): `" +
		strings.Join(fieldtype.RuleNames(), "`, `") + "`. `min` and `max` are the length of a string or a list, and the value of a number.\n")
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

func table(b *strings.Builder, s *shape) {
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
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, cell(typeOf(p)), def, cell(p.Description))
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
	case len(s.Enum) > 0 && len(s.Enum) <= 12:
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

// isPath tells the path of a file, which may stand in the place of every object.
func isPath(s *shape) bool { return strings.HasPrefix(s.Pattern, `\.(yaml`) }

const head = `# Config files

<!-- Written by make docs from the types in pkg/schema. -->

A project is a directory with ` + "`project.yaml` (or `.yml`, `.json`)" + `. Files are YAML, or JSON with comments, told apart by their
ending. Wherever an object may stand, a string is the path of a file that holds it, relative to the file it stands in; it stays
inside the project's directory. ` + "`${env:NAME}` and `${file:PATH}`" + ` are replaced in values and in keys; one that is missing is an
error. An unknown key is an error that names the nearest known one. All problems are reported at once, each as
` + "`file:line:column: path: message`." + ` The projects in ` + "`projects/`" + ` show most of what is here.

` + "`svcctl project validate DIR`" + ` checks a directory without a service. ` + "`svcctl project schema project`" + ` (collection, fields, permissions,
…) prints the JSON Schema for an editor: name it in a first line ` + "`# yaml-language-server: $schema=…`" + ` or the key ` + "`$schema`." + `

Some keys are part of the format, but this version of svcd does not act on them yet. It refuses a config that uses one where
ignoring it would break what the config promises: jobs, actions, assets, hooks, cors, search and text indexes, file fields, image
filters, i18n, singletons, scripts, relations to other projects, ` + "`renamedFrom`" + ` of collections and fields, the audit log and enabled
snapshot profiles (the list is ` + "`pkg/project/unsupported.go`" + `).

The following are accepted, have no effect yet and grant nothing:

- the rights ` + "`lookup`, `aggregate` and `facet` of `methods`, and `allowAggregate`, `maxLookups`, `maxLookupDepth`" + ` and
  ` + "`maxPipelineStages` of `queryLimits`" + `: there are no lookups, pipelines and facets;
- sets for ` + "`team:<slug>`" + `: nobody is in a team;
- ` + "`upload.allowedMimeTypes` and `uploadPath`" + `: there are no uploads; ` + "`upload.maxBodySize`" + ` does bound every request;
- ` + "`snapshotPath`" + `, snapshot profiles that are not enabled, and the right ` + "`snapshot`" + ` of admin tokens;
- ` + "`defaultLanguage` and `languageOverride`" + ` of collections and indexes, and every ` + "`meta.openapi`" + `.

`
