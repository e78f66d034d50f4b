package storetest

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

func testDistinct(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	if got, err := f.Distinct(t.Context(), "a", nil); err != nil || len(got) != 0 {
		t.Errorf("of a collection that isn't there: %v, %v", got, err)
	}
	for i, fields := range []string{
		`"a":3`, `"a":1`, `"a":1.0`, `"a":{"$numberLong":"3"}`, `"a":"x"`, `"a":null`, `"b":1`, `"a":[2,"x",[7]]`, `"a":[]`, `"a":true`,
		`"a":{"x":1}`, `"a":{"x":1.0}`, `"d":{"e":5}`, `"d":[{"e":6},{"e":[7,5]},{"f":1}]`, `"d":8`, `"g":{"$date":"2020-01-01T00:00:00Z"}`,
		`"a":{"$numberDouble":"NaN"}`, `"a":{"$numberDecimal":"NaN"}`, `"a":"a"`,
	} {
		f.given(fmt.Sprintf(`{"_id":%d,%s}`, i, fields))
	}
	cases := []struct{ path, filter, want string }{
		{"a", "", `null NaN 1 2 3 a x {"x":1} [7] true`},
		{"a", `{"a":{"$gt":1}}`, `2 3 x [7]`},
		{"a", `{"a":"x"}`, `2 x [7]`}, // all of a document that matches
		{"a", `{"_id":{"$gt":100}}`, ``},
		{"a", `{"a":{"$type":"array"}}`, `2 x [7]`},
		{"d.e", "", `5 6 7`},
		{"d.0.e", "", `6`},
		{"none", "", ``},
		{"_id", `{"_id":{"$lt":3}}`, `0 1 2`},
		{"b", "", `1`},
	}
	f.underIndexes(t, permutations("a", "d.e"), func(f *fixture) {
		for _, c := range cases {
			got, err := f.Distinct(f.t.Context(), c.path, filter(c.filter))
			if err != nil {
				f.t.Errorf("Distinct(%s, %s): %v", c.path, c.filter, err)
				continue
			}
			if text := showDistinct(got); text != c.want {
				f.t.Errorf("Distinct(%s, %s) = %s, want %s", c.path, c.filter, text, c.want)
			}
		}
	})

	t.Run("too much", func(t *testing.T) {
		f := newFixture(t, s)
		for i := range 18 {
			f.mustWrite(large(i, 0, 1<<20+i))
		}
		if got, err := f.Distinct(t.Context(), "pad", nil); errs.KindOf(err) != errs.Limit {
			t.Errorf("%d values of 1 MiB: %v", len(got), err)
		}
		if got, err := f.Distinct(t.Context(), "pad", filter(`{"_id":{"$lt":10}}`)); err != nil || len(got) != 10 {
			t.Errorf("%d of 10 values of 1 MiB: %v", len(got), err)
		}
	})
}

// showDistinct prints values without their numeric type, because of equal values any is given.
func showDistinct(values []bson.RawValue) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strings.NewReplacer(
			`{"$numberInt":"`, "", `{"$numberDouble":"`, "", `{"$numberDecimal":"`, "", `{"$numberLong":"`, "", `.0"}`, "", `"}`, "", " ", "",
		).Replace(show(v))
	}
	return strings.Join(texts, " ")
}
