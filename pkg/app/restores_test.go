package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongo"
)

const restoresConfig = `
namespace: shop
collections:
  - name: items
    fields: [{name: title, type: string}, {name: slug, type: string, index: [unique, sparse]}]
    search: [{name: words, mode: text, fields: [title]}]
    permissions: {public: {methods: {get: true, post: true, delete: true}}, user: {methods: {}}}
`

// onRestores runs a test on either store.
func onRestores(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, run(t, nil)) })
	t.Run("mongodb", func(t *testing.T) {
		uri := emptyMongo(t, "svc_shop")
		test(t, run(t, func(c *app.Config) { c.StoreURI = uri }))
	})
}

// titles are those of the items that a list has.
func (s *service) titles(query string) string {
	s.t.Helper()
	return s.listed("sort=title" + query)
}

func (s *service) listed(query string) string {
	s.t.Helper()
	res := s.do("GET", "/api/v1/_/shop/items?"+query)
	if res.status != http.StatusOK {
		return res.String()
	}
	var list struct{ Items []struct{ Title string } }
	unmarshal(s.t, res.body, &list)
	var out []string
	for _, item := range list.Items {
		out = append(out, item.Title)
	}
	return strings.Join(out, " ")
}

// TestRestoreServed: a restore shows in lists and searches, and streams of changes are told to begin anew.
func TestRestoreServed(t *testing.T) {
	onRestores(t, func(t *testing.T, s *service) {
		s.register("shop", restoresConfig)
		eventually(t, func() string { // it has its indexes
			status := s.do("GET", "/api/v1/project/"+s.projectID()+"/status", admin).body
			if !strings.Contains(status, `"type":"IndexesConverged","status":"True"`) {
				return status
			}
			return ""
		})
		for _, title := range []string{"apple", "pear"} {
			s.do("POST", "/api/v1/_/shop/items", text(`{"title":"`+title+`","slug":"`+title+`"}`)).want(t, http.StatusCreated)
		}
		info, err := s.app.TakeAll(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"plum"}`)).want(t, http.StatusCreated)
		eventually(t, func() string {
			if got := s.titles("&q=plum"); got != "plum" {
				return got
			}
			return ""
		})
		stream := s.changes(t)
		result, err := s.app.RestoreAll(t.Context(), "shop", info.ID, snapshot.RestoreOptions{Media: true})
		if err != nil || result.Safety == "" {
			t.Fatalf("%+v, %v", result, err)
		}
		if got := s.titles(""); got != "apple pear" {
			t.Errorf("there is %q", got)
		}
		eventually(t, func() string {
			if got := s.titles("&q=apple") + "," + s.titles("&q=plum"); got != "apple," {
				return got
			}
			return ""
		})
		if got := <-stream; got != "reset" {
			t.Errorf("a stream is told %q", got)
		}
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"other","slug":"pear"}`)).want(t, http.StatusConflict)
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"cherry"}`)).want(t, http.StatusCreated)
	})
}

// TestRestoreSearched: searches of every kind find what was restored, and nothing of what was replaced.
func TestRestoreSearched(t *testing.T) {
	for _, kind := range []string{"embedded", "mongodb"} {
		t.Run(kind, func(t *testing.T) {
			uri := ""
			if kind == "mongodb" {
				uri = emptyMongo(t, "svc_shop")
			}
			s := run(t, func(c *app.Config) {
				c.StoreURI = uri
				c.Embedding = embedding.Config{
					Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash"}}, Groups: []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
				}
			})
			s.register("shop", foundConfig)
			ids := map[string]string{}
			for _, title := range []string{"apple", "green pear", "quince"} {
				res := s.do("POST", foundItems, json1(map[string]any{"title": title}))
				res.want(t, http.StatusCreated)
				ids[title] = res.field("id")
			}
			found := func(want map[string]string) {
				t.Helper()
				eventually(t, func() string {
					for query, titles := range want {
						if got := s.listed(query); got != titles {
							return query + " finds " + got
						}
					}
					return ""
				})
			}
			before := map[string]string{
				"qName=words&q=apple": "apple", "qName=words&q=banana": "", "qName=words&q=plum": "",
				"qName=parts&q=ppl": "apple", "qName=parts&q=anan": "", "qName=parts&q=lum": "", "qName=parts&q=uinc": "quince",
				"sort=title&qName=near&q=apple": "apple green pear quince", "qName=near&q=green%20pear&limit=1": "green pear",
				"qName=pattern&q=.pple": "apple", "qName=fused&q=apple": "apple",
			}
			found(before)
			info, err := s.app.TakeAll(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			s.do("PUT", foundItems+"/"+ids["apple"], json1(map[string]any{"title": "banana"})).want(t, http.StatusOK)
			s.do("DELETE", foundItems+"/"+ids["quince"]).want(t, http.StatusOK)
			s.do("POST", foundItems, json1(map[string]any{"title": "plum"})).want(t, http.StatusCreated)
			found(map[string]string{
				"qName=words&q=plum": "plum", "qName=parts&q=anan": "banana", "qName=parts&q=uinc": "", "sort=title&qName=near&q=banana": "banana green pear plum", "qName=near&q=banana&limit=1": "banana",
			})
			if _, err := s.app.RestoreAll(t.Context(), "shop", info.ID, snapshot.RestoreOptions{Media: true}); err != nil {
				t.Fatal(err)
			}
			found(before)
		})
	}
}

// TestRestoreBehindRequest: a request that has begun before a restore, and reads and writes behind it, is refused: what it knows may be of the old records.
func TestRestoreBehindRequest(t *testing.T) {
	onRestores(t, func(t *testing.T, s *service) {
		s.register("shop", restoresConfig)
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"apple"}`)).want(t, http.StatusCreated)
		info, err := s.app.TakeAll(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		const body = `{"title":"plum"}`
		conn := s.hangOn("POST /api/v1/_/shop/items", fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body)))
		defer conn.Close()
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") { // its body is read
			t.Fatal(line, err)
		}
		if _, err := s.app.RestoreAll(t.Context(), "shop", info.ID, snapshot.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.ReadString('\n'); err != nil { // behind the line of the 100
			t.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 503") {
			t.Error(line, err)
		}
		if got := s.titles(""); got != "apple" {
			t.Errorf("there is %q", got)
		}
		s.do("POST", "/api/v1/_/shop/items", text(body)).want(t, http.StatusCreated)
	})
}

const scriptedRestoresConfig = restoresConfig + `
hook: {isolation: none}
jobs: [{name: again, type: javascript, file: count.js, timeout: 2m}]
actions:
  - name: now
    hooks: {handle: {type: javascript, file: count.js, timeout: 2m}}
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
  - name: later
    hooks: {handle: {type: javascript, file: count.js, timeout: 2m}}
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
    meta: {methods: {post: {execution: {kind: async}}}}
  - name: at
    hooks: {handle: {type: javascript, file: at.js}}
    permissions: {public: {methods: {post: true}}, user: {methods: {}}}
`

// TestRestoreBehindScripts: a job or an action that has read records before a restore writes none behind it.
func TestRestoreBehindScripts(t *testing.T) {
	onRestores(t, func(t *testing.T, s *service) {
		s.file("shop", "count.js", `module.exports = async () => {
  const items = db.collection('items')
  const n = await items.count()
  await cache.set('at', 'read')
  while (!await files.exists('go')) await sleep(20)
  try {
    await items.insert({title: 'counted ' + n})
  } finally {
    await cache.set('at', 'end')
  }
}`)
		s.file("shop", "at.js", `module.exports = async () => cache.get('at')`)
		s.register("shop", scriptedRestoresConfig)
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"apple"}`)).want(t, http.StatusCreated)
		info, err := s.app.TakeAll(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		const shop = "/api/v1/_/shop/_/"
		at := func(want string) {
			t.Helper()
			eventually(t, func() string {
				if got := s.do("POST", shop+"actions/at").body; !strings.Contains(got, want) {
					return got
				}
				return ""
			})
		}
		for _, path := range []string{"actions/now", "actions/later", "jobs/again/run"} {
			ended := make(chan answer, 1)
			go func() { ended <- s.do("POST", shop+path, admin) }()
			at("read")
			if _, err := s.app.RestoreAll(t.Context(), "shop", info.ID, snapshot.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			s.file("shop", "go", "")
			at("end")
			if got := s.titles(""); got != "apple" {
				t.Errorf("%s: there is %q", path, got)
			}
			if err := os.Remove(filepath.Join(s.dir, "shop", "go")); err != nil {
				t.Fatal(err)
			}
			if got := <-ended; path == "actions/now" {
				got.contains(t, http.StatusServiceUnavailable, `"code":"restoring"`)
			}
		}
	})
}

// changes follows the items, and gives the first event behind the one that says that it does.
func (s *service) changes(t *testing.T) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/_/shop/items/_changes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	out, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		defer res.Body.Close()
		var read strings.Builder
		buffer := make([]byte, 1000)
		for {
			n, err := res.Body.Read(buffer)
			read.Write(buffer[:n])
			if _, event, ok := strings.Cut(strings.Replace(read.String(), "event: ready", "", 1), "event: "); ok {
				if name, _, whole := strings.Cut(event, "\n"); whole {
					out <- name
					return
				}
			}
			if err != nil {
				out <- err.Error()
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return out
}

// R1: a restore that is decided and was not done when the process ended is done before the project is served.
func TestR1RestoreAtStart(t *testing.T) {
	for _, kind := range []string{"embedded", "mongodb"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var uri string
			if kind == "mongodb" {
				uri = emptyMongo(t, "svc_shop")
			}
			projects := t.TempDir()
			t.Run("before", func(t *testing.T) {
				s := run(t, func(c *app.Config) { c.DataDir, c.StoreURI = dir, uri })
				s.register("shop", restoresConfig)
				s.do("POST", "/api/v1/_/shop/items", text(`{"title":"old"}`)).want(t, http.StatusCreated)
				if err := os.CopyFS(projects, os.DirFS(s.dir)); err != nil {
					t.Fatal(err)
				}
			})
			st, err := open(t, dir, uri)
			if err != nil {
				t.Fatal(err)
			}
			decided(t, st.Database("svc_shop"))
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			s := run(t, func(c *app.Config) { c.DataDir, c.StoreURI, c.ProjectsDir = dir, uri, projects })
			if got := s.titles(""); got != "new" {
				t.Errorf("there is %q", got)
			}
		})
	}
}

// decided stores a restore of the items that is decided, and not done.
func decided(t *testing.T, db store.Database) {
	t.Helper()
	put(t, db.Collection("svc.restore.x.0"), bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "title", Value: "new"}})
	put(t, db.Collection("svc.restores"), bson.D{
		{Key: "_id", Value: "restore"}, {Key: "restore", Value: "x"}, {Key: "step", Value: "decided"}, {Key: "media", Value: false},
		{Key: "swaps", Value: bson.A{bson.D{{Key: "from", Value: "svc.restore.x.0"}, {Key: "to", Value: "items"}}}},
	})
}

func put(t *testing.T, c store.Collection, doc bson.D) {
	t.Helper()
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteAll(t.Context(), c, store.Op{Kind: store.Insert, Doc: raw}); err != nil {
		t.Fatal(err)
	}
}

// R1: when an instance dies that has all others shut a project, another one ends its restore, and nobody reads or writes records before.
func TestR1RestoreAbandoned(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("SOAK=1 runs it: it waits until an instance is taken for dead")
	}
	uri := emptyMongo(t, "svc_shop")
	s := run(t, func(c *app.Config) { c.StoreURI = uri })
	s.register("shop", restoresConfig)
	s.do("POST", "/api/v1/_/shop/items", text(`{"title":"old"}`)).want(t, http.StatusCreated)
	st, err := open(t, "", uri)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	put(t, st.Database("svc").Collection("svc.barriers"), bson.D{
		{Key: "_id", Value: "svc_shop"}, {Key: "key", Value: "k"}, {Key: "by", Value: "somebody"}, {Key: "reads", Value: true},
	})
	eventually(t, func() string {
		if got := s.titles(""); !strings.HasPrefix(got, "503 restoring") {
			return got
		}
		return ""
	})
	decided(t, st.Database("svc_shop"))
	since := time.Now()
	for {
		got := s.titles("")
		if got == "new" {
			break
		}
		if !strings.HasPrefix(got, "503 restoring") || time.Since(since) > time.Minute {
			t.Fatalf("after %s there is %q", time.Since(since), got)
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.do("POST", "/api/v1/_/shop/items", text(`{"title":"other"}`)).want(t, http.StatusCreated)
}

// TestAbandoned: what an instance that is gone has left at the gates is taken away when what it has begun of a project is ended. Where no project has the database, there is
// nothing to end, and nobody is kept waiting; where one is registered and not served here, it stays, since another instance may know better.
func TestAbandoned(t *testing.T) {
	onRestores(t, func(t *testing.T, s *service) {
		if err := s.app.Abandoned(t.Context(), "svc_nobody"); err != nil {
			t.Errorf("of no project: %v", err)
		}
		founding, err := bson.Marshal(bson.D{
			{Key: "_id", Value: bson.NewObjectID()}, {Key: "rev", Value: int64(1)}, {Key: "namespace", Value: "made"}, {Key: "name", Value: "made"},
			{Key: "configFile", Value: "made/project.yaml"}, {Key: "founding", Value: true}, {Key: "createdAt", Value: time.Now()}, {Key: "updatedAt", Value: time.Now()},
		})
		if err == nil {
			err = store.WriteAll(t.Context(), s.app.Store().Database("svc").Collection("projects"), store.Op{Kind: store.Insert, Doc: founding})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.app.Abandoned(t.Context(), "svc_made"); err != nil { // where the restore that was making it is ended, and the next one goes on
			t.Errorf("of one that a restore makes: %v", err)
		}
		s.register("shop", restoresConfig)
		s.do("POST", "/api/v1/_/shop/items", text(`{"title":"old"}`)).want(t, http.StatusCreated)
		decided(t, s.app.Store().Database("svc_shop"))
		if err := s.app.Abandoned(t.Context(), "svc_shop"); err != nil {
			t.Errorf("of one that is served: %v", err)
		}
		if got := s.titles(""); got != "new" {
			t.Errorf("there is %q", got)
		}
		s.do("PUT", "/api/v1/project/"+s.projectID(), admin, text(`{"enabled":false}`)).want(t, http.StatusOK)
		decided(t, s.app.Store().Database("svc_shop"))
		if err := s.app.Abandoned(t.Context(), "svc_shop"); !errors.Is(err, errs.ErrProjectNotFound) {
			t.Errorf("of one that is not served: %v", err)
		}
		if _, err := s.app.Store().Database("svc_shop").Collection("svc.restores").Get(t.Context(), store.Name("restore")); err != nil {
			t.Errorf("what is noted of it: %v", err)
		}
	})
}

func open(t *testing.T, dir, uri string) (store.Store, error) {
	t.Helper()
	if uri != "" {
		return mongo.Open(t.Context(), mongo.Options{URI: uri})
	}
	return embedded.Open(t.Context(), embedded.Options{Dir: filepath.Join(dir, "store"), OnFatal: func(err error) { t.Error(err) }})
}

// TestRestoreInstances: while one instance restores, a write by another one is refused, or is in the safety snapshot.
func TestRestoreInstances(t *testing.T) {
	uri := emptyMongo(t, "svc_shop")
	one := run(t, func(c *app.Config) { c.StoreURI = uri })
	one.register("shop", restoresConfig)
	two := run(t, func(c *app.Config) { c.StoreURI, c.ProjectsDir = uri, one.dir })
	info, err := one.app.TakeAll(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	refused := 0
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			title := fmt.Sprintf("item %d.", n)
			switch res := two.do("POST", "/api/v1/_/shop/items", text(`{"title":"`+title+`"}`)); {
			case res.status == http.StatusCreated:
				written = append(written, title)
			case res.status == http.StatusServiceUnavailable && res.field("code") == "restoring" && res.header.Get("Retry-After") != "":
				refused++
			default:
				t.Errorf("a write: %s", res)
				return
			}
		}
	}()
	var found strings.Builder
	for range 3 {
		time.Sleep(50 * time.Millisecond) // some are written in between
		result, err := one.app.RestoreAll(t.Context(), "shop", info.ID, snapshot.RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(filepath.Join(one.dir, "shop", "snapshots", snapshot.SafetyProfile, result.Safety, "collections", "items.jsonl.zst"))
		if err != nil {
			t.Fatal(err)
		}
		zip, err := zstd.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&found, zip); err != nil {
			t.Fatal(err)
		}
		zip.Close()
		_ = file.Close()
	}
	stop()
	<-done
	found.WriteString(one.titles("&limit=1000"))
	for _, title := range written {
		if text, _ := json.Marshal(title); !strings.Contains(found.String(), strings.Trim(string(text), `"`)) {
			t.Errorf("%s is nowhere", title)
		}
	}
	if len(written) == 0 || refused == 0 {
		t.Errorf("%d writes, %d refused", len(written), refused)
	}
}
