package records_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const faceted = `
collections:
  - name: items
    queryLimits: {maxTime: 1m}
    fields:
      - {name: n, type: number}
      - {name: name, type: string}
      - {name: at, type: date}
      - {name: on, type: boolean}
      - {name: tags, type: "string[]"}
      - {name: ref, type: "string[]", meta: {foreign: {collection: items}}}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}]}
      - {name: box, type: object}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: kinds, type: "string[]"}, {name: cost, type: number}]}
      - {name: data, type: any}
      - {name: secret, type: string, hidden: true}
      - {name: mood, type: any, hidden: {eval: "ctx.doc.name !== 'a'"}}
    permissions:
      public: {methods: {get: true}, filter: {on: true}, hiddenFields: [parts.cost]}
      user: {methods: {get: {allow: true, facet: false}}}
      token:none: {methods: {post: true}}
`

// facets gives the answer, or the error.
func (w *world) facets(who, fields, filter string) string {
	w.t.Helper()
	res, err := w.service.Facets(w.t.Context(), w.call(who), records.FacetParams{Where: where(w.t, filter), Fields: fields})
	if err != nil {
		return show(err)
	}
	return string(res.AppendJSON(nil))
}

// Facets: every type of field, each value once for each record, those that most have first. Rows S1, S3, S4 and S6.
func TestFacets(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, faceted)
		ref := bson.ObjectID{0: 7}
		for i, d := range []bson.D{
			{{Key: "n", Value: int64(1)}, {Key: "name", Value: "a"}, {Key: "at", Value: bson.DateTime(0)}, {Key: "tags", Value: bson.A{"x", "y", "x"}}, {Key: "ref", Value: bson.A{ref}}, {Key: "secret", Value: "SECRET"}, {Key: "mood", Value: 1}},
			{{Key: "n", Value: 1.0}, {Key: "name", Value: "b"}, {Key: "at", Value: bson.DateTime(1000)}, {Key: "tags", Value: bson.A{"y", nil}}, {Key: "ref", Value: bson.A{ref, ref}}, {Key: "data", Value: bson.A{int64(1), bson.A{int64(2)}}}},
			{{Key: "n", Value: nil}, {Key: "name", Value: "b"}, {Key: "tags", Value: bson.A{}}, {Key: "box", Value: bson.D{{Key: "w", Value: int64(1)}}}, {Key: "data", Value: "z"}},
			{{Key: "n", Value: int64(2)}, {Key: "name", Value: "c"}, {Key: "tags", Value: "y"}, {Key: "box", Value: bson.D{{Key: "w", Value: int64(1)}}}, {Key: "data", Value: bson.D{{Key: "v", Value: true}}}},
		} {
			d = append(bson.D{{Key: "_id", Value: oid(byte(i))}, {Key: "on", Value: true}}, d...)
			d = append(d, bson.E{Key: "seo", Value: bson.D{{Key: "title", Value: "t"}, {Key: "score", Value: "SECRET"}}}, bson.E{Key: "parts", Value: bson.A{
				bson.D{{Key: "sku", Value: "p"}, {Key: "kinds", Value: bson.A{"k", "l"}}},
				bson.D{{Key: "sku", Value: "p"}, {Key: "kinds", Value: bson.A{"k"}}, {Key: "cost", Value: "SECRET"}},
				bson.D{{Key: "sku", Value: fmt.Sprint("q", i)}},
			}})
			w.putIn("items", d)
		}
		w.put(`{"on": false, "name": "unseen", "tags": ["unseen"], "n": 9}`)
		for _, tt := range []struct{ who, fields, filter, want string }{
			{"public", "name", "", `{"facets":{"name":[{"value":"b","count":2},{"value":"a","count":1},{"value":"c","count":1}]},"window":4,"truncated":false}`},
			{"public", "n, tags,n", "", `{"facets":{"n":[{"value":1,"count":2},{"value":2,"count":1}],"tags":[{"value":"y","count":3},{"value":"x","count":1}]},"window":4,"truncated":false}`},
			{"public", "on,at", `{"name": "b"}`, `{"facets":{"on":[{"value":true,"count":2}],"at":[{"value":"1970-01-01T00:00:01.000Z","count":1}]},"window":2,"truncated":false}`},
			{"public", "ref", "", `{"facets":{"ref":[{"value":"` + ref.Hex() + `","count":2}]},"window":4,"truncated":false}`},
			{"public", "seo.title,box", "", `{"facets":{"seo.title":[{"value":"t","count":4}],"box":[{"value":{"w":1},"count":2}]},"window":4,"truncated":false}`},
			{"public", "parts.kinds", "", `{"facets":{"parts.kinds":[{"value":"k","count":4},{"value":"l","count":4}]},"window":4,"truncated":false}`},
			{"public", "parts.sku", `{"name": "a"}`, `{"facets":{"parts.sku":[{"value":"p","count":1},{"value":"q0","count":1}]},"window":1,"truncated":false}`},
			{"public", "data,data.v", "", `{"facets":{"data":[{"value":1,"count":1},{"value":[2],"count":1},{"value":"z","count":1},{"value":{"v":true},"count":1}],"data.v":[{"value":true,"count":1}]},"window":4,"truncated":false}`},
			{"public", "id", `{"id": "010000000000000000000002"}`, `{"facets":{"id":[{"value":"010000000000000000000002","count":1}]},"window":1,"truncated":false}`},
			{"public", "name", `{"name": "none"}`, `{"facets":{"name":[]},"window":0,"truncated":false}`},
			{"admin", "name", `{"on": false}`, `{"facets":{"name":[{"value":"unseen","count":1}]},"window":1,"truncated":false}`},
			{"admin", "secret,mood", "", `{"facets":{"secret":[{"value":"SECRET","count":1}],"mood":[{"value":1,"count":1}]},"window":5,"truncated":false}`},

			{"public", "", "", "missing_parameter: missing required parameter: facet"},
			{"public", " , ", "", "missing_parameter: missing required parameter: facet"},
			{"public", "nope", "", "unknown_field: unknown field: nope"},
			{"public", "secret", "", "unknown_field: unknown field: secret"},
			{"public", "secret.0", "", "unknown_field: unknown field: secret.0"},
			{"public", "mood", "", "unknown_field: unknown field: mood"},
			{"public", "name,seo.score", "", "unknown_field: unknown field: seo.score"},
			{"public", "parts.0.cost", "", "unknown_field: unknown field: parts.0.cost"},
			{"public", "seo", "", "not_comparable: seo can't be compared as a whole: name one of its fields"},
			{"public", "parts", "", "not_comparable: parts can't be compared as a whole: name one of its fields"},
			{"public", "name", `{"secret": "SECRET"}`, "unknown_field: unknown field: secret"},
			{"public", strings.Repeat("name.", 40), "", "unknown_field: unknown field: " + strings.Repeat("name.", 40)},
			{"public", "a$b", "", "unknown_field: unknown field: a$b"},
			{"public", "n,name,at,on,tags,ref,seo.title,box,parts.sku,data,data.a,data.b,data.c,data.d,data.e,data.f,data.g", "", "query_limit: facets of 17 fields are asked for, the limit is 16"},
			{"alice", "name", "", "permission_denied: permission denied"},
			{"token:none", "name", "", "permission_denied: permission denied"},
		} {
			if got := w.facets(tt.who, tt.fields, tt.filter); got != tt.want {
				t.Errorf("%s of %s where %s:\n%s\nwant\n%s", tt.who, tt.fields, tt.filter, got, tt.want)
			}
		}
	})
}

// TestS19FacetsAreBounded is row S19 for facets: so many values of a field, and so many bytes of them.
func TestS19FacetsAreBounded(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, faceted)
		tags := bson.A{}
		for i := range 1200 {
			tags = append(tags, fmt.Sprintf("t%04d", i))
		}
		w.putIn("items", bson.D{{Key: "_id", Value: oid(1)}, {Key: "on", Value: true}, {Key: "tags", Value: tags}})
		w.putIn("items", bson.D{{Key: "_id", Value: oid(2)}, {Key: "on", Value: true}, {Key: "tags", Value: bson.A{"t1100"}}})
		got := w.facets("public", "tags,name", "")
		if !strings.HasPrefix(got, `{"facets":{"tags":[{"value":"t1100","count":2},{"value":"t0000","count":1},`) ||
			!strings.HasSuffix(got, `,"window":2,"truncated":true}`) || strings.Count(got, `"value"`) != 1000 {
			t.Errorf("%.100s … %s, %d values", got, got[len(got)-60:], strings.Count(got, `"value"`))
		}
		for i := range byte(3) {
			w.putIn("items", bson.D{{Key: "_id", Value: oid(10 + i)}, {Key: "on", Value: true}, {Key: "name", Value: strings.Repeat(string('a'+rune(i)), 7<<20)}})
		}
		if got := w.facets("public", "name", ""); !strings.HasPrefix(got, "facet_too_large: ") {
			t.Errorf("21 MiB of values: %.200s", got)
		}
	})
}
