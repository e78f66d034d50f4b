package mql

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// equality is what a filter says of one path.
type equality struct {
	path  string
	segs  []string
	value bson.RawValue
}

// UpsertBase gives the document that an upsert with filter f starts from: the fields that f says are equal to one
// value, with _id first if it is among them and the others by path. It fails with errs.Invalid, code "bad_upsert",
// where f says so twice of one path, or of a path and of one in it.
//
// Equal to one value says an equality by itself, in $eq, in an $in or $all of one value, under $and, and in an $or of
// one branch. A number in a path is the name of a field.
func UpsertBase(f *Filter) (bson.Raw, error) { return upsertBase(equalitiesOf(nil, f.Root())) }

// UpsertID gives the _id that an upsert with filter f inserts where it replaces, which takes nothing else from the
// filter. Its type is 0 if f does not say it. Errors are those of UpsertBase.
func UpsertID(f *Filter) (bson.RawValue, error) {
	fields := equalitiesOf(nil, f.Root())
	base, err := upsertBase(slices.DeleteFunc(fields, func(e equality) bool { return e.segs[0] != idField }))
	id, _ := document.Field(base, idField)
	return id, err
}

func upsertBase(fields []equality) (bson.Raw, error) {
	slices.SortStableFunc(fields, func(a, b equality) int {
		if id := a.segs[0] == "_id"; id != (b.segs[0] == "_id") {
			if id {
				return -1
			}
			return 1
		}
		return strings.Compare(a.path, b.path)
	})
	paths := make(map[string]struct{}, len(fields))
	for _, below := range fields {
		for i := range len(below.path) + 1 {
			if i < len(below.path) && below.path[i] != '.' {
				continue
			}
			if _, ok := paths[below.path[:i]]; ok {
				return nil, errs.New(errs.Invalid, "bad_upsert",
					"upsert: the filter says what %s is and what %s is: leave one of them out", below.path[:i], below.path)
			}
		}
		paths[below.path] = struct{}{}
	}
	base := encodeClauses(nest(fields, 0))
	if id, found := document.Field(base, idField); found {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	return base, nil
}

func equalitiesOf(dst []equality, n Node) []equality {
	if neverHolds(n) {
		return dst
	}
	switch n := n.(type) {
	case *AndNode:
		for _, child := range n.Nodes {
			dst = equalitiesOf(dst, child)
		}
	case *OrNode:
		if branches := possible(n); len(branches) == 1 {
			return equalitiesOf(dst, branches[0])
		}
	case *Field:
		for _, p := range n.Preds {
			dst = appendEqualities(dst, n.Path, p)
		}
	}
	return dst
}

// neverHolds says whether no document can match, as a MongoDB server sees it: by an $all of nothing.
func neverHolds(n Node) bool {
	switch n := n.(type) {
	case *AndNode:
		return slices.ContainsFunc(n.Nodes, neverHolds)
	case *OrNode:
		return len(possible(n)) == 0
	case *Field:
		return slices.ContainsFunc(n.Preds, func(p Pred) bool {
			all, ok := p.(*All)
			return ok && len(all.Preds) == 0
		})
	default:
		return false
	}
}

// possible gives the branches that may hold.
func possible(n *OrNode) []Node {
	return slices.DeleteFunc(slices.Clone(n.Nodes), neverHolds)
}

func appendEqualities(dst []equality, path string, p Pred) []equality {
	switch p := p.(type) {
	case *Cmp:
		if p.Op == Eq {
			dst = append(dst, equality{path, strings.Split(path, "."), p.Value})
		}
	case *In:
		if len(p.Values) == 1 && len(p.Regexes) == 0 {
			dst = append(dst, equality{path, strings.Split(path, "."), p.Values[0]})
		}
	case *All:
		for _, child := range p.Preds {
			dst = appendEqualities(dst, path, child)
		}
	}
	return dst
}

// nest makes the members of the object at the given depth; fields with one name there stand together.
func nest(fields []equality, depth int) []clause {
	var out []clause
	for len(fields) > 0 {
		name, n := fields[0].segs[depth], 1
		for n < len(fields) && fields[n].segs[depth] == name {
			n++
		}
		if len(fields[0].segs) == depth+1 {
			out = append(out, clause{name, fields[0].value})
		} else {
			out = append(out, clause{name, object(nest(fields[:n], depth+1))})
		}
		fields = fields[n:]
	}
	return out
}
