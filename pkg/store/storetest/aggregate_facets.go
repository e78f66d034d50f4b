package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// testFacets counts values in a collection, in a transaction, and where there is no collection; testAggregateViews does in a view.
func testFacets(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(
		`{"_id":1,"s":"x","n":1,"tags":["a","b","a"],"l":[{"p":1},{"p":[2,1]},7]}`,
		`{"_id":2,"s":"y","n":1.0,"tags":"b","l":[]}`,
		`{"_id":3,"s":"x","n":{"$numberLong":"2"},"tags":[],"l":{"p":null}}`,
		`{"_id":4,"s":null,"tags":[null,"c",["bb"]],"l":{"p":{"$oid":"0123456789abcdef01234567"}}}`,
		`{"_id":5,"s":"z","n":{"$date":"2026-01-02T03:04:05Z"},"l":[{"p":true}]}`,
	)
	for _, c := range []struct {
		filter bson.D
		paths  string
		most   int
		want   string
	}{
		{nil, "s,tags,n", 9, `5 ["x":2 "y":1 "z":1] ["b":2 "a":1 ["bb"]:1 "c":1] [1:2 2:1 {"$date":1767323045000}:1]`},
		{nil, "s,tags", 2, `5 ["x":2 "y":1] ["b":2 "a":1]`},
		{nil, "l.p,none.p,l.0.p", 9, `5 [1:1 2:1 {"$oid":"0123456789abcdef01234567"}:1 true:1] [] []`},
		{bson.D{{Key: "tags", Value: "b"}}, "s,tags", 9, `2 ["x":1 "y":1] ["b":2 "a":1]`},
		{bson.D{{Key: "_id", Value: 9}}, "s", 9, `0 []`},
	} {
		p, err := pipeline.Facets(mql.MustCompile(c.filter), strings.Split(c.paths, ","), c.most)
		if err != nil {
			t.Fatal(err)
		}
		wantFacets(t.Context(), t, f, p, c.want)
	}
	all, err := pipeline.Facets(nil, []string{"s"}, 9)
	if err != nil {
		t.Fatal(err)
	}
	wantFacets(t.Context(), t, f.collection("none"), all, `0 []`)
	err = f.db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		things := tx.Collection("things")
		if _, err := things.Write(ctx, []store.Op{insert(`{"_id":6,"s":"z"}`)}, false); err != nil {
			return err
		}
		wantFacets(ctx, t, things, all, `6 ["x":2 "z":2 "y":1]`)
		return nil
	})
	if err != nil {
		t.Errorf("Transact: %v", err)
	}
}

func wantFacets(ctx context.Context, t *testing.T, r store.Reader, p *pipeline.Pipeline, want string) {
	t.Helper()
	got := "no result"
	err := r.Aggregate(ctx, p, store.AggregateOptions{}, func(doc bson.Raw) error {
		documents, values := pipeline.ReadFacets(bytes.Clone(doc))
		parts := []string{strconv.FormatInt(documents, 10)}
		for _, list := range values {
			var each []string
			for _, v := range list {
				each = append(each, fmt.Sprintf("%s:%d", plainNumbers(v.Value.String()), v.Count))
			}
			parts = append(parts, "["+strings.Join(each, " ")+"]")
		}
		got = strings.Join(parts, " ")
		return nil
	})
	if got = strings.ReplaceAll(got, "1.0:", "1:"); err != nil || got != want {
		t.Errorf("%s\ngave %v\n%s\nwant\n%s", p.Raw(), err, got, want)
	}
}
