package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// fields compares the fields of a collection, those inside others included. Of a field that comes or goes, those inside
// of it are not told.
func (d *differ) fields(old, next *project.Collection) {
	a, b := level(old.Tree, as(old, next)), level(next.Tree, nil)
	was := declared(old.Config.Fields, "", as(old, next), map[string]*schema.Field{})
	is := declared(next.Config.Fields, "", nil, map[string]*schema.Field{})
	for _, path := range both(a, b) {
		object, parent := next.Name+"."+path, ""
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			parent = path[:i]
		}
		switch {
		case a[path] == nil:
			if parent != "" && a[parent] == nil {
				continue
			}
			it := d.add("field", object, api.PlanCreate, api.RiskSafe, newField(b[path]))
			it.test = &test{collection: next.StoredName(), names: next.FieldNames, rules: next.Tree, path: path}
			it.unjudged(nil, b[path])
		case b[path] == nil:
			if parent != "" && b[parent] == nil {
				continue
			}
			it := d.add("field", next.Name+"."+a[path].Path, api.PlanDelete, api.RiskBreaking, a[path].Type.Name()+"; requests that name it are refused")
			it.test = &test{collection: next.StoredName(), gone: old.FieldNames.Path(a[path].Path)}
		default:
			if a[path].Name != b[path].Name {
				d.renamedField(old, next, a[path], b[path])
			}
			d.field(next, object, a[path], b[path], was[path], is[path])
		}
	}
}

// renamedField tells that a field has another name. What records have by that name from an earlier time is out of reach.
func (d *differ) renamedField(old, next *project.Collection, a, b *fieldtype.Field) {
	it := d.add("field", next.Name+"."+b.Path, api.PlanRename, api.RiskBreaking,
		"was "+a.Name+"; its values, indexes and files come along; requests that name "+a.Name+" are refused")
	stored := next.FieldNames.Path(b.Path)
	byName := stored[:strings.LastIndexByte(stored, '.')+1] + b.Name
	declared := false
	old.Tree.Walk(func(f *fieldtype.Field) { declared = declared || old.FieldNames.Path(f.Path) == byName })
	if byName != stored && !declared { // else it is told that the field goes
		it.test = &test{collection: next.StoredName(), gone: byName}
	}
}

// as gives what the paths of an old config are in the next one, where fields were renamed.
func as(old, next *project.Collection) func(path string) string {
	back := next.FieldNames.Inverse()
	return func(path string) string { return back.Path(old.FieldNames.Path(path)) }
}

func newField(f *fieldtype.Field) string {
	var rules []string
	for _, r := range f.Rules {
		rules = append(rules, ruleText(r))
	}
	if len(rules) == 0 {
		return f.Type.Name()
	}
	return f.Type.Name() + ", " + strings.Join(rules, ", ")
}

// field compares two versions of one field. All that changes in it is one item.
func (d *differ) field(c *project.Collection, object string, a, b *fieldtype.Field, was, is *schema.Field) {
	it := &item{PlanItem: api.PlanItem{Kind: "field", Object: object, Action: api.PlanUpdate, Risk: api.RiskSafe}}
	var changes []string
	change := func(risk api.Risk, text string) {
		changes = append(changes, text)
		it.raise(risk)
	}
	judged := func() {
		it.test = &test{collection: c.StoredName(), names: c.FieldNames, rules: c.Tree, path: b.Path}
	}
	if a.Type.Name() != b.Type.Name() {
		change(api.RiskBreaking, "type "+b.Type.Name()+", before "+a.Type.Name())
		judged()
	}
	for _, text := range loosened(a, b) {
		change(api.RiskSafe, text)
	}
	if tighter := tightened(a, b); len(tighter) > 0 {
		for _, text := range tighter {
			change(api.RiskSafe, text)
		}
		judged()
	}
	if a.Strict != b.Strict && (a.Sub != nil || b.Sub != nil) {
		change(api.RiskSafe, "strictFields is "+quoted(b.Strict))
		if b.Strict {
			judged()
		} else {
			it.raise(api.RiskBreaking) // what is stored without being declared shows
		}
	}
	if (a.Sub == nil) != (b.Sub == nil) && a.Strict == b.Strict {
		change(api.RiskSafe, "subFields come or go")
		judged()
	}
	access := func(name string, old, next schema.BoolOrEval) {
		switch {
		case old == next:
		case next.Eval != "":
			change(api.RiskBreaking, name+" by an expression")
		case next.Value:
			change(api.RiskBreaking, name)
		default:
			change(api.RiskSafe, "not "+name+" any more")
		}
	}
	access("hidden", was.Hidden, is.Hidden)
	access("readonly", was.Readonly, is.Readonly)
	for _, member := range members(was.Meta, is.Meta) {
		switch {
		case member == "choices" || member == "inputprops" || member == "inputProps":
			if !slices.ContainsFunc(changes, func(s string) bool { return strings.HasPrefix(s, "choices") }) {
				change(api.RiskSafe, "meta."+member+" changes")
			}
		case member == "defaultValue":
			change(api.RiskSafe, "meta.defaultValue changes, for records to come")
		case slices.Contains(fieldMeta, member):
			change(api.RiskBreaking, "meta."+member+" changes")
		default:
			change(api.RiskSafe, "meta."+member+" changes")
		}
	}
	if len(changes) == 0 { // such as the form of a validator, or an index, which is an item of its own
		return
	}
	it.Detail = strings.Join(changes, "; ")
	it.unjudged(a, b)
	d.items = append(d.items, it)
}

// unjudged tells of new rules that no look at the records alone can judge, and takes the worst for them.
func (it *item) unjudged(old, next *fieldtype.Field) {
	for _, name := range []string{"exists", "script"} {
		if next.Has(name) && (old == nil || !reflect.DeepEqual(ruleOf(old, name).Arg, ruleOf(next, name).Arg)) {
			it.Detail += "; which records fail " + name + " is not counted"
			it.raise(api.RiskBreaking)
		}
	}
}

// loosened tells of rules that let more through than before.
func loosened(a, b *fieldtype.Field) []string {
	var out []string
	for name, r := range rules(a) {
		is, stays := rules(b)[name]
		switch {
		case !stays:
			out = append(out, "not "+ruleText(r)+" any more")
		case wider(r, is):
			out = append(out, ruleText(is)+", before "+ruleText(r))
		}
	}
	if len(a.Choices) > 0 && !a.FreeSolo && !tighterChoices(a, b) && !sameChoices(a, b) {
		out = append(out, "choices: more values are allowed")
	}
	slices.Sort(out)
	return out
}

// tightened tells of rules that may refuse what passed before.
func tightened(a, b *fieldtype.Field) []string {
	var out []string
	for name, r := range rules(b) {
		was, stood := rules(a)[name]
		switch {
		case !stood:
			out = append(out, ruleText(r))
		case !reflect.DeepEqual(was.Arg, r.Arg) && !wider(was, r):
			out = append(out, ruleText(r)+", before "+ruleText(was))
		}
	}
	if tighterChoices(a, b) {
		out = append(out, "choices: fewer values, or others, are allowed")
	}
	slices.Sort(out)
	return out
}

// rules gives a field's rules by name. unique is none here: it is an index.
func rules(f *fieldtype.Field) map[string]fieldtype.Rule {
	out := map[string]fieldtype.Rule{}
	for _, r := range f.Rules {
		if r.Name != "unique" {
			out[r.Name] = r
		}
	}
	return out
}

func ruleOf(f *fieldtype.Field, name string) fieldtype.Rule { return rules(f)[name] }

func ruleText(r fieldtype.Rule) string {
	if r.Arg == true || r.Arg == nil {
		return r.Name
	}
	return r.Name + " " + quoted(r.Arg)
}

// wider says that a bound has moved so that more is inside.
func wider(was, is fieldtype.Rule) bool {
	a, first := number(was.Arg)
	b, second := number(is.Arg)
	if !first || !second {
		return false
	}
	switch is.Name {
	case "min", "minItems", "gt", "gte":
		return b < a
	case "max", "maxItems", "lt", "lte":
		return b > a
	}
	return false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// free says that any value may be stored, as far as choices go.
func free(f *fieldtype.Field) bool { return len(f.Choices) == 0 || f.FreeSolo }

func sameChoices(a, b *fieldtype.Field) bool {
	return free(a) && free(b) || free(a) == free(b) && reflect.DeepEqual(texts(a.Choices), texts(b.Choices))
}

// tighterChoices says that a value was allowed that is not any more.
func tighterChoices(a, b *fieldtype.Field) bool {
	switch {
	case free(b):
		return false
	case free(a):
		return true
	}
	is := texts(b.Choices)
	for choice := range texts(a.Choices) {
		if !is[choice] {
			return true
		}
	}
	return false
}

func texts(choices []any) map[string]bool {
	out := make(map[string]bool, len(choices))
	for _, c := range choices {
		out[quoted(c)] = true
	}
	return maps.Clone(out)
}

// renamed gives paths of the old collection as they are in the next one.
func renamed(paths []string, as func(string) string) []string {
	out := slices.Clone(paths)
	for i := range out {
		if as != nil {
			out[i] = as(out[i])
		}
	}
	return out
}

// level gives the fields of a tree by their paths, without translations.
// as, if given, translates them.
func level(tree *fieldtype.Tree, as func(string) string) map[string]*fieldtype.Field {
	out := map[string]*fieldtype.Field{}
	tree.Walk(func(f *fieldtype.Field) {
		if f.Path != fieldtype.I18n && !strings.HasPrefix(f.Path, fieldtype.I18n+".") {
			path := f.Path
			if as != nil {
				path = as(path)
			}
			out[path] = f
		}
	})
	return out
}

func declared(fields []*schema.Field, prefix string, as func(string) string, out map[string]*schema.Field) map[string]*schema.Field {
	for _, f := range fields {
		path := prefix + f.Name
		if as != nil {
			path = as(path)
		}
		out[path] = f
		declared(f.SubFields, prefix+f.Name+".", as, out)
	}
	return out
}
