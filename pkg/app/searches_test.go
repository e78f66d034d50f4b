package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

const foundConfig = `
namespace: shop
collections:
  - name: items
    fields: [{name: title, type: string}, {name: kind, type: string}]
    search:
      - {name: words, mode: text, fields: [title]}
      - {name: near, mode: vector, vector: {group: texts, fields: [title]}}
      - {name: parts, mode: ngram, fields: [title]}
      - {name: pattern, mode: regex, fields: [title]}
      - {name: fused, mode: rrf, rrf: {sources: [words, parts], topK: 2}}
    permissions: {public: {methods: {get: true, post: {bulk: true}, put: true, delete: true}}, user: {methods: {}}}
  - {name: plain, permissions: {public: {methods: {get: true}}, user: {methods: {}}}}
`

const (
	foundItems = "/api/v1/_/shop/items"
	regenerate = "/api/v1/_/shop/_/admin/regenerate-search"
)

// What one instance is told to write is found by it at once, and by the others a moment later; each text has its vector computed once, by
// one of them.
func TestSearchesOfInstances(t *testing.T) {
	f := newFaultyServer(t)
	uri, data := emptyMongo(t, "svc_shop"), t.TempDir()
	instance := func(projects string) *service {
		return run(t, func(c *app.Config) {
			c.StoreURI, c.DataDir, c.Resync = uri, data, time.Second
			if projects != "" {
				c.ProjectsDir = projects
			}
			c.Embedding = embedding.Config{
				Providers: []embedding.ProviderConfig{{Name: "far", Type: "openai", Model: "m", BaseURL: f.URL, Dimensions: 4}},
				Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"far"}}},
			}
		})
	}
	one := instance("")
	all := []*service{one, instance(one.dir)}
	one.register("shop", foundConfig)
	const writes = 40
	for i := range writes {
		by := all[i%2]
		title := fmt.Sprintf("apple%d %s", i, strings.Repeat("x", i))
		eventually(t, func() string { // the second instance is told of the project
			if got := by.do("POST", foundItems, json1(map[string]any{"title": title})); got.status != http.StatusCreated {
				return got.String()
			}
			return ""
		})
		by.do("GET", fmt.Sprintf("%s/_count?q=apple%d&qName=words", foundItems, i), noop).contains(t, http.StatusOK, `{"count":1}`)
	}
	for _, s := range all {
		eventually(t, func() string {
			for _, q := range []string{"apple*&qName=words", "apple&qName=parts", "anything&qName=near", "^apple&qName=pattern"} {
				if got := s.do("GET", foundItems+"/_count?q="+q, noop); got.body != fmt.Sprintf(`{"count":%d}`, writes) {
					return q + ": " + got.body
				}
			}
			return ""
		})
	}
	if n := f.texts("apple"); n != writes {
		t.Errorf("%d vectors were computed for %d texts", n, writes)
	}
	// What is made anew on one is so on the other.
	one.do("POST", regenerate+"?collection=items&search=words", admin).want(t, http.StatusAccepted)
	for _, s := range all {
		eventually(t, func() string {
			if !strings.Contains(s.logs.String(), "search index made") || strings.Count(s.logs.String(), "search=words records=40") != 1 {
				return "the index was not made anew"
			}
			return ""
		})
		s.do("GET", foundItems+"/_count?q=apple*&qName=words", noop).contains(t, http.StatusOK, fmt.Sprintf(`{"count":%d}`, writes))
	}
	if n := f.texts("apple"); n != writes {
		t.Errorf("%d vectors were computed for %d texts", n, writes)
	}
}

// Indexes are made anew by a run, which is answered at once or followed by its events.
func TestRegenerateSearch(t *testing.T) {
	s := run(t, func(c *app.Config) {
		c.Embedding = embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash"}}, Groups: []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
		}
	})
	s.register("shop", foundConfig)
	for i := range 5 {
		s.do("POST", foundItems, json1(map[string]any{"title": fmt.Sprint("apple ", i)})).want(t, http.StatusCreated)
	}
	s.embedded(5)

	begun := s.do("POST", regenerate, admin)
	begun.contains(t, http.StatusAccepted, `"kind":"search","name":"regenerate"`, `"trigger":"manual"`)
	if at := begun.header.Get("Location"); at != regenerate+"/"+begun.field("id") {
		t.Errorf("Location: %s", at)
	}
	if run := s.ended(begun.header.Get("Location"), admin); !strings.Contains(run, `"status":"succeeded"`) {
		t.Error(run)
	}
	events := s.do("GET", begun.header.Get("Location")+"/events", admin)
	events.contains(t, http.StatusOK, `"operation":"search"`, "event: done\n", `"status":"succeeded"`)
	s.do("POST", regenerate+"?collection=items&search=words", admin, header("Accept", "text/event-stream")).
		contains(t, http.StatusOK, "event: progress\n", `"phase":"words","collection":"items","done":5,"total":5,`, "event: done\n", `"status":"succeeded"`)
	s.do("GET", foundItems+"/_count?q=apple&qName=words", noop).contains(t, http.StatusOK, `{"count":5}`)

	for query, want := range map[string]string{
		"?collection=none":                  "404 collection_not_found: collection not found",
		"?collection=plain":                 "404 unknown_search: plain has no search with an index",
		"?collection=items&search=none":     "404 unknown_search: items has no search none with an index; it has words, near, parts",
		"?collection=items&search=pattern":  "404 unknown_search: items has no search pattern with an index; it has words, near, parts",
		"?search=words":                     "400 bad_parameter: search needs collection",
		"?collection=items&collection=none": "400 bad_parameter: *",
		"/0123456789abcdef01234567":         "404 run_not_found: *",
	} {
		method := "POST"
		if strings.HasPrefix(query, "/") {
			method = "GET"
		}
		got := s.do(method, regenerate+query, admin).String()
		if begin, ok := strings.CutSuffix(want, "*"); got != want && (!ok || !strings.HasPrefix(got, begin)) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// Facets count what was found within a window, and say whether there was more.
func TestFacetsOfWhatWasFound(t *testing.T) {
	s := run(t, nil)
	s.register("shop", strings.Replace(foundConfig, "      - {name: near, mode: vector, vector: {group: texts, fields: [title]}}\n", "", 1))
	for i, kind := range []string{"red", "red", "green", "green", "green"} {
		s.do("POST", foundItems, json1(map[string]any{"title": strings.Repeat("apple ", 5-i) + strings.Repeat("pear ", i), "kind": kind})).want(t, http.StatusCreated)
	}
	for query, want := range map[string]string{
		"q=apple&qName=words":                                         `"kind":[{"value":"green","count":3},{"value":"red","count":2}]},"window":5,"truncated":false}`,
		"q=apple&qName=words&qLimit=3":                                `"kind":[{"value":"red","count":2},{"value":"green","count":1}]},"window":3,"truncated":true}`,
		"q=apple&qName=words&qLimit=5":                                `"kind":[{"value":"green","count":3},{"value":"red","count":2}]},"window":5,"truncated":false}`,
		"q=apple&qName=fused":                                         `"kind":[{"value":"red","count":2}]},"window":2,"truncated":true}`, // topK
		"q=apple&qName=fused&qLimit=4":                                `"kind":[{"value":"green","count":2},{"value":"red","count":2}]},"window":4,"truncated":true}`,
		"q=apple&qName=fused&qLimit=all":                              `"kind":[{"value":"green","count":3},{"value":"red","count":2}]},"window":5,"truncated":false}`,
		"q=apple&qName=pattern":                                       `"kind":[{"value":"green","count":3},{"value":"red","count":2}]},"window":5,"truncated":false}`,
		"q=apple&qName=words&qLimit=2&" + `filter={"kind":"green"}`:   `"kind":[{"value":"green","count":2}]},"window":2,"truncated":true}`,
		"q=apple&qName=fused&" + `filter={"kind":"red"}`:              `"kind":[{"value":"red","count":2}]},"window":2,"truncated":false}`,
		"q=apple&qName=fused&" + `filter={"kind":"green"}`:            `"kind":[{"value":"green","count":2}]},"window":2,"truncated":true}`,
		"q=apple&qName=fused&qLimit=all&" + `filter={"kind":"green"}`: `"kind":[{"value":"green","count":3}]},"window":3,"truncated":false}`,
		"q=quince&qName=words":                                        `"kind":[]},"window":0,"truncated":false}`,
	} {
		for _, path := range []string{"/_facet?fields=kind&", "?facet=kind&"} {
			got := s.do("GET", foundItems+path+strings.NewReplacer(`{`, "%7B", `}`, "%7D", `"`, "%22", `:`, "%3A").Replace(query), noop)
			if got.status != http.StatusOK || got.body != `{"facets":{`+want {
				t.Errorf("%s%s: %s %s, want %s", path, query, got, got.body, want)
			}
		}
	}
	if got := s.do("GET", foundItems+"/_facet?fields=kind&q=apple&qLimit="); got.String() != "400 bad_parameter: qLimit is empty: give it a value, or leave it out" {
		t.Error(got)
	}
}
