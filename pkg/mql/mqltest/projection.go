package mqltest

import (
	"math/rand/v2"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Projection makes a projection in the form that mql.CompileProjection takes. About one in five does not compile: it
// mixes what does not go together, names a path twice, or has an operand that is none.
func Projection(r *rand.Rand) bson.D {
	style := pick(r, []any{true, int32(1), 1.5, false, int32(0), 0.0})
	p := bson.D{}
	for range r.IntN(4) {
		p = append(p, projected(r, style))
	}
	if r.IntN(3) == 0 {
		p = append(p, bson.E{Key: "_id", Value: pick(r, []any{true, false, int64(1), int32(0)})})
		r.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	}
	if r.IntN(8) == 0 {
		path := pick(r, []string{"a", "b", "c", "a.b", "b.c", "a.b.c"}) + ".$"
		if strings.Contains(path, ".b") || strings.Contains(path, ".c") {
			// Where b.c leads nowhere, a server looks for a c beside b.
			p = nil
		}
		p = append(p, bson.E{Key: path, Value: pick(r, []any{true, int32(1), style})})
	}
	if r.IntN(12) > 0 { // else a path may come twice
		p = distinctPaths(p)
	}
	return p
}

func projected(r *rand.Rand, style any) bson.E {
	path := pick(r, []string{"a", "b", "c", "a.b", "a.c", "b.c", "a.b.c", "a.0", "c.b", "b.0.c", "_id.x", "x"})
	switch r.IntN(16) {
	case 0, 1, 2:
		return bson.E{Key: path, Value: bson.D{{Key: "$slice", Value: sliceOperand(r)}}}
	case 3, 4:
		top, _, _ := strings.Cut(path, ".")
		return bson.E{Key: top, Value: bson.D{{Key: "$elemMatch", Value: elemMatch(r, 1)}}}
	case 5, 6:
		top, rest, below := strings.Cut(path, ".")
		if below {
			return bson.E{Key: top, Value: bson.D{{Key: rest, Value: style}}}
		}
	case 7:
		if r.IntN(3) == 0 {
			style = pick(r, []any{true, false, bson.D{}, bson.D{{Key: "$slice", Value: int32(1)}, {Key: "b", Value: true}}})
		}
	}
	return bson.E{Key: path, Value: style}
}

func sliceOperand(r *rand.Rand) any {
	if r.IntN(2) == 0 {
		return pick(r, []any{int32(0), int32(1), int64(2), 3.0, int32(-1), int64(-2), -9.0, int64(1) << 40})
	}
	skip := pick(r, []any{int32(0), int32(1), int64(2), -1.0, int32(-2), int64(-9), int32(9)})
	return bson.A{skip, pick(r, []any{int32(1), int64(2), 9.0, int64(1) << 40, int32(0), int32(-1)})}
}

// distinctPaths leaves out what collides with a path before it.
func distinctPaths(p bson.D) bson.D {
	var out bson.D
	for _, e := range p {
		collides := false
		for _, o := range out {
			one, other := strings.TrimSuffix(e.Key, ".$")+".", strings.TrimSuffix(o.Key, ".$")+"."
			collides = collides || strings.HasPrefix(one, other) || strings.HasPrefix(other, one)
		}
		if !collides {
			out = append(out, e)
		}
	}
	return out
}
