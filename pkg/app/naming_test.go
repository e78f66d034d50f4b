package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// askedConfig is a project of which the public may ask everything that there is to ask, but not see everything.
const askedConfig = `
namespace: shop
collections:
  - name: items
    strictFields: true
    audit: {enabled: true}
    queryLimits: {allowAggregate: true, maxLookupDepth: 4}
    meta: {i18n: {languages: [en, de]}, query: {preview: {type: boolean}}}
    fields:
      - {name: title, type: string}
      - {name: n, type: number}
      - {name: slug, type: string, index: [unique, sparse]}
      - {name: tags, type: "string[]"}
      - {name: any, type: any}
      - {name: secret, type: string, hidden: true, index: [unique, sparse]}
      - {name: plan, type: object, hidden: true, subFields: [{name: b, type: object, subFields: [{name: c, type: string}]}]}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number, hidden: true}]}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number}]}
      - {name: fixed, type: string, readonly: true}
      - {name: author, type: string, meta: {foreign: {collection: authors}}}
      - {name: shut, type: string, meta: {foreign: {collection: closed}}}
      - {name: pin, type: string, hidden: true, meta: {foreign: {collection: authors}}}
    search:
      - {name: main, mode: text, fields: [title, secret, seo.title]}
      - {name: grams, mode: ngram, fields: [title, secret]}
      - {name: pattern, mode: regex, fields: [title, secret]}
      - {name: fused, mode: rrf, rrf: {sources: [main, grams]}}
      - {name: inner, mode: text, fields: [secret]}
      - {name: near, mode: vector, vector: {group: texts, fields: [title, seo.title]}}
      - {name: deep, mode: vector, vector: {group: texts, fields: [title, secret]}}
      - {name: deeper, mode: rrf, rrf: {sources: [inner, deep]}}
      - {name: told, mode: text, fields: [title, n, parts.sku], eval: "'told ' + ctx.doc.title + JSON.stringify(ctx.doc)"}
      - {name: whole, mode: text, fields: [title, seo], eval: "'told ' + ctx.doc.title + JSON.stringify(ctx.doc)"}
      - {name: spoken, mode: ngram, fields: [title, secret], eval: "'told ' + ctx.doc.title + ctx.doc.secret"}
      - {name: together, mode: rrf, rrf: {sources: [whole, spoken]}}
      - {name: partly, mode: rrf, rrf: {sources: [whole, spoken, told]}}
    permissions:
      public:
        methods: {get: {count: true, facet: true, lookup: true, aggregate: true}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}
        hiddenFields: [seo.score]
        filter: {n: {$gte: 0}}
      user: {methods: {get: {count: true, facet: true, lookup: true, aggregate: true}, put: true}, hiddenFields: [seo.score]}
  - name: authors
    strictFields: true
    queryLimits: {allowAggregate: true}
    fields:
      - {name: name, type: string}
      - {name: mail, type: string, hidden: true}
      - {name: on, type: boolean}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}]}
    permissions:
      public: {methods: {get: {facet: true}}, filter: {on: true}}
      user: {methods: {get: true}}
  - name: closed
    fields: [{name: name, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: settings
    strictFields: true
    meta: {singleton: true}
    fields:
      - {name: title, type: string}
      - {name: secret, type: string, hidden: true}
      - {name: fixed, type: string, readonly: true}
    permissions: {public: {methods: {get: true, post: true, put: true}}, user: {methods: {}}}
`

const askedItems = "/api/v1/_/shop/items"

// asked is a service with that project, and records in it.
type asked struct {
	*service

	ids           map[string]string // of items by title
	ann, bob      string            // authors; nobody may read bob
	before, shown string            // what is stored, and what the public sees of it
}

// onAsked runs a test on both stores.
func onAsked(t *testing.T, test func(t *testing.T, a *asked)) {
	t.Helper()
	run1 := func(t *testing.T, uri string) {
		s := run(t, func(c *app.Config) {
			c.StoreURI = uri
			c.Embedding = embedding.Config{
				Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash"}}, Groups: []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
			}
		})
		s.register("shop", askedConfig)
		s.converged()
		a := &asked{service: s, ids: map[string]string{}}
		a.ann = a.create("authors", `{"name": "Ann", "mail": "ann@x", "on": true, "seo": {"title": "A", "score": 1}}`)
		a.bob = a.create("authors", `{"name": "Bob", "mail": "bob@x", "on": false}`)
		closed := a.create("closed", `{"name": "closed"}`)
		for title, more := range map[string]string{
			"one": `"n": 1, "slug": "one", "tags": ["x", "y"], "author": "` + a.ann + `", "shut": "` + closed + `", "pin": "` + a.ann + `", "_i18n": {"de": {"title": "eins"}}`,
			"two": `"n": 2, "slug": "two", "tags": ["y"], "author": "` + a.bob + `"`,
			"off": `"n": -1, "slug": "off", "tags": ["z"]`,
		} {
			a.ids[title] = a.create("items", `{"title": "`+title+`", "secret": "canary-`+title+`", "plan": {"b": {"c": "canary"}},
				"parts": [{"sku": "a", "cost": 40961}], "seo": {"title": "t", "score": 40962}, "any": {"k": 1}, `+more+`}`)
		}
		s.embedded(6)
		a.before, a.shown = a.stored(), a.seen()
		test(t, a)
	}
	t.Run("embedded", func(t *testing.T) { run1(t, "") })
	t.Run("mongodb", func(t *testing.T) { run1(t, emptyMongo(t, "svc_shop", "svc_other", "svc_plain", "svc_sparse")) })
}

// embedded waits until the searches of mode vector of the project shop have so many records in all.
func (s *service) embedded(records int) {
	s.t.Helper()
	eventually(s.t, func() string {
		got := s.do("GET", "/api/v1/_/shop/_/admin/search-worker/status", admin)
		var worker api.SearchWorker
		if err := json.Unmarshal([]byte(got.body), &worker); err != nil {
			s.t.Fatal(got, err)
		}
		n, pending := 0, 0
		for _, c := range worker.Collections {
			pending += c.Pending + c.InFlight
			for _, one := range c.Searches {
				if one.Mode == "vector" && one.State == "ready" {
					n += one.Records
				}
			}
		}
		if n != records || pending > 0 {
			return got.String() + got.body
		}
		return ""
	})
}

func (a *asked) create(collection, body string) string {
	a.t.Helper()
	res := a.do("POST", "/api/v1/_/shop/"+collection, admin, text(body))
	res.want(a.t, http.StatusCreated)
	return res.field("id")
}

// converged waits until the indexes are there: what isn't indexed yet isn't unique yet.
func (s *service) converged() {
	s.t.Helper()
	eventually(s.t, func() string {
		status := s.do("GET", "/api/v1/project/"+s.projectID()+"/status", admin).body
		if strings.Contains(status, `"type":"IndexesConverged","status":"True"`) {
			return ""
		}
		return status
	})
}

// stored is everything that there is in the project, the log of changes included.
func (a *asked) stored() string {
	a.t.Helper()
	var out strings.Builder
	for _, path := range []string{"items?limit=1000", "authors", "closed", "settings?limit=9"} {
		res := a.do("GET", "/api/v1/_/shop/"+path, admin)
		res.want(a.t, http.StatusOK)
		out.WriteString(res.body + "\n")
	}
	log := a.do("GET", "/api/v1/_/shop/_/audit?limit=1000", admin).body
	fmt.Fprintln(&out, strings.Count(log, `"kind":"records"`), "entries of the log")
	return out.String()
}

// seen is what the public sees of items.
func (a *asked) seen() string { return a.do("GET", askedItems).body }

// untouched says whether what is stored is as it was when the test began.
func (a *asked) untouched(after string) {
	a.t.Helper()
	if now := a.stored(); now != a.before {
		a.t.Fatalf("after %s there is\n%s\nbefore there was\n%s", after, now, a.before)
	}
}

// probe is a request that names something.
type probe struct{ method, path, media, body string }

func (p probe) String() string {
	path, err := url.QueryUnescape(p.path)
	if err != nil {
		path = p.path
	}
	return strings.TrimSpace(p.method + " " + path + " " + p.media + " " + p.body)
}

func (a *asked) send(p probe, who ...option) answer {
	a.t.Helper()
	options := slices.Clone(who)
	if p.media != "" {
		options = append(options, header("Content-Type", p.media))
	}
	if p.body != "" {
		options = append(options, text(p.body))
	}
	return a.do(p.method, p.path, append(options, header("X-Request-Id", "same"))...)
}

// with puts parameters behind a path.
func with(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + q.Encode()
}

// quoted is text as JSON has it.
func quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// filterDoors are all requests that take a filter: of a list, of what is in its place, of a feed, of bulk writes, and of lookups and
// stages.
func filterDoors(filter string) []probe {
	list := func(pairs ...string) probe { return probe{method: "GET", path: with(askedItems, pairs...)} }
	lookup := `{"from": "items", "localField": "n", "foreignField": "n", "as": "same", `
	return []probe{
		list("filter", filter),
		list("filter", filter, "count", "true", "limit", "0"),
		list("filter", filter, "aggregate", "[]"),
		list("filter", filter, "facet", "n"),
		{method: "GET", path: with(askedItems+"/_count", "filter", filter)},
		{method: "GET", path: with(askedItems+"/_facet", "fields", "n", "filter", filter)},
		{method: "GET", path: with(askedItems+"/_changes", "filter", filter)},
		{method: "PUT", path: with(askedItems, "filter", filter), body: `{"n": 7}`},
		{method: "PUT", path: with(askedItems, "filter", filter, "dryRun", "true"), body: `{"n": 7}`},
		{method: "PUT", path: with(askedItems, "filter", filter, "maxAffected", "9"), body: `{"n": 7}`},
		{method: "DELETE", path: with(askedItems, "filter", filter)},
		{method: "DELETE", path: with(askedItems, "filter", filter, "dryRun", "true")},
		list("lookup", lookup+`"filter": `+filter+`}`),
		list("lookup", lookup+`"lookup": `+lookup+`"filter": `+filter+`}}`),
		list("aggregate", `[{"$match": `+filter+`}]`),
		list("aggregate", `[{"$limit": 1}, {"$match": `+filter+`}]`),
		list("aggregate", `[{"$set": {"x": 1}}, {"$match": `+filter+`}]`),
		list("aggregate", `[{"$facet": {"f": [{"$match": `+filter+`}]}}]`),
		list("aggregate", `[{"$unionWith": {"coll": "items", "pipeline": [{"$match": `+filter+`}]}}]`),
		list("aggregate", `[{"$graphLookup": {"from": "items", "startWith": "$n", "connectFromField": "n", "connectToField": "n", "as": "g", "restrictSearchWithMatch": `+filter+`}}]`),
	}
}

// shortDoors are the same of filters in the short form.
func shortDoors(name, value string) []probe {
	return []probe{
		{method: "GET", path: with(askedItems, name, value)},
		{method: "GET", path: with(askedItems, name, value, "aggregate", "[]")},
		{method: "GET", path: with(askedItems, name, value, "facet", "n")},
		{method: "GET", path: with(askedItems+"/_count", name, value)},
		{method: "GET", path: with(askedItems+"/_facet", "fields", "n", name, value)},
		{method: "GET", path: with(askedItems+"/_changes", name, value)},
		{method: "PUT", path: with(askedItems, name, value), body: `{"n": 7}`},
		{method: "DELETE", path: with(askedItems, name, value)},
	}
}

// conditions are filters that say something of a path, on every level and by every operator.
func conditions(path string) []string {
	p := quoted(path)
	return []string{
		`{` + p + `: "x"}`, `{` + p + `: null}`, `{` + p + `: {"$exists": false}}`, `{` + p + `: {"$ne": 1}}`, `{` + p + `: {"$gt": ""}}`, `{` + p + `: {"$in": []}}`,
		`{` + p + `: {"$nin": ["x"]}}`, `{` + p + `: {"$regex": "^x"}}`, `{` + p + `: {"$not": {"$lt": 1}}}`, `{` + p + `: {"$type": "string"}}`,
		`{` + p + `: {"$size": 1}}`, `{` + p + `: {"$all": ["x"]}}`, `{` + p + `: {"$mod": [2, 0]}}`,
		`{` + p + `: {"$elemMatch": {"$eq": "x"}}}`,
	}
}

// nested puts a filter below every operator that takes filters.
func nested(filter string) []string {
	return []string{
		`{"$and": [{"n": 1}, ` + filter + `]}`, `{"$or": [{"n": 1}, ` + filter + `]}`, `{"$nor": [` + filter + `]}`, `{"n": 1, "$or": [{"$and": [{"$nor": [{"$or": [` + filter + `]}]}]}]}`,
	}
}

// pathDoors are the requests that name a path otherwise than in a filter.
func pathDoors(path, id string) []probe {
	list := func(pairs ...string) probe { return probe{method: "GET", path: with(askedItems, pairs...)} }
	stage := func(s string) probe {
		return list("aggregate", `[{"$limit": 2}, `+strings.NewReplacer("$P", quoted("$"+path), "P'", quoted(path), "R'", quoted("$$ROOT."+path)).Replace(s)+`]`)
	}
	p := quoted(path)
	out := []probe{
		list("sort", path), list("sort", "-"+path), list("sort", "n,"+path), list("sort", `{`+p+`: -1}`), list("sort", path, "limit", "1"),
		list("select", path), list("select", "-"+path), list("select", "n,"+path), list("select", `{`+p+`: 1}`), list("select", `{`+p+`: 0}`),
		list("facet", path), list("facet", "n,"+path),
		list("lookup", path), list("lookup", "author,"+path),
		list("lookup", `{"localField": `+p+`, "from": "authors", "foreignField": "name", "as": "x"}`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": `+p+`, "as": "x"}]`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": "n", "as": "x", "sort": `+p+`}]`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": "n", "as": "x", "sort": {`+p+`: 1}}]`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": "n", "as": "x", "select": `+p+`}]`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": "n", "as": "x", "select": {`+p+`: 0}}]`),
		list("lookup", `[{"localField": "n", "from": "items", "foreignField": "n", "as": "x", "lookup": `+p+`}]`),
		{method: "GET", path: with(askedItems+"/"+id, "select", path)},
		{method: "GET", path: with(askedItems+"/"+id, "select", "-"+path)},
		{method: "GET", path: with(askedItems+"/"+id, "lookup", path)},
		{method: "GET", path: with(askedItems+"/_facet", "fields", path)},
		{method: "GET", path: with(askedItems+"/_changes", "select", path)},
	}
	for _, s := range []string{
		`{"$sort": {P': 1}}`, `{"$project": {P': 1}}`, `{"$project": {P': 0}}`, `{"$unset": P'}`, `{"$unset": ["n", P']}`,
		`{"$project": {"x": $P}}`, `{"$project": {"x": R'}}`, `{"$set": {"x": {"$concat": ["a", $P]}}}`, `{"$addFields": {"x": [[$P]]}}`,
		`{"$group": {"_id": $P}}`, `{"$group": {"_id": null, "x": {"$min": $P}}}`, `{"$group": {"_id": null, "x": {"$push": {"y": R'}}}}`,
		`{"$unwind": $P}`, `{"$unwind": {"path": $P, "preserveNullAndEmptyArrays": true}}`, `{"$sortByCount": $P}`, `{"$bucketAuto": {"groupBy": $P, "buckets": 2}}`,
		`{"$bucket": {"groupBy": $P, "boundaries": [1, 2], "default": 0}}`, `{"$replaceWith": {"x": $P}}`, `{"$replaceRoot": {"newRoot": {"x": $P}}}`,
		`{"$lookup": {"from": "authors", "localField": P', "foreignField": "name", "as": "x"}}`,
		`{"$lookup": {"from": "items", "localField": "n", "foreignField": P', "as": "x"}}`,
		`{"$graphLookup": {"from": "items", "startWith": $P, "connectFromField": "n", "connectToField": "n", "as": "x"}}`,
		`{"$graphLookup": {"from": "items", "startWith": "$n", "connectFromField": P', "connectToField": "n", "as": "x"}}`,
		`{"$graphLookup": {"from": "items", "startWith": "$n", "connectFromField": "n", "connectToField": P', "as": "x"}}`,
		`{"$setWindowFields": {"partitionBy": $P, "sortBy": {"n": 1}, "output": {"x": {"$sum": "$n"}}}}`,
		`{"$setWindowFields": {"sortBy": {P': 1}, "output": {"x": {"$sum": "$n"}}}}`,
		`{"$setWindowFields": {"sortBy": {"n": 1}, "output": {"x": {"$sum": $P}}}}`,
		`{"$facet": {"f": [{"$group": {"_id": $P}}]}}`, `{"$unionWith": {"coll": "items", "pipeline": [{"$sort": {P': 1}}]}}`,
		`{"$project": {"x": {"$cond": [{"$gt": [$P, 1]}, 1, 2]}}}`, `{"$project": {"x": {"$regexMatch": {"input": $P, "regex": "^c"}}}}`,
		`{"$project": {"x": {"$let": {"vars": {"v": $P}, "in": "$$v"}}}}`, `{"$project": {"x": {"$map": {"input": ["$n"], "as": "e", "in": $P}}}}`,
	} {
		out = append(out, stage(s))
	}
	return out
}

// alike asks the same of two paths, the first of them hidden and the second one no field: nothing may tell them apart.
// Both are of one length.
func (a *asked) alike(hidden, absent string, first, second []probe) {
	a.t.Helper()
	for i, p := range first {
		got, want := a.send(p), a.send(second[i])
		if x, y := whole(got), strings.ReplaceAll(whole(want), absent, hidden); x != y {
			a.t.Errorf("%s\nhidden %s\nabsent %s", p, x, y)
		}
		positional := strings.Contains(p.String(), "$[]") // no path anywhere
		if got.status != http.StatusBadRequest || !positional && !strings.HasPrefix(got.String(), "400 unknown_field: unknown field: ") {
			a.t.Errorf("%s: %s", p, got)
		}
		if strings.Contains(got.body, "canary") || strings.Contains(got.body, "4096") {
			a.t.Errorf("%s: %s", p, got.body)
		}
	}
}
