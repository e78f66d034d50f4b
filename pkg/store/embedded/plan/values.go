package plan

import (
	"slices"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Values is a scan whose keys come by the values of one path.
type Values struct {
	*Scan

	Before []byte // what all keys have before the value
	Desc   bool   // the values come in descending order
}

// ByValues looks for an index that has the matches of filter by the values of path: behind fields that are bound to
// single values, and without lists.
func ByValues(path string, filter *mql.Filter, indexes []Index) (Values, bool) {
	p := newPlanner(&store.Query{Filter: filter}, nil, indexes)
	for i := range indexes {
		a, ok := p.secondary(&indexes[i])
		if !ok || !a.exact { // what a sparse index lacks has no value to tell
			continue
		}
		field := slices.IndexFunc(a.keys, func(k store.IndexKey) bool { return k.Path == path })
		if field < 0 || field > a.points {
			continue
		}
		if before, ok := a.before(field); ok {
			return Values{Scan: a.scan(a.ranges, false), Before: before, Desc: a.keys[field].Desc}, true
		}
	}
	return Values{}, false
}

// before gives what the keys have before a field, if each of the fields there is bound to one value.
func (a *access) before(field int) (key []byte, ok bool) {
	key = slices.Clone(a.prefix)
	for i := range field {
		value := a.fixed(i, a.keys[i].Desc)
		if value == nil {
			return nil, false
		}
		key = append(key, value...)
	}
	return key, true
}
