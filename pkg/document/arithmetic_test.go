package document_test

import (
	"bytes"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// What MongoDB 6.0.5 makes of them. nil is an overflow.
func TestArithmetic(t *testing.T) {
	const maxLong, maxInt = int64(math.MaxInt64), int32(math.MaxInt32)
	for _, test := range []struct{ a, b, sum, product any }{
		{int32(2), int32(3), int32(5), int32(6)},
		{maxInt, int32(2), int64(maxInt) + 2, 2 * int64(maxInt)},
		{int32(math.MinInt32), int32(-1), int64(math.MinInt32) - 1, int64(1 << 31)},
		{int32(2), int64(3), int64(5), int64(6)},
		{maxLong, int32(1), nil, maxLong},
		{int64(math.MinInt64), int64(-1), nil, nil},
		{int64(math.MinInt64), int64(1), int64(math.MinInt64 + 1), int64(math.MinInt64)},
		{int64(1 << 62), int64(-2), int64(1<<62 - 2), int64(math.MinInt64)},
		{int64(1 << 62), int64(2), int64(1<<62 + 2), nil},
		{int64(0), int64(math.MinInt64), int64(math.MinInt64), int64(0)},
		{int64(1<<53 + 1), 1.0, float64(1 << 53), float64(1 << 53)},
		{1.5, int32(2), 3.5, 3.0},
		{1.5, math.Inf(1), math.Inf(1), math.Inf(1)},
		{1.5, dec(t, "1"), dec(t, "2.50000000000000"), dec(t, "1.50000000000000")},
		{0.1, dec(t, "0.1"), dec(t, "0.200000000000000"), dec(t, "0.0100000000000000")},
		{1e300, dec(t, "1"), dec(t, "1.000000000000000000000000000000000E+300"), dec(t, "1.00000000000000E+300")},
		{1e-320, dec(t, "0"), dec(t, "9.99988867182683E-321"), dec(t, "0E-335")},
		{math.Copysign(0, -1), dec(t, "1"), dec(t, "1"), dec(t, "-0")},
		{math.Inf(1), dec(t, "1"), dec(t, "Infinity"), dec(t, "Infinity")},
		{dec(t, "Infinity"), int32(0), dec(t, "Infinity"), dec(t, "NaN")},
		{dec(t, "-Infinity"), dec(t, "Infinity"), dec(t, "NaN"), dec(t, "-Infinity")},
		{dec(t, "NaN"), int32(1), dec(t, "NaN"), dec(t, "NaN")},
		{dec(t, "1.0"), dec(t, "0.000"), dec(t, "1.000"), dec(t, "0.0000")},
		{dec(t, "-0"), dec(t, "0"), dec(t, "0"), dec(t, "-0")},
		{maxLong, dec(t, "1"), dec(t, "9223372036854775808"), dec(t, "9223372036854775807")},
		{dec(t, "9.999999999999999999999999999999999E+6144"), int32(10), dec(t, "9.999999999999999999999999999999999E+6144"), dec(t, "Infinity")},
		{dec(t, "1E-6176"), dec(t, "0.5"), dec(t, "0.5000000000000000000000000000000000"), dec(t, "0E-6176")},
		{dec(t, "1.234567890123456789012345678901234"), dec(t, "1.1"), dec(t, "2.334567890123456789012345678901234"), dec(t, "1.358024679135802467913580246791357")},
		{dec(t, "1E+6000"), int32(1), dec(t, "1.000000000000000000000000000000000E+6000"), dec(t, "1E+6000")},
		{dec(t, "1E+6111"), int32(0), dec(t, "1.000000000000000000000000000000000E+6111"), dec(t, "0E+6111")},
		{dec(t, "1E+6111"), dec(t, "1E+5"), dec(t, "1.000000000000000000000000000000000E+6111"), dec(t, "1.00000E+6116")},
	} {
		a, b := value(t, test.a), value(t, test.b)
		for name, op := range map[string]struct {
			do   func([]byte, bson.RawValue, bson.RawValue) (bson.Type, []byte, bool)
			want any
		}{"+": {document.AppendSum, test.sum}, "*": {document.AppendProduct, test.product}} {
			for _, order := range [][2]bson.RawValue{{a, b}, {b, a}} {
				kind, out, ok := op.do([]byte("x"), order[0], order[1])
				if op.want == nil {
					if ok || string(out) != "x" {
						t.Errorf("%v %s %v: no overflow", order[0], name, order[1])
					}
					continue
				}
				want := value(t, op.want)
				if !ok || kind != want.Type || !bytes.Equal(out[1:], want.Value) || out[0] != 'x' {
					t.Errorf("%v %s %v: %v, want %v", order[0], name, order[1], bson.RawValue{Type: kind, Value: out[1:]}, want)
				}
			}
		}
	}
	if _, out, ok := document.AppendSum(nil, value(t, "1"), value(t, int32(1))); ok || out != nil {
		t.Error("a text is no number")
	}
}

// A NaN keeps its bits where it becomes a decimal.
func TestArithmeticOfNaN(t *testing.T) {
	for bits, want := range map[uint64]bson.Decimal128{
		0x7ff8000000000000: bson.NewDecimal128(0x7c00000000000000, 0),
		0xfff8000000000000: bson.NewDecimal128(0xfc00000000000000, 0),
		0x7ff8000000000001: bson.NewDecimal128(0x7c00000000000000, 0x0800000000000000),
		0x7fffffffffffffff: bson.NewDecimal128(0x7c00000000000000, 0), // too large to keep
	} {
		kind, out, ok := document.AppendProduct(nil, value(t, math.Float64frombits(bits)), value(t, dec(t, "2")))
		if got := (bson.RawValue{Type: kind, Value: out}); !ok || !got.Equal(value(t, want)) {
			t.Errorf("%x: %x", bits, out)
		}
	}
}

func value(t *testing.T, v any) bson.RawValue {
	t.Helper()
	r, err := document.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dec(t *testing.T, s string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
