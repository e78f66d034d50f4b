package differ

import (
	"math"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
)

// theme puts values that are near to each other into all of a case, so that they meet.
func theme(r *rand.Rand, c *Case) {
	pool := themes(r)
	for i := range c.Docs {
		c.Docs[i] = onTheme(r, c.Docs[i], pool).(bson.D) //nolint:errcheck // it stays one
	}
	themeOps(r, c.Ops, pool)
}

func themeOps(r *rand.Rand, ops []Op, pool []any) {
	for i := range ops {
		op := &ops[i]
		for _, d := range []*bson.D{&op.Filter, &op.If, &op.Doc, &op.Update} {
			if *d != nil {
				*d = onTheme(r, *d, pool).(bson.D) //nolint:errcheck // it stays one
			}
		}
		themeOps(r, op.Batch, pool)
	}
}

func themes(r *rand.Rand) []any {
	all := [][]any{
		{int64(1<<53 + 1), float64(1 << 53), int64(1 << 53), decimal("9007199254740993"), decimal("9007199254740992.5")},
		{int64(math.MaxInt64), float64(1 << 63), int64(math.MaxInt64 - 1), decimal("9223372036854775807"), decimal("9223372036854775808")},
		{0.1, decimal("0.1"), decimal("0.1000000000000000055511151231257827"), decimal("0.10"), math.Nextafter(0.1, 1)},
		{math.NaN(), decimal("NaN"), math.Inf(-1), nil, bson.MinKey{}},
		{int32(0), math.Copysign(0, -1), decimal("0E+10"), decimal("-0"), false},
		{"", "\x00", "a", "a\x00", "aÿ"},
		{bson.DateTime(-1), bson.DateTime(0), bson.DateTime(math.MinInt64), bson.DateTime(1), bson.Timestamp{T: 1}},
		{int32(math.MaxInt32), int64(math.MaxInt32), int64(math.MaxInt32 + 1), float64(math.MaxInt32), int32(math.MinInt32)},
		{bson.Binary{}, bson.Binary{Data: []byte{0}}, bson.Binary{Subtype: 4, Data: []byte{0}}, bson.Binary{Data: []byte{0, 0}}, bson.NilObjectID},
	}
	return all[r.IntN(len(all))]
}

// onTheme puts values of the pool in the place of many others.
func onTheme(r *rand.Rand, v any, pool []any) any {
	switch v := v.(type) {
	case bson.D:
		out := slices.Clone(v)
		for i, e := range out {
			if e.Key != "_id" && takesValues(e.Key) {
				out[i].Value = onTheme(r, e.Value, pool)
			}
		}
		return out
	case bson.A:
		out := slices.Clone(v)
		for i := range out {
			out[i] = onTheme(r, out[i], pool)
		}
		return out
	case bson.Regex:
		return v
	default:
		if r.IntN(3) > 0 {
			return v
		}
		return pool[r.IntN(len(pool))]
	}
}

// pushes puts values into a list, mostly of scalars, which most updates do not meet.
func pushes(r *rand.Rand, op *Op, id int32) {
	if op.Sort == nil {
		op.Filter = bson.D{{Key: "_id", Value: id}}
	}
	each := bson.A{mqltest.Scalar(r), mqltest.Scalar(r)}[:1+r.IntN(2)]
	push := bson.D{{Key: "$each", Value: each}}
	for _, e := range []bson.E{
		{Key: "$position", Value: []int32{-1, -1, -2, -2, -3, -6, 0, 1, 2, 5}[r.IntN(10)]},
		{Key: "$slice", Value: int32(r.IntN(13) - 6)},
		{Key: "$sort", Value: direction(r)},
	} {
		if r.IntN(3) == 0 || e.Key == "$position" && r.IntN(2) == 0 {
			push = append(push, e)
		}
	}
	op.Update = bson.D{{Key: "$push", Value: bson.D{{Key: []string{"a", "b", "c"}[r.IntN(3)], Value: push}}}}
}

// withLists puts lists of three scalars and more in the place of some fields.
func withLists(r *rand.Rand, d bson.D) bson.D {
	out := slices.Clone(d)
	for i, e := range out {
		if e.Key == "_id" || r.IntN(4) > 0 {
			continue
		}
		var list bson.A
		for range 3 + r.IntN(3) {
			list = append(list, mqltest.Scalar(r))
		}
		out[i].Value = list
	}
	return out
}
