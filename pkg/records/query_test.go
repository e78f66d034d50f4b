package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var queried = collections(`
name: items
fields:
  - {name: n, type: number}
  - {name: name, type: string}
  - {name: at, type: date}
  - {name: on, type: boolean}
  - {name: tags, type: "string[]"}
  - {name: ref, type: string, meta: {foreign: {collection: items, key: _id}}}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number}]}
  - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number}, {name: sub, type: object, subFields: [{name: a, type: number}, {name: b, type: number}]}]}
  - {name: data, type: any}
  - {name: secret, type: string}
projections:
  card: {select: {name: 1, seo: {title: 1}}}
  deep: {select: {secret: 1}}
  most: {select: {data: 0}}
  whole: {select: null}
meta: {defaultSort: "-n"}
permissions:
  public:
    methods: {get: {count: false}}
    hiddenFields: [secret, seo.score, parts.cost, parts.sub.a, data.x.secret]
    validProjections: [card, deep]
    filter: {on: true}
  user: {methods: {get: true}, filter: {$or: [{on: true}, {createdBy: {$var: user.id}}]}}
`)

// six stores what the tests of this file ask for.
func six(w *world) (ids []string) {
	for i, text := range []string{
		`{"n": 1, "name": "Ann", "on": true, "tags": ["x", "y"], "seo": {"title": "T", "score": 5}, "secret": "s1"}`,
		`{"n": 2, "name": "Bea", "on": true, "at": "2026-01-02T03:04:05Z", "parts": [{"sku": "a", "cost": 1}, {"sku": "b", "cost": 2, "sub": {"a": 1, "b": 2}}]}`,
		`{"n": 3, "name": "5", "on": true, "tags": [], "data": {"x": {"y": [1, {"z": 2}], "secret": 3}}}`,
		`{"n": 4, "name": "ann", "on": true, "at": "2025-01-02T03:04:05Z"}`,
		`{"n": 5, "name": "Ann", "on": false}`,
		`{"name": "Zoe", "on": true, "tags": ["y"]}`,
	} {
		d := doc(w.t, text)
		if i == 1 {
			d = append(d, bson.E{Key: "ref", Value: ids[0]})
		}
		res, err := w.service.Create(w.t.Context(), w.call("admin"), d)
		if err != nil {
			w.t.Fatal(show(err))
		}
		ids = append(ids, res.ID)
	}
	return ids
}

// names lists who is on a page, in order.
func names(t testing.TB, page *records.Page) string {
	t.Helper()
	var out []string
	for _, rec := range page.Items {
		for _, e := range doc(t, string(rec.AppendJSON(nil))) {
			if e.Key == "n" {
				out = append(out, fmt.Sprint(e.Value))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestFilter(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		ids := six(w)
		hex := `"` + ids[0] + `"`
		for _, tt := range []struct{ who, filter, want string }{
			{"alice", ``, "4 3 2 1"}, // and Zoe, who has no n
			{"alice", `{}`, "4 3 2 1"},
			{"admin", ``, "5 4 3 2 1"},
			{"alice", `{"name": "Ann"}`, "1"},
			{"alice", `{"name": "5"}`, "3"},
			{"alice", `{"name": 5}`, ""},
			{"alice", `{"n": {"$gte": 2, "$lt": 4}}`, "3 2"},
			{"alice", `{"n": "2"}`, ""},
			{"alice", `{"at": "2026-01-02T04:04:05+01:00"}`, "2"},
			{"alice", `{"at": {"$gt": "2025-06-01"}}`, "2"},
			{"alice", `{"at": {"$gt": {"$date": "2025-06-01T00:00:00Z"}}}`, "2"},
			{"alice", `{"ref": ` + hex + `}`, "2"},
			{"alice", `{"ref": {"$oid": ` + hex + `}}`, "2"},
			{"alice", `{"ref": {"$in": [` + hex + `]}}`, "2"},
			{"alice", `{"id": ` + hex + `}`, "1"},
			{"alice", `{"_id": {"$in": [` + hex + `, "` + ids[2] + `"]}}`, "3 1"},
			{"alice", `{"$or": [{"id": ` + hex + `}, {"n": 3}]}`, "3 1"},
			{"alice", `{"$nor": [{"n": {"$lt": 4}}], "n": {"$exists": true}}`, "4"},
			{"alice", `{"n": {"$not": {"$gt": 1}}, "on": true, "tags": "x"}`, "1"},
			{"alice", `{"tags": {"$all": ["x", "y"]}}`, "1"},
			{"alice", `{"tags": {"$size": 0}}`, "3"},
			{"alice", `{"tags.0": "x"}`, "1"},
			{"alice", `{"tags": {"$in": []}}`, ""},
			{"alice", `{"name": {"$regex": "^a", "$options": "i"}}`, "4 1"},
			{"alice", `{"parts": {"$elemMatch": {"sku": "b", "cost": 2}}}`, "2"},
			{"alice", `{"parts.sku": "a"}`, "2"},
			{"alice", `{"seo": {"title": "T", "score": 5}}`, "1"},
			{"alice", `{"data.x.y.1.z": 2}`, "3"},
			{"alice", `{"n": {"$mod": [2, 0]}}`, "4 2"},
			{"alice", `{"at": {"$type": "date"}}`, "4 2"},
			{"alice", `{"createdBy": "` + alice.Hex() + `"}`, ""},

			{"alice", `{"$and": [{}, {"$or": [{}, {"n": 3}]}]}`, "4 3 2 1"},
			{"alice", `{"tags": {"$not": {"$gt": []}}, "$and": [{}, {"_rev": {"$ne": null}, "$or": [{}, {"name": "x"}]}], "n": 2}`, "2"},

			{"alice", `{"nope": 1}`, "unknown_field: unknown field: nope"},
			{"alice", `{"seo.nope": 1}`, "unknown_field: unknown field: seo.nope"},
			{"alice", `{"name.x": 1}`, "unknown_field: unknown field: name.x"},
			{"alice", `{"on": {"$where": "1"}}`, "bad_filter: filter: on: operator \"$where\" is not supported here; there are $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $not, $exists, $type, $all, $elemMatch, $size, $mod, $regex and $options"},
			{"alice", `{"$where": "1"}`, `bad_filter: filter: operator "$where" is not supported here; there are $and, $or and $nor`},
			{"alice", `{"$and": [{"$or": [{"name": {"$not": {"$function": 1}}}]}]}`, `bad_filter: filter: name: operator "$function" is not supported here; there are $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $not, $exists, $type, $all, $elemMatch, $size, $mod, $regex and $options`},
			{"alice", `{"$expr": {"$gt": ["$n", 1]}}`, `bad_filter: filter: operator "$expr" is not supported here; there are $and, $or and $nor`},
			{"alice", `{"name": {"$regex": "("}}`, "bad_filter: filter: name: the regular expression is not valid (RE2 syntax): error parsing regexp: missing closing ): `(`"},
			{"alice", `{"$or": []}`, "bad_filter: filter: $or needs a list of one or more filter objects"},
			{"alice", `{"n": {"$in": 1}}`, "bad_filter: filter: n: $in needs a list"},
			{"alice", `{"n": {"$eq": 1, "x": 2}}`, `bad_filter: filter: n: operator "x" is not supported here; there are $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $not, $exists, $type, $all, $elemMatch, $size, $mod, $regex and $options`},
		} {
			page, err := w.service.List(t.Context(), w.call(tt.who), query.Params{Where: where(t, tt.filter)})
			got := show(err)
			if err == nil {
				got = names(t, page)
			}
			if got != tt.want {
				t.Errorf("%s %s\ngot  %s\nwant %s", tt.who, tt.filter, got, tt.want)
			}
		}
	})
}

// A path that is hidden is answered like one that does not exist, wherever it stands.
func TestHiddenPaths(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		six(w)
		unknown := func(path string) string { return "unknown_field: unknown field: " + path }
		whole := func(path string) string {
			return "not_comparable: " + path + " can't be compared as a whole: name one of its fields"
		}
		for _, tt := range []struct{ filter, want string }{
			{`{"secret": "s1"}`, unknown("secret")},
			{`{"secret": {"$exists": true}}`, unknown("secret")},
			{`{"secret.0": "s"}`, unknown("secret.0")},
			{`{"seo.score": 5}`, unknown("seo.score")},
			{`{"seo.0.score": 5}`, unknown("seo.0.score")},
			{`{"parts.cost": 1}`, unknown("parts.cost")},
			{`{"parts.0.cost": 1}`, unknown("parts.0.cost")},
			{`{"parts": {"$elemMatch": {"cost": 1}}}`, unknown("parts.cost")},
			{`{"parts": {"$not": {"$elemMatch": {"cost": 1}}}}`, unknown("parts.cost")},
			{`{"parts": {"$all": [{"$elemMatch": {"cost": 1}}]}}`, unknown("parts.cost")},
			{`{"parts": {"$elemMatch": {"sub": {"$elemMatch": {"a": 1}}}}}`, unknown("parts.sub.a")},
			{`{"parts": {"$elemMatch": {"$or": [{"sku": "a"}, {"sub.a": 1}]}}}`, unknown("parts.sub.a")},
			{`{"$and": [{"$or": [{"$nor": [{"name": "x"}, {"secret": 1}]}]}]}`, unknown("secret")},
			{`{"name": "x", "$and": [{"data.x.secret": 3}]}`, unknown("data.x.secret")},
			{`{"data.x.secret.y": 3}`, unknown("data.x.secret.y")},
			{`{"nope": "s1"}`, unknown("nope")},

			{`{"seo": {"title": "T", "score": 5}}`, whole("seo")},
			{`{"seo": {"$gt": {"title": "T", "score": 4}}}`, whole("seo")},
			{`{"seo": {"$in": [{"title": "T", "score": 5}]}}`, whole("seo")},
			{`{"parts": [{"sku": "a", "cost": 1}]}`, whole("parts")},
			{`{"parts": {"$all": [{"sku": "a", "cost": 1}]}}`, whole("parts")},
			{`{"parts.1": {"sku": "a", "cost": 1}}`, whole("parts.1")},
			{`{"parts.sub": {"a": 1, "b": 2}}`, whole("parts.sub")},
			{`{"parts": {"$elemMatch": {"sub": {"a": 1, "b": 2}}}}`, whole("parts.sub")},
			{`{"parts": {"$elemMatch": {"$gt": {"sku": "a", "cost": 0}}}}`, whole("parts")},
			{`{"data.x": {"secret": 3}}`, whole("data.x")},
			{`{"data": {"$lt": {"x": {"secret": 4}}}}`, whole("data")},
			{`{"parts": {"$mod": [2, 1]}}`, whole("parts")},

			{`{"parts": {"$size": 2}}`, "2"},
			{`{"seo": {"$exists": true}}`, "1"},
			{`{"seo": {"$type": "object"}}`, "1"},
			{`{"parts": {"$elemMatch": {"sku": "b", "sub.b": 2}}}`, "2"},
			{`{"data.x.y": 1}`, "3"},
		} {
			page, err := w.service.List(t.Context(), w.call("public"), query.Params{Where: where(t, tt.filter)})
			got := show(err)
			if err == nil {
				got = names(t, page)
			}
			if got != tt.want {
				t.Errorf("%s\ngot  %s\nwant %s", tt.filter, got, tt.want)
			}
		}
		for _, tt := range []struct{ sort, sel, want string }{
			{"secret", "", unknown("secret")},
			{"-seo.score", "", unknown("seo.score")},
			{`{"parts.cost": 1}`, "", unknown("parts.cost")},
			{"seo", "", whole("seo")},
			{"parts", "", whole("parts")},
			{"data.x", "", whole("data.x")},
			{"nope", "", unknown("nope")},
			{"", "secret", unknown("secret")},
			{"", "-secret", unknown("secret")},
			{"", "name,seo.score", unknown("seo.score")},
			{"", `{"parts.0.cost": 1}`, unknown("parts.0.cost")},
			{"", "data.x.secret", unknown("data.x.secret")},
			{"", "nope", unknown("nope")},
			{"seo.title", "seo,parts,data", "ok"},
		} {
			_, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: tt.sort, Select: tt.sel})
			if got := show(err); got != tt.want {
				t.Errorf("sort %q select %q\ngot  %s\nwant %s", tt.sort, tt.sel, got, tt.want)
			}
		}
	})
}

func TestSelect(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		ids := six(w)
		for _, tt := range []struct{ who, sel, projection, want string }{
			{"alice", "name,seo.title", "", `{"name":"Ann","seo":{"title":"T"}}`},
			{"alice", " name , seo ", "", `{"name":"Ann","seo":{"score":5,"title":"T"}}`},
			{"alice", "-seo,-tags,-secret", "", `{"n":1,"name":"Ann","on":true}`},
			{"alice", `{"name": 1}`, "", `{"name":"Ann"}`},
			{"alice", `{"seo": 0, "tags": false, "on": 0}`, "", `{"n":1,"name":"Ann","secret":"s1"}`},
			{"alice", "id", "", `{}`},
			{"alice", "", "card", `{"name":"Ann","seo":{"title":"T"}}`},
			{"alice", "", "deep", `{"secret":"s1"}`},
			{"alice", "", "whole", `{"n":1,"name":"Ann","on":true,"secret":"s1","seo":{"score":5,"title":"T"},"tags":["x","y"]}`},
			{"public", "", "", `{"n":1,"name":"Ann","on":true,"seo":{"title":"T"},"tags":["x","y"]}`},
			{"public", "seo", "", `{"seo":{"title":"T"}}`},
			{"public", "-n", "", `{"name":"Ann","on":true,"seo":{"title":"T"},"tags":["x","y"]}`},
			{"public", "", "deep", `{}`},
			{"public", "", "whole", "unknown_projection: unknown projection: whole"},
			{"public", "", "nope", "unknown_projection: unknown projection: nope"},
			{"alice", "name", "card", "bad_select: use select or projection, not both"},
			{"alice", "name,-n", "", "bad_select: select either names fields or leaves fields out, not both"},
			{"alice", "name,,n", "", "bad_select: select must look like title,seo.title or -body"},
			{"alice", `{"name": 2}`, "", "bad_select: select: name must be 1 or 0"},
			{"alice", `{"name": {"$slice": 1}}`, "", "bad_select: select: name must be 1 or 0"},
			{"alice", `{"name"`, "", ""},
			{"alice", "$name", "", "unknown_field: unknown field: $name"},
			{"alice", "data.$x", "", "unknown_field: unknown field: data.$x"},
		} {
			rec, err := w.service.Get(t.Context(), w.call(tt.who), ids[0], records.GetParams{Select: tt.sel, Projection: tt.projection})
			got := show(err)
			if err == nil {
				got = seen(t, &rec)
			}
			if tt.want == "" && errs.KindOf(err) == errs.Invalid {
				continue
			}
			if got != tt.want {
				t.Errorf("%s select %q projection %q\ngot  %s\nwant %s", tt.who, tt.sel, tt.projection, got, tt.want)
			}
			page, err := w.service.List(t.Context(), w.call(tt.who), query.Params{
				Where: where(t, `{"n": 1}`), Select: tt.sel, Projection: tt.projection,
			})
			listed := show(err)
			if err == nil {
				listed = seen(t, &page.Items[0])
			}
			if listed != got {
				t.Errorf("list: %s, get: %s", listed, got)
			}
		}
	})
}

// The short form of a filter leaves it to the field what a value is.
func TestUntypedValues(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, queried)
		ids := six(w)
		u := func(s string) any { return fieldtype.Untyped(s) }
		for _, tt := range []struct {
			path, op string
			value    any
			want     string
		}{
			{"n", "$gte", u("4"), "4"},
			{"name", "$eq", u("5"), "3"},
			{"on", "$eq", u("true"), "4 3 2 1"},
			{"at", "$lt", u("2025-06-01"), "4"},
			{"ref", "$eq", u(ids[0]), "2"},
			{"id", "$in", bson.A{u(ids[0]), u(ids[1])}, "2 1"},
			{"n", "$in", bson.A{u("1"), u("3")}, "3 1"},
			{"tags", "$size", u("2"), "1"},
			{"at", "$exists", u("true"), "4 2"},
			{"data.x.y", "$eq", u("1"), "3"},
			{"n", "$gte", u("x"), `bad_filter: n: must be a number, is "x"`},
			{"on", "$eq", u("maybe"), `bad_filter: on: must be true or false, is "maybe"`},
			{"at", "$gt", u("soon"), ""},
			{"id", "$eq", u("zz"), ""},
		} {
			page, err := w.service.List(t.Context(), w.call("alice"), query.Params{
				Where: query.Where{Filter: bson.D{{Key: tt.path, Value: bson.D{{Key: tt.op, Value: tt.value}}}}},
			})
			got := show(err)
			if err == nil {
				got = names(t, page)
			} else if tt.want == "" && errs.KindOf(err) == errs.Invalid {
				continue
			}
			if got != tt.want {
				t.Errorf("%s %s %v\ngot  %s\nwant %s", tt.path, tt.op, tt.value, got, tt.want)
			}
		}
	})
}

// One walk of an index on the last sort field gives the whole order only if the id goes the same way.
func TestTheIDSortsInTheDirectionOfTheLastField(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
  - name: items
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
    fields: [{name: n, type: number}]
    indexes: [{key: [n]}]
`)
		var ids []string
		for range 3 {
			ids = append(ids, w.create("public", `{"n": 1}`))
		}
		for sort, want := range map[string][]string{"n": ids, "-n": {ids[2], ids[1], ids[0]}} {
			page, err := w.service.List(t.Context(), w.call("public"), query.Params{Sort: sort})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range page.Items {
				got = append(got, r.ID())
			}
			if !slices.Equal(got, want) {
				t.Errorf("sort %s: got %v, want %v", sort, got, want)
			}
		}
	})
}

func TestAPageIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
  - name: items
    queryLimits: {maxTime: 10m}
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
`)
		big := `{"text": "` + strings.Repeat("x", 9<<20) + `"}`
		for range 5 {
			w.create("public", big)
		}
		seen, after := 0, ""
		for range 5 {
			page, err := w.service.List(t.Context(), w.call("public"), query.Params{After: after})
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > 4 {
				t.Errorf("%d records of 9 MiB in one page", len(page.Items))
			}
			seen += len(page.Items)
			if after = page.Next; after == "" {
				break
			}
		}
		if seen != 5 {
			t.Errorf("%d records were seen, want 5", seen)
		}
	})
}
