package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/app"
)

func key(k string) option { return header("Idempotency-Key", k) }

const keysConfig = `
namespace: shop
actions:
  - name: count
    hooks: {handle: {type: javascript, file: count.js}}
    permissions: {public: {methods: {}}, user: {methods: {post: true}}}
    meta: {methods: {post: {query: [{name: dryRun, type: string}]}}}
collections:
  - name: counted
    fields: [{name: n, type: number}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: items
    fields: [{name: title, type: string, validator: {required: true}}, {name: price, type: number}]
    permissions:
      public: {methods: {get: true, post: true}}
      user: {methods: {get: true, post: {bulk: true}}}
      "token:` + collectionToken + `": {methods: {post: true}}
`

// keysOn starts services with the project above.
func keysOn(t *testing.T, uris ...string) []*service {
	t.Helper()
	var all []*service
	for i, uri := range uris {
		s := run(t, func(c *app.Config) {
			c.StoreURI = uri
			if i > 0 {
				c.ProjectsDir = all[0].dir
			}
		})
		all = append(all, s)
	}
	all[0].file("shop", "count.js", `module.exports = async (ctx) => {
  await db.collection('counted').insert({n: 1})
  ctx.response.status = 201
  ctx.response.headers.location = '/made'
  if (ctx.data && ctx.data.fail) throw ctx.error(ctx.data.fail, 'no')
  return {n: await db.collection('counted').count()}
}`)
	all[0].register("shop", keysConfig)
	return all
}

func (s *service) count(collection string) string {
	s.t.Helper()
	return s.do("GET", "/api/v1/_/shop/"+collection+"/_count", admin).body
}

func TestIdempotencyKeys(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testKeys(t, keysOn(t, "")[0]) })
	t.Run("mongodb", func(t *testing.T) { testKeys(t, keysOn(t, emptyMongo(t, "svc_shop"))[0]) })
}

func testKeys(t *testing.T, s *service) {
	_, ann := s.user("ann", nil)
	_, eve := s.user("eve", nil)
	post := func(path string, options ...option) answer { return s.do("POST", "/api/v1/"+path, options...) }
	replayed := func(a answer) bool { return a.header.Get("Idempotency-Replayed") == "true" }

	first := post("_/shop/items", session(ann), key("k1"), text(`{"title": "A", "price": 1}`))
	again := post("_/shop/items", session(ann), key("k1"), text(`{"title": "A", "price": 1}`))
	first.want(t, http.StatusCreated)
	if replayed(first) || !replayed(again) || again.status != 201 || again.body != first.body || first.header.Get("Location") == "" {
		t.Errorf("%s %s\n%s %s", first, first.body, again, again.body)
	}
	for _, name := range []string{"Location", "Etag", "Content-Type"} {
		if first.header.Get(name) != again.header.Get(name) || first.header.Get(name) == "" {
			t.Errorf("%s: %q, %q", name, first.header.Get(name), again.header.Get(name))
		}
	}
	const reused = "422 idempotency_key_reused: this Idempotency-Key was used for another request: use a new key for each"
	for _, tt := range []struct {
		path    string
		options []option
		want    string
		n       int // records that there are then
	}{
		{"_/shop/items", []option{session(ann), key("k1"), text(`{"title": "B"}`)}, reused, 1},
		{"_/shop/items?bulk=false", []option{session(ann), key("k1"), text(`{"title": "A", "price": 1}`)}, reused, 1},
		{"_/shop/counted", []option{admin, key("k0"), text(`{"n": 1}`)}, "201", 1},
		{"_/shop/items", []option{admin, key("k0"), text(`{"n": 1}`)}, reused, 1},
		{"_/shop/items", []option{session(eve), key("k1"), text(`{"title": "A", "price": 1}`)}, "201", 2}, // another's key is another key
		{"_/shop/items", []option{token(writeToken), key("k1"), text(`{"title": "A", "price": 1}`)}, "201", 3},
		{"_/shop/items", []option{key("k1"), text(`{"title": "A", "price": 1}`)}, "201", 4},
		{"_/shop/items", []option{key("k1"), text(`{"title": "A", "price": 1}`)}, "201", 4},
		{"_/shop/items", []option{key("k1"), text(`{"title": "A", "price": 2}`)}, "201", 5}, // anonymous callers don't share keys
		{"_/shop/items?dryRun=true", []option{session(ann), key("k9"), text(`{"title": "A"}`)}, "200", 5},
		{"_/shop/items", []option{session(ann), key("k9"), text(`{"price": 1}`)}, "400 validation_failed: title: is required", 5},
		{"_/shop/items", []option{session(ann), key("k9"), text(`{"price": 1}`)}, "400 validation_failed: title: is required", 5},
		{"_/shop/items", []option{session(ann), key("k9"), text(`{"title": "A"}`)}, reused, 5},
		{"_/shop/items", []option{session(ann), key("b1"), text(`{"items": [{"title": "A"}, {}, {"title": "B"}]}`)}, "207", 7},
		{"_/shop/items", []option{session(ann), key("b1"), text(`{"items": [{"title": "A"}, {}, {"title": "B"}]}`)}, "207", 7},
	} {
		got := post(tt.path, tt.options...)
		if got.String() != tt.want || s.count("items") != fmt.Sprintf(`{"count":%d}`, tt.n) {
			t.Errorf("%s: %s, want %s; %s, want %d", tt.path, got, tt.want, s.count("items"), tt.n)
		}
	}

	// An action is called once, and again where it failed by itself.
	call := func(k, body string) string {
		a := post("_/shop/_/actions/count", session(ann), key(k), text(body))
		return fmt.Sprint(a, " ", a.header.Get("Location"), " ", a.body[:min(len(a.body), 8)], " ", replayed(a), " ", s.count("counted"))
	}
	for _, tt := range []struct{ key, body, want string }{
		{"a1", `{}`, `201 /made {"n":2} false {"count":2}`},
		{"a1", `{}`, `201 /made {"n":2} true {"count":2}`},
		{"a2", `{"fail": 409}`, `409 script_error: no  {"type": false {"count":3}`},
		{"a2", `{"fail": 409}`, `409 script_error: no  {"type": true {"count":3}`},
		{"a3", `{"fail": 503}`, `503 script_error: no  {"type": false {"count":4}`},
		{"a3", `{"fail": 503}`, `503 script_error: no  {"type": false {"count":5}`},
	} {
		if got := call(tt.key, tt.body); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.key, tt.body, got, tt.want)
		}
	}

	// What an action calls a dry run is its own.
	for _, again := range []bool{false, true} {
		a := post("_/shop/_/actions/count?dryRun=true", session(ann), key("a4"), text(`{}`))
		if a.status != http.StatusCreated || replayed(a) != again {
			t.Errorf("%s, replayed %t", a, replayed(a))
		}
	}
	post("_/shop/_/actions/count?dryRun=mine", session(ann), text(`{}`)).want(t, http.StatusCreated)

	// A secret is shown once.
	made := post("token", session(ann), key("t1"), text(`{"name": "ci", "scopes": []}`))
	made.want(t, http.StatusCreated)
	if again := post("token", session(ann), key("t1"), text(`{"name": "ci", "scopes": []}`)); !strings.HasPrefix(again.String(), "409 idempotency_secret: ") || strings.Contains(again.body, "svc_pat_") {
		t.Errorf("%s %s", again, again.body)
	}
	if n := s.do("GET", "/api/v1/token?count=true&limit=0", session(ann)).body; !strings.Contains(n, `"total":1`) {
		t.Error(n)
	}
	users := []answer{post("user", admin, key("u1"), text(`{"username": "zoe", "password": "`+password+`"}`)), post("user", admin, key("u1"), text(`{"username": "zoe", "password": "`+password+`"}`))}
	if users[0].status != 201 || users[1].status != 201 || users[0].body != users[1].body {
		t.Errorf("%s %s", users[0], users[1])
	}

	// Who may no longer do it is refused; what is hidden now is not shown again.
	s.configure("shop", strings.ReplaceAll(keysConfig, "user: {methods: {get: true, post: {bulk: true}}}", "user: {methods: {get: true, post: {bulk: true}}, hiddenFields: [price]}"))
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	again = post("_/shop/items", session(ann), key("k1"), text(`{"title": "A", "price": 1}`))
	if again.status != 201 || again.body != `{"id":"`+first.field("id")+`"}` || !replayed(again) {
		t.Errorf("%s %s", again, again.body)
	}
	if got := post("_/shop/items", session(ann), key("b1"), text(`{"items": [{"title": "A"}, {}, {"title": "B"}]}`)); got.status != 207 || strings.Contains(got.body, `"title":"A"`) || !strings.HasPrefix(got.body, `{"items":[{"id":"`) {
		t.Errorf("%s %s", got, got.body)
	}
	s.configure("shop", strings.ReplaceAll(keysConfig, "user: {methods: {get: true, post: {bulk: true}}}", "user: {methods: {get: true, post: true}}"))
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	if got := post("_/shop/items", session(ann), key("b1"), text(`{"items": [{"title": "A"}, {}, {"title": "B"}]}`)).String(); got != denied {
		t.Error(got)
	}
	s.configure("shop", strings.ReplaceAll(keysConfig, "user: {methods: {get: true, post: {bulk: true}}}", "user: {methods: {get: true}}"))
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	if got := post("_/shop/items", session(ann), key("k1"), text(`{"title": "A", "price": 1}`)).String(); got != denied {
		t.Error(got)
	}
}

// Requests with one key at once, on two instances that share a MongoDB: one record, and nobody is told of another.
func TestIdempotencyKeysAtOnce(t *testing.T) {
	test := func(t *testing.T, services []*service) {
		for round := range 3 {
			var all sync.WaitGroup
			var mu sync.Mutex
			ids, got := map[string]bool{}, map[string]int{}
			for i := range 24 {
				all.Go(func() {
					for {
						a := services[i%len(services)].do("POST", "/api/v1/_/shop/items", admin, key(fmt.Sprint("k", round)), text(`{"title": "A"}`))
						mu.Lock()
						got[a.String()]++
						if a.status == http.StatusCreated {
							ids[a.field("id")] = true
						}
						mu.Unlock()
						if a.status != http.StatusConflict || a.header.Get("Retry-After") == "" {
							return
						}
					}
				})
			}
			all.Wait()
			if len(ids) != 1 || got["201"] != 24 || services[0].count("items") != fmt.Sprintf(`{"count":%d}`, round+1) {
				t.Errorf("%v %v %s", ids, got, services[0].count("items"))
			}
		}
	}
	t.Run("embedded", func(t *testing.T) { test(t, keysOn(t, "")) })
	t.Run("mongodb", func(t *testing.T) {
		uri := emptyMongo(t, "svc_shop")
		services := keysOn(t, uri, uri)
		eventually(t, func() string {
			if a := services[1].do("GET", "/api/v1/_/shop/items", admin); a.status != http.StatusOK {
				return a.String()
			}
			return ""
		})
		test(t, services)
	})
}
