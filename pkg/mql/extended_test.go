package mql_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

func extended(t *testing.T, s string) (any, error) {
	t.Helper()
	v, err := document.ParseJSONValue([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return mql.Extended(v)
}

func TestExtended(t *testing.T) {
	oid, _ := bson.ObjectIDFromHex("0102030405060708090a0b0c")
	dec, _ := bson.ParseDecimal128("1.50")
	date := bson.NewDateTimeFromTime(time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC))
	tests := []struct {
		in   string
		want any
	}{
		{`1`, int64(1)},
		{`{"$oid":"0102030405060708090a0b0c"}`, oid},
		{`{"$date":"2026-01-02T03:04:05.006Z"}`, date},
		{`{"$date":{"$numberLong":"5"}}`, bson.DateTime(5)},
		{`{"$date":-5}`, bson.DateTime(-5)},
		{`{"$numberInt":"-7"}`, int32(-7)},
		{`{"$numberLong":"9223372036854775807"}`, int64(math.MaxInt64)},
		{`{"$numberDouble":"1e3"}`, 1000.0},
		{`{"$numberDouble":"-Infinity"}`, math.Inf(-1)},
		{`{"$numberDecimal":"1.50"}`, dec},
		{
			`{"a":{"$in":[{"$numberInt":"1"},{"b":{"$oid":"0102030405060708090a0b0c"}}]},"$or":[{}]}`,
			bson.D{
				{Key: "a", Value: bson.D{{Key: "$in", Value: bson.A{int32(1), bson.D{{Key: "b", Value: oid}}}}}},
				{Key: "$or", Value: bson.A{bson.D{}}},
			},
		},
		{`{"a":{"$regex":"x","$options":"i"}}`, bson.D{{Key: "a", Value: bson.D{{Key: "$regex", Value: "x"}, {Key: "$options", Value: "i"}}}}},
	}
	for _, test := range tests {
		got, err := extended(t, test.in)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
		} else if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b bson.Decimal128) bool { return a == b })); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.in, diff)
		}
	}
	if v, err := extended(t, `{"$numberDouble":"NaN"}`); err != nil || !math.IsNaN(v.(float64)) {
		t.Errorf("NaN: %v, %v", v, err)
	}
}

func TestExtendedRefuses(t *testing.T) {
	for _, in := range []string{
		`{"$oid":"xyz"}`, `{"$oid":1}`, `{"$oid":"0102030405060708090a0b0c","x":1}`, `{"x":1,"$oid":"0102030405060708090a0b0c"}`,
		`{"$date":"yesterday"}`, `{"$date":true}`, `{"$date":{"$numberLong":"x"}}`, `{"$date":{"$numberInt":"1"}}`, `{"$date":null}`,
		`{"$numberInt":"2147483648"}`, `{"$numberInt":1}`, `{"$numberLong":"9223372036854775808"}`, `{"$numberLong":"0x10"}`,
		`{"$numberDouble":"inf"}`, `{"$numberDouble":"0x1p3"}`, `{"$numberDouble":"1e999"}`, `{"$numberDecimal":"x"}`,
		`{"$binary":{"base64":"","subType":"00"}}`, `{"$uuid":"x"}`, `{"$timestamp":{"t":1,"i":1}}`, `{"$symbol":"x"}`,
		`{"$code":"x"}`, `{"$regularExpression":{"pattern":"x","options":""}}`, `{"$minKey":1}`, `{"$maxKey":1}`, `{"$undefined":true}`,
		`{"a":[{"b":{"$oid":"x"}}]}`,
	} {
		_, err := extended(t, in)
		if err == nil {
			t.Errorf("%s is taken", in)
			continue
		}
		wantBadFilter(t, err, "$")
	}
	var deep any = int64(1)
	for range 100_000 {
		deep = bson.A{deep}
	}
	_, err := mql.Extended(deep)
	wantBadFilter(t, err, "nested")
}
