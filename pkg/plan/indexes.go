package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
)

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
