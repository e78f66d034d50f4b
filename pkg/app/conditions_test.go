package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A constant of another type than the field's is equal to none of its values, as JSON; what the short form can't read as a value of
// the field is refused, for there it is a slip. Both stores say the same.
func TestConstantsOfOtherTypes(t *testing.T) {
	const config = `
namespace: other
collections:
  - name: items
    fields:
      - {name: n, type: number}
      - {name: on, type: boolean}
      - {name: at, type: date}
      - {name: title, type: string}
      - {name: tags, type: "string[]"}
      - {name: seo, type: object, subFields: [{name: score, type: number}]}
    permissions: {public: {methods: {get: {count: true}, post: true}}, user: {methods: {}}}
`
	const items = "/api/v1/_/other/items"
	onAsked(t, func(t *testing.T, a *asked) {
		a.register("other", config)
		a.do("POST", items, text(`{"n": 5, "on": true, "at": "2026-01-02T03:04:05Z", "title": "5", "tags": ["5"], "seo": {"score": 1}}`)).want(t, http.StatusCreated)
		for filter, want := range map[string]string{
			`{"n": "5"}`: "0", `{"n": "abc"}`: "0", `{"n": {"$gt": "abc"}}`: "0", `{"n": {"$lt": "abc"}}`: "0", `{"n": {"$in": ["5", true]}}`: "0", `{"n": true}`: "0", `{"n": null}`: "0", `{"n": {"$ne": "5"}}`: "1", `{"n": {"$not": {"$gt": "x"}}}`: "1", `{"n": {"$nin": ["5"]}}`: "1",
			`{"on": "true"}`: "0", `{"on": 1}`: "0", `{"at": "nope"}`: "0", `{"at": 5}`: "0", `{"at": {"$gte": "2026"}}`: "0", `{"title": 5}`: "0", `{"tags": 5}`: "0", `{"seo.score": "1"}`: "0", `{"seo": 5}`: "0",
			`{"id": "zz"}`: "0", `{"_rev": "1"}`: "0", `{"createdAt": "x"}`: "0", `{"n": {"$regex": "5"}}`: "0", `{"n": {"$size": 1}}`: "0", `{"title": {"$mod": [2, 1]}}`: "0",
		} {
			if got := a.do("GET", with(items+"/_count", "filter", filter)); got.status != http.StatusOK || strings.TrimSpace(got.body) != `{"count":`+want+`}` {
				t.Errorf("%s: %s %s, want %s", filter, got, got.body, want)
			}
		}
		for name, value := range map[string]string{"[n]": "abc", "[n][gt]": "abc", "[n][in]": "1,x", "[on]": "yes", "[at]": "nope", "[at][gte]": "2026", "[seo.score]": "x", "[seo]": "5", "[id]": "zz", "[_rev]": "x", "[createdAt]": "x"} {
			if got := a.do("GET", with(items+"/_count", "filter"+name, value)); got.status != http.StatusBadRequest || got.field("code") != "bad_filter" || !strings.Contains(got.body, "must be") {
				t.Errorf("filter%s=%s: %s", name, value, got)
			}
		}
	})
}

// A write with If-None-Match, which writes don't look at, writes nothing.
func TestIfNoneMatchOnWrites(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		one := askedItems + "/" + a.ids["one"]
		for _, p := range []probe{
			{method: "POST", path: askedItems, body: `{"title": "new"}`},
			{method: "POST", path: askedItems, body: `{"items": [{"title": "new"}]}`},
			{method: "PUT", path: one, body: `{"title": "new"}`},
			{method: "PUT", path: one + "?replace=true", body: `{"title": "new"}`},
			{"PATCH", one, "application/merge-patch+json", `{"title": "new"}`},
			{method: "DELETE", path: one},
			{method: "PUT", path: askedItems + "?filter={}", body: `{"title": "new"}`},
			{method: "DELETE", path: askedItems + "?filter={}"},
			{method: "POST", path: "/api/v1/_/shop/settings", body: `{"title": "new"}`},
			{method: "PUT", path: "/api/v1/_/shop/settings", body: `{"title": "new"}`},
		} {
			for _, tag := range []string{"*", `"1"`, `W/"7"`, "x"} {
				if got := a.send(p, header("If-None-Match", tag)); got.status != http.StatusBadRequest || got.field("code") != "unsupported" || !strings.Contains(got.body, "If-None-Match") {
					t.Errorf("%s with %s: %s", p, tag, got)
				}
			}
		}
		a.untouched("If-None-Match")
	})
}

// Each item of a bulk delete has a status, as those of other bulk writes have.
func TestStatusOfBulkDeletes(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		id := a.ids["one"]
		got := a.do("DELETE", with(askedItems, "filter", `{"title": "one"}`))
		if want := `{"matched":1,"succeeded":1,"failed":0,"items":[{"id":"` + id + `","status":200}]}`; strings.TrimSpace(got.body) != want {
			t.Errorf("%s, want %s", got.body, want)
		}
	})
}

// In a unique field of lists, no two records share an element; that there is none is a value, too.
func TestUniqueLists(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		for namespace, tt := range map[string]struct{ index, absent string }{"plain": {"unique", "409"}, "sparse": {"unique, sparse", "201"}} {
			a.register(namespace, `
namespace: `+namespace+`
collections:
  - name: items
    fields: [{name: title, type: string}, {name: codes, type: "string[]", index: [`+tt.index+`]}]
    permissions: {public: {methods: {get: true, post: {bulk: true}}}, user: {methods: {}}}
`)
			items := "/api/v1/_/" + namespace + "/items"
			eventually(t, func() string {
				list := a.do("GET", "/api/v1/project", admin).body
				if strings.Count(list, namespace) == 0 {
					return list
				}
				res := a.do("POST", items+"?dryRun=true", text(`{"items": [{"codes": ["x"]}, {"codes": ["x"]}]}`))
				if !strings.Contains(res.body, `"failed":1`) { // the index is not there yet
					return res.body
				}
				return ""
			})
			for _, step := range []struct{ body, want string }{
				{`{"codes": []}`, "201"},
				{`{"codes": []}`, "409"},
				{`{}`, "201"},
				{`{}`, tt.absent},
				{`{"codes": ["a", "b"]}`, "201"},
				{`{"codes": ["b"]}`, "409"},
				{`{"codes": ["c", "c"]}`, "201"},
				{`{"codes": [""]}`, "201"},
				{`{"codes": [""]}`, "409"},
			} {
				if got := a.do("POST", items, text(step.body)); got.String()[:3] != step.want {
					t.Errorf("%s: %s: %s, want %s", namespace, step.body, got, step.want)
				}
			}
		}
	})
}
