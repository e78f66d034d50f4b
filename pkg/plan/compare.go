package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// differ compares two projects and collects the changes.
type differ struct {
	old, next *project.Project
	items     []*item
	fresh     bool                     // what is compared is new: nothing was behind its rights yet
	as        func(path string) string // what paths of the old collection are in the next one; nil: the same
}

func (d *differ) add(kind, object, action string, risk api.Risk, detail string) *item {
	it := &item{PlanItem: api.PlanItem{Kind: kind, Object: object, Action: action, Risk: risk, Detail: detail}}
	d.items = append(d.items, it)
	return it
}

// memberRisks is the risk of a change of members that have no rule of their own. A member that is not in it is breaking.
var memberRisks = map[string]api.Risk{ //nolint:gochecknoglobals // never written
	"project.meta": api.RiskSafe, "project.snapshots": api.RiskSafe,
	"collection.defaultLanguage": api.RiskSafe, "collection.languageOverride": api.RiskSafe,
	"action.meta": api.RiskSafe,
}

// memberRisk is the risk of a change of one member of a kind. Of metadata, what has no effect on requests is safe.
func memberRisk(kind, member string) api.Risk {
	if r, ok := memberRisks[kind+"."+member]; ok {
		return r
	}
	return api.RiskBreaking
}

// The members of meta that have an effect on requests; the others are for people and front ends.
var (
	collectionMeta = []string{"singleton", "i18n", "defaultSort", "query"}  //nolint:gochecknoglobals // never written
	fieldMeta      = []string{"i18n", "foreign", "choices", "defaultValue"} //nolint:gochecknoglobals // never written
)

// members gives the names of the members in which two objects of the config differ. The comparison is over the types of
// the config, so that no member that they get can be forgotten here.
func members(old, next any) []string {
	a, b := reflect.Indirect(reflect.ValueOf(old)), reflect.Indirect(reflect.ValueOf(next))
	switch {
	case !a.IsValid() && !b.IsValid():
		return nil
	case !a.IsValid():
		a = reflect.Zero(b.Type())
	case !b.IsValid():
		b = reflect.Zero(a.Type())
	}
	var out []string
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("cfg"), ",")
		if option == "raw" { // what the others are made of
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			out = append(out, name)
		}
	}
	return out
}

// without leaves names out.
func without(names []string, out ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(out, name) })
}

// settings compares what the project as a whole says.
func (d *differ) settings() {
	own := []string{"namespace", "collections", "jobs", "actions", "assets", "admin", "audit", "strictFields"}
	if d.old.Namespace == "" {
		return // it is created
	}
	for _, member := range without(members(d.old.Config, d.next.Config), own...) {
		d.add("project", member, api.PlanUpdate, memberRisk("project", member), "changes")
	}
	d.audit("project", "audit", d.old.Config.Audit, d.next.Config.Audit)
}

// audit compares a log's settings: a shorter time of keeping deletes entries.
func (d *differ) audit(kind, object string, old, next *schema.Audit) {
	changed := members(old, next)
	if len(changed) == 0 {
		return
	}
	risk, detail := api.RiskSafe, "the audit log's settings change: "+strings.Join(changed, ", ")
	if old != nil && next != nil && next.Retention > 0 && (old.Retention == 0 || next.Retention < old.Retention) {
		risk, detail = api.RiskDestructive, detail+"; entries older than "+next.Retention.Std().String()+" are deleted"
	}
	d.add(kind, object, api.PlanUpdate, risk, detail)
}

func (d *differ) path(rest string) string { return "/_/" + d.next.Namespace + "/" + rest }

// route adds a path that appears or vanishes.
func (d *differ) route(path, action string) {
	risk, detail := api.RiskSafe, "appears"
	if action == api.PlanDelete {
		risk, detail = api.RiskBreaking, "vanishes"
	}
	d.add("route", path, action, risk, detail)
}

// collections compares the collections: those whose records are the same ones, whatever their names.
func (d *differ) collections() {
	holds := map[string]*project.Collection{} // what is served, by names in the store
	for _, c := range d.old.Collections {
		holds[c.StoredName()] = c
	}
	for _, name := range slices.Sorted(maps.Keys(d.next.Collections)) {
		next := d.next.Collections[name]
		old := holds[next.StoredName()]
		delete(holds, next.StoredName())
		switch {
		case old == nil:
			it := d.add("collection", name, api.PlanCreate, api.RiskSafe, "fields: "+strconv.Itoa(len(next.Config.Fields)))
			it.test = &test{collection: next.StoredName(), names: next.FieldNames, rules: next.Tree} // records that an earlier config had stored
			d.indexes(&project.Collection{Name: name}, next)
			d.fresh = true
			d.permissions(name, &schema.Permissions{}, next.Config.Permissions, "on")
			d.fresh = false
		case old.Name != name:
			d.renamed(old, next)
			d.collection(old, next)
		default:
			d.collection(old, next)
		}
	}
	for _, c := range holds {
		it := d.add("collection", c.Name, api.PlanDelete, api.RiskBreaking, "its records stay in the store, out of reach")
		it.test = &test{collection: c.StoredName()}
	}
	for _, name := range both(d.old.Collections, d.next.Collections) {
		switch {
		case d.old.Collections[name] == nil:
			d.route(d.path(name), api.PlanCreate)
		case d.next.Collections[name] == nil:
			d.route(d.path(name), api.PlanDelete)
		}
	}
}

// renamed tells that a collection has another name. Records that are stored by that name from an earlier time are out of reach.
func (d *differ) renamed(old, next *project.Collection) {
	it := d.add("collection", next.Name, api.PlanRename, api.RiskSafe, "was "+old.Name+"; its records, indexes and files come along")
	it.test = &test{collection: next.StoredName()}
	if next.Name != next.StoredName() && d.old.Collections[next.Name] == nil {
		it.test.covered = next.Name
	}
}

// collection compares what two versions of a collection say.
func (d *differ) collection(old, next *project.Collection) {
	name := next.Name
	own := []string{"name", "renamedFrom", "permissions", "readonlyFields", "projections", "hooks", "meta", "imageFilter", "fields", "indexes", "audit", "strictFields", "hiddenFields"}
	for _, member := range without(members(old.Config, next.Config), own...) {
		d.add("collection", name, api.PlanUpdate, memberRisk("collection", member), member+" changes")
	}
	readonly := renamed(old.Config.ReadonlyFields, as(old, next))
	if more := lacking(readonly, next.Config.ReadonlyFields); len(more) > 0 {
		d.add("collection", name, api.PlanUpdate, api.RiskBreaking, "readonlyFields changes")
	} else if len(lacking(next.Config.ReadonlyFields, readonly)) > 0 {
		d.add("collection", name, api.PlanUpdate, api.RiskSafe, "readonlyFields changes")
	}
	hidden := renamed(old.Config.HiddenFields, as(old, next))
	for _, path := range lacking(hidden, next.Config.HiddenFields) {
		d.add("collection", name, api.PlanUpdate, api.RiskBreaking, "hiddenFields: "+path+" is hidden from everybody")
	}
	for _, path := range lacking(next.Config.HiddenFields, hidden) {
		d.add("collection", name, api.PlanUpdate, api.RiskSafe, "hiddenFields: "+path+" is not hidden from everybody any more")
	}
	for _, member := range members(old.Config.Meta, next.Config.Meta) {
		risk := api.RiskSafe
		if slices.Contains(collectionMeta, member) {
			risk = api.RiskBreaking
		}
		d.add("collection", name, api.PlanUpdate, risk, "meta."+member+" changes")
	}
	switch was, is := old.Tree.Open(), next.Tree.Open(); {
	case was && !is:
		it := d.add("collection", name, api.PlanUpdate, api.RiskSafe, "strictFields: fields that are not declared are refused, and hidden where they are stored")
		it.test = &test{collection: next.StoredName(), names: next.FieldNames, rules: next.Tree}
	case is && !was:
		d.add("collection", name, api.PlanUpdate, api.RiskBreaking, "strictFields: what is stored without being declared shows")
	}
	d.audit("collection", name, old.Config.Audit, next.Config.Audit)
	d.fields(old, next)
	d.indexes(old, next)
	d.as = as(old, next)
	d.permissions(name, old.Config.Permissions, next.Config.Permissions, "on")
	d.as = nil
	d.visible(old, next)
	d.named("projection", name, old.Config.Projections, next.Config.Projections, api.RiskBreaking)
	d.filters(old, next)
	d.hooks(name, old, next)
}

// named compares projections, whose names callers use.
func (d *differ) named(kind, collection string, old, next map[string]*schema.Projection, changed api.Risk) {
	for _, name := range both(old, next) {
		object := collection + "." + name
		switch a, b := old[name], next[name]; {
		case a == nil:
			d.add(kind, object, api.PlanCreate, api.RiskSafe, "is new")
		case b == nil:
			d.add(kind, object, api.PlanDelete, api.RiskBreaking, "who asks for it is refused")
		case !reflect.DeepEqual(a, b):
			d.add(kind, object, api.PlanUpdate, changed, "selects other fields")
		}
	}
}

// filters compares image filters. Pictures are made anew where one has changed.
func (d *differ) filters(old, next *project.Collection) {
	for _, name := range both(old.Config.ImageFilter, next.Config.ImageFilter) {
		object := next.Name + "." + name
		a, was := old.Config.ImageFilter[name]
		b, is := next.Config.ImageFilter[name]
		switch {
		case !was:
			d.add("imageFilter", object, api.PlanCreate, api.RiskSafe, "is new")
		case !is:
			d.add("imageFilter", object, api.PlanDelete, api.RiskBreaking, "who asks for it is refused")
		case !reflect.DeepEqual(a, b):
			d.add("imageFilter", object, api.PlanUpdate, api.RiskSlow, "pictures are made anew when they are asked for")
		}
	}
}

// hooks compares which scripts the stages of a collection have. What is in them is an item of its own.
func (d *differ) hooks(collection string, old, next *project.Collection) {
	stages := func(c *project.Collection) map[string][]schema.Script {
		out := map[string][]schema.Script{}
		if c.Config.Hooks == nil {
			return out
		}
		for group, of := range *c.Config.Hooks {
			for stage, entries := range of {
				if len(entries) > 0 {
					out[group+"."+stage] = entries
				}
			}
		}
		return out
	}
	a, b := stages(old), stages(next)
	for _, stage := range both(a, b) {
		d.stage("hook", collection+" "+stage, a[stage], b[stage])
	}
}

// stage compares the scripts of one stage.
func (d *differ) stage(kind, object string, old, next []schema.Script) {
	files := func(scripts []schema.Script) string {
		var names []string
		for _, s := range scripts {
			names = append(names, s.File)
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(old) == 0 && len(next) > 0:
		d.add(kind, object, api.PlanCreate, api.RiskSafe, "runs "+files(next)+"; what it does is not judged")
	case len(next) == 0 && len(old) > 0:
		d.add(kind, object, api.PlanDelete, api.RiskBreaking, files(old)+" does not run any more")
	case !reflect.DeepEqual(old, next):
		d.add(kind, object, api.PlanUpdate, api.RiskSafe, "runs "+files(next)+", before "+files(old)+", or for another time; what it does is not judged")
	}
}

// scripts compares what is in the files of scripts.
func (d *differ) scripts() {
	hashes := func(p *project.Project) map[string]string {
		sums, out := map[string]string{}, map[string]string{}
		for _, f := range p.Files {
			sums[f.Name] = f.SHA256
		}
		for s := range p.Scripts() {
			for _, name := range s.Program.Files() {
				if sum, ok := sums[name]; ok {
					out[name] = sum
				}
			}
		}
		return out
	}
	a, b := hashes(d.old), hashes(d.next)
	for _, name := range both(a, b) {
		switch {
		case a[name] == "":
			d.add("script", name, api.PlanCreate, api.RiskSafe, "is new; what it does is not judged")
		case b[name] == "":
			d.add("script", name, api.PlanDelete, api.RiskSafe, "nothing runs it any more")
		case a[name] != b[name]:
			d.add("script", name, api.PlanUpdate, api.RiskSafe, "has changed; what it does is not judged")
		}
	}
}

func (d *differ) actions() {
	for _, name := range both(d.old.Actions, d.next.Actions) {
		old, next := d.old.Actions[name], d.next.Actions[name]
		switch {
		case old == nil:
			d.add("action", name, api.PlanCreate, api.RiskSafe, "is new")
			d.fresh = true
			d.permissions(name, &schema.Permissions{}, next.Config.Permissions, "of action")
			d.fresh = false
			old = &project.Action{}
		case next == nil:
			d.add("action", name, api.PlanDelete, api.RiskBreaking, "can't be called any more")
			next = &project.Action{}
		default:
			d.action(old, next)
		}
		for _, m := range []access.Method{access.Get, access.Post} {
			path := strings.ToUpper(m.String()) + " " + d.path("_/actions/"+name)
			switch was, is := old.Methods[m] != nil, next.Methods[m] != nil; {
			case is && !was:
				d.route(path, api.PlanCreate)
			case was && !is:
				d.route(path, api.PlanDelete)
			}
		}
	}
}

func (d *differ) action(old, next *project.Action) {
	name := next.Name
	for _, member := range without(members(old.Config, next.Config), "meta", "permissions", "hooks", "audit") {
		d.add("action", name, api.PlanUpdate, memberRisk("action", member), member+" changes")
	}
	for _, member := range members(old.Config.Meta, next.Config.Meta) {
		risk := api.RiskSafe
		if member == "methods" { // what it takes, and how it answers
			risk = api.RiskBreaking
		}
		d.add("action", name, api.PlanUpdate, risk, "meta."+member+" changes")
	}
	d.audit("action", name, old.Config.Audit, next.Config.Audit)
	d.permissions(name, old.Config.Permissions, next.Config.Permissions, "of action")
	stages := func(a *project.Action) map[string][]schema.Script {
		if a.Config.Hooks == nil {
			return nil
		}
		return *a.Config.Hooks
	}
	a, b := stages(old), stages(next)
	for _, stage := range both(a, b) {
		d.stage("hook", "action "+name+" "+stage, a[stage], b[stage])
	}
}

func (d *differ) jobs() {
	byName := func(p *project.Project) map[string]*project.Job {
		out := map[string]*project.Job{}
		for _, j := range p.Jobs {
			out[j.Name] = j
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, name := range both(a, b) {
		switch old, next := a[name], b[name]; {
		case old == nil:
			d.add("job", name, api.PlanCreate, api.RiskSafe, schedule(next)).job = next
		case next == nil:
			d.add("job", name, api.PlanDelete, api.RiskBreaking, "does not run any more")
		case !reflect.DeepEqual(old.Config, next.Config):
			detail := strings.Join(members(old.Config, next.Config), ", ") + " changes"
			if old.Config.Cron != next.Config.Cron {
				detail += "; " + schedule(next) + ", before " + schedule(old)
			}
			d.add("job", name, api.PlanUpdate, api.RiskSafe, detail).job = next
		}
	}
}

func schedule(j *project.Job) string {
	if j.Config.Cron == "" {
		return "without a schedule"
	}
	return "schedule " + strconv.Quote(string(j.Config.Cron))
}

func (d *differ) assets() {
	byName := func(p *project.Project) map[string]project.Asset {
		out := map[string]project.Asset{}
		for _, a := range p.Assets {
			out[a.Name] = a
		}
		return out
	}
	a, b := byName(d.old), byName(d.next)
	for _, name := range both(a, b) {
		old, was := a[name]
		next, is := b[name]
		switch {
		case !was:
			risk := api.RiskBreaking
			if d.old.Namespace == "" {
				risk = api.RiskSafe
			}
			d.add("asset", name, api.PlanCreate, risk, "wider: everybody may read the files in "+next.Path)
			d.route(d.path("_/assets/"+name), api.PlanCreate)
		case !is:
			d.add("asset", name, api.PlanDelete, api.RiskBreaking, "the files in "+old.Path+" are not served any more")
			d.route(d.path("_/assets/"+name), api.PlanDelete)
		case old != next:
			d.add("asset", name, api.PlanUpdate, api.RiskBreaking, "wider: everybody may read the files in "+next.Path+", in place of those in "+old.Path)
		}
	}
}

// before gives the name that a new index had: the one that it says, or that of an equal index which goes; "": none.
func before(ix *project.Index, old, next map[string]*project.Index) string {
	if old[ix.Name] != nil {
		return ""
	}
	if from := ix.RenamedFrom; old[from] != nil && next[from] == nil {
		return from
	}
	for _, from := range slices.Sorted(maps.Keys(old)) {
		if next[from] == nil && sameIndex(old[from], ix) {
			return from
		}
	}
	return ""
}

func sameIndex(a, b *project.Index) bool {
	return slices.Equal(a.Keys, b.Keys) && a.Unique == b.Unique && a.Sparse == b.Sparse
}

// indexes compares the indexes that are declared, those of fields included.
func (d *differ) indexes(old, next *project.Collection) {
	byName := func(list []project.Index) map[string]*project.Index {
		out := map[string]*project.Index{}
		for i := range list {
			out[list[i].Name] = &list[i]
		}
		return out
	}
	a, b := byName(indexesAs(old, next)), byName(next.Indexes)
	for _, name := range slices.Sorted(maps.Keys(b)) { // what is renamed is neither made nor dropped
		ix := b[name]
		from := before(ix, a, b)
		if from == "" {
			continue
		}
		it := d.add("index", next.Name+"."+name, api.PlanRename, api.RiskSafe, "was "+from+"; stays as it is: "+describe(ix))
		if was := a[from]; !sameIndex(was, ix) {
			it.Detail = "was " + from + ", " + describe(was) + "; to build anew: " + describe(ix)
			it.test = &test{collection: next.StoredName(), names: next.FieldNames, index: ix}
			if was.Unique && !ix.Unique {
				it.raise(api.RiskBreaking)
			}
		}
		delete(a, from)
		delete(b, name)
	}
	for _, name := range both(a, b) {
		object := next.Name + "." + name
		was, is := a[name], b[name]
		switch {
		case was == nil:
			it := d.add("index", object, api.PlanCreate, api.RiskSafe, "to build: "+describe(is))
			it.test = &test{collection: next.StoredName(), names: next.FieldNames, index: is}
		case is == nil:
			risk := api.RiskSlow
			if was.Unique {
				risk = api.RiskBreaking
			}
			d.add("index", object, api.PlanDelete, risk, "dropped: "+describe(was))
		case !sameIndex(was, is):
			it := d.add("index", object, api.PlanUpdate, api.RiskSafe, "to build anew: "+describe(is)+", before "+describe(was))
			if was.Unique && !is.Unique {
				it.raise(api.RiskBreaking)
			}
			it.test = &test{collection: next.StoredName(), names: next.FieldNames, index: is}
		}
	}
}

// indexesAs gives the indexes of the old collection with the names that fields have in the next one.
func indexesAs(old, next *project.Collection) []project.Index {
	out, path := slices.Clone(old.Indexes), as(old, next)
	for i := range out {
		out[i].Keys = slices.Clone(out[i].Keys)
		for j := range out[i].Keys {
			out[i].Keys[j].Path = path(out[i].Keys[j].Path)
		}
	}
	return out
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

func describe(ix *project.Index) string {
	var keys []string
	for _, k := range ix.Keys {
		if k.Desc {
			keys = append(keys, "-"+k.Path)
		} else {
			keys = append(keys, k.Path)
		}
	}
	out := "(" + strings.Join(keys, ", ") + ")"
	if ix.Unique {
		out += " unique"
	}
	if ix.Sparse {
		out += " sparse"
	}
	return out
}

// both gives the names of two maps, sorted.
func both[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// lacking gives what is in next and not in old.
func lacking(old, next []string) []string {
	var out []string
	had := newPathSet(old)
	for _, s := range next {
		if !had[s] {
			out = append(out, s)
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

// quoted shows a value of a config.
func quoted(v any) string { return fmt.Sprintf("%v", v) }
