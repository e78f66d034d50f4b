package differ

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/mqltest"
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
	switch r.IntN(8) {
	case 0:
		return rareText(r)
	case 1:
		return rareList(r)
	case 2:
		return rareDecimal(r)
	case 3:
		return rareNumber(r)
	case 4:
		return rareType(r, stored)
	case 5:
		return rareName(r)
	case 6:
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
	return decimal([]string{
		"9.999999999999999999999999999999999E+6144", "-9.999999999999999999999999999999999E+6144", "1E-6176", "-1E-6176", "0E-6176",
		"0E+6111", "-0", "Infinity", "1.0", "1.00", "1E+6144", "9007199254740992.5", "2.0", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "0.1000000000000000055511151231257827", "4.940656458412465441765687928682214E-324",
		"1.797693134862315708145274237317044E+308", "2147483648", "0.5", "1E+19",
	}[r.IntN(22)])
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

// rareNumber makes one at an edge of its type, or where doubles have no fractions any more.
func rareNumber(r *rand.Rand) any {
	return []any{
		int32(math.MaxInt32), int32(math.MinInt32), int64(math.MaxInt32), int64(math.MaxInt32 + 1), int64(math.MinInt32 - 1),
		float64(1<<53 - 1), float64(-1 << 53), int64(1 << 53), int64(1<<53 - 1), int64(-1<<53 - 1), math.Nextafter(1<<63, 0),
		float64(-1 << 63), int64(math.MaxInt64 - 1), int64(math.MinInt64 + 1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.Float64frombits(0x7ff8000000000001), -math.NaN(),
		math.Float64frombits(0xfff8000000000000), bson.NewDecimal128(0xfc00000000000000, 0), 0.5, -0.5, 1e19,
	}[r.IntN(25)]
}

// badText is not UTF-8. Nothing may be stored in which it is.
const badText = "a\xff"

// rareType makes a value of a type that nobody should use any more, which filters mostly don't take, or that means
// something of its own.
func rareType(r *rand.Rand, stored bool) any {
	if stored && r.IntN(3) == 0 || r.IntN(50) == 0 {
		return []any{bson.Symbol("a"), bson.Symbol(""), bson.Undefined{}, bson.JavaScript("a"), bson.JavaScript("b")}[r.IntN(5)]
	}
	return []any{
		bson.Timestamp{},
		bson.Timestamp{I: 1},
		bson.Timestamp{T: math.MaxUint32, I: math.MaxUint32},
		bson.NilObjectID,
		bson.ObjectID{0: 0xFF, 11: 0xFF},
		bson.Binary{Subtype: 2, Data: []byte("a")},
		bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")},
		bson.Binary{Subtype: 6, Data: []byte{1}},
	}[r.IntN(8)]
}

// rareName makes an object with a name that no path leads to.
func rareName(r *rand.Rand) any {
	name := []string{"", "x.y", "x.", ".", "$b", "b$", "$", "é", "\U0001F600", "\uFFFF", "b ", "00", "-1", "B"}[r.IntN(14)]
	return bson.D{{Key: name, Value: mqltest.Value(r, 1)}, {Key: "b", Value: mqltest.Scalar(r)}}
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
