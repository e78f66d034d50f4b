package differ

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
)

// mutate changes one place of an object, so that it may not be what anybody takes: a name, or what it stands for.
func mutate(r *rand.Rand, d bson.D) bson.D {
	if len(d) == 0 {
		return d
	}
	out := slices.Clone(d)
	e := &out[r.IntN(len(out))]
	if r.IntN(3) > 0 {
		if inner, ok := mutateIn(r, e.Value); ok {
			e.Value = inner
			return out
		}
	}
	switch r.IntN(6) {
	case 0:
		e.Key = operatorName(r)
	case 1:
		e.Key = mqltest.Path(r)
	case 2:
		out = append(out, bson.E{Key: operatorName(r), Value: e.Value})
	case 3:
		out = slices.Insert(out, 0, bson.E{Key: operatorName(r), Value: mqltest.Value(r, 1)})
	case 4:
		e.Value = bson.D{{Key: operatorName(r), Value: e.Value}}
	default:
		e.Value = mqltest.Value(r, 2)
	}
	return out
}

func mutateIn(r *rand.Rand, v any) (any, bool) {
	switch v := v.(type) {
	case bson.D:
		return mutate(r, v), len(v) > 0
	case bson.A:
		if len(v) == 0 {
			return v, false
		}
		out := slices.Clone(v)
		i := r.IntN(len(out))
		inner, ok := mutateIn(r, out[i])
		if !ok {
			inner = mqltest.Value(r, 1)
		}
		out[i] = inner
		return out, true
	default:
		return v, false
	}
}

func operatorName(r *rand.Rand) string {
	names := []string{
		"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$and", "$or", "$nor", "$not", "$exists", "$type", "$all",
		"$elemMatch", "$size", "$mod", "$regex", "$options", "$slice", "$foo", "$", "", "a..b", "a.", ".a", "a.$b",
	}
	return names[r.IntN(len(names))]
}
