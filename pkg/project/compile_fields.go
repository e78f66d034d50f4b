package project

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

const (
	maxPatterns     = 1_000_000 // steps of the programs of all patterns of a config
	maxTranslations = 500_000   // fields of a config, times the languages that they have
)

// fields compiles one level of fields; prefix is the path of the level with its dot. Fields that were not decoded are
// left out, their type if need be taken as any.
func (c *compiler) fields(fields []*schema.Field, at, prefix string, strict bool) []*fieldtype.Field {
	var out []*fieldtype.Field
	for i, f := range fields {
		here := at + "[" + strconv.Itoa(i) + "]"
		if f.Name != "" {
			out = append(out, c.field(f, here, prefix, strict))
		}
	}
	c.across(fields, out, at)
	return out
}

// across checks the rules that compare fields of one level.
func (c *compiler) across(config []*schema.Field, level []*fieldtype.Field, at string) {
	for _, f := range level {
		for _, r := range f.Rules {
			if r.Other == "" {
				continue
			}
			if message := f.CheckAcross(level, r.Other); message != "" {
				i := slices.IndexFunc(config, func(x *schema.Field) bool { return x.Name == f.Name })
				c.fail(at+"["+strconv.Itoa(i)+"].validator."+r.Name, schema.CodeInvalid, "%s", message)
			}
		}
	}
}

func (c *compiler) field(f *schema.Field, at, prefix string, strict bool) *fieldtype.Field {
	kind, known := fieldtype.ByName(string(f.Type))
	if !known {
		kind, _ = fieldtype.ByName("any")
	}
	out := &fieldtype.Field{
		Name: f.Name, Path: prefix + f.Name, Type: kind,
		Strict:   deref(f.StrictFields, strict),
		Readonly: f.Readonly.Value, Hidden: f.Hidden.Value,
	}
	if f.SubFields != nil {
		out.Sub = fieldtype.NewTree(c.fields(f.SubFields, at+".subFields", out.Path+".", out.Strict), out.Strict)
	}
	if f.Validator != nil && c.patterns <= maxPatterns {
		rules, problems := fieldtype.ParseRules(f.Validator.Value, kind)
		out.Rules = rules
		for _, r := range rules {
			if c.patterns += r.Size; r.Size > 0 && c.patterns > maxPatterns {
				c.fail(at+".validator", schema.CodeRange, "the patterns of all fields together are too large: write them with fewer repeats")
			}
		}
		for _, x := range problems {
			c.fail(dotted(at+".validator", x.Path), schema.CodeInvalid, "%s", x.Message)
		}
	}
	if f.Meta != nil {
		fieldMeta(f.Meta, c.Loaded.Project.Namespace, out)
	}
	if known {
		for _, x := range out.CheckConfig() {
			c.fail(dotted(at, x.Path), schema.CodeInvalid, "%s", x.Message)
		}
	}
	return out
}

func dotted(at, member string) string {
	if member == "" {
		return at
	}
	return at + "." + member
}

// fieldMeta takes over what in a field's meta has an effect on records.
func fieldMeta(meta *schema.FieldMeta, namespace string, out *fieldtype.Field) {
	out.Default = meta.DefaultValue
	for _, choice := range meta.Choices {
		out.Choices = append(out.Choices, choiceValue(choice))
	}
	out.FreeSolo = slices.ContainsFunc(meta.InputProps, func(e bson.E) bool { return e.Key == "freeSolo" && e.Value == true })
	if f := meta.Foreign; f != nil {
		out.Foreign = &fieldtype.Foreign{Namespace: f.Namespace, Collection: f.Collection, Key: f.Key}
		if f.Namespace == namespace {
			out.Foreign.Namespace = ""
		}
		if label, ok := f.Label.(string); ok {
			out.Foreign.Label = label
		}
	}
}

// choiceValue gives the value of a choice, which is plain or {value, label}.
func choiceValue(choice any) any {
	if doc, ok := choice.(bson.D); ok {
		for _, e := range doc {
			if e.Key == "value" {
				return e.Value
			}
		}
	}
	return choice
}

// eachField calls fn for every decoded field of a list and those inside them, with its place in the config and its
// path in records. prefix is the path of the list's own level, with its dot.
func eachField(fields []*schema.Field, at, prefix string, fn func(f *schema.Field, at, path string)) {
	for i, f := range fields {
		here := at + "[" + strconv.Itoa(i) + "]"
		if f.Name == "" {
			continue
		}
		fn(f, here, prefix+f.Name)
		eachField(f.SubFields, here+".subFields", prefix+f.Name+".", fn)
	}
}

// hasRule says that a validator has a rule; a flag that is false is none.
func hasRule(v *schema.Validator, name string) bool {
	if v == nil {
		return false
	}
	rules, _ := fieldtype.ParseRules(v.Value, nil)
	return slices.ContainsFunc(rules, func(r fieldtype.Rule) bool { return r.Name == name })
}

// elements is a type, or that of the elements of a list.
func elements(name string) string { return strings.TrimSuffix(name, "[]") }

// foreignKeys checks that relations point at fields that the other collection declares.
func (c *compiler) foreignKeys(p *Project, col *schema.Collection, at string) {
	eachField(col.Fields, at+".fields", "", func(f *schema.Field, here, _ string) {
		if f.Meta == nil || f.Meta.Foreign == nil {
			return
		}
		x := f.Meta.Foreign
		target, ok := p.Collections[x.Collection]
		if !ok || x.Namespace != "" && x.Namespace != p.Namespace {
			return
		}
		i := slices.IndexFunc(p.Config.Collections, func(other *schema.Collection) bool { return other.Name == x.Collection })
		if c.isBroken("collections[" + strconv.Itoa(i) + "].fields") {
			return
		}
		paths := &paths{c: c, tree: target.Tree}
		if _, ok := paths.resolve(x.Key, here+".meta.foreign.key"); !ok {
			return
		}
		if x.Key == "_id" || x.Key == "id" { // whose types CheckConfig knows
			return
		}
		key, _ := target.Tree.Resolve(x.Key)
		mine, theirs := elements(string(f.Type)), elements(key.Type.Name())
		if mine != theirs && mine != "any" && theirs != "any" {
			c.fail(here+".meta.foreign.key", schema.CodeConflict, "a %s is never equal to %s of %s, a %s", mine, x.Key, x.Collection, theirs)
		}
	})
}
