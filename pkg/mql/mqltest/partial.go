package mqltest

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// PartialFilter makes a filter that a partial index may have.
func PartialFilter(r *rand.Rand) bson.D { return partial(r, 1) }

func partial(r *rand.Rand, depth int) bson.D {
	if depth > 0 && r.IntN(4) == 0 {
		return bson.D{{Key: pick(r, []string{"$and", "$or"}), Value: bson.A{partial(r, depth-1), partial(r, depth-1)}}}
	}
	name := pick(r, []string{"$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$type", "$exists", "$exists"})
	v := operand(r, name, 0)
	switch name {
	case "$exists":
		v = true
	case "$in":
		v = slices.DeleteFunc(values(r), func(item any) bool { _, ok := item.(bson.Regex); return ok })
	}
	return bson.D{{Key: pick(r, []string{"a", "a", "a", "b", "c", "a.b", "a.0"}), Value: bson.D{{Key: name, Value: v}}}}
}
