package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

// kinds are the kinds of config files that have a JSON Schema of their own.
var kinds = map[string]reflect.Type{
	"project":     reflect.TypeFor[Project](),
	"collection":  reflect.TypeFor[Collection](),
	"field":       reflect.TypeFor[Field](),
	"fields":      reflect.TypeFor[[]*Field](),
	"index":       reflect.TypeFor[Index](),
	"indexes":     reflect.TypeFor[[]*Index](),
	"permissions": reflect.TypeFor[Permissions](),
	"projections": reflect.TypeFor[map[string]*Projection](),
	"hooks":       reflect.TypeFor[Hooks](),
	"meta":        reflect.TypeFor[CollectionMeta](),
	"imageFilter": reflect.TypeFor[ImageFilter](),
	"job":         reflect.TypeFor[Job](),
	"action":      reflect.TypeFor[Action](),
	"asset":       reflect.TypeFor[Asset](),
	"snapshot":    reflect.TypeFor[Snapshot](),
	"suite":       reflect.TypeFor[Suite](),
	"golden":      reflect.TypeFor[Golden](),
}

// kindKeys are the patterns of the keys of kinds that are maps.
var kindKeys = map[string]string{"projections": "projection", "imageFilter": "filter"}

// Kinds lists what JSONSchema has a schema for.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// JSONSchema gives the JSON Schema (draft 2020-12) of one kind of config file, made from the Go types that the loader
// fills. The error for an unknown kind is errs.Invalid.
func JSONSchema(kind string) ([]byte, error) {
	t, ok := kinds[kind]
	if !ok {
		return nil, errs.New(errs.Invalid, "unknown_kind", "unknown kind %q; there are %s", kind, strings.Join(Kinds(), ", "))
	}
	g := &generator{defs: map[string]any{}}
	root := g.schema(t, &member{keys: kindKeys[kind]})
	if direct, ok := g.inline(root); ok {
		root = direct
	}
	g.top(root)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "svc " + kind
	root["$defs"] = g.defs
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, errs.Wrap(err, "write the JSON Schema of "+kind)
	}
	return append(out, '\n'), nil
}

// generator makes JSON Schemas of Go types; every struct becomes a definition.
type generator struct {
	defs map[string]any
}

const refPrefix = "#/$defs/"

// filePattern is the form of the path of a config file.
const filePattern = `\.(yaml|yml|json)$`

// inline gives the object behind "a path or an object": the top of a file is the object itself.
func (g *generator) inline(s map[string]any) (map[string]any, bool) {
	options, ok := s["anyOf"].([]any)
	if !ok {
		return nil, false
	}
	last, ok := options[len(options)-1].(map[string]any)
	return last, ok
}

// top lets the object at the top of a file have the key $schema, which editors read.
func (g *generator) top(root map[string]any) {
	s := root
	if ref, ok := root["$ref"].(string); ok {
		s, _ = g.defs[strings.TrimPrefix(ref, refPrefix)].(map[string]any)
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok { // it is a list
		return
	}
	properties["$schema"] = map[string]any{} // the loader does not look at it
	if names, ok := s["propertyNames"].(map[string]any); ok {
		s["propertyNames"] = anyOf(names, map[string]any{"const": "$schema"})
	}
}

// schema gives the schema of values of t in the place of a member.
func (g *generator) schema(t reflect.Type, m *member) map[string]any {
	s := g.bare(t, m)
	if m.doc != "" {
		s["description"] = m.doc
	}
	if m.def != "" && m.def != "0" {
		s["default"] = m.node(t, Position{}).value(nil)
	}
	if m.nullable {
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	}
	return s
}

func (g *generator) bare(t reflect.Type, m *member) map[string]any {
	if own, ok := reflect.TypeAssert[configValue](reflect.New(t)); ok {
		return own.configSchema(g, m)
	}
	switch t {
	case freeObject:
		return reference(map[string]any{"type": "object"})
	case freeList:
		return map[string]any{"type": "array"}
	case freeValue:
		return freeSchema(m)
	case timeType:
		return text(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?$`)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.bare(t.Elem(), m)
	case reflect.Struct:
		return reference(map[string]any{"$ref": g.define(t)})
	case reflect.Map:
		return reference(g.mapSchema(t, m))
	case reflect.Slice:
		return g.listSchema(t, m)
	case reflect.String:
		return stringSchema(m)
	case reflect.Bool:
		if m.only == "false" {
			return map[string]any{"const": false}
		}
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return bounds(map[string]any{"type": "number"}, m)
	default:
		s := bounds(map[string]any{"type": "integer"}, m)
		if m.max == nil {
			s["maximum"] = maxInt
		}
		return s
	}
}

// define adds a struct to the definitions, once, and gives the reference to it.
func (g *generator) define(t reflect.Type) string {
	name := t.Name()
	if _, ok := g.defs[name]; ok {
		return refPrefix + name
	}
	def := map[string]any{}
	g.defs[name] = def // before its members, which may lead back to it
	maps.Copy(def, g.structSchema(t))
	return refPrefix + name
}

func (g *generator) structSchema(t reflect.Type) map[string]any {
	o := describeStruct(t)
	properties := map[string]any{}
	required := []string{}
	for i := range o.members {
		m := &o.members[i]
		properties[m.name] = g.schema(t.Field(m.index).Type, m)
		if m.required {
			required = append(required, m.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": o.rest >= 0}
	if len(required) > 0 {
		s["required"] = required
	}
	if t == reflect.TypeFor[SearchConfig]() {
		s["allOf"] = []any{requiredFor("vector", "vector"), requiredFor("rrf", "rrf")}
	}
	return s
}

// requiredFor has an object of a mode have a member.
func requiredFor(mode, member string) map[string]any {
	return map[string]any{
		"if":   map[string]any{"properties": map[string]any{"mode": map[string]any{"const": mode}}, "required": []string{"mode"}},
		"then": map[string]any{"required": []string{member}},
	}
}

func (g *generator) mapSchema(t reflect.Type, m *member) map[string]any {
	s := map[string]any{
		"type": "object", "additionalProperties": g.schema(t.Elem(), &member{}),
		"properties": map[string]any{},
	}
	if m.keys != "" {
		s["propertyNames"] = map[string]any{"pattern": patterns[m.keys].expr.String()}
	}
	return s
}

func (g *generator) listSchema(t reflect.Type, m *member) map[string]any {
	s := map[string]any{"type": "array", "items": g.schema(t.Elem(), &member{enum: m.enum, pattern: m.pattern})}
	if m.min != nil {
		s["minItems"] = int(*m.min)
	}
	if m.listref {
		return reference(s)
	}
	return s
}

// reference lets the path of a file stand in a value's place.
func reference(s map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string", "pattern": filePattern}, s}}
}

func stringSchema(m *member) map[string]any {
	switch {
	case m.enum != nil:
		return oneOf(m.enum)
	case m.pattern != "":
		return text(patterns[m.pattern].expr.String())
	case m.required:
		return map[string]any{"type": "string", "minLength": 1}
	}
	return text("")
}

// substitution is the form of a string whose value is known when it is loaded, so that no form of it can be asked for.
const substitution = `\$\{(env|file):[^}]+\}`

// oneOf is one of a list of words.
func oneOf(words []string) map[string]any {
	return anyOf(map[string]any{"type": "string", "enum": words}, map[string]any{"type": "string", "pattern": substitution})
}

func bounds(s map[string]any, m *member) map[string]any {
	if m.min != nil {
		s["minimum"] = *m.min
	}
	if m.max != nil {
		s["maximum"] = *m.max
	}
	return s
}

// freeSchema is any value of the member's types.
func freeSchema(m *member) map[string]any {
	if m.types == nil {
		return map[string]any{}
	}
	var options []any
	for _, t := range m.types {
		switch {
		case t == "list":
			t = "array"
		case t == "string" && m.enum != nil:
			options = append(options, oneOf(m.enum))
			continue
		}
		options = append(options, map[string]any{"type": t})
	}
	return map[string]any{"anyOf": options}
}

func anyOf(options ...map[string]any) map[string]any { return map[string]any{"anyOf": options} }

// text is a string, of a form if there is one.
func text(form string) map[string]any {
	s := map[string]any{"type": "string"}
	if form != "" {
		s["pattern"] = form + "|" + substitution
	}
	return s
}

func (*Label) configSchema(*generator, *member) map[string]any {
	return anyOf(text(""), map[string]any{
		"type": "object", "additionalProperties": text(""),
		"propertyNames": map[string]any{"pattern": patterns["language"].expr.String()},
	})
}

func (*Duration) configSchema(_ *generator, m *member) map[string]any {
	number := bounds(map[string]any{"type": "integer", "minimum": 0, "maximum": maxDuration.Milliseconds()}, m)
	form := text(`^([0-9]+w([0-9]+d)?|[0-9]+d|([0-9]+w)?([0-9]+d)?\+?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+))$`)
	if m.min != nil && *m.min > 0 {
		form["not"] = map[string]any{"pattern": `^[0wdhmnuµs.+]*$`}
	}
	return anyOf(number, form)
}

func (*Size) configSchema(*generator, *member) map[string]any {
	return anyOf(map[string]any{"type": "integer", "minimum": 1, "maximum": int64(maxSize)}, text(`^ *0*[1-9][0-9]* *([KMGT]i?B|kB|B)?$`))
}

func (*Schedule) configSchema(*generator, *member) map[string]any {
	return text(`^$|^ *(@?every +\S+|((CRON_)?TZ=\S+ +)?(@[a-z]+|\S+( +\S+){4})) *$`)
}

func (*Span) configSchema(*generator, *member) map[string]any {
	s := text(`^([0-9]+y)?([0-9]+m)?([0-9]+d)?([0-9]+h)?$`)
	s["minLength"] = 1 // which the form does not ask for
	return s
}

func (*FieldType) configSchema(*generator, *member) map[string]any {
	return oneOf(fieldtype.Names())
}

func (*Validator) configSchema(*generator, *member) map[string]any {
	rules := map[string]any{}
	for _, name := range fieldtype.RuleNames() {
		rules[name] = map[string]any{"description": fieldtype.RuleDoc(name)}
	}
	return anyOf(text(""), map[string]any{"type": "object", "properties": rules})
}

func (*BoolOrEval) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(map[string]any{"type": "boolean"}, map[string]any{"$ref": g.define(reflect.TypeFor[evalObject]())})
}

func (x *I18n) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(map[string]any{"const": false}, reference(map[string]any{"$ref": g.define(reflect.TypeOf(x).Elem())}))
}

func (x *AdminToken) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(map[string]any{"type": "string", "minLength": 1}, map[string]any{
		"$ref":  g.define(reflect.TypeOf(x).Elem()),
		"oneOf": []any{map[string]any{"required": []string{"value"}}, map[string]any{"required": []string{"sha256"}}},
	})
}

func (x *SnapshotCollection) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(text(""), map[string]any{"$ref": g.define(reflect.TypeOf(x).Elem())})
}

func (*Permissions) configSchema(g *generator, _ *member) map[string]any {
	set := reference(map[string]any{"$ref": g.define(reflect.TypeFor[PermissionSet]())})
	g.defs["Permissions"] = map[string]any{
		"type":       "object",
		"properties": map[string]any{"public": set, "user": set},
		"patternProperties": map[string]any{
			`^[Tt][Oo][Kk][Ee][Nn]:.`: set,
			`^team:.`:                 set,
			`^([Xx]-([Aa]uth|[Aa]dmin)-[Tt]oken|[Aa]uthorization)(:|$)`: map[string]any{},
		},
		"additionalProperties": false,
		"required":             []string{"public", "user"},
	}
	return reference(map[string]any{"$ref": refPrefix + "Permissions"})
}

func (x *MethodRights) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(map[string]any{"type": "boolean"}, map[string]any{"$ref": g.define(reflect.TypeOf(x).Elem())})
}

func (*FilterSpec) configSchema(g *generator, _ *member) map[string]any {
	script := map[string]any{
		"properties": map[string]any{"type": map[string]any{"const": "javascript"}}, "required": []string{"type", "file"},
	}
	return map[string]any{"type": "object", "if": script, "then": map[string]any{"$ref": g.define(reflect.TypeFor[Script]())}}
}

func (*Hooks) configSchema(g *generator, _ *member) map[string]any {
	groups := map[string]any{}
	for _, group := range hookGroups {
		groups[group.Name] = g.stages(group.Stages)
	}
	return reference(map[string]any{"type": "object", "properties": groups, "additionalProperties": false})
}

func (*ActionHooks) configSchema(g *generator, _ *member) map[string]any {
	return reference(g.stages(actionStages))
}

func (g *generator) stages(stages []HookStage) map[string]any {
	properties := map[string]any{}
	script := reference(map[string]any{"$ref": g.define(reflect.TypeFor[Script]())})
	for _, stage := range stages {
		properties[stage.Name] = anyOf(script, map[string]any{"type": "array", "items": script})
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// check that every type with a form of its own is a configValue.
var _ = []configValue{
	(*Label)(nil), (*Duration)(nil), (*Size)(nil), (*Schedule)(nil), (*Span)(nil), (*FieldType)(nil), (*Validator)(nil),
	(*BoolOrEval)(nil), (*I18n)(nil), (*AdminToken)(nil), (*SnapshotCollection)(nil), (*Permissions)(nil),
	(*MethodRights)(nil), (*FilterSpec)(nil), (*Hooks)(nil), (*ActionHooks)(nil),
	(*TestSteps)(nil), (*TestCaller)(nil),
}
