package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// Explanation says what may stand at a place of a config, as its JSON Schema does.
type Explanation struct {
	Path        string        `json:"path"`
	Type        string        `json:"type"`
	Required    bool          `json:"required,omitempty"`
	Default     any           `json:"default,omitempty"`
	Values      []any         `json:"values,omitempty"` // the closed list of them
	Pattern     string        `json:"pattern,omitempty"`
	Minimum     any           `json:"minimum,omitempty"`
	Maximum     any           `json:"maximum,omitempty"`
	Description string        `json:"description,omitempty"`
	Members     []Explanation `json:"members,omitempty"`
}

// Explain explains what stands at a path such as collection.fields.type: a kind of config file or a member of the project
// file, and members behind it. Lists and the names in maps are passed through. The error for a path that there is not is
// errs.Invalid, and says what there is.
func Explain(path string) (*Explanation, error) {
	first, rest, more := strings.Cut(path, ".")
	if _, ok := kinds[first]; !ok {
		first, rest, more = "project", path, true
	}
	data, err := JSONSchema(first)
	if err != nil {
		return nil, err
	}
	x := explainer{}
	if err := json.Unmarshal(data, &x.root); err != nil {
		return nil, errs.Wrap(err, "read the JSON Schema of "+first)
	}
	at := place{schema: x.root}
	if more {
		for name := range strings.SplitSeq(rest, ".") {
			next, ok := x.step(at.schema, name)
			if !ok {
				hint := x.known(at.schema, name)
				if first == "project" && !strings.HasPrefix(path, "project.") {
					hint = notOfProject(name, hint)
				}
				return nil, errs.New(errs.Invalid, "unknown_path", "%s: there is no %q; %s", path, name, hint)
			}
			at = next
		}
	}
	out := x.explain(at, path)
	for _, m := range x.members(at.schema) {
		out.Members = append(out.Members, x.explain(m, m.name))
	}
	return &out, nil
}

// notOfProject says what a word means that is no member of the project file: a kind of config file, or a member of one. hint is what to say else.
func notOfProject(word, hint string) string {
	if near := nearest(word, Kinds()); near != "" && strings.HasPrefix(hint, "there are ") {
		return fmt.Sprintf("did you mean %q?", near)
	}
	var kindsWith []string
	for _, kind := range []string{"collection", "field", "meta", "job", "action", "snapshot"} { // those that people look into
		if _, err := Explain(kind + "." + word); err == nil {
			kindsWith = append(kindsWith, kind+"."+word)
		}
	}
	if len(kindsWith) > 0 {
		return "did you mean " + strings.Join(kindsWith, ", or ") + "?"
	}
	return hint
}

// place is a schema with what the object around it says of it.
type place struct {
	name     string
	schema   map[string]any
	required bool
}

// explainer walks a JSON Schema.
type explainer struct{ root map[string]any }

// options are the forms that a value may have, references followed.
func (x explainer) options(s map[string]any) []map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := x.root["$defs"].(map[string]any)
		target, _ := defs[strings.TrimPrefix(ref, refPrefix)].(map[string]any)
		return x.options(target)
	}
	list, ok := s["anyOf"].([]any)
	if !ok {
		return []map[string]any{s}
	}
	var out []map[string]any
	for _, o := range list {
		if o, ok := o.(map[string]any); ok && o["pattern"] != substitution {
			out = append(out, x.options(o)...)
		}
	}
	return out
}

// objects are the forms that have members: those of a list's elements and of a map's values, too.
func (x explainer) objects(s map[string]any) []map[string]any {
	var out []map[string]any
	for _, o := range x.options(s) {
		if items, ok := o["items"].(map[string]any); ok {
			out = append(out, x.objects(items)...)
		} else if _, ok := o["properties"]; ok {
			out = append(out, o)
		}
	}
	return out
}

// members are those that objects at a place may have, by name.
func (x explainer) members(s map[string]any) []place {
	byName := map[string]place{}
	for _, o := range x.objects(s) {
		required, _ := o["required"].([]any)
		properties, _ := o["properties"].(map[string]any)
		for name, m := range properties {
			if m, ok := m.(map[string]any); ok && name != "$schema" {
				byName[name] = place{name, m, slices.Contains(required, any(name))}
			}
		}
		if values, ok := o["additionalProperties"].(map[string]any); ok {
			byName["<name>"] = place{name: "<name>", schema: values}
		}
	}
	var out []place
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

// step finds a member.
func (x explainer) step(s map[string]any, name string) (place, bool) {
	var values *place
	for _, m := range x.members(s) {
		switch m.name {
		case name:
			return m, true
		case "<name>":
			values = &m
		}
	}
	for _, o := range x.objects(s) {
		forms, _ := o["patternProperties"].(map[string]any)
		for form, m := range forms {
			if m, ok := m.(map[string]any); ok && regexp.MustCompile(form).MatchString(name) { // of ours, and small
				return place{name: name, schema: m}, true
			}
		}
	}
	if values == nil {
		return place{}, false
	}
	if next, ok := x.step(values.schema, name); ok { // the name in the map is left out
		return next, true
	}
	return *values, true
}

func (x explainer) known(s map[string]any, name string) string {
	var names []string
	for _, m := range x.members(s) {
		names = append(names, m.name)
	}
	if len(names) == 0 {
		return "nothing stands below it"
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(names, ", ")
}

func (x explainer) explain(p place, path string) Explanation {
	s := p.schema
	out := Explanation{Path: path, Type: x.typeName(s), Required: p.required, Default: annotation(s, "default")}
	out.Description, _ = annotation(s, "description").(string)
	for _, o := range x.options(s) {
		if items, ok := o["items"].(map[string]any); ok && o["type"] == "array" {
			o = items
			for _, form := range x.options(items) {
				if values, ok := form["enum"].([]any); ok {
					out.Values = append(out.Values, values...)
				}
			}
		} else if values, ok := o["enum"].([]any); ok {
			out.Values = append(out.Values, values...)
		}
		if form, ok := o["pattern"].(string); ok && form != filePattern {
			out.Pattern = strings.TrimSuffix(form, "|"+substitution)
		}
		if out.Minimum == nil {
			out.Minimum = o["minimum"]
		}
		if most := o["maximum"]; out.Maximum == nil && most != float64(maxInt) {
			out.Maximum = most
		}
	}
	return out
}

// annotation finds what is said of a value as a whole, or of one of its forms.
func annotation(s map[string]any, key string) any {
	if v, ok := s[key]; ok {
		return v
	}
	forms, _ := s["anyOf"].([]any)
	for _, form := range forms {
		if form, ok := form.(map[string]any); ok {
			if v := annotation(form, key); v != nil {
				return v
			}
		}
	}
	return nil
}

// typeName names the forms of a value for people.
func (x explainer) typeName(s map[string]any) string {
	var names []string
	for _, o := range x.options(s) {
		name, _ := o["type"].(string)
		items, list := o["items"].(map[string]any)
		value, constant := o["const"]
		_, enum := o["enum"]
		switch {
		case o["pattern"] == filePattern:
			name = "path of a file"
		case list:
			name = "list of " + x.typeName(items)
		case name == "array":
			name = "list"
		case constant:
			name = fmt.Sprint(value)
		case name == "" && enum:
			name = "string"
		case name == "":
			name = "any value"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
