package interference_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// door is one way to ask the service something.
type door struct {
	name   string
	weight int // how often it is taken, beside the others
	least  int // percent of its requests that have to be answered with 2xx, or they ask for nothing: half of the usual share, as seeds differ
	make   func(g *generator) question
}

// question is one or several requests, that come behind each other. ask puts them to a service, and gives all that the
// caller is told.
type question struct {
	what string
	ask  func(w *world, c *caller) string
}

// doors are all of them. A new one is a row here and a function that makes a random request.
func doors() []door {
	return []door{
		{"list", 26, 50, list},
		{"lookup", 8, 25, lookups},
		{"read", 8, 20, read},
		{"count", 6, 50, count},
		{"facet", 5, 30, facet},
		{"aggregate", 12, 25, aggregate},
		{"people", 3, 35, people},
		{"create", 4, 25, create},
		{"bulk create", 2, 25, bulkCreate},
		{"update", 8, 15, update},
		{"patch", 4, 10, patch},
		{"delete", 1, 15, remove},
		{"bulk update", 4, 25, bulkUpdate},
		{"bulk delete", 2, 20, bulkDelete},
		{"repeated create", 2, 15, repeated},
		{"singleton", 2, 25, singleton},
		{"vault", 1, 5, vault},
		{"describe", 2, 25, describe},
		{"explain", 1, 2, explain},
		{"audit", 3, 30, auditLog},
		{"system models", 3, 15, models},
		{"changes", 1, 40, changes},
		{"file", 5, 10, file},
		{"agent", 5, 10, agent},
	}
}

const base = "/_/twins/"

// simple is a question of one request.
func simple(r request) question {
	return question{r.String(), func(w *world, c *caller) string { return told(w.do(c.who, r)) }}
}

func get(path string, q url.Values) request { return request{method: "GET", path: path, query: q} }

// where adds a filter, in one of its forms.
func (g *generator) where(q url.Values) {
	switch g.IntN(6) {
	case 0:
	case 1:
		q.Set("filter["+g.path()+"]["+pick(g, "gte", "lt", "ne")+"]", pick(g, "1", "a", "s", "3"))
	default:
		q.Set("filter", g.json(g.filter(2)))
	}
}

// words adds what is looked for.
func (g *generator) words(q url.Values, more ...string) {
	if !g.one(4) {
		return
	}
	q.Set("q", pick(g, "b", "c", "d", "b c", "+b c", "c -b", "b*", "bc", "zz", `"b c"`, "u", "v", "w", "x", "1", "p", "open", "locked"))
	if g.one(2) {
		q.Set("qName", pick(g, "words", "grams", "both", "like", "inner", "near", "near", "deep", "mixed", "said", "told", "all", "none"))
	}
	for _, name := range more {
		if g.one(2) {
			q.Set(name, "true")
		}
	}
}

func (g *generator) lang(q url.Values) {
	if g.one(4) {
		q.Set("lang", pick(g, "en", "de", "de", "fr"))
	}
	if g.bold && g.one(20) {
		q.Set("lang", "it")
	}
}

// shape adds what is to come of records.
func (g *generator) shape(q url.Values) {
	switch {
	case g.one(3):
		q.Set("select", g.selection())
	case g.one(6):
		q.Set("projection", pick(g, "card", "rest"))
	case g.bold && g.one(20):
		q.Set("projection", "none")
	}
	g.lang(q)
	if g.one(20) {
		q.Set("pretty", "true")
	}
}

func (g *generator) page(q url.Values) {
	if g.one(2) {
		q.Set("sort", g.sort())
	}
	if g.one(3) {
		q.Set("count", "true")
	}
	if g.one(2) {
		q.Set("limit", strconv.Itoa(pick(g, 0, 1, 3, 5, 100)))
	}
	if g.one(5) {
		q.Set("offset", strconv.Itoa(pick(g, 1, 5)))
	}
}

// paged asks for a list and for the page behind it. Now and then that is asked for by another sort.
func (g *generator) paged(r request) question {
	other, mixed := g.sort(), g.one(12)
	return question{r.String(), func(w *world, c *caller) string {
		first := w.do(c.who, r)
		next := nextOf(first)
		if next == "" {
			return told(first)
		}
		more := r
		more.query = url.Values{}
		for name, v := range r.query {
			if name != "offset" {
				more.query[name] = v
			}
		}
		more.query.Set("after", next)
		if mixed {
			more.query.Set("sort", other)
		}
		return told(first) + told(w.do(c.who, more))
	}}
}

func nextOf(res *httptest.ResponseRecorder) string {
	var page struct{ Next string }
	if json.Unmarshal(res.Body.Bytes(), &page) != nil {
		return ""
	}
	return page.Next
}

func list(g *generator) question {
	q := url.Values{}
	g.where(q)
	g.page(q)
	g.shape(q)
	g.words(q, "highlight", "explain", "count")
	r := get(base+"items", q)
	if g.one(30) {
		r.method = "HEAD"
	}
	return g.paged(r)
}

func lookups(g *generator) question {
	q := url.Values{"lookup": {g.lookup()}}
	g.shape(q)
	if g.one(3) {
		return simple(get(base+"items/"+g.id(), q))
	}
	g.page(q)
	if g.one(2) {
		g.where(q)
	}
	return g.paged(get(base+"items", q))
}

func read(g *generator) question {
	q := url.Values{}
	g.shape(q)
	r := get(base+"items/"+g.id(), q)
	if g.one(5) {
		r.headers = map[string]string{"If-None-Match": pick(g, `"1"`, `"2"`, "*")}
	}
	return simple(r)
}

// file asks for a file of a record, or for what a filter makes of it.
func file(g *generator) question {
	id := g.id()
	for g.caller.fewer && slices.Contains(g.ids.unseen, id) {
		id = g.id()
	}
	field := pick(g, "pic", "pic", "pic", "shot", "proof")
	if g.bold {
		field = pick(g, "pic", "proof", "shot", "secret", "nope", "_i18n.de.pic", "data.k")
	}
	q := url.Values{}
	switch g.IntN(6) {
	case 0, 1:
		q.Set("filter", "thumb")
	case 2:
		q.Set("download", "true")
	case 3:
		if g.bold {
			q.Set(pick(g, "filter", "select", "lang"), pick(g, "nope", "pic", "de"))
		}
	}
	r := get(base+"items/"+id+"/"+field+"/"+field+".png", q)
	switch g.IntN(6) {
	case 0:
		r.method = "HEAD"
	case 1:
		r.headers = map[string]string{"Range": pick(g, "bytes=0-3", "bytes=-1", "bytes=9999-", "bytes=70-")}
	case 2:
		r.headers = map[string]string{"If-None-Match": pick(g, "*", `"`+pictureOf(g.IntN(pictures)).hash+`"`)}
	}
	return simple(r)
}

// agent calls a tool, for what the other doors ask, too.
func agent(g *generator) question {
	a := url.Values{"namespace": {"twins"}, "collection": {"items"}}
	tool := pick(g, "documents_list", "documents_list", "document_get", "documents_count", "documents_facet", "document_update", "audit_query",
		"collection_describe", "collections_list", "agent_guide_get", "openapi_get")
	if slices.Contains(g.caller.shut, "describe") {
		tool = "documents_list"
	}
	where := func() {
		if g.one(2) {
			a.Set("filter", g.json(g.filter(2)))
		}
	}
	switch tool {
	case "documents_list":
		where()
		g.page(a)
		g.shape(a)
		g.words(a)
		if g.one(3) {
			a.Set("count", "true")
		}
		for _, none := range []string{"after", "lang", "pretty"} {
			a.Del(none)
		}
	case "document_get":
		a.Set("id", g.id())
		if g.one(2) {
			a.Set("select", g.selection())
		}
	case "documents_count":
		where()
	case "documents_facet":
		where()
		a.Set("fields", pick(g, "name", "n", "state")+","+g.field())
	case "document_update":
		a.Set("data", g.json(bson.D{{Key: g.field(), Value: pick(g, "a", "b")}}))
		a.Set("id", g.id())
		a.Set("dryRun", pick(g, "true", "false"))
	case "audit_query":
		a = url.Values{"filter": {g.json(bson.D{{Key: "namespace", Value: "twins"}, {Key: "op", Value: pick(g, "create", "update")}})}}
	case "agent_guide_get":
		if g.one(2) {
			a.Del("collection")
		}
	case "collections_list", "openapi_get":
		a.Del("collection")
	}
	arguments := map[string]string{}
	for name := range a {
		arguments[name] = a.Get(name)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}})
	if err != nil {
		panic(err)
	}
	r := request{method: "POST", path: "/mcp", body: string(body)}
	return question{r.String(), func(w *world, c *caller) string {
		answer := told(w.do(c.who, r))
		if strings.Contains(answer, `,"error":{"code":`) { // a refusal is no answer, whatever its status
			return strings.Replace(answer, "200", "400", 1)
		}
		return answer
	}}
}

func count(g *generator) question {
	q := url.Values{}
	g.where(q)
	g.words(q)
	return simple(get(base+"items/_count", q))
}

func facet(g *generator) question {
	q := url.Values{}
	g.where(q)
	if g.words(q); q.Has("q") && g.one(2) {
		q.Set("qLimit", pick(g, "1", "3", "all"))
	}
	fields := pick(g, "name", "n", "state", "slug", "ref", "_i18n.de.name") + "," + g.field()
	if g.one(2) {
		q.Set("facet", fields)
		return simple(get(base+"items", q))
	}
	q.Set("fields", fields)
	return simple(get(base+"items/_facet", q))
}

func aggregate(g *generator) question {
	q := url.Values{}
	if g.one(2) {
		q.Set("filter", g.json(g.filter(1)))
	}
	in, within := *g, *g.caller // paths go through no relations here: pipelines have stages for that
	within.mute = true
	in.caller = &within
	q.Set("aggregate", g.json(in.stages(1)))
	if g.one(4) {
		q.Set("limit", "3")
	}
	return simple(get(base+"items", q))
}

func people(g *generator) question {
	in := *g
	in.people = true
	q := url.Values{"filter": {in.json(in.filter(1))}}
	if g.one(4) {
		return simple(get(base+"people/_count", q))
	}
	if g.one(4) {
		return simple(get(base+"people/_facet", url.Values{"fields": {in.field()}}))
	}
	in.page(q)
	if g.one(3) {
		q.Set("lookup", "friend")
	}
	return in.paged(get(base+"people", q))
}

// writing adds what writes can be told.
func (g *generator) writing(r request, bulk bool) request {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.headers = map[string]string{}
	if g.one(5) {
		r.query.Set("dryRun", "true")
	}
	if g.one(5) {
		r.headers["Prefer"] = "return=minimal"
	}
	if bulk && g.one(3) {
		r.query.Set("maxAffected", strconv.Itoa(pick(g, 1, 2, 5, 20)))
	}
	if !bulk && r.method != "POST" && g.one(5) {
		r.headers["If-Match"] = pick(g, `"1"`, `"2"`, `"1", "2", "3"`)
	}
	if r.method != "DELETE" {
		g.lang(r.query)
	}
	return r
}

func create(g *generator) question {
	body := g.visibleBody()
	if g.one(40) {
		body = `{"on":true,"slug":"` + oneSidedSlug + `"}`
	}
	return simple(g.writing(request{method: "POST", path: base + "items", body: body}, false))
}

// visibleBody is a body of what its maker is to see afterwards, mostly.
func (g *generator) visibleBody() string {
	body := g.body()
	if g.one(10) || strings.Contains(body, `"on"`) {
		return body
	}
	return strings.TrimSuffix(body, "}") + `,"on":true}`
}

func bulkCreate(g *generator) question {
	var items []string
	for range 1 + g.IntN(3) {
		items = append(items, g.visibleBody())
	}
	return simple(g.writing(request{method: "POST", path: base + "items", body: `{"items":[` + strings.Join(items, ",") + `]}`}, true))
}

func update(g *generator) question {
	r := request{method: "PUT", path: base + "items/" + g.id(), body: g.body(), query: url.Values{}}
	if g.one(4) {
		r.query.Set("replace", "true")
		r.body = g.visibleBody()
	}
	return simple(g.writing(r, false))
}

func patch(g *generator) question {
	r := g.writing(request{method: "PATCH", path: base + "items/" + g.id(), body: g.body()}, false)
	r.headers["Content-Type"] = "application/merge-patch+json"
	if g.one(2) {
		r.headers["Content-Type"] = "application/json-patch+json"
		value := pick[any](g, "e", "s", 1, bson.D{{Key: "x", Value: 1}}) // not "a": as a name, it opens the mood
		ops := []bson.D{{{Key: "op", Value: pick(g, "test", "add", "replace", "remove")}, {Key: "path", Value: "/" + strings.ReplaceAll(g.field(), ".", "/")}, {Key: "value", Value: value}}}
		if g.one(2) {
			ops = append(ops, bson.D{{Key: "op", Value: pick(g, "copy", "move")}, {Key: "from", Value: "/" + strings.ReplaceAll(g.field(), ".", "/")}, {Key: "path", Value: "/data"}})
		}
		if !g.bold && g.one(2) {
			ops = []bson.D{{{Key: "op", Value: "add"}, {Key: "path", Value: "/name"}, {Key: "value", Value: "b"}}}
		}
		r.body = g.json(ops)
	}
	return simple(r)
}

func remove(g *generator) question {
	return simple(g.writing(request{method: "DELETE", path: base + "items/" + g.id()}, false))
}

func bulkUpdate(g *generator) question {
	q := url.Values{"filter": {g.json(g.filter(2))}}
	if g.one(20) {
		q.Del("filter")
	}
	return simple(g.writing(request{method: "PUT", path: base + "items", query: q, body: g.body()}, true))
}

func bulkDelete(g *generator) question {
	f := g.filter(1)
	if !g.one(8) { // few records are lost
		f = unique(append(f, bson.E{Key: "_rev", Value: bson.D{{Key: "$gt", Value: 4}}}))
	}
	return simple(g.writing(request{method: "DELETE", path: base + "items", query: url.Values{"filter": {g.json(f)}}}, true))
}

// repeated is a create that comes twice, or whose key was used before.
func repeated(g *generator) question {
	r := g.writing(request{method: "POST", path: base + "items", body: g.visibleBody()}, false)
	g.keys++
	r.headers["Idempotency-Key"] = "key" + strconv.Itoa(g.IntN(g.keys))
	again := r
	if g.one(4) {
		again.body = g.visibleBody()
	}
	return question{r.String(), func(w *world, c *caller) string { return told(w.do(c.who, r)) + told(w.do(c.who, again)) }}
}

func singleton(g *generator) question {
	if g.one(2) {
		q := url.Values{}
		if g.one(2) {
			q.Set("select", pick(g, "title", "title,key", "-title"))
		}
		if g.bold {
			q.Set("filter", g.json(bson.D{{Key: pick(g, "key", "title"), Value: pick(g, "s", "A")}}))
		}
		return simple(get(base+"settings", q))
	}
	r := request{method: "PUT", path: base + "settings", body: pick(g, `{"title":"A"}`, `{"title":"B"}`, `{"key":"s"}`, `{"title":null}`), query: url.Values{}}
	if g.one(4) {
		r.query.Set("replace", "true")
	}
	return simple(g.writing(r, false))
}

// vault is a collection that the caller can only write to.
func vault(g *generator) question {
	if g.one(2) {
		return simple(request{method: "POST", path: base + "vault", body: `{"name":"a"}`})
	}
	return simple(get(base+pick(g, "vault", "vault/_count", "vault/_changes", "nope", "_/collections/vault"), nil))
}

func describe(g *generator) question {
	if g.one(8) {
		return simple(get(base+"_/collections/items/stats", nil))
	}
	q := url.Values{}
	g.lang(q)
	if g.one(4) {
		return simple(get("/_openapi/twins", q))
	}
	return simple(get(base+pick(g, "_/collections/items", "_/collections/people", "_/collections/settings", "_/collections"), q))
}

func explain(g *generator) question {
	principal := pick(g, `{"kind":"anonymous"}`, `{"kind":"user","id":"`+alice.Hex()+`"}`, `{"kind":"user","id":"`+eve.Hex()+`"}`, `{"kind":"user","username":"fara"}`, `{"kind":"admin"}`)
	body := `{"principal":` + principal + `,"method":"` + pick(g, "get", "put", "delete") + `","collection":"` + pick(g, "items", "people", "nope") + `","id":"` + g.id() + `"}`
	return simple(request{method: "POST", path: base + "_/admin/access/explain", body: body})
}

func auditLog(g *generator) question {
	q := url.Values{}
	if g.one(2) {
		q.Set("sort", pick(g, "at", "recordId,-at", "op,at", "-actor.name"))
	}
	if g.bold {
		q.Set("sort", pick(g, "before.secret", "hash", "seq"))
	}
	g.page(q)
	if q.Get("sort") != "" && g.one(2) || strings.ContainsAny(q.Get("sort"), "_") {
		q.Del("sort")
	}
	switch g.IntN(6) {
	case 0:
		q.Set("filter", g.json(bson.D{{Key: "op", Value: pick(g, "create", "update", "delete")}}))
	case 1:
		q.Set("filter", g.json(bson.D{{Key: "recordId", Value: g.id()}}))
	case 2:
		q.Set("filter", g.json(bson.D{{Key: "actor.name", Value: bson.D{{Key: pick(g, "$eq", "$ne"), Value: pick(g, "alice", "admin token")}}}}))
	case 3:
		if g.bold {
			q.Set("filter", g.json(bson.D{{Key: pick(g, "after.secret", "before.parts.cost", "hash", "after", "seq", "expires"), Value: bson.D{{Key: "$exists", Value: true}}}}))
		}
	}
	return g.paged(get(pick(g, base+"_/audit", base+"_/audit", base+"_/audit", "/audit"), q))
}

func models(g *generator) question {
	model := pick(g, append([]string{"user", "org", "team", "project"}, slices.Repeat(g.caller.models, 4)...)...)
	home := pick(g, homeOrg, farOrg, "nope")
	switch g.IntN(6) {
	case 0:
		return simple(get("/"+model+"/"+pick(g, homeOrg, farOrg, g.id(), alice.Hex(), eve.Hex(), homeOrg[:22]+pick(g, "01", "0a", "32", "33"), farOrg[:22]+pick(g, "01", "0a", "32", "33")), nil))
	case 1:
		return simple(request{method: "PUT", path: "/user/" + farOrg[:22] + pick(g, "32", "33"), body: `{"name":"x"}`})
	}
	q := url.Values{}
	field := map[string]string{"user": "orgIds", "org": "slug", "team": "orgId", "project": "orgId"}[model]
	if g.bold {
		field = pick(g, "orgId", "orgIds", "passwordHash", "tokenVersion", "username")
	}
	if g.one(2) {
		q.Set("sort", pick(g, "createdAt", "name", "-name", "id"))
	}
	if g.bold && g.one(2) {
		q.Set("sort", field)
	}
	if g.one(2) {
		q.Set("filter", g.json(bson.D{{Key: pick(g, "name", field), Value: pick[any](g, "a", "b", home, bson.D{{Key: "$gt", Value: "c"}})}}))
	}
	if g.one(2) {
		q.Set("limit", "2")
	}
	if g.one(2) {
		q.Set("count", "true")
	}
	return g.paged(get("/"+model, q))
}
