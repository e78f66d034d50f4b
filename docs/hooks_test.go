package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// hookExamples gives the scripts of hooks.md by stage; a stage without one is "".
func hookExamples(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n### ") {
		stage, rest, _ := strings.Cut(section, "\n")
		if !strings.Contains(stage, ".") || strings.Contains(stage, " ") {
			continue
		}
		rest, _, _ = strings.Cut(rest, "\n## ")
		_, code, _ := strings.Cut(rest, "```js\n")
		code, _, _ = strings.Cut(code, "```")
		out[stage] = code
	}
	return out
}

// shelf is a project with one hook.
type shelf struct {
	t       *testing.T
	service *records.Service
	project *project.Project
}

func newShelf(t *testing.T, stage, code string) *shelf {
	t.Helper()
	group, name, _ := strings.Cut(stage, ".")
	fields, anybody := "[]", "false"
	if stage == "get.file" {
		anybody = "true"
		fields = "[{name: price, type: number}, {name: cover, type: file}]"
	}
	config := `
namespace: docs
collections:
- name: counters
  permissions: {public: {methods: {}}, user: {methods: {get: true}}}
- name: articles
  audit: {enabled: true}
  permissions: {public: {methods: {get: ` + anybody + `}}, user: {methods: {get: true, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}}}
  fields: ` + fields + `
  hooks: {` + group + `: {` + name + `: {type: javascript, file: hook.js}}}
`
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"project.yaml": config, "hook.js": code})
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		t.Fatal(problems)
	}
	_, service := newRecords(t, time.Now)
	return &shelf{t: t, project: p, service: service}
}

// newRecords makes the service of records over a store in memory, and what runs its scripts.
func newRecords(t *testing.T, now func() time.Time) (*script.Engine, *records.Service) {
	t.Helper()
	engine := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	runner, err := hooks.New(hooks.Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	st := teststore.Memory(t)
	logs := audit.New(audit.Options{Store: st, Now: now, SystemDatabase: "svc"})
	files := media.NewLibrary(t.TempDir(), media.Options{Logger: slog.New(slog.DiscardHandler), Now: now})
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine, records.New(st, now, logs, runner, files)
}

// moduleExample gives the script of a module's section.
func moduleExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+name+"\n")
	_, code, _ := strings.Cut(section, "```js\n")
	code, _, found := strings.Cut(code, "```")
	if !found {
		t.Fatalf("hooks.md has no example of %s", name)
	}
	return code
}

// TestModuleExamples runs the examples of search and embeddings as they are.
func TestModuleExamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"similar.js": moduleExample(t, "search"), "section.js": moduleExample(t, "embeddings"), "project.yaml": `
namespace: docs
collections:
- name: articles
  permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}
  fields: [{name: title, type: string}, {name: body, type: string}, {name: section, type: string}]
  search: [{name: main, mode: text, fields: [title]}]
  hooks: {post: {bind: {type: javascript, file: section.js}}, get: {return: {type: javascript, file: similar.js}}}
`})
	p, problems := project.Load(dir, "project.yaml", func(string) (string, bool) { return "", false })
	if problems.Err() {
		t.Fatal(problems)
	}
	sandbox, err := app.NewSandbox(t.Context(), app.SandboxOptions{
		Project: p, Now: time.Now, Env: func(string) (string, bool) { return "", false }, Answers: http.DefaultTransport,
		Observe: func(e hooks.Engine) hooks.Engine { return e }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	do := func(method, path, body string) map[string]any {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/v1/_/docs/articles"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		sandbox.Serve(w, r, access.Anonymous())
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code > 201 {
			t.Fatal(method, path, w.Code, w.Body, err)
		}
		return out
	}
	walk := do("POST", "", `{"title": "Long hills", "body": "new boots on an old path over the hills"}`)
	bread := do("POST", "", `{"title": "Rye bread", "body": "an oven in the kitchen"}`)
	do("POST", "", `{"title": "Bread and soup", "body": "x", "section": "cooking"}`)
	if walk["section"] != "walking" || bread["section"] != "cooking" {
		t.Errorf("sections: %v, %v", walk["section"], bread["section"])
	}
	got := do("GET", "/"+fmt.Sprint(bread["id"]), "")
	if fmt.Sprint(got["similar"]) != "[Bread and soup]" {
		t.Errorf("similar: %v", got["similar"])
	}
}

// TestHookLines runs the lines of hooks.md.
func TestHookLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sample("blog", "authors")
	d.prints(d.run(strings.Join(blocks(t, "hooks.md", "sh"), "")), `"slug":"a-loaf-of-rye"`)
}

func (s *shelf) call() *records.Call {
	return &records.Call{
		Project: s.project, Collection: s.project.Collections["articles"],
		Principal: &access.Principal{Kind: access.KindUser, ID: "650102030405060708090a0b", Name: "ann"},
		Request:   &hooks.Request{Query: map[string][]string{"demo": {"1"}}},
	}
}

func object(t *testing.T, text string) bson.D {
	t.Helper()
	d, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ids and times are different each time.
var ever = regexp.MustCompile(`"(id|createdAt|updatedAt|createdBy|updatedBy)":"[^"]*",?|"_rev":[0-9]+,?`)

func shown(rec *records.Record, err error) string {
	switch {
	case err != nil:
		e := errs.From(err)
		return fmt.Sprint(e.Status, " ", e.Message)
	case rec == nil:
		return "nothing"
	}
	return strings.Replace(ever.ReplaceAllString(string(rec.AppendJSON(nil)), ""), ",}", "}", 1)
}

func (s *shelf) create(text string) (string, string) {
	w, err := s.service.Create(s.t.Context(), s.call(), object(s.t, text))
	return w.ID, shown(w.Record, err)
}

func (s *shelf) update(id, text string) string {
	w, err := s.service.Update(s.t.Context(), s.call(), id, records.Change{Body: object(s.t, text)})
	return shown(w.Record, err)
}

func (s *shelf) get(id string) string {
	rec, err := s.service.Get(s.t.Context(), s.call(), id, records.GetParams{})
	return shown(&rec, err)
}

func (s *shelf) list() string {
	page, err := s.service.List(s.t.Context(), s.call(), query.Params{})
	if err != nil {
		return shown(nil, err)
	}
	var out []string
	for i := range page.Items {
		out = append(out, shown(&page.Items[i], nil))
	}
	return strings.Join(out, " ") + string(page.AppendExtra(nil))
}

func bulk(res records.BulkResult, err error) string {
	if err != nil {
		return shown(nil, err)
	}
	return fmt.Sprint(len(res.Items), " items, ", res.Failed(), " failed") + string(res.AppendExtra(nil))
}

const first = `{"title": "Hello, World", "body": "one two three"}`

// every is a filter that finds all.
var every = query.Where{Filter: bson.D{{Key: "title", Value: bson.D{{Key: "$exists", Value: true}}}}, Bytes: 1}

// TestHookExamples runs the example of each stage, as the text around it says.
func TestHookExamples(t *testing.T) {
	t.Parallel()
	does := map[string]struct {
		do   func(s *shelf) string
		want string
	}{
		"get.handle": {func(s *shelf) string { return s.list() }, `{"title":"An example"}`},
		"get.read": {func(s *shelf) string {
			id, _ := s.create(first)
			return s.get(id) + " " + s.list()
		}, `{"title":"Hello, World","body":"one two three","words":3} {"title":"Hello, World","body":"one two three","words":3}`},
		"get.return": {func(s *shelf) string {
			s.create(`{"title": "A"}`)
			s.create(`{"title": "B"}`)
			return s.list()
		}, `{"title":"A"} {"title":"B"},"titles":"A, B"`},
		"get.file": {func(s *shelf) string {
			id, _ := s.create(`{"price": 5, "cover": {"src": "data:text/plain;base64,aGVsbG8=", "path": "a.txt"}}`)
			ann, anybody := s.call(), s.call()
			anybody.Principal = access.Anonymous()
			_, mine := s.service.File(s.t.Context(), ann, id, "cover", "a.txt")
			_, theirs := s.service.File(s.t.Context(), anybody, id, "cover", "a.txt")
			return fmt.Sprint(mine, " ", errs.From(theirs).Message)
		}, `<nil> not found`},
		"post.bind": {func(s *shelf) string {
			_, out := s.create(first)
			return out
		}, `{"title":"Hello, World","body":"one two three","slug":"hello-world"}`},
		"post.validate": {func(s *shelf) string {
			_, out := s.create(`{"title": "two", "body": "one two three"}`)
			return out
		}, `0 body: repeats the title`},
		"post.handle": {func(s *shelf) string {
			_, out := s.create(`{"title": "ping"}`)
			return out + " " + s.list()
		}, `{"title":"pong"} `},
		"post.create": {func(s *shelf) string {
			_, a := s.create(`{"title": "a"}`)
			_, b := s.create(`{"title": "b"}`)
			return a + " " + b
		}, `{"title":"a","number":1} {"title":"b","number":2}`},
		"post.return": {func(s *shelf) string {
			_, out := s.create(`{"title": "a"}`)
			return out
		}, `{"title":"a","message":"Thank you"}`},
		"post.bulkCreate": {func(s *shelf) string {
			_, err := s.service.BulkCreate(s.t.Context(), s.call(), bson.A{object(s.t, `{"title": "a"}`), object(s.t, `{"title": "b"}`)})
			return s.list() + shownError(err)
		}, `{"title":"a","number":100} {"title":"b","number":101}`},
		"post.bulkReturn": {func(s *shelf) string {
			return bulk(s.service.BulkCreate(s.t.Context(), s.call(), bson.A{object(s.t, `{"title": "a"}`), "no object"}))
		}, `2 items, 1 failed,"made":1`},
		"put.bind": {func(s *shelf) string {
			id, _ := s.create(`{"title": "a"}`)
			return s.update(id, `{"title": "b"}`)
		}, `{"title":"b","formerTitle":"a"}`},
		"put.validate": {func(s *shelf) string {
			id, _ := s.create(`{"number": 2}`)
			return s.update(id, `{"number": 1}`) + " " + s.update(id, `{"number": 3}`)
		}, `0 number: must not shrink {"number":3}`},
		"put.update": {func(s *shelf) string {
			id, _ := s.create(`{"title": "a"}`)
			return s.update(id, `{"title": "b"}`) + " " + s.update(id, `{"title": "c"}`)
		}, `{"title":"b","edits":1} {"title":"c","edits":2}`},
		"put.return": {func(s *shelf) string {
			id, _ := s.create(`{"title": "a"}`)
			return s.update(id, `{"title": "b"}`) + " " + s.get(id)
		}, `{"title":"b","saved":true} {"title":"b"}`},
		"put.bulkUpdate": {func(s *shelf) string {
			s.create(`{"title": "a", "edits": 4}`)
			_, err := s.service.BulkUpdate(s.t.Context(), s.call(), every, object(s.t, `{"title": "b"}`))
			return s.list() + shownError(err)
		}, `{"title":"b","edits":5}`},
		"put.bulkReturn": {func(s *shelf) string {
			s.create(`{"title": "a"}`)
			return bulk(s.service.BulkUpdate(s.t.Context(), s.call(), every, object(s.t, `{"title": "b"}`)))
		}, `1 items, 0 failed,"note":"the front page follows in a minute"`},
		"delete.delete": {func(s *shelf) string {
			id, _ := s.create(`{"title": "a", "slug": "a"}`)
			s.create(`{"title": "b", "related": ["a"]}`)
			w, err := s.service.Delete(s.t.Context(), s.call(), id)
			return shown(w.Record, err) + " " + s.list()
		}, `409 1 articles refer to it {"title":"a","slug":"a"} {"title":"b","related":["a"]}`},
		"delete.return": {func(s *shelf) string {
			id, _ := s.create(`{"title": "a"}`)
			w, err := s.service.Delete(s.t.Context(), s.call(), id)
			return shown(w.Record, err) + s.list()
		}, `{"message":"gone"}`},
		"delete.bulkDelete": {func(s *shelf) string {
			s.create(`{"title": "a", "number": 1001}`)
			return bulk(s.service.BulkDelete(s.t.Context(), s.call(), every)) + " " + s.list()
		}, `409 some are from the archive {"title":"a","number":1001}`},
		"delete.bulkReturn": {func(s *shelf) string {
			s.create(`{"title": "a"}`)
			return bulk(s.service.BulkDelete(s.t.Context(), s.call(), every)) + s.list()
		}, `1 items, 0 failed,"message":"1 gone"`},
		"audit.return": {func(s *shelf) string {
			s.create(first)
			page, err := s.service.Audit(s.t.Context(), s.project, &access.Principal{Kind: access.KindAdmin}, query.Params{})
			if err != nil {
				return shown(nil, err)
			}
			e := page.Items[0]
			return fmt.Sprint(e.Op, " ", e.After.Lookup("body").StringValue(), " ", e.Note)
		}, `create 13 characters by ann`},
	}
	examples := hookExamples(t)
	for _, g := range schema.HookGroups() {
		for _, stage := range g.Stages {
			name := g.Name + "." + stage.Name
			code, documented := examples[name]
			switch tt, tested := does[name]; {
			case !documented:
				t.Errorf("hooks.md says nothing of %s", name)
			case code == "" || !tested:
				t.Errorf("%s has no example", name)
			default:
				if got := tt.do(newShelf(t, name, code)); got != tt.want {
					t.Errorf("%s: %s\nwant %s", name, got, tt.want)
				}
			}
		}
	}
	for name := range examples {
		if _, tested := does[name]; !tested {
			t.Errorf("%s is no stage", name)
		}
	}
}

func shownError(err error) string {
	if err == nil {
		return ""
	}
	return errors.Join(errors.New(" "), err).Error()
}
