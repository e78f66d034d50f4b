package plan

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

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
			d.searches(&project.Collection{Name: name}, next)
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
	own := []string{"name", "renamedFrom", "permissions", "readonlyFields", "projections", "hooks", "meta", "imageFilter", "fields", "indexes", "search", "audit", "strictFields", "hiddenFields"}
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
	d.searches(old, next)
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
