package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What is wrong with a request is told by a problem, and nothing is written, whatever it is.
func TestBadInputWritesNothing(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1, "secret": "s", "parts": [{"sku": "x"}]}`)
	s.item(`{"title": "B", "n": 2}`)
	before := s.contents()

	items, one := "/api/v1/_/shop/items", "/api/v1/_/shop/items/"+id
	filter := func(f string) string { return items + "?filter=" + url.QueryEscape(f) }
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	type send struct{ method, path, body, media string }
	for _, tt := range []struct {
		send
		want string // "*" stands for the rest
	}{
		{send{"POST", items, `{`, ""}, "400 bad_json: *"},
		{send{"POST", items, ``, ""}, "400 bad_json: *"},
		{send{"POST", items, `[]`, ""}, "400 bad_json: *"},
		{send{"POST", items, `{"title": "A"} x`, ""}, "400 bad_json: *"},
		{send{"POST", items, `{"title": "A", "title": "B"}`, ""}, "400 bad_json: *"},
		{send{"POST", items, `{"title": "A", "n": 1e309}`, ""}, "400 bad_json: *"},
		{send{"POST", items, `{"title": "A", "n": NaN}`, ""}, "400 bad_json: *"},
		{send{"POST", items, "{\"title\": \"\xff\"}", ""}, "400 bad_json: *"},
		{send{"POST", items, deep, ""}, "400 too_deep: *"},
		{send{"POST", items, strings.Repeat(`[`, 60_000), ""}, "400 too_deep: *"},
		{send{"POST", items, `{"title": "A", "a\u0000": 1}`, ""}, "400 *"},
		{send{"POST", items, `{"title": "A"}`, "text/plain"}, "415 unsupported_media_type: send the body as Content-Type: application/json"},
		{send{"POST", items, `title=A`, "application/x-www-form-urlencoded"}, "415 *"},
		{send{"POST", items, `{"title": "A"}`, "application/jsonx"}, "415 *"},
		{send{"POST", items, `{"title": "` + strings.Repeat("x", 70_000) + `"}`, ""}, "413 body_too_large: the body is larger than the limit of 65536 bytes of the collection items (upload.maxBodySize): send less at once, such as fewer records, or a smaller file"},
		{send{"POST", "/api/v1/user", `{"username": "` + strings.Repeat("x", 2<<20) + `"}`, ""}, "413 body_too_large: the body is larger than the limit of 1048576 bytes"},
		{send{"POST", items, `{"title": 5}`, ""}, "400 validation_failed: title: must be a string, is a number"},
		{send{"POST", items, `{"title": "A", "at": "soon"}`, ""}, "400 validation_failed: at: *"},
		{send{"POST", items, `{"title": "A", "parts": {}}`, ""}, "400 validation_failed: parts: *"},
		{send{"POST", items, `{"title": "A", "x": 1}`, ""}, "400 validation_failed: x: unknown field"},
		{send{"POST", items, `{"title": "A", "parts": [{"x": 1}]}`, ""}, "400 validation_failed: parts.0.x: unknown field"},
		{send{"POST", items, `{"title": "A", "$set": {"n": 1}}`, ""}, "400 validation_failed: $set: *"},
		{send{"POST", items, `{"title": "A", "parts.0.sku": 1}`, ""}, "400 validation_failed: parts.0.sku: *"},
		{send{"POST", items, `{"title": "A", "__proto__": {"n": 1}}`, ""}, "400 validation_failed: __proto__: *"},
		{send{"POST", items, `{"title": "A", "id": "` + id + `"}`, ""}, "400 validation_failed: id: *"},
		{send{"POST", items, `{"title": "A", "createdBy": "me"}`, ""}, "400 validation_failed: createdBy: *"},
		{send{"POST", items + "?bulk=true", `{"items": {"title": "A"}}`, ""}, "400 bad_bulk: *"},
		{send{"POST", items + "?dryrun=true", `{"title": "A"}`, ""}, "400 unknown_parameter: unknown query parameter: dryrun; did you mean dryRun?"},
		{send{"POST", items + "?filter={}", `{"title": "A"}`, ""}, "400 unknown_parameter: unknown query parameter: filter"},

		{send{"PUT", one, `{"n": "1"}`, ""}, "400 validation_failed: n: must be a number, is a string"},
		{send{"PUT", one, `{"secret": "x"}`, ""}, "400 validation_failed: secret: unknown field"},
		{send{"PUT", one, `{"secret": null}`, ""}, "400 validation_failed: secret: unknown field"},
		{send{"PUT", one, `{"_rev": 9}`, ""}, "412 stale: *"},
		{send{"PUT", one, `{"title": null}`, ""}, "400 validation_failed: title: is required"},
		{send{"PUT", one + "?replace=true", `{}`, ""}, "400 validation_failed: title: is required"},
		{send{"PUT", one + "?merge=true", `{}`, ""}, "400 unknown_parameter: unknown query parameter: merge"},
		{send{"PUT", items + "/x", `{"n": 1}`, ""}, badID},
		{send{"PUT", items + "/" + id[:23], `{"n": 1}`, ""}, badID},
		{send{"PATCH", one, `[{"op": "add"}]`, "application/json-patch+json"}, "400 bad_patch: *"},
		{send{"PATCH", one, `[{"op": "test", "path": "/n", "value": 9}]`, "application/json-patch+json"}, "409 patch_test_failed: *"},
		{send{"PATCH", one, `{"n": 9}`, "application/json-patch+json"}, "400 bad_patch: *"},

		{send{"PUT", filter(`{`), `{"n": 1}`, ""}, "400 bad_json: filter: *"},
		{send{"PUT", filter(`[]`), `{"n": 1}`, ""}, "400 bad_json: filter: *"},
		{send{"PUT", filter(`{"x": 1}`), `{"n": 1}`, ""}, "400 unknown_field: unknown field: x"},
		{send{"PUT", filter(`{"secret": "s"}`), `{"n": 1}`, ""}, "400 unknown_field: unknown field: secret"},
		{send{"PUT", filter(`{"n": {"$where": 1}}`), `{"n": 1}`, ""}, "400 bad_filter: *"},
		{send{"PUT", items + "?filter={}&filter={}", `{"n": 1}`, ""}, "400 bad_filter: give one filter: *"},
		{send{"PUT", items + "?filter={}&filter[n]=1", `{"n": 1}`, ""}, "400 bad_filter: give one filter: *"},
		{send{"PUT", items + "?Filter={}", `{"n": 1}`, ""}, "400 unknown_parameter: unknown query parameter: Filter; did you mean filter?"},
		{send{"PUT", items + "?filter={}&limit=1", `{"n": 1}`, ""}, "400 unknown_parameter: unknown query parameter: limit"},
		{send{"PUT", items + "?filter[$or]=1", `{"n": 1}`, ""}, "400 bad_filter: *"},
		{send{"PUT", items + "?filter[n][$gt]=1", `{"n": 1}`, ""}, "400 bad_filter: *"},
		{send{"PUT", items + "?filter[n][gte][x]=1", `{"n": 1}`, ""}, "400 bad_filter: *"},
		{send{"PUT", items + "?filter[n][nope]=1", `{"n": 1}`, ""}, "400 bad_filter: *"},
		{send{"PUT", items + "?filter[n]=x", `{"n": 1}`, ""}, `400 bad_filter: n: must be a number, is "x"`},
		{send{"PUT", items + "?filter={}&%zz", `{"n": 1}`, ""}, "400 bad_query: *"},
		{send{"PUT", items + "?filter={};n=1", `{"n": 1}`, ""}, "400 bad_query: *"},
		{send{"PUT", items + "?filter[%ff]=x", `{"n": 1}`, ""}, "400 bad_query: the query string is not UTF-8"},
		{send{"PUT", items + "?filter[title]=%ff", `{"n": 1}`, ""}, "400 bad_query: the query string is not UTF-8"},
		{send{"DELETE", items + "?filter=", ``, ""}, "400 filter_required: filter query parameter is required for bulk delete"},
		{send{"DELETE", items + "?filter=null", ``, ""}, "400 bad_json: *"},
		{send{"DELETE", items + "?fitler={}", ``, ""}, "400 unknown_parameter: unknown query parameter: fitler; did you mean filter?"},
		{send{"DELETE", one + "?filter={}", ``, ""}, "400 unknown_parameter: unknown query parameter: filter"},
		{send{"DELETE", items + "/" + strings.Repeat("a", 25), ``, ""}, badID},

		{send{"GET", items + "?limit=ten", ``, ""}, "400 bad_parameter: limit must be a whole number"},
		{send{"GET", items + "?limit=1e309", ``, ""}, "400 bad_parameter: limit must be a whole number"},
		{send{"GET", items + "?limit=99999999999999999999", ``, ""}, "400 bad_parameter: limit must be a whole number"},
		{send{"GET", items + "?limit=1001", ``, ""}, "400 query_limit: limit is 1001, the highest allowed is 1000"},
		{send{"GET", items + "?limit=-1", ``, ""}, "400 bad_parameter: *"},
		{send{"GET", items + "?limit=1&limit=2", ``, ""}, "400 bad_parameter: limit is given 2 times"},
		{send{"GET", items + "?offset=10001", ``, ""}, "400 query_limit: *"},
		{send{"GET", items + "?limit[x]=1", ``, ""}, "400 unknown_parameter: unknown query parameter: limit[x]"},
		{send{"GET", items + "?sort[n]=1", ``, ""}, "400 unknown_parameter: unknown query parameter: sort[n]"},
		{send{"GET", items + "?sort=nope", ``, ""}, "400 unknown_field: unknown field: nope"},
		{send{"GET", items + "?select=nope", ``, ""}, "400 unknown_field: unknown field: nope"},
		{send{"GET", items + "?projection=nope", ``, ""}, "400 unknown_projection: unknown projection: nope"},
		{send{"GET", items + "?after=x", ``, ""}, "400 bad_cursor: *"},
		{send{"GET", items + "?count=yes", ``, ""}, "400 bad_parameter: count must be true or false"},
		{send{"GET", items + "?pretty=yes", ``, ""}, "400 bad_parameter: pretty must be true or false"},
		{send{"GET", items + "?count=", ``, ""}, "400 bad_parameter: count is empty: give it a value, or leave it out"},
		{send{"GET", items + "?limit=", ``, ""}, "400 bad_parameter: limit is empty: *"},
		{send{"POST", items + "?dryRun", `{"title": "x"}`, ""}, "400 bad_parameter: dryRun is empty: *"},
		{send{"POST", items + "?dryRun=", `{"title": "x"}`, ""}, "400 bad_parameter: dryRun is empty: *"},
		{send{"POST", items + "?dryRun=yes", `{"title": "x"}`, ""}, "400 bad_parameter: dryRun must be true or false"},
		{send{"POST", items + "?bulk=", `{"title": "x"}`, ""}, "400 bad_parameter: bulk is empty: *"},
		{send{"PUT", one + "?dryRun=", `{"n": 1}`, ""}, "400 bad_parameter: dryRun is empty: *"},
		{send{"PUT", one + "?replace=", `{"n": 1}`, ""}, "400 bad_parameter: replace is empty: *"},
		{send{"PATCH", one + "?dryRun=", `[]`, "application/json-patch+json"}, "400 bad_parameter: dryRun is empty: *"},
		{send{"DELETE", one + "?dryRun", ``, ""}, "400 bad_parameter: dryRun is empty: *"},
		{send{"DELETE", items + "?filter={}&dryRun=", ``, ""}, "400 bad_parameter: dryRun is empty: *"},
		{send{"DELETE", items + "?filter={}&maxAffected=", ``, ""}, "400 bad_parameter: maxAffected is empty: *"},
		{send{"PUT", items + "?filter={}&dryRun=1&dryRun=0", `{"n": 1}`, ""}, "400 bad_parameter: dryRun is given 2 times"},
		{send{"GET", items + "?aggregate=", ``, ""}, "400 bad_json: *"},
		{send{"GET", items + "?aggregate={}", ``, ""}, "400 bad_pipeline: aggregate must be a list of stages, such as *"},
		{send{"GET", items + "?aggregate=[]&aggregate=[]", ``, ""}, "400 bad_parameter: aggregate is given 2 times"},
		{send{"GET", items + "?aggregate=[]&sort=n", ``, ""}, "400 bad_parameter: sort does not go together with aggregate: use a $sort stage"},
		{send{"GET", items + "?aggregate=[]&offset=1", ``, ""}, "400 bad_parameter: offset does not go together with aggregate: use a $skip stage"},
		{send{"GET", items + "?aggregate=[]&facet=n", ``, ""}, "400 bad_parameter: facet does not go together with aggregate: use a $sortByCount stage"},
		{send{"GET", items + "?facet=", ``, ""}, "400 missing_parameter: missing required parameter: facet"},
		{send{"GET", items + "?facet=n&limit=1", ``, ""}, "400 bad_parameter: limit does not go together with facet: *"},
		{send{"GET", items + "?facet=nope", ``, ""}, "400 unknown_field: unknown field: nope"},
		{send{"GET", items + "/_facet", ``, ""}, "400 missing_parameter: missing required parameter: fields"},
		{send{"GET", items + "/_facet?fields=n&sort=n", ``, ""}, "400 unknown_parameter: unknown query parameter: sort"},
		{send{"GET", items + "?where={}", ``, ""}, "400 unknown_parameter: unknown query parameter: where"},
		{send{"GET", items + "?filter=" + url.QueryEscape(`{"n":{"$in":[`+strings.Repeat("1,", 1000)+`1]}}`), ``, ""}, "400 query_limit: filter lists 1001 values, the limit is 1000"},
		{send{"GET", items + "?filter=" + url.QueryEscape(strings.Repeat(`{"$and":[`, 100)+`{"n":1}`+strings.Repeat(`]}`, 100)), ``, ""}, "400 *"},
		{send{"GET", "/api/v1/user?select=name", ``, ""}, "400 unknown_parameter: unknown query parameter: select"},
		{send{"GET", "/api/v1/user?sort=passwordHash", ``, ""}, "400 unknown_field: unknown field: passwordHash"},
		{send{"GET", "/api/v1/user?filter[tokenVersion]=0", ``, ""}, "400 unknown_field: unknown field: tokenVersion"},
		{send{"POST", "/api/v1/user?x=1", `{}`, ""}, "400 unknown_parameter: unknown query parameter: x"},
		{send{"GET", "/api/v1/me?x=1", ``, ""}, "400 unknown_parameter: unknown query parameter: x"},
		{send{"POST", "/api/v1/login?password=x", `{}`, ""}, "400 unknown_parameter: unknown query parameter: password"},
		{send{"GET", "/api/v1/version?x", ``, ""}, "400 unknown_parameter: unknown query parameter: x"},
	} {
		options := []option{token(collectionToken)}
		if strings.HasPrefix(tt.path, "/api/v1/user") || strings.HasPrefix(tt.path, "/api/v1/me") {
			options = []option{admin}
		}
		if tt.media != "" {
			options = append(options, header("Content-Type", tt.media))
		}
		if tt.body != "" || tt.method == "POST" {
			options = append(options, text(tt.body))
		}
		got := s.do(tt.method, tt.path, options...)
		prefix, wild := strings.CutSuffix(tt.want, "*")
		if got.String() != tt.want && (!wild || !strings.HasPrefix(got.String(), prefix)) {
			t.Errorf("%s %.80s %.60s\ngot  %s\nwant %s", tt.method, tt.path, tt.body, got, tt.want)
		}
		checkShape(t, tt.path, got)
	}
	if after := s.contents(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// A credential that may only read changes nothing, whatever it tries.
func TestReadersWriteNothing(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	_, user := s.user("ann", map[string]any{"scopes": []string{"project.read", "user.read"}})
	before := s.contents()
	project := s.projectID()
	for _, who := range []option{noop, token(readToken), session(user)} {
		for _, op := range []struct{ method, path string }{
			{"POST", "/api/v1/_/shop/items"},
			{"PUT", "/api/v1/_/shop/items/" + id},
			{"PATCH", "/api/v1/_/shop/items/" + id},
			{"DELETE", "/api/v1/_/shop/items/" + id},
			{"PUT", "/api/v1/_/shop/items?filter={}"},
			{"DELETE", "/api/v1/_/shop/items?filter={}"},
			{"POST", "/api/v1/project"},
			{"PUT", "/api/v1/project/" + project},
			{"DELETE", "/api/v1/project/" + project},
			{"POST", "/api/v1/user"},
			{"POST", "/api/v1/_/shop/_/admin/reload"},
		} {
			if got := s.do(op.method, op.path, who, text(`{"title": "X", "name": "x"}`)); got.status != http.StatusForbidden {
				t.Errorf("%s %s: %s", op.method, op.path, got)
			}
		}
	}
	if after := s.contents(); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
}

// A record of one project is not found in another, and a project that is switched off is none.
func TestProjectsAreApart(t *testing.T) {
	s := runShop(t, nil)
	id := s.item(`{"title": "A", "n": 1}`)
	other := s.register("other", strings.Replace(shopConfig, "namespace: shop", "namespace: other", 1))
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if got := s.do(method, "/api/v1/_/other/items/"+id, admin, text(`{"n": 1}`)).String(); got != notFound {
			t.Error(method, got)
		}
	}
	if got := s.do("GET", "/api/v1/_/other/items", admin); !strings.Contains(got.body, `"items":[]`) {
		t.Error(got.body)
	}
	s.do("PUT", "/api/v1/project/"+other, admin, text(`{"enabled": false}`)).want(t, http.StatusOK)
	for _, path := range []string{"items", "items/" + id, "_/collections", "items/_count"} {
		if got := s.do("GET", "/api/v1/_/other/"+path, admin).String(); got != noProject {
			t.Error(path, got)
		}
	}
	s.do("PUT", "/api/v1/project/"+other, admin, text(`{"enabled": true}`)).want(t, http.StatusOK)
	s.do("GET", "/api/v1/_/other/items", admin).want(t, http.StatusOK)
	s.do("DELETE", "/api/v1/project/"+other, admin).want(t, http.StatusOK)
	if got := s.do("GET", "/api/v1/_/other/items", admin).String(); got != noProject {
		t.Error(got)
	}
}

// What stands in the body of a request that takes none is not passed over: who sends a plan there means it.
func TestReloadTakesNoBody(t *testing.T) {
	t.Parallel()
	s := runShop(t, nil)
	const at = "/api/v1/_/shop/_/admin/"
	for _, route := range []string{"reload?wait=true", "indexes/sync"} {
		for body, want := range map[string]int{
			`{"plan": "x"}`: http.StatusBadRequest, `{"allow": "safe"}`: http.StatusBadRequest, `x`: http.StatusBadRequest,
			``: http.StatusOK, `{}`: http.StatusOK, " \n": http.StatusOK,
		} {
			if res := s.do("POST", at+route, admin, text(body)); res.status != want || want == http.StatusBadRequest && res.field("code") != "unexpected_body" {
				t.Errorf("%s with %q: %s, want %d", route, body, res, want)
			}
		}
	}
}

// Rights that a config takes away are gone with the reload (S11).
func TestS11ReloadTakesRightsAway(t *testing.T) {
	s := runShop(t, nil)
	s.item(`{"title": "A", "n": 1, "secret": "s"}`)
	list := func() string { return s.do("GET", "/api/v1/_/shop/items?select=n,title").String() }
	if list() != "200" {
		t.Fatal(list())
	}
	for _, step := range []struct{ from, to, want string }{
		{"{name: n, type: number}", "{name: n, type: number, hidden: true}", "400 unknown_field: unknown field: n"},
		{"public: {methods: {get: true}, filter", "public: {methods: {}, filter", denied},
	} {
		s.configure("shop", strings.Replace(shopConfig, step.from, step.to, 1))
		s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		if got := list(); got != step.want {
			t.Errorf("%s: %s, want %s", step.to, got, step.want)
		}
	}
	s.configure("shop", "namespace: shop\ncollections: 5\n")
	broken := s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin)
	var problem struct{ Problems []struct{ File string } }
	if err := json.Unmarshal([]byte(broken.body), &problem); err != nil || broken.status != http.StatusUnprocessableEntity || len(problem.Problems) == 0 {
		t.Error(broken, err)
	}
	if got := list(); got != denied { // the last good config is still served
		t.Error(got)
	}
}
