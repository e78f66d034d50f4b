package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
)

// magazine is a project of articles, or whatever they are called, and of comments on them.
func magazine(name, renamedFrom string) string {
	if renamedFrom != "" {
		renamedFrom = ", renamedFrom: " + renamedFrom
	}
	return `
namespace: mag
audit: {enabled: true}
collections:
  - {name: ` + name + renamedFrom + `,
     fields: [{name: title, type: string, index: [unique]}, {name: n, type: number}, {name: picture, type: file}],
     permissions: {public: {methods: {get: true, post: true}}, user: {methods: {get: true}}}}
  - name: comments
    fields:
      - {name: text, type: string}
      - {name: on, type: string, meta: {foreign: {collection: ` + name + `, key: title}}}
    permissions: {public: {methods: {get: {lookup: true, aggregate: true}}}, user: {methods: {}}}
    queryLimits: {allowAggregate: true}
`
}

const mag = "/api/v1/_/mag/"

// onInstances runs a test on the embedded store, and with two instances on a MongoDB, of which the first is asked to reload.
func onInstances(t *testing.T, test func(t *testing.T, all []*service)) {
	t.Run("embedded", func(t *testing.T) { test(t, []*service{run(t, nil)}) })
	t.Run("mongo", func(t *testing.T) {
		uri, data := emptyMongo(t, "svc_mag"), t.TempDir()
		one := run(t, func(c *app.Config) { c.StoreURI, c.Resync, c.DataDir = uri, time.Hour, data })
		two := run(t, func(c *app.Config) { c.StoreURI, c.Resync, c.ProjectsDir, c.DataDir = uri, time.Hour, one.dir, data })
		test(t, []*service{one, two})
	})
}

// serve has all instances serve a config.
func (s *service) serve(config string, all []*service) {
	s.t.Helper()
	s.configure("mag", config)
	s.do("POST", mag+"_/admin/reload?wait=true", admin).want(s.t, http.StatusOK)
	s.caughtUp(all)
}

// caughtUp waits until all instances serve the generation of the first.
func (s *service) caughtUp(all []*service) {
	s.t.Helper()
	want := s.do("GET", mag+"comments", admin).header.Get(api.HeaderGeneration)
	for _, other := range all {
		eventually(s.t, func() string {
			if got := other.do("GET", mag+"comments", admin).header.Get(api.HeaderGeneration); got != want {
				return "generation " + got + " is served, want " + want
			}
			return ""
		})
	}
}

func (s *service) planOf() api.Plan {
	s.t.Helper()
	res := s.do("POST", mag+"_/admin/plan", admin)
	res.want(s.t, http.StatusOK)
	var p api.Plan
	if err := json.Unmarshal([]byte(res.body), &p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// A collection that has another name has the records, indexes and files that it had.
func TestRenamedCollection(t *testing.T) {
	onInstances(t, func(t *testing.T, all []*service) {
		s := all[0]
		s.register("mag", magazine("articles", ""))
		s.caughtUp(all)
		_, reader := s.user("reader", map[string]any{"scopes": []string{"audit.read"}})
		const file = `{"src": "data:text/plain;base64,b2xk", "path": "a.txt"}`
		first := s.do("POST", mag+"articles", admin, text(`{"title": "one", "picture": `+file+`}`))
		first.want(t, http.StatusCreated)
		id := first.field("id")
		s.do("POST", mag+"comments", admin, text(`{"text": "well", "on": "one"}`)).want(t, http.StatusCreated)
		src := func(name, file string) string { return mag + name + "/" + id + "/picture/" + file }

		s.configure("mag", magazine("posts", "articles"))
		p := s.planOf()
		var got []string
		for _, it := range p.Items {
			got = append(got, fmt.Sprintf("%s %s %s %s", it.Action, it.Kind, it.Object, it.Risk))
		}
		if want := []string{
			"rename collection posts safe", "update field comments.on breaking", "delete route /_/mag/articles breaking", "create route /_/mag/posts safe",
		}; !slices.Equal(want, got) || *p.Items[0].Records != 1 {
			t.Errorf("the plan: %q %+v", got, p.Items[0])
		}
		s.do("POST", mag+"_/admin/reload?plan="+p.Hash+"&allow=breaking", admin).want(t, http.StatusOK)
		s.caughtUp(all)
		for _, other := range all {
			if p := other.planOf(); !p.Empty {
				t.Errorf("afterwards: %+v", p.Items)
			}
			other.do("GET", mag+"articles", admin).want(t, http.StatusNotFound)
			other.do("GET", mag+"posts/"+id, admin).want(t, http.StatusOK)
			for _, name := range []string{"articles", "posts"} { // addresses that were given out are good
				if res := other.do("GET", src(name, "a.txt")); res.status != http.StatusOK || res.body != "old" {
					t.Errorf("the file at %s: %s %s", name, res, res.body)
				}
			}
			other.do("POST", mag+"posts", admin, text(`{"title": "one"}`)).want(t, http.StatusConflict)
			for query, want := range map[string]string{
				"lookup=on": `"on":{`,
				"aggregate=" + url.QueryEscape(`[{"$lookup": {"from": "posts", "localField": "on", "foreignField": "title", "as": "all"}}]`):    `"all":[{`,
				"aggregate=" + url.QueryEscape(`[{"$unionWith": {"coll": "posts"}}, {"$match": {"title": "one"}}]`):                             `"title":"one"`,
				"filter=" + url.QueryEscape(`{"on.title": "one"}`):                                                                              `"text":"well"`,
				"aggregate=" + url.QueryEscape(`[{"$lookup": {"from": "articles", "localField": "on", "foreignField": "title", "as": "all"}}]`): `unknown_collection`,
			} {
				if res := other.do("GET", mag+"comments?"+query, admin); !strings.Contains(res.body, want) {
					t.Errorf("%s: %s", query, res.body)
				}
			}
		}
		for name, who := range map[string]option{"admin": admin, "a reader": session(reader)} { // the log stays as it was written
			res := s.do("GET", mag+"_/audit?filter="+url.QueryEscape(`{"recordId":"`+id+`"}`), who)
			if res.status != http.StatusOK || !strings.Contains(res.body, `"collection":"articles"`) {
				t.Errorf("%s finds in the log: %s %s", name, res, res.body)
			}
		}

		// A file that is replaced goes; one that stays is kept, by whichever name it was stored.
		record := s.do("GET", mag+"posts/"+id, admin).body
		var doc map[string]any
		if err := json.Unmarshal([]byte(record), &doc); err != nil {
			t.Fatal(err)
		}
		s.do("PUT", mag+"posts/"+id, admin, json1(map[string]any{"n": 1, "picture": doc["picture"]})).want(t, http.StatusOK)
		if res := s.do("GET", src("posts", "a.txt")); res.body != "old" {
			t.Errorf("after a change of the record: %s", res)
		}
		s.do("PUT", mag+"posts/"+id, admin, text(`{"picture": {"src": "data:text/plain;base64,bmV3", "path": "b.txt"}}`)).want(t, http.StatusOK)
		s.do("GET", src("posts", "a.txt")).want(t, http.StatusNotFound)
		if res := s.do("GET", src("articles", "b.txt")); res.body != "new" {
			t.Errorf("a new file: %s", res)
		}

		for _, config := range []string{magazine("posts", ""), magazine("stories", "posts"), magazine("stories", ""), magazine("articles", "stories")} {
			s.serve(config, all)
			_, rest, _ := strings.Cut(config, "{name: ")
			name, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n", ""), ",")
			for _, other := range all {
				if res := other.do("GET", mag+name+"/"+id, admin); res.status != http.StatusOK || !other.planOf().Empty {
					t.Errorf("%s: %s", name, res)
				}
				if res := other.do("GET", src("posts", "b.txt")); res.body != "new" {
					t.Errorf("%s: the file: %s", name, res)
				}
			}
		}

		s.do("POST", mag+"_/admin/rollback", admin, text(`{"generation": 2}`)).want(t, http.StatusOK)
		s.caughtUp(all)
		for _, other := range all {
			other.do("GET", mag+"posts/"+id, admin).want(t, http.StatusOK)
		}
		taken := strings.Replace(magazine("posts", ""), "  - name: comments", "  - {name: articles, fields: [{name: t, type: string}], permissions: {public: {methods: {}}, user: {methods: {}}}}\n  - name: comments", 1)
		s.configure("mag", taken)
		for _, path := range []string{"plan", "reload?wait=true"} {
			if res := s.do("POST", mag+"_/admin/"+path, admin); res.field("code") != "collection_renamed" {
				t.Errorf("the old name for others: %s %s", path, res)
			}
		}
		s.do("GET", mag+"posts/"+id, admin).want(t, http.StatusOK)
	})
}

// A rename while 64 write loses nothing that was acknowledged, and nobody sees less than that.
func TestRenameUnderWriters(t *testing.T) {
	onInstances(t, func(t *testing.T, all []*service) {
		s := all[0]
		s.register("mag", magazine("articles", ""))
		s.caughtUp(all)
		const writers, before, after = 64, 3, 3
		var wrote atomic.Int64
		reloaded := make(chan struct{})
		ids := make([][]string, writers)
		var done sync.WaitGroup
		for k := range writers {
			done.Go(func() {
				to, name := all[k%len(all)], "articles"
				add := func(n int) {
					for try := 0; ; try++ {
						res := to.do("POST", mag+name, text(fmt.Sprintf(`{"title": "%d-%d", "n": 1}`, k, n)))
						if res.status == http.StatusNotFound && try < 1000 { // it has another name here by now
							name = map[string]string{"articles": "posts", "posts": "articles"}[name]
							continue
						}
						if res.status != http.StatusCreated {
							t.Errorf("%d-%d: %s", k, n, res)
							return
						}
						ids[k] = append(ids[k], res.field("id"))
						return
					}
				}
				n := 0
				for ; n < before; n++ {
					add(n)
				}
				wrote.Add(1)
				for ; ; n++ { // until the first instance has the new name, and a little longer
					add(n)
					select {
					case <-reloaded:
						if n >= before+after {
							return
						}
					default:
					}
				}
			})
		}
		eventually(t, func() string {
			if n := wrote.Load(); n < writers/2 {
				return fmt.Sprintf("%d writers have written", n)
			}
			return ""
		})
		s.configure("mag", magazine("posts", "articles"))
		s.do("POST", mag+"_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		close(reloaded)
		done.Wait()
		s.caughtUp(all)
		want := slices.Sorted(slices.Values(slices.Concat(ids...)))
		for _, other := range all {
			var got []string
			for page := 0; ; page++ {
				res := other.do("GET", fmt.Sprintf("%sposts?select=title&sort=title&limit=500&offset=%d", mag, 500*page), admin)
				res.want(t, http.StatusOK)
				var list struct{ Items []struct{ ID string } }
				if err := json.Unmarshal([]byte(res.body), &list); err != nil {
					t.Fatal(err)
				}
				for _, item := range list.Items {
					got = append(got, item.ID)
				}
				if len(list.Items) < 500 {
					break
				}
			}
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("%d records were acknowledged, %d are there", len(want), len(got))
			}
		}
	})
}
