package storetest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// testProjections asks for parts of documents. The filter finds exactly one; want is what is given of it.
func testProjections(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(
		`{"_id":1,"a":1,"b":{"c":2,"d":3},"z":4}`,
		`{"_id":2,"l":[1,2,3,4,5],"o":[{"b":1,"c":2},5,{"b":3},[{"b":4}]]}`,
		`{"x":1,"_id":3,"y":2}`,
	)
	cases := []struct{ filter, projection, want string }{
		{`{"_id":1}`, `{}`, `{"_id":1,"a":1,"b":{"c":2,"d":3},"z":4}`},
		{`{"_id":1}`, `{"a":1}`, `{"_id":1,"a":1}`},
		{`{"_id":1}`, `{"z":1,"a":true}`, `{"_id":1,"a":1,"z":4}`}, // in the document's order
		{`{"_id":1}`, `{"a":1,"_id":0}`, `{"a":1}`},
		{`{"_id":1}`, `{"_id":1}`, `{"_id":1}`},
		{`{"_id":1}`, `{"_id":0}`, `{"a":1,"b":{"c":2,"d":3},"z":4}`},
		{`{"_id":1}`, `{"b.c":1}`, `{"_id":1,"b":{"c":2}}`},
		{`{"_id":1}`, `{"b":{"d":1}}`, `{"_id":1,"b":{"d":3}}`},
		{`{"_id":1}`, `{"b.x":1}`, `{"_id":1,"b":{}}`},
		{`{"_id":1}`, `{"a.x":1}`, `{"_id":1}`},
		{`{"_id":1}`, `{"none":1}`, `{"_id":1}`},
		{`{"_id":1}`, `{"a":0}`, `{"_id":1,"b":{"c":2,"d":3},"z":4}`},
		{`{"_id":1}`, `{"b.c":0,"z":false}`, `{"_id":1,"a":1,"b":{"d":3}}`},
		{`{"_id":2}`, `{"o.b":1}`, `{"_id":2,"o":[{"b":1},{"b":3},[{"b":4}]]}`},
		{`{"_id":2}`, `{"o.b":0,"l":0}`, `{"_id":2,"o":[{"c":2},5,{},[{}]]}`},
		{`{"_id":2}`, `{"l.0":1}`, `{"_id":2,"l":[]}`}, // names, not positions
		{`{"_id":2}`, `{"l":{"$slice":2},"o":0}`, `{"_id":2,"l":[1,2]}`},
		{`{"_id":2}`, `{"l":{"$slice":-2},"o":0}`, `{"_id":2,"l":[4,5]}`},
		{`{"_id":2}`, `{"l":{"$slice":[1,2]},"o":0}`, `{"_id":2,"l":[2,3]}`},
		{`{"_id":2}`, `{"l":{"$slice":[-2,1]},"_id":1}`, `{"_id":2,"l":[4]}`},
		{`{"_id":2}`, `{"l":{"$elemMatch":{"$gt":2}}}`, `{"_id":2,"l":[3]}`},
		{`{"_id":2}`, `{"l":{"$elemMatch":{"$gt":9}}}`, `{"_id":2}`},
		{`{"_id":2}`, `{"o":{"$elemMatch":{"b":{"$gt":1}}}}`, `{"_id":2,"o":[{"b":3}]}`},
		{`{"_id":2,"l":{"$gte":4}}`, `{"l.$":1}`, `{"_id":2,"l":[4]}`},
		{`{"o.b":3}`, `{"o.$":1}`, `{"_id":2,"o":[{"b":3}]}`},
		{`{"x":1}`, `{"y":1,"x":1}`, `{"_id":3,"x":1,"y":2}`}, // the id comes first
		{`{"x":1}`, `{"x":0}`, `{"_id":3,"y":2}`},
	}
	f.underIndexes(t, permutations("l", "o.b"), func(f *fixture) {
		for _, c := range cases {
			q := store.Query{Filter: filter(c.filter), Project: projection(c.projection), Sort: sortBy("_id")}
			if got := strings.Join(f.documents(q), "\n"); got != doc(c.want).String() {
				f.t.Errorf("%s of %s:\ngot  %s\nwant %s", c.projection, c.filter, got, doc(c.want))
			}
		}
	})
	t.Run("every document", func(t *testing.T) { testProjectionOfAll(newFixture(t, s)) })
}

// testProjectionOfAll pages through documents by a field that the projection leaves out.
func testProjectionOfAll(f *fixture) {
	for i := range 40 {
		f.mustWrite(store.Op{Kind: store.Insert, Doc: numbered(i, 100-i)})
	}
	for _, index := range []string{"", "n"} {
		if index != "" {
			f.index(on(index))
		}
		var got []string
		q := store.Query{Sort: sortBy("n _id"), Project: projection(`{"text":1}`), Skip: 3, Limit: 5}
		q.After = q.Sort.Key(numbered(30, 70))
		err := f.Find(f.t.Context(), q, func(d bson.Raw) error {
			if !d.Lookup("n").IsZero() || d.Lookup("text").IsZero() {
				f.t.Errorf("got %v", d)
			}
			got = append(got, show(d.Lookup("_id")))
			return nil
		})
		if err != nil || strings.Join(got, " ") != "26 25 24 23 22" {
			f.t.Errorf("index %q: got %v, %v", index, got, err)
		}
	}
}
