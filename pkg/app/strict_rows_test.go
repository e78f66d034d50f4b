package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/httpapi"
)

// parametersOf are the parameters that each route of records has, beside pretty, token and lang, which all of them have, and what
// the collection declares in meta.query.
var parametersOf = map[string]string{
	"GET /items":          "aggregate facet select projection lookup filter sort limit offset after count q qName qLimit highlight explain",
	"GET /items/{id}":     "select projection lookup",
	"GET /items/_count":   "filter q qName",
	"GET /items/_facet":   "fields filter q qName qLimit",
	"GET /items/_changes": "filter select",
	"POST /items":         "bulk dryRun maxAffected",
	"PUT /items":          "filter dryRun maxAffected",
	"DELETE /items":       "filter dryRun maxAffected",
	"PUT /items/{id}":     "replace dryRun",
	"PATCH /items/{id}":   "dryRun",
	"DELETE /items/{id}":  "dryRun",
	"PUT /settings":       "replace filter dryRun maxAffected",
	"GET /settings":       "aggregate facet select projection lookup filter sort limit offset after count q qName qLimit highlight explain",
}

// unlisted are query keys that no route has: operators of the store, what other products take, and known names written otherwise.
var unlisted = []string{
	"where", "$where", "$filter", "$or", "populate", "include", "expand", "fields[]", "filters", "Filter", "LIMIT", "limit[$gt]", "sort[n]", "select.secret", "_method", "Q", "qname",
	"queue", "__proto__", "constructor", "toString", "hasOwnProperty", "filter.n", "filter%00", "secret", "n", "preview2", "Preview", "X-Admin-Token", "asSystem", "projection[]", "max_affected",
}

// S2: a key that a route doesn't have is refused on all of them, and never gets as far as the store: where they are ignored for
// old clients, the answer is the same without.
func TestS2UnknownKeys(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		id := a.ids["one"]
		fill := strings.NewReplacer("{project}", "shop", "{collection}", "items", "{id}", id, "{model}", "user", "{action}", "x", "{name}", "x", "{job}", "x", "{run}", "x")
		for _, r := range httpapi.Routes() {
			if strings.HasPrefix(r.Right, "action ") && r.Right != "action any" {
				continue // an action holds its parameters against its fields
			}
			for _, key := range unlisted {
				if strings.HasSuffix(r.Pattern, "_facet") && key == "fields" {
					continue
				}
				p := probe{method: r.Method, path: fill.Replace(r.Pattern) + "?" + key + "=1"}
				got := a.send(p, admin, text(`{}`))
				if got.status == http.StatusNotFound && strings.Contains(r.Pattern, "/_/actions/") || got.status == http.StatusForbidden && (r.Right == "login" || r.Right == "personal access token") {
					continue
				}
				if !strings.HasPrefix(got.String(), "400 unknown_parameter: unknown query parameter: ") {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		var all []string
		for _, names := range parametersOf {
			all = append(all, strings.Fields(names)...)
		}
		slices.Sort(all)
		all = append(slices.Compact(all), "status", "wait", "result", "project", "expect", "all")
		for route, names := range parametersOf {
			method, path, _ := strings.Cut(route, " ")
			for _, name := range append(all, "pretty", "lang", "preview") {
				known := slices.Contains(strings.Fields(names), name) || name == "pretty" || name == "lang" || name == "preview" && strings.HasPrefix(path, "/items")
				value := map[string]string{"pretty": "true", "lang": "en", "preview": "true", "dryRun": "true", "bulk": "false", "replace": "false", "count": "true", "aggregate": "[]", "facet": "n", "fields": "n", "limit": "1", "offset": "0", "maxAffected": "5", "filter": "{}"}[name]
				p := probe{method: method, path: "/api/v1/_/shop" + fill.Replace(path) + "?" + name + "=" + value}
				if method != "GET" {
					p.body = `{"n": "x"}` // which is refused, so that nothing is written
				}
				if method == "DELETE" {
					p.path += "&dryRun=true"
				}
				got := a.send(p, admin)
				if refused := strings.HasPrefix(got.String(), "400 unknown_parameter: "); refused == known {
					t.Errorf("%s: %s, known %v", p, got, known)
				}
			}
		}
		a.untouched("parameters of every kind")

		loose := strings.Replace(askedConfig, "namespace: shop", "namespace: shop\nlegacy: {looseQuery: true}", 1)
		a.configure("shop", loose)
		a.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		a.do("POST", "/api/v1/_/shop/_/admin/snapshots/prune?x=1", admin, text(`{"dryRun": true}`)).want(t, http.StatusOK)
		if got := a.do("POST", "/api/v1/_/shop/_/admin/snapshots/prune?dryRun=true", admin, text(`{"dryRun": true}`)); got.String() != "400 unknown_parameter: unknown query parameter: dryRun" {
			t.Errorf("a dry run that is asked for where there is none: %s", got)
		}
		for _, path := range []string{askedItems + "?sort=n", askedItems + "/" + id, askedItems + "/_count?filter=%7B%22n%22:1%7D", askedItems + "?facet=title", askedItems + "?aggregate=%5B%7B%22$sort%22:%7B%22n%22:1%7D%7D%5D"} {
			want := a.do("GET", path)
			want.want(t, http.StatusOK)
			for _, key := range unlisted {
				if got := a.do("GET", path, query(key+"="+`%7B%22secret%22:1%7D`)); got.status != http.StatusOK || got.body != want.body {
					t.Errorf("%s with %s: %s, want %s", path, key, got.body, want.body)
				}
			}
		}
	})
}

// operatorsRefused may stand in no filter and no stage of a caller's: code, writes, and what reaches past the collection.
var operatorsRefused = []string{
	`"$where": "sleep(1)"`, `"$where": {"$code": "1"}`, `"$function": {"body": "x", "args": [], "lang": "js"}`, `"$accumulator": {}`, `"$out": "x"`, `"$merge": {"into": "items"}`,
	`"$expr": {"$function": {"body": "x", "args": [], "lang": "js"}}`, `"$text": {"$search": "x"}`, `"$near": [1, 2]`, `"$geoWithin": {}`, `"$jsonSchema": {}`, `"$comment": "x"`,
	`"\u0024where": "1"`, `"$WHERE": "1"`, `"$ where": "1"`, `"$where\u0000": "1"`, `"$var": "user.id"`, `"$code": "1"`, `"$options": "i"`,
}

// S15: no operator that runs code, writes or leaves the collection gets in, at any depth and by any door; what has to be a string
// or an id is one. (Logins and system models are in TestS15Operators.)
func TestS15OperatorInjection(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		refused := func(p probe) {
			t.Helper()
			got := a.send(p)
			if got.status != http.StatusBadRequest || strings.Contains(got.body, "internal") || strings.Contains(got.body, "ongo") {
				t.Errorf("%s: %s %.300s", p, got, got.body)
			}
		}
		for _, op := range operatorsRefused {
			for _, f := range append(nested(`{`+op+`}`), `{`+op+`}`, `{"n": {`+op+`}}`, `{"n": {"$not": {`+op+`}}}`, `{"parts": {"$elemMatch": {`+op+`}}}`, `{"parts": {"$elemMatch": {"sku": {`+op+`}}}}`, `{"tags": {"$all": [{"$elemMatch": {`+op+`}}]}}`) {
				for _, p := range filterDoors(f) {
					refused(p)
				}
			}
			if strings.Contains(op, "$expr") || strings.Contains(op, "$var") || strings.Contains(op, "$code") || strings.Contains(op, "$options") {
				continue
			}
			for _, stages := range []string{
				`{` + op + `}`, `{"$facet": {"f": [{` + op + `}]}}`, `{"$unionWith": {"coll": "items", "pipeline": [{` + op + `}]}}`, `{"$lookup": {"from": "items", "localField": "n", "foreignField": "n", "as": "x", "pipeline": [{` + op + `}]}}`,
				`{"$project": {"x": {` + op + `}}}`, `{"$set": {"x": [{"y": {` + op + `}}]}}`, `{"$group": {"_id": {"$cond": [true, {` + op + `}, 1]}}}`, `{"$group": {"_id": null, "x": {` + op + `}}}`,
				`{"$replaceWith": {"$mergeObjects": [{"x": {` + op + `}}]}}`, `{"$sort": {"n": {` + op + `}}}`, `{"$setWindowFields": {"sortBy": {"n": 1}, "output": {"x": {` + op + `}}}}`,
			} {
				refused(probe{method: "GET", path: with(askedItems, "aggregate", `[`+stages+`]`)})
				refused(probe{method: "GET", path: with(askedItems, "aggregate", `[{"$limit": 1}, {"$project": {"n": 1}}, `+stages+`]`)})
			}
		}
		id := a.ids["one"]
		for _, v := range []string{`{"$gt": ""}`, `{"$where": "1"}`, `{"$oid": "x"}`, `{"toString": 1}`, `["n"]`, `1`, `true`} {
			for name, value := range map[string]string{"sort": `{"n": ` + v + `}`, "select": `{"n": ` + v + `}`} {
				if v == "1" || v == "true" {
					continue
				}
				refused(probe{method: "GET", path: with(askedItems, name, value)})
			}
			for _, member := range []string{"from", "localField", "foreignField", "as"} {
				m := map[string]string{"from": `"items"`, "localField": `"n"`, "foreignField": `"n"`, "as": `"x"`}
				m[member] = v
				refused(probe{method: "GET", path: with(askedItems, "lookup", fmt.Sprintf(`{"from": %s, "localField": %s, "foreignField": %s, "as": %s}`, m["from"], m["localField"], m["foreignField"], m["as"]))})
			}
			refused(probe{method: "PUT", path: askedItems + "/" + id, body: `{"title": ` + v + `}`})
			refused(probe{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": "add", "path": ` + v + `, "value": 1}]`})
			refused(probe{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": ` + v + `, "path": "/title", "value": "x"}]`})
			refused(probe{method: "POST", path: askedItems, body: `{"title": ` + v + `}`})
		}
		for _, body := range []string{`{"$set": {"n": 1}}`, `{"any": {"$where": 1}}`, `{"any": [{"$set": {"n": 1}}]}`, `{"$inc": {"n": 1}}`, `{"any": {"a.b": 1}}`, `{"any": {"$oid": 1}}`, `{"seo": {"$unset": 1}}`, `{"parts": [{"$push": 1}]}`} {
			for _, p := range []probe{{method: "POST", path: askedItems, body: body}, {method: "PUT", path: askedItems + "/" + id, body: body}, {method: "PUT", path: askedItems + "/" + id + "?replace=true", body: body}, {"PATCH", askedItems + "/" + id, "application/merge-patch+json", body}, {method: "PUT", path: "/api/v1/_/shop/settings", body: body}} {
				refused(p)
			}
		}
		for _, bad := range []string{"%7B%22$gt%22:%22%22%7D", "$ne", "[$ne]", "%00", id + "%00", id[:23], id + "0", strings.Repeat("a", 5000), strings.Repeat("g", 24), "__proto__", "%7B%7D", "%ff"} {
			want := "400 "
			if strings.HasPrefix(bad, "_") {
				want = "404 no_such_route: "
			}
			for _, p := range []probe{
				{method: "GET", path: askedItems + "/" + bad},
				{method: "PUT", path: askedItems + "/" + bad, body: `{"n": 1}`},
				{"PATCH", askedItems + "/" + bad, "application/merge-patch+json", `{"n": 1}`},
				{method: "DELETE", path: askedItems + "/" + bad},
			} {
				if got := a.send(p).String(); !strings.HasPrefix(got, want) || strings.Contains(got, "internal") || strings.Contains(got, "ongo") {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		a.untouched("operators")
	})
}

// S16: it is what comes out of all ways to write a filter that is checked, not how it is written; and hooks' results are checked as
// what callers say is.
func TestS16CheckedInTheEnd(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		for _, name := range []string{
			"filter[n][where]", "filter[n][$where]", "filter[$where]", "filter[n][expr]", "filter[n][function]", "filter[n][not]", "filter[n][elemMatch]", "filter[n][out]", "filter[n][Where]", "filter[n][gte][where]",
			"filter[][where]", "filter[n][]", "filter[n]x", "filter[n", "filter]", "filter[or][0][n]", "filter[$or][0][secret]", "filter[n][$eq]", "filter[secret]", "filter[secret][exists]", "filter[ secret]", "filter[n.$where]", "filter[n][regex\x00]",
		} {
			for _, p := range shortDoors(name, "1") {
				if got := a.send(p); got.status != http.StatusBadRequest {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		for _, f := range []string{
			`{"secre\u0074": "x"}`, `{"\u0073ecret": {"$exists": true}}`, `{"$\u006fr": [{"secret": 1}]}`, `{"n": {"\u0024where": "1"}}`, `{"n": {"$not": {"\u0024where": "1"}}}`, `{"plan\u002eb": 1}`, `{"plan": {"b": {"c": "canary"}}}`,
			`{"parts": {"$elemMatch": {"cos\u0074": 1}}}`, `{"title": {"$regex": {"$regularExpression": {"pattern": "(?=x)", "options": ""}}}}`, `{"title": {"$in": [{"$regularExpression": {"pattern": "(a+)\\1", "options": ""}}]}}`,
			`{"n": {"$in": [{"$code": "1"}]}}`, `{"any": {"$eq": {"$code": "1"}}}`, `{"any": {"$eq": {"$dbPointer": {"$ref": "x", "$id": {"$oid": "6b03080deb97b607f332ba40"}}}}}`, `{"any": {"$symbol": "x"}}`, `{"any": {"$minKey": 2}}`, `{"n": {"$var": "user.id"}}`, `{"any": {"$eq": {"$var": "user.id"}}}`,
		} {
			for _, p := range filterDoors(f) {
				if got := a.send(p); got.status != http.StatusBadRequest {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		a.untouched("filters in disguise")

		a.file("shop", "filter.js", `module.exports = (ctx) => ({$or: [{n: {$gte: 0}}, {$where: '1'}]})`)
		a.file("shop", "bind.js", `module.exports = (ctx) => { ctx.data.nope = 1 }`)
		scripted := strings.Replace(askedConfig, "  - name: authors\n", "  - name: authors\n    hooks: {post: {bind: {type: javascript, file: bind.js}}}\n", 1)
		scripted = strings.Replace(scripted, "public: {methods: {get: {facet: true}}, filter: {on: true}}", "public: {methods: {get: {facet: true, aggregate: true}, post: true, put: {bulk: true}, delete: {bulk: true}}, filter: {type: javascript, file: filter.js}}", 1)
		a.configure("shop", scripted)
		a.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		const authors = "/api/v1/_/shop/authors"
		for _, p := range []probe{
			{method: "GET", path: authors},
			{method: "GET", path: authors + "/" + a.ann},
			{method: "GET", path: authors + "/_count"},
			{method: "GET", path: authors + "?facet=name"},
			{method: "GET", path: authors + "?aggregate=[]"},
			{method: "GET", path: with(askedItems, "lookup", "author")},
			{method: "GET", path: with(askedItems, "filter", `{"author.name": "Ann"}`)},
			{method: "PUT", path: authors + "?filter={}", body: `{"on": false}`},
			{method: "DELETE", path: authors + "?filter={}"},
		} {
			got := a.send(p)
			if got.status < 400 || strings.Contains(got.body, "Ann") || strings.Contains(got.body, "$where") {
				t.Errorf("with a filter of a script that is no filter, %s: %s %s", p, got, got.body)
			}
		}
		if got := a.do("POST", authors, admin, text(`{"name": "Cy"}`)); got.status < 400 || got.status > 599 {
			t.Errorf("a hook adds what is no field: %s %s", got, got.body)
		}
		if got := a.do("GET", authors+"?sort=name", admin); strings.Contains(got.body, "Cy") || strings.Contains(got.body, "nope") || !strings.Contains(got.body, "Ann") {
			t.Errorf("stored: %s", got.body)
		}
	})
}

// S17: patterns that take other engines forever come to an end by every door, in the store, too.
func TestS17RegularExpressions(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		a.do("POST", askedItems, admin, text(`{"n": 9, "title": "`+strings.Repeat("a", 3000)+`!"}`)).want(t, http.StatusCreated)
		for _, pattern := range []string{`^(a+)+$`, `^(a|a)*$`, `(.*a){20}b`, `^(([a-z])+.)+[A-Z]([a-z])+$`, `(x+x+)+y`, `^(a?){200}a{200}$`} {
			for _, p := range []probe{
				{method: "GET", path: with(askedItems, "filter", `{"title": {"$regex": `+quoted(pattern)+`}}`)},
				{method: "GET", path: with(askedItems, "filter[title][regex]", pattern)},
				{method: "GET", path: with(askedItems+"/_count", "filter", `{"title": {"$not": {"$regex": `+quoted(pattern)+`}}}`)},
				{method: "GET", path: with(askedItems, "facet", "n", "filter", `{"title": {"$regex": `+quoted(pattern)+`}}`)},
				{method: "GET", path: with(askedItems, "aggregate", `[{"$match": {"title": {"$regex": `+quoted(pattern)+`}}}]`)},
				{method: "GET", path: with(askedItems, "aggregate", `[{"$project": {"hit": {"$regexMatch": {"input": "$title", "regex": `+quoted(pattern)+`}}}}]`)},
				{method: "GET", path: with(askedItems, "lookup", `{"from": "items", "localField": "n", "foreignField": "n", "as": "x", "filter": {"title": {"$regex": `+quoted(pattern)+`}}}`)},
			} {
				got := a.send(p)                                   // it comes back: a test that waits for one that doesn't never ends
				if strings.Contains(got.body, "check the types") { // is another thing
					t.Errorf("%s: %s", p, got)
				}
				if got.status >= 500 || got.status >= 400 && got.field("code") != "query_too_slow" && got.field("code") != "pattern_too_slow" && !strings.Contains(got.body, "regular expression") {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
	})
}

// S17: a search of one long text ends with the query, whatever asks for it.
func TestS17LongTexts(t *testing.T) {
	const config = `
namespace: other
collections:
  - name: items
    queryLimits: {allowAggregate: true, maxTime: 200}
    fields: [{name: title, type: string}, {name: long, type: string}, {name: huge, type: string}]
    permissions: {public: {methods: {get: {count: true, facet: true, aggregate: true}, post: true, put: {bulk: true}, delete: {bulk: true}}}, user: {methods: {}}}
`
	const items, heavy = "/api/v1/_/other/items", "(a{1,30}){1,30}b"
	onAsked(t, func(t *testing.T, a *asked) {
		a.register("other", config)
		a.do("POST", items, text(`{"title": "x", "long": "`+strings.Repeat("a", 60_000)+`", "huge": "`+strings.Repeat("a", 900_000)+`"}`)).want(t, http.StatusCreated)
		filter := `{"huge": {"$regex": ` + quoted(heavy) + `}}`
		project := func(op, field, re string) string {
			return `[{"$project": {"x": {"$eq": [{"` + op + `": {"input": "$` + field + `", "regex": ` + quoted(re) + `}}, 1]}}}]`
		}
		for _, p := range []probe{
			{method: "GET", path: with(items, "filter", filter)},
			{method: "GET", path: with(items, "filter[huge][regex]", heavy)},
			{method: "GET", path: with(items, "filter", filter, "count", "true")},
			{method: "GET", path: with(items+"/_count", "filter", filter)},
			{method: "GET", path: with(items+"/_facet", "fields", "title", "filter", filter)},
			{method: "GET", path: with(items, "aggregate", `[{"$match": `+filter+`}]`)},
			{method: "GET", path: with(items, "aggregate", `[{"$set": {"n": 1}}, {"$match": `+filter+`}]`)},
			{method: "GET", path: with(items, "aggregate", project("$regexMatch", "huge", heavy))},
			{method: "GET", path: with(items, "aggregate", project("$regexFind", "huge", heavy))},
			{method: "GET", path: with(items, "aggregate", project("$regexFindAll", "long", "a.*b|a"))}, // goes to the end for each a
			{method: "PUT", path: with(items, "filter", filter), body: `{"title": "y"}`},
			{method: "DELETE", path: with(items, "filter", filter)},
		} {
			got := a.send(p)
			code := got.field("code")
			// A MongoDB server may give the text up sooner: then a filter holds it for no match.
			if code != "query_too_slow" && (code != "pattern_too_slow" && got.status != http.StatusOK || !strings.HasSuffix(t.Name(), "/mongodb")) {
				t.Errorf("%.200s: %s", p, got)
			}
		}
		eventually(t, func() string { // a loaded machine may take that long even for this
			if got := a.do("GET", items+"/_count"); strings.TrimSpace(got.body) != `{"count":1}` {
				return got.body
			}
			return ""
		})
	})
}

// badPatterns are no regular expressions here: malformed, or of other engines.
var badPatterns = []string{
	`(`, `)`, `[`, `[z-a]`, `*`, `a**`, `a{2,1}`, `a{1001}`, `\`, `(?P<n`, `(?<=a)b`, `(?=a)`, `(?!a)`, `(a)\1`, `\k<n>`, `(?>a)`, `a++`, `(?#x)`, `\p{Nope}`, `(?1)`, `(?R)`, `[[:nope:]]`, `\Q`, strings.Repeat("a", 257), strings.Repeat("(", 200), "\x00(", `(?z)a`, `((a{100}){100}){100}`,
}

// S18: what is no regular expression is refused as the caller's mistake, without a word of a store's.
func TestS18BadRegularExpressions(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		for _, pattern := range badPatterns {
			if pattern == `\Q` {
				continue // begins a quotation, which may be empty
			}
			probes := append(filterDoors(`{"title": {"$regex": `+quoted(pattern)+`}}`), shortDoors("filter[title][regex]", pattern)...)
			probes = append(probes, filterDoors(`{"$nor": [{"title": {"$not": {"$regex": `+quoted(pattern)+`, "$options": "i"}}}]}`)...)
			for _, op := range []string{"$regexMatch", "$regexFind", "$regexFindAll"} {
				probes = append(probes, probe{method: "GET", path: with(askedItems, "aggregate", `[{"$project": {"x": {"`+op+`": {"input": "$title", "regex": `+quoted(pattern)+`}}}}]`)})
			}
			for _, p := range probes {
				got := a.send(p)
				low := strings.ToLower(got.body)
				if got.status != http.StatusBadRequest || strings.Contains(low, "mongo") || strings.Contains(low, "pcre") || strings.Contains(low, "pebble") || strings.Contains(low, "goroutine") || strings.Contains(low, ".go:") {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		for _, options := range []string{"g", "ii(", "imsx9", "\x00"} {
			for _, p := range filterDoors(`{"title": {"$regex": "a", "$options": ` + quoted(options) + `}}`) {
				if got := a.send(p); got.status != http.StatusBadRequest {
					t.Errorf("%s: %s", p, got)
				}
			}
		}
		a.untouched("bad regular expressions")
	})
}
