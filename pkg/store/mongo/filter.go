package mongo

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// rawFilter is what the server is sent for a filter: the filter itself, with the few clauses that the server answers
// differently from an index than from a scan (seen on 6.0) kept away from its indexes by a double negation:
//   - {$gte: null} and {$lte: null}: a sparse index lacks the documents without the field
//   - ranges bounded by a list: an index on lists holds their elements, and the whole list is not among them
//   - ranges bounded by MinKey or MaxKey, with which everything compares: a sparse index lacks the documents without the
//     field, and the others have a null for lists without a document in them, which have no value there
//   - $elemMatch with a field that is null: it holds for elements without the field, which a sparse index lacks, and which
//     the server takes if it has planned the same with other values before
func rawFilter(f *mql.Filter) bson.Raw {
	if f == nil {
		return bson.Raw{5, 0, 0, 0, 0}
	}
	raw := f.Raw()
	if !hasIndexTrap(raw) {
		return raw
	}
	guarded, err := bson.Marshal(guard(raw))
	if err != nil {
		return raw // the same meaning, at the mercy of the server's planner
	}
	return guarded
}

// guard rebuilds a filter. Logical operators are walked into; the other clauses stay or are negated twice.
func guard(filter bson.Raw) bson.D {
	d := bson.D{} // not nil, which would be sent as null: an empty branch is an empty object
	elements, _ := filter.Elements()
	for _, e := range elements {
		switch value := e.Value(); {
		case e.Key() == "$and" || e.Key() == "$or" || e.Key() == "$nor":
			branches, _ := value.Array().Values()
			each := make(bson.A, len(branches))
			for i, branch := range branches {
				each[i] = guard(branch.Document())
			}
			d = append(d, bson.E{Key: e.Key(), Value: each})
		case isIndexTrap(e):
			clause := bson.D{{Key: e.Key(), Value: value}}
			d = append(d, bson.E{Key: "$nor", Value: bson.A{bson.D{{Key: "$nor", Value: bson.A{clause}}}}})
		default:
			d = append(d, bson.E{Key: e.Key(), Value: value})
		}
	}
	return d
}

// hasIndexTrap says whether there is such a clause in a filter, at any depth. Constants that look like one count,
// too: that costs them an index and nothing else.
func hasIndexTrap(filter bson.Raw) bool {
	elements, _ := filter.Elements()
	return slices.ContainsFunc(elements, isIndexTrap)
}

func isIndexTrap(e bson.RawElement) bool {
	value := e.Value()
	switch e.Key() {
	case "$expr": // its comparisons mean the same with any index
		return false
	case "$elemMatch":
		if element, ok := value.DocumentOK(); ok && matchesNull(element) { // else it is a constant
			return true
		}
	case "$gte", "$lte":
		if value.Type == bson.TypeNull {
			return true
		}
		fallthrough
	case "$gt", "$lt":
		if value.Type == bson.TypeArray || value.Type == bson.TypeMinKey || value.Type == bson.TypeMaxKey {
			return true
		}
	}
	nested := value.Type == bson.TypeEmbeddedDocument || value.Type == bson.TypeArray
	return nested && hasIndexTrap(value.Value)
}

// matchesNull says whether fields of the elements that $elemMatch looks for may be null, which lacking ones are. What is asked of the elements
// themselves is another matter: they are there.
func matchesNull(element bson.Raw) bool {
	clauses, _ := element.Elements()
	return slices.ContainsFunc(clauses, func(e bson.RawElement) bool {
		switch nested := e.Value(); {
		case e.Key() == "$and" || e.Key() == "$or" || e.Key() == "$nor":
			list, _ := nested.ArrayOK() // what is none is in a constant, as below
			branches, _ := list.Values()
			return slices.ContainsFunc(branches, func(v bson.RawValue) bool {
				branch, _ := v.DocumentOK()
				return matchesNull(branch)
			})
		case strings.HasPrefix(e.Key(), "$"):
			return false
		default:
			conditions, _ := nested.DocumentOK()
			ops, _ := conditions.Elements()
			return slices.ContainsFunc(ops, equalsNull)
		}
	})
}

func equalsNull(op bson.RawElement) bool {
	switch value := op.Value(); op.Key() {
	case "$eq":
		return value.Type == bson.TypeNull
	case "$in", "$all":
		list, _ := value.ArrayOK()
		values, _ := list.Values()
		return slices.ContainsFunc(values, func(v bson.RawValue) bool { return v.Type == bson.TypeNull })
	default:
		return false
	}
}
