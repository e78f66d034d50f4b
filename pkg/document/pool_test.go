package document_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

func rawOf(tb testing.TB, v any) bson.RawValue {
	tb.Helper()
	if v == nil {
		return bson.RawValue{Type: bson.TypeNull}
	}
	typ, data, err := bson.MarshalValue(v)
	if err != nil {
		tb.Fatalf("encode %#v: %v", v, err)
	}
	return bson.RawValue{Type: typ, Value: data}
}

func decimalOf(tb testing.TB, s string) bson.Decimal128 {
	tb.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		tb.Fatalf("decimal %q: %v", s, err)
	}
	return d
}

// ascending is the order of values as MongoDB has it: groups from least to greatest, equal inside a group. The zero
// RawValue stands for a missing field.
func ascending(tb testing.TB) [][]any {
	tb.Helper()
	dec := func(s string) any { return decimalOf(tb, s) }
	oid := func(b byte) any { return bson.ObjectID{b} }
	bin := func(subtype byte, s string) any { return bson.Binary{Subtype: subtype, Data: []byte(s)} }
	var missing bson.RawValue
	return [][]any{
		{bson.MinKey{}},
		{bson.Undefined{}},
		{nil, missing},
		{math.NaN(), dec("NaN")},
		{math.Inf(-1), dec("-Infinity")},
		{dec("-9E+6144")},
		{dec("-1E+400")},
		{-math.MaxFloat64},
		{-1e300},
		{dec("-9223372036854775809")},
		{int64(math.MinInt64), -9223372036854775808.0, dec("-9223372036854775808")},
		{int64(math.MinInt64) + 1, dec("-9223372036854775807")},
		{int64(-1)<<53 - 1, dec("-9007199254740993")},
		{int64(-1) << 53, -9007199254740992.0},
		{dec("-2.5"), -2.5},
		{int32(-1), int64(-1), -1.0, dec("-1.000")},
		{-0.1},
		{dec("-0.1")},
		{dec("-1E-300")},
		{-5e-324},
		{dec("-1E-6176")},
		{int32(0), int64(0), 0.0, math.Copysign(0, -1), dec("0"), dec("-0"), dec("0E+500")},
		{dec("1E-6176")},
		{dec("1E-400")},
		{5e-324},
		{dec("1E-323")},
		{dec("0.1"), dec("0.10")},
		{0.1},
		{dec("0.1000000000000000055511151231257828")},
		{0.25, dec("0.25")},
		{dec("0.3333333333333333333333333333333333")},
		{int32(1), int64(1), 1.0, dec("1"), dec("1.0")},
		{dec("1.000000000000000000000000000000001")},
		{1 + 0x1p-52},
		{int32(9)},
		{int32(10), dec("1E+1")},
		{dec("12")},
		{dec("120")},
		{dec("121")},
		{int64(1)<<53 - 1},
		{int64(1) << 53, 9007199254740992.0},
		{int64(1)<<53 + 1, dec("9007199254740993")},
		{int64(1)<<53 + 2, 9007199254740994.0},
		{int64(math.MaxInt64) - 1},
		{int64(math.MaxInt64), dec("9223372036854775807")},
		{9223372036854775808.0, dec("9223372036854775808")},
		{dec("1E+22"), 1e22},
		{1e23}, // the double is a little below 10^23
		{dec("1E+23")},
		{dec("9999999999999999999999999999999999")},
		{1e300},
		{math.MaxFloat64},
		{dec("1.8E+308")},
		{dec("1E+400")},
		{dec("9.99E+6144")},
		{math.Inf(1), dec("Infinity")},
		{"", bson.Symbol("")},
		{"\x00"},
		{"\x00\x00"},
		{"\x00\x01"},
		{"\x00ÿ"},
		{"\x01"},
		{"A"},
		{"a", bson.Symbol("a")},
		{"a\x00"},
		{"a\x00b"},
		{"a\x01"},
		{"aa"},
		{"b"},
		{"é"},
		{"\U0010FFFF"},
		{bson.D{}},
		{bson.D{{Key: "a", Value: nil}}},
		{bson.D{{Key: "b", Value: nil}}},
		{bson.D{{Key: "", Value: 1}}},
		{bson.D{{Key: "a", Value: int32(1)}}, bson.D{{Key: "a", Value: 1.0}}},
		{bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: int32(1)}}},
		{bson.D{{Key: "a", Value: int32(2)}}},
		{bson.D{{Key: "aa", Value: int32(0)}}},
		{bson.D{{Key: "b", Value: int32(0)}}},
		{bson.D{{Key: "b", Value: int32(1)}, {Key: "a", Value: int32(1)}}},
		{bson.D{{Key: "a", Value: ""}}},
		{bson.D{{Key: "a", Value: "x\x00"}}},
		{bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{1}}}}}},
		{bson.A{}},
		{bson.A{bson.MinKey{}}},
		{bson.A{nil}},
		{bson.A{nil, nil}},
		{bson.A{int32(1)}, bson.A{dec("1")}},
		{bson.A{1, 2}},
		{bson.A{1, "a"}},
		{bson.A{2}},
		{bson.A{""}},
		{bson.A{bson.A{}}},
		{bson.A{bson.A{1, 2}}},
		{bin(0, "")},
		{bin(0, "b")},
		{bin(5, "a")},
		{bin(0, "aa")},
		{oid(0)},
		{oid(1)},
		{oid(255)},
		{false},
		{true},
		{bson.DateTime(math.MinInt64)},
		{bson.DateTime(-1)},
		{bson.DateTime(0)},
		{bson.DateTime(1)},
		{bson.DateTime(math.MaxInt64)},
		{bson.Timestamp{}},
		{bson.Timestamp{I: math.MaxUint32}},
		{bson.Timestamp{T: 1}},
		{bson.Timestamp{T: math.MaxUint32}},
		{bson.Regex{}},
		{bson.Regex{Pattern: "a"}},
		{bson.Regex{Pattern: "a", Options: "i"}},
		{bson.Regex{Pattern: "ab"}},
		{bson.DBPointer{DB: "a"}},
		{bson.DBPointer{DB: "b"}},
		{bson.JavaScript("a")},
		{bson.JavaScript("b")},
		{bson.CodeWithScope{Code: "a", Scope: bson.D{}}},
		{bson.CodeWithScope{Code: "a", Scope: bson.D{{Key: "x", Value: 1}}}},
		{bson.MaxKey{}},
	}
}

type poolValue struct {
	raw   bson.RawValue
	group int
}

func pool(tb testing.TB) []poolValue {
	tb.Helper()
	var out []poolValue
	for i, group := range ascending(tb) {
		for _, v := range group {
			raw, missing := v.(bson.RawValue)
			if !missing {
				raw = rawOf(tb, v)
			}
			out = append(out, poolValue{raw, i})
		}
	}
	return out
}

// randomValue makes values close to each other: small numbers in all types, short texts, and containers of them.
func randomValue(r *rand.Rand, depth int) any {
	kinds := 14
	if depth <= 0 {
		kinds = 11
	}
	near := []int64{0, 1, 2, 10, 1 << 52, 1 << 53, 1 << 60, math.MaxInt64 - 2}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return int32(r.IntN(7) - 3)
	case 2:
		i := near[r.IntN(len(near))] + int64(r.IntN(3))
		if r.IntN(2) == 0 {
			i = -i
		}
		return i
	case 3:
		f := float64(near[r.IntN(len(near))]) * []float64{1, 0.5, 0.1, 1e-10, 1e10}[r.IntN(5)]
		return math.Copysign(f, float64(r.IntN(2))-0.5)
	case 4:
		f := math.Float64frombits(r.Uint64())
		return f
	case 5:
		return bson.NewDecimal128(r.Uint64(), r.Uint64())
	case 6, 7: // a usual decimal: few digits, small exponent
		high := uint64(r.IntN(2))<<63 | uint64(6176-30+r.IntN(60))<<49
		return bson.NewDecimal128(high, r.Uint64()>>r.IntN(64))
	case 8:
		return string([]byte("\x00\x01ab")[r.IntN(4):][:r.IntN(2)]) + []string{"", "\x00", "a"}[r.IntN(3)]
	case 9:
		return r.IntN(2) == 0
	case 10:
		return bson.DateTime(r.IntN(3) - 1)
	case 11:
		list := bson.A{}
		for range r.IntN(3) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	default:
		doc := bson.D{}
		for range r.IntN(3) {
			doc = append(doc, bson.E{Key: []string{"", "a", "b", "ab"}[r.IntN(4)], Value: randomValue(r, depth-1)})
		}
		return doc
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func show(v bson.RawValue) string {
	if v.IsZero() {
		return "missing"
	}
	return string(document.AppendJSONValue(nil, v, nil)) + " (" + v.Type.String() + ")"
}
