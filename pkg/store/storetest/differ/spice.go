package differ

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// spice puts rare values in the place of others, mostly of one list, so that filters do meet them.
func spice(r *rand.Rand, v any, stored bool) any {
	switch v := v.(type) {
	case bson.D:
		out := slices.Clone(v)
		for i, e := range out {
			if e.Key != "_id" && takesValues(e.Key) {
				out[i].Value = spice(r, e.Value, stored)
			}
		}
		return out
	case bson.A:
		out := slices.Clone(v)
		for i := range out {
			out[i] = spice(r, out[i], stored)
		}
		return out
	default:
		if r.IntN(16) > 0 {
			return v
		}
		return rare(r, stored)
	}
}

// takesValues says whether what stands behind a name may be any value.
func takesValues(name string) bool {
	return !strings.HasPrefix(name, "$") || slices.Contains([]string{
		"$and", "$or", "$nor", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$all", "$not", "$elemMatch",
		"$set", "$setOnInsert", "$min", "$max", "$push", "$addToSet", "$each", "$pull", "$pullAll",
	}, name)
}

// rare makes a value. A regular expression is one only where it is stored: in a filter it is a condition.
func rare(r *rand.Rand, stored bool) any {
	if stored && r.IntN(4) == 0 {
		return bson.Regex{Pattern: []string{"a", "^a", "b"}[r.IntN(3)], Options: []string{"", "i"}[r.IntN(2)]}
	}
	switch r.IntN(5) {
	case 0:
		return rareText(r)
	case 1:
		return rareList(r)
	case 2:
		return rareDecimal(r)
	case 3:
		return bson.DateTime([]int64{-1, -86_400_000, -2_208_988_800_000, -62_135_596_800_000, math.MinInt64, math.MaxInt64}[r.IntN(6)])
	default:
		return bson.Binary{
			Subtype: []byte{0, 4, 0x80}[r.IntN(3)],
			Data:    [][]byte{{0}, {0, 0}, {0, 0xFF}, {0xFF}, {0xFF, 0}, []byte("a\x00")}[r.IntN(6)],
		}
	}
}

func rareText(r *rand.Rand) string {
	long := strings.Repeat("ab", 200)
	return []string{
		"a\x00", "a\x00b", "\x00", "\x00\x00", "\x01", "ÿ", "aÿ", "\U0010FFFF", "\uFFFF", long, long + "\x00", long + "a", long[1:], "aa",
	}[r.IntN(14)]
}

func rareDecimal(r *rand.Rand) bson.Decimal128 {
	d, err := bson.ParseDecimal128([]string{
		"9.999999999999999999999999999999999E+6144", "-9.999999999999999999999999999999999E+6144", "1E-6176", "-1E-6176", "0E-6176",
		"0E+6111", "-0", "Infinity", "1.0", "1.00", "1E+6144", "9007199254740992.5", "2.0",
	}[r.IntN(13)])
	if err != nil {
		panic(err)
	}
	return d
}

func rareList(r *rand.Rand) any {
	switch r.IntN(6) {
	case 0:
		return bson.A{bson.A{int32(1), int32(2)}, bson.A{int32(1)}}
	case 1:
		return bson.A{bson.A{bson.A{}}, bson.A{}}
	case 2:
		return bson.A{bson.A{bson.A{bson.D{{Key: "b", Value: int32(1)}}}}}
	case 3:
		return bson.A{bson.A{bson.D{{Key: "b", Value: bson.A{int32(1)}}, {Key: "c", Value: "a"}}}, bson.D{{Key: "b", Value: bson.A{bson.A{int32(1)}}}}}
	default:
		return deep(r)
	}
}

// deep is 33 levels of objects or lists.
func deep(r *rand.Rand) any {
	v := any(int32(1))
	list := r.IntN(2) == 0
	for i := range 33 {
		if list {
			v = bson.A{v}
		} else {
			v = bson.D{{Key: []string{"b", "c"}[i%2], Value: v}}
		}
	}
	return v
}
