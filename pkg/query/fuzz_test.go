package query_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/query"
)

// alike are two records that differ in what the sources hide of items, and in nothing else.
func alike(t testing.TB) (a, b bson.Raw) {
	t.Helper()
	made := [2]bson.Raw{}
	for i, text := range []string{
		`{"id": "650102030405060708090a0b", "n": 1, "name": "a", "on": true, "tags": ["x", "s"], "author": "p1", "secret": "s", "seo": {"title": "t", "score": 1}, "parts": [{"sku": "a", "cost": 1}, {"cost": 5}], "data": {"x": [1]}}`,
		`{"id": "650102030405060708090a0b", "n": 1, "name": "a", "on": true, "tags": ["x", "s"], "author": "p1", "seo": {"title": "t", "score": [2, "x"]}, "parts": [{"sku": "a"}, {"cost": {"sku": "a"}}], "data": {"x": [1]}}`,
	} {
		d, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if made[i], err = document.Marshal(mql.StoredID(d)); err != nil {
			t.Fatal(err)
		}
	}
	return made[0], made[1]
}

// related is a resolver of items that goes on to all sources.
func related(all map[string]query.Source) query.Resolver {
	return all["items"].Paths.WithRelations(func(name string) (query.Related, error) {
		src, ok := all[name]
		if !ok {
			return query.Related{}, errs.ErrDenied
		}
		return query.Related{Resolver: src.Paths, Keys: func(string, *mql.Filter) ([]bson.RawValue, error) { return nil, nil }}, nil
	})
}

// theirs says whether an error is the caller's fault, and tells them something.
func theirs(t *testing.T, what string, err error) {
	t.Helper()
	e := errs.From(err)
	if e == nil || e.Kind != errs.Invalid && e.Kind != errs.Denied || e.Code == "" || e.Message == "" {
		t.Fatalf("%q: %v", what, err)
	}
}

// FuzzFilter: whatever a filter is, it is refused as the caller's mistake, or tells nothing of what is hidden from them.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{"n": 1}`, `{"secret": "s"}`, `{"seo": {"title": "t", "score": 1}}`, `{"parts": {"$elemMatch": {"cost": 1}}}`, `{"$or": [{"parts.0.sku": "a"}, {"seo.score": {"$gt": 0}}]}`, `{"data": {"$lt": {"x": 1}}}`,
		`{"author.name": {"$ne": null}}`, `{"author.mail": 1}`, `{"author": {"$elemMatch": {"boss": null}}}`, `{"tags": {"$all": [{"$elemMatch": {"$regex": "^x"}}]}}`, `{"$nor": [{"id": {"$in": ["650102030405060708090a0b"]}}]}`,
		`{"parts": {"$size": 2}}`, `{"seo": {"$exists": true}}`, `{"seo": {"$type": "object"}}`, `{"parts": {"$not": {"$elemMatch": {"sku": "a"}}}}`, `{"at": {"$gt": {"$date": "2020-01-01"}}}`, `{"": 1}`, `{"parts.sku": {"$in": [null, {"$regularExpression": {"pattern": "a", "options": "i"}}]}}`,
	} {
		f.Add(seed)
	}
	all := sources(f)
	a, b := alike(f)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := document.ParseJSON([]byte(text))
		if err != nil {
			theirs(t, text, err)
			return
		}
		filter, err := related(all).Filter(query.Where{Filter: d, Bytes: len(text)})
		if err != nil {
			theirs(t, text, err)
			return
		}
		if filter.Match(a) != filter.Match(b) {
			t.Fatalf("%s tells records apart by what is hidden", text)
		}
	})
}

// FuzzListText is FuzzFilter for the parameters of a list that name fields: the order, the selection and the lookups.
func FuzzListText(f *testing.F) {
	for _, seed := range [][4]string{
		{"-n,name", "name,seo.title", "author", "n,tags"},
		{`{"seo.score": 1}`, `{"secret": 0}`, `[{"from": "people", "localField": "author", "foreignField": "name", "as": "x", "filter": {"mail": 1}, "sort": "-name", "select": "-boss", "limit": 3}]`, "seo"},
		{"parts.sku", "-parts", `{"localField": "author", "as": "author", "lookup": [{"from": "items", "localField": "boss", "foreignField": "n"}]}`, "parts.cost"},
		{"+n", "--n", "author,author.boss", ",,"},
		{"data", "data.x,author.name", "author", "id"},
		{`{"n":`, `{"n":2}`, `["author"]`, "tags,tags"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], "")
	}
	all := sources(f)
	a, b := alike(f)
	f.Fuzz(func(t *testing.T, sort, sel, lookup, facet, after string) {
		r := related(all)
		q, err := r.Query(query.Params{Sort: sort, After: after}, nil)
		if err != nil {
			theirs(t, sort+" after "+after, err)
		} else if q.Sort.Compare(a, b) != 0 {
			t.Fatalf("the order %s tells records apart by what is hidden", sort)
		}
		fields, err := r.Facets(facet)
		if err != nil {
			theirs(t, facet, err)
		}
		for _, field := range fields {
			if all["items"].Paths.Hidden.Touches(field.Path) {
				t.Fatalf("facet %s has %s", facet, field.Path)
			}
		}
		lookups, err := r.Lookups(lookup)
		if err != nil {
			theirs(t, lookup, err)
			return
		}
		chosen, err := r.Select(sel, lookups)
		if err != nil {
			theirs(t, sel, err)
			return
		}
		view, err := chosen.View(all["items"].Paths.Hidden)
		if err != nil {
			theirs(t, sel, err)
			return
		}
		if string(view.Apply(a)) != string(view.Apply(b)) {
			t.Fatalf("select %s shows %s and %s", sel, view.Apply(a), view.Apply(b))
		}
	})
}

// FuzzGuard: whatever a pipeline is, it is refused as the caller's mistake, or what is made of it can run.
func FuzzGuard(f *testing.F) {
	for _, seed := range []string{
		`[{"$match": {"n": 1}}, {"$group": {"_id": "$name", "x": {"$sum": "$n"}}}]`, `[{"$lookup": {"from": "people", "localField": "author", "foreignField": "name", "as": "x"}}]`, `[{"$facet": {"a": [{"$sortByCount": "$tags"}], "b": []}}]`,
		`[{"$graphLookup": {"from": "people", "startWith": "$author", "connectFromField": "boss", "connectToField": "name", "as": "g", "depthField": "mail"}}]`, `[{"$unionWith": {"coll": "strict", "pipeline": [{"$project": {"own": 1}}]}}]`,
		`[{"$project": {"x": "$$ROOT"}}, {"$unset": "x.secret"}]`, `[{"$set": {"id": 1}}, {"$sort": {"id": 1}}]`, `[{"$out": "x"}]`, `[{"$replaceWith": {"$literal": "$secret"}}]`, `[{"$unwind": {"path": "$parts", "includeArrayIndex": "i"}}]`,
	} {
		f.Add(seed, "items")
		f.Add(seed, "strict")
	}
	all := sources(f)
	f.Fuzz(func(t *testing.T, text, collection string) {
		src, ok := all[collection]
		if !ok || len(text) > 4096 {
			return
		}
		v, err := document.ParseJSONValue([]byte(text))
		if err != nil {
			theirs(t, text, err)
			return
		}
		stages, ok := v.(bson.A)
		if !ok {
			return
		}
		guard := query.Guard{MaxStages: 6, Other: func(name string) (query.Source, error) {
			src, ok := all[name]
			if !ok {
				return src, errs.ErrDenied
			}
			return src, nil
		}}
		out, err := guard.Pipeline(src, nil, stages)
		if err != nil {
			theirs(t, text, err)
			return
		}
		if _, err := pipeline.Compile(out, pipeline.Options{Stages: pipeline.Scripts}); err != nil {
			t.Fatalf("%s: what is guarded can't run: %v", text, err)
		}
	})
}

// FuzzCursor: a cursor goes on behind its record in the order that it is of, and any other text is refused.
func FuzzCursor(f *testing.F) {
	f.Add("AAAA", "n", `{"n": 1, "name": "a"}`)
	f.Add("FQAAABBzAAAAAAAEawAFAAAAAAA", "-name,tags", `{"tags": [], "name": null}`)
	f.Add("%", "data", `{"data": {"x": [1, {"y": 1.5}]}}`)
	all := sources(f)
	f.Fuzz(func(t *testing.T, after, sort, text string) {
		r := all["plain"].Paths
		r.Tree = all["items"].Paths.Tree
		q, err := r.Query(query.Params{Sort: sort}, nil)
		if err != nil {
			return
		}
		if _, err := r.Query(query.Params{Sort: sort, After: after}, nil); err != nil {
			theirs(t, after, err)
		}
		d, err := document.ParseJSON([]byte(text))
		if err != nil {
			return
		}
		raw, err := document.Marshal(append(bson.D{{Key: "_id", Value: bson.ObjectID{1}}}, d...))
		if err != nil {
			return
		}
		token, err := query.EncodeCursor(q.Sort, raw)
		if err != nil {
			theirs(t, text, err)
			return
		}
		if strings.ContainsAny(token, `"\ <>&`) {
			t.Fatalf("%q can't stand in an answer", token)
		}
		next, err := r.Query(query.Params{Sort: sort, After: token}, nil)
		if err != nil {
			t.Fatalf("the cursor of %s by %s: %v", text, sort, err)
		}
		if q.Sort.CompareKeys(next.After, q.Sort.Key(raw)) != 0 {
			t.Fatalf("the cursor of %s by %s is of %v", text, sort, next.After)
		}
	})
}
