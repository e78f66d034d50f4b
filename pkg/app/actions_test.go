package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/app"
)

const deskConfig = `
namespace: desk
admin: {tokens: [{name: deploy, value: ` + projectToken + `, rights: [reload]}]}
upload: {maxBodySize: 2KiB, allowedMimeTypes: [text/csv, image/*]}
actions:
  - name: echo
    hooks: {handle: {type: javascript, file: echo.js}}
    permissions: {public: {methods: {get: true, post: true}}, user: {methods: {get: true, post: true}}}
    cors: {origins: ["https://app.example.com", "https://*.example.org"], exposeHeaders: [Location], maxAge: 10m}
    audit: {enabled: true, excludeFields: [note]}
    meta:
      label: Echo
      methods:
        get:
          query:
            - {name: n, type: number, validator: {min: 1}}
            - {name: on, type: boolean}
            - {name: at, type: date}
            - {name: ids, type: "string[]"}
            - {name: limit, type: number, meta: {defaultValue: 10}}
        post:
          query: [{name: dry, type: boolean}]
          data:
            - {name: title, type: string, validator: {required: true, max: 20}}
            - {name: note, type: string}
            - {name: secret, type: string, hidden: true}
            - {name: fixed, type: string, readonly: true}
            - {name: doc, type: file}
            - {name: more, type: object, subFields: [{name: pics, type: "file[]"}]}
  - name: free
    hooks:
      validate: {type: javascript, file: free-validate.js}
      handle: {type: javascript, file: free.js, timeout: 300ms}
      return: {type: javascript, file: free-return.js}
    permissions: {public: {methods: {}}, user: {methods: {post: true}}, "token:` + collectionToken + `": {methods: {post: true}}}
    meta: {methods: {post: {}}}
  - name: export
    hooks: {handle: {type: javascript, file: export.js}}
    permissions: {public: {methods: {post: true}}, user: {methods: {post: true}}}
    meta:
      methods:
        post:
          data: [{name: rows, type: number, meta: {defaultValue: 2}}]
          execution: {kind: stream, cancellable: true}
  - name: later
    hooks: {handle: {type: javascript, file: later.js}}
    permissions: {public: {methods: {}}, user: {methods: {post: true}}}
    meta:
      methods:
        post:
          data: [{name: fail, type: string}]
          execution: {kind: async}
          output: {title: Sums, mapping: {summary: sum, details: [parts.a], progress: {done: rows, total: all}}}
collections:
  - name: items
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// deskScripts are the scripts of desk.
var deskScripts = map[string]string{
	"echo.js": `module.exports = (ctx) => {
  const d = ctx.data && {...ctx.data}
  if (d && d.doc) d.doc = {...d.doc, data: d.doc.data.length, isBytes: ctx.data.doc.data instanceof Uint8Array}
  if (d && d.more) d.more = d.more.pics.map((p) => p.type + ' ' + p.size)
  return {method: ctx.method, action: ctx.action, query: ctx.query, isDate: ctx.query.at instanceof Date, data: d, user: ctx.user && ctx.user.kind, headers: Object.keys(ctx.headers)}
}`,
	"free-validate.js": `module.exports = (ctx) => { ctx.state.seen = 'validate'; return ctx.data && ctx.data.bad ? [{path: 'data.bad', message: 'is bad'}] : undefined }`,
	"free.js": `module.exports = async (ctx) => {
  switch (ctx.data && ctx.data.do) {
    case 'csv':
      ctx.response.type = 'text/csv; charset=utf-8'
      ctx.response.headers['Content-Disposition'] = 'attachment; filename="a.csv"'
      return 'a,b\n1,2\n'
    case 'bytes': return new Uint8Array([0, 255])
    case 'status': ctx.response.status = 201; ctx.response.headers.location = '/x'; return {made: true}
    case 'nothing': return
    case 'no body': ctx.response.status = ctx.data.status; ctx.response.type = ctx.data.type; return ctx.data.value
    case 'html': ctx.response.type = 'text/html'; return '<script>1</script>'
    case 'cookie': ctx.response.headers['Set-Cookie'] = 'a=b'; return 1
    case 'split': ctx.response.headers.link = 'a\r\nX: b'; return 1
    case 'refuse': throw ctx.error(409, 'already done', [{path: 'data.do', message: 'again'}])
    case 'broken': { const inside = null; return inside.secretName }
    case 'loop': for (;;) ;
    case 'write': return {id: (await db.collection('items').insert({title: 'T'})).id}
    case 'asUser': return await db.collection('items', {asUser: true}).find()
    case 'proto': return {own: Object.keys(ctx.data), polluted: ({}).polluted === undefined, state: ctx.state.seen}
  }
  return ctx.data
}`,
	"free-return.js": `module.exports = (ctx) => { if (ctx.data && ctx.data.do === 'proto') ctx.result.more = ctx.state.seen; }`,
	"export.js": `module.exports = async (ctx) => {
  const rows = ['n']
  for (let i = 1; i <= ctx.data.rows; i++) {
    rows.push(String(i))
    ctx.progress({phase: 'export', done: i, total: ctx.data.rows, message: 'row ' + i})
    await sleep(2)
  }
  ctx.response.type = 'text/csv'
  return rows.join('\n') + '\n'
}`,
	"later.js": `module.exports = async (ctx) => {
  console.log('a word for the log')
  ctx.progress({rows: 3, all: 4})
  if (ctx.data.fail === 'throw') throw ctx.error(422, 'no more')
  if (ctx.data.fail === 'broken') nothing.there()
  return {sum: 3, parts: {a: 1, b: 2}, run: ctx.run.id.length > 20}
}`,
}

const deskActions = "/api/v1/_/desk/_/actions"

// runDesk starts a service on a store with a project that has actions.
func runDesk(t *testing.T, cfg app.Config) *service {
	t.Helper()
	s := run(t, func(c *app.Config) { c.StoreURI = cfg.StoreURI })
	for name, text := range deskScripts {
		s.file("desk", name, text)
	}
	s.register("desk", deskConfig)
	return s
}

func TestActions(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runDesk(t, cfg)
		_, ann := s.user("ann", nil)
		csv := "data:text/csv;base64,YSxiCg=="
		for _, tt := range []struct {
			name, method, path string
			options            []option
			want               string
			body               string
		}{
			{"query by its fields", "GET", "/echo?n=5&on=true&at=2026-01-02T03:04:05Z&ids=a&ids=b", nil, "200", `"query":{"at":"2026-01-02T03:04:05.000Z","ids":["a","b"],"n":5,"on":true,"limit":10},"isDate":true`},
			{"bad parameters", "GET", "/echo?n=x&on=maybe&other=1", nil, "400 validation_failed: *", `"path":"query.other"`},
			{"rules of parameters", "GET", "/echo?n=0", nil, "400 validation_failed: query.n: *", ""},
			{"once only", "GET", "/echo?n=1&n=2", nil, "400 validation_failed: query.n: is given 2 times", ""},
			{"no credential reaches a script", "GET", "/echo", []option{session(ann), header("X-Note", "n")}, "200", `"user":"user"`},
			{"data by its fields", "POST", "/echo?dry=true", []option{text(`{"title": "T", "doc": {"src": "` + csv + `", "path": "a.csv"}}`)}, "200", `"data":{"title":"T","doc":{"path":"a.csv","type":"text/csv","size":4,"data":4,"isBytes":true}}`},
			{"files in lists", "POST", "/echo", []option{text(`{"title": "T", "more": {"pics": [{"src": "data:image/png;base64,iVBORw0KGgo=", "path": "a.png"}]}}`)}, "200", `"more":["image/png 8"]`},
			{"problems of data", "POST", "/echo", []option{text(`{"title": "a title that is much too long", "x": 1, "fixed": "f"}`)}, "400 validation_failed: *", `"path":"data.x"`},
			{"readonly", "POST", "/echo", []option{text(`{"title": "t", "fixed": "f"}`)}, "400 validation_failed: data.fixed: can't be given", ""},
			{"no data at all", "POST", "/echo", nil, "400 validation_failed: data.title: is required", ""},
			{"a type that is not allowed", "POST", "/echo", []option{text(`{"title": "T", "doc": {"src": "data:text/html,<b>", "path": "a"}}`)}, "400 validation_failed: data.doc: is of type text/html; *", ""},
			{"contents against their type", "POST", "/echo", []option{text(`{"title": "T", "doc": {"src": "data:image/png,hello", "path": "a"}}`)}, "400 validation_failed: data.doc: is of type text/plain; *", ""},
			{"a name that leads elsewhere", "POST", "/echo", []option{text(`{"title": "T", "doc": {"src": "` + csv + `", "path": "../a"}}`)}, "400 validation_failed: data.doc: path must be the name of a file, *", ""},
			{"no data URL", "POST", "/echo", []option{text(`{"title": "T", "doc": {"src": "http://x/y", "path": "a"}}`)}, "400 validation_failed: data.doc: src must be a data URL, *", ""},
			{"too large", "POST", "/echo", []option{text(`{"title": "` + strings.Repeat("x", 2<<10) + `"}`)}, "413 body_too_large: *", ""},
			{"another media type", "POST", "/echo", []option{header("Content-Type", "text/plain"), text(`{}`)}, "415 *", ""},

			{"free data", "POST", "/free", []option{session(ann), text(`{"a": [1, {"b": null}]}`)}, "200", `{"a":[1,{"b":null}]}`},
			{"nobody may", "POST", "/free", []option{text(`{}`)}, denied, ""},
			{"another method", "GET", "/free", []option{admin}, "405 method_not_allowed: *", ""},
			{"its token may", "POST", "/free", []option{token(collectionToken), text(`{"a": 1}`)}, "200", `{"a":1}`},
			{"other tokens may not", "POST", "/free", []option{token(readToken), text(`{}`)}, denied, ""},
			{"validate", "POST", "/free", []option{session(ann), text(`{"bad": 1}`)}, "400 validation_failed: data.bad: is bad", ""},
			{"a status and a header", "POST", "/free", []option{session(ann), text(`{"do": "status"}`)}, "201", `{"made":true}`},
			{"nothing", "POST", "/free", []option{session(ann), text(`{"do": "nothing"}`)}, "204", ""},
			{"a status without a body", "POST", "/free", []option{session(ann), text(`{"do": "no body", "status": 205}`)}, "205", ""},
			{"and nothing to send", "POST", "/free", []option{session(ann), text(`{"do": "no body", "status": 204, "value": null, "type": "text/csv"}`)}, "204", ""},
			{"205 with a body", "POST", "/free", []option{session(ann), text(`{"do": "no body", "status": 205, "value": {"a": 1}}`)}, "500 script_failed: *", ""},
			{"204 with a body", "POST", "/free", []option{session(ann), text(`{"do": "no body", "status": 204, "value": "a", "type": "text/csv"}`)}, "500 script_failed: *", ""},
			{"a header that is not allowed", "POST", "/free", []option{session(ann), text(`{"do": "cookie"}`)}, "500 script_failed: a script of the project failed", ""},
			{"two headers in one", "POST", "/free", []option{session(ann), text(`{"do": "split"}`)}, "500 script_failed: *", ""},
			{"an error on purpose", "POST", "/free", []option{session(ann), text(`{"do": "refuse"}`)}, "409 script_error: already done", `"path":"data.do"`},
			{"an exception", "POST", "/free", []option{session(ann), text(`{"do": "broken"}`)}, "500 script_failed: a script of the project failed", ""},
			{"a loop", "POST", "/free", []option{session(ann), text(`{"do": "loop"}`)}, "504 script_timeout: *", ""},
			{"writes as the service", "POST", "/free", []option{session(ann), text(`{"do": "write"}`)}, "200", `{"id":"`},
			{"reads as the user", "POST", "/free", []option{session(ann), text(`{"do": "asUser"}`)}, denied, `"right":"read on items"`},
			{"an unknown action", "GET", "/none", []option{admin}, "404 action_not_found: action not found", ""},
			{"an unknown run", "GET", "/echo/runs/x", []option{admin}, "404 run_not_found: run not found", ""},
		} {
			got := s.do(tt.method, deskActions+tt.path, tt.options...)
			if want, open := strings.CutSuffix(tt.want, "*"); got.String() != tt.want && (!open || !strings.HasPrefix(got.String(), want)) || !strings.Contains(got.body, tt.body) {
				t.Errorf("%s: %s %s: %s %s", tt.name, tt.method, tt.path, got, got.body)
			}
		}
		for _, tt := range []struct { // which methods an action takes, those are told who may call it
			path  string
			who   option
			allow string
		}{
			{"/free", admin, "POST"}, {"/free", session(ann), "POST"}, {"/free", noop, "GET HEAD POST"}, {"/none", admin, "GET HEAD POST"}, {"/echo", admin, "GET HEAD POST"},
		} {
			if got := s.do("PUT", deskActions+tt.path, tt.who, text(`{}`)); got.status != http.StatusMethodNotAllowed || strings.Join(got.header.Values("Allow"), " ") != tt.allow {
				t.Errorf("%s takes %q, want %q: %s", tt.path, got.header.Values("Allow"), tt.allow, got)
			}
		}
		echo := s.do("GET", deskActions+"/echo", session(ann), header("X-Note", "n"))
		if !strings.Contains(echo.body, `"x-note"`) || strings.Contains(echo.body, "token") {
			t.Error(echo.body)
		}
		if logs := s.logs.String(); !strings.Contains(logs, "free.js:") || !strings.Contains(logs, "Set-Cookie") {
			t.Error("the log doesn't say where scripts failed")
		}
		down := s.do("POST", deskActions+"/free", session(ann), text(`{"do": "csv"}`))
		if h := down.header; down.body != "a,b\n1,2\n" || h.Get("Content-Type") != "text/csv; charset=utf-8" || h.Get("Content-Disposition") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Error(down, down.header)
		}
		page := s.do("POST", deskActions+"/free", session(ann), text(`{"do": "html"}`))
		if !strings.HasPrefix(page.header.Get("Content-Security-Policy"), "sandbox") {
			t.Error("a page runs with our rights")
		}
		if raw := s.do("POST", deskActions+"/free", session(ann), text(`{"do": "bytes"}`)); raw.body != "\x00\xff" {
			t.Errorf("%q", raw.body)
		}
	})
}

// S22: names from outside are looked up in a map, and keys that JavaScript has a meaning for are data, or refused.
func TestS22ActionNames(t *testing.T) {
	s := runDesk(t, app.Config{})
	_, ann := s.user("ann", nil)
	for _, name := range []string{"__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "%2e%2e", "echo%2Fruns"} {
		for _, path := range []string{"", "/describe", "/runs"} {
			if got := s.do("GET", deskActions+"/"+name+path, admin); got.status != http.StatusNotFound {
				t.Errorf("%s%s: %s", name, path, got)
			}
		}
	}
	for _, body := range []string{`{"__proto__": {"polluted": 1}}`, `{"a": {"constructor": 1}}`, `{"a": [{"prototype": 1}]}`} {
		if got := s.do("POST", deskActions+"/free", session(ann), text(body)); got.status != http.StatusBadRequest {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := s.do("GET", deskActions+"/echo?__proto__=1&constructor=2"); !strings.HasPrefix(got.String(), "400 validation_failed") {
		t.Error(got)
	}
	got := s.do("POST", deskActions+"/free", session(ann), text(`{"do": "proto"}`))
	if got.body != `{"own":["do"],"polluted":true,"state":"validate","more":"validate"}` {
		t.Error(got.body)
	}
}

func TestActionRuns(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runDesk(t, cfg)
		_, ann := s.user("ann", nil)
		_, bob := s.user("bob", nil)
		_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read"}})

		started := s.do("POST", deskActions+"/later", session(ann), text(`{}`))
		started.want(t, http.StatusAccepted)
		path := started.header.Get("Location")
		ended := s.ended(path, session(ann))
		for _, part := range []string{
			`"status":"succeeded"`, `"result":{"sum":3,"parts":{"a":1,"b":2},"run":true}`, `"output":{"summary":3,"details":{"parts.a":1}}`,
			`"progress":{"done":3,"total":4}`, `"by":{"kind":"user"`, `"trigger":"call"`,
		} {
			if !strings.Contains(ended, part) {
				t.Errorf("%s lacks %s", ended, part)
			}
		}
		if got := s.do("GET", path+"?result=true", session(ann)); got.body != `{"sum":3,"parts":{"a":1,"b":2},"run":true}` {
			t.Error(got)
		}
		for who, want := range map[string]string{bob: "404 run_not_found: run not found", reader: "200"} {
			if got := s.do("GET", path, session(who)); got.String() != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		for who, want := range map[string]int{ann: 1, bob: 0, reader: 1} {
			if got := s.do("GET", deskActions+"/later/runs", session(who)); strings.Count(got.body, `"kind":"action"`) != want {
				t.Errorf("%s, want %d", got.body, want)
			}
		}
		if got := s.do("GET", strings.Replace(path, "/later/", "/echo/", 1), session(ann)); got.status != http.StatusNotFound {
			t.Error("a run of another action:", got)
		}
		if got := s.do("DELETE", path, session(ann)); got.String() != "409 run_ended: the run has ended already" {
			t.Error(got)
		}
		for fail, want := range map[string]string{"throw": `"error":{"code":"script_error","message":"no more"}`, "broken": `"error":{"code":"script_failed","message":"a script of the project failed"}`} {
			started := s.do("POST", deskActions+"/later", session(ann), text(`{"fail": "`+fail+`"}`))
			run := s.ended(started.header.Get("Location"), session(ann))
			if !strings.Contains(run, `"status":"failed"`) || !strings.Contains(run, want) || strings.Contains(run, ".js") {
				t.Errorf("%s: %s", fail, run)
			}
			// What scripts log, and where they failed, is for who reads the project.
			log := []string{`"a word for the log"`}
			if fail == "broken" {
				log = append(log, "later.js:5:")
			}
			for _, place := range []string{started.header.Get("Location"), started.header.Get("Location") + "/events"} {
				own, all := s.do("GET", place, session(ann)).body, s.do("GET", place, session(reader)).body
				if strings.Contains(own, `"level"`) || !strings.Contains(own, `"code":"script_`) {
					t.Errorf("%s: who called it sees %s", place, own)
				}
				for _, text := range log {
					if !strings.Contains(all, text) || strings.Contains(own, text) {
						t.Errorf("%s: %s is not in\n%s, or is in\n%s", place, text, all, own)
					}
				}
			}
		}

		// Nobody in particular has a run too: whoever knows its id.
		anonymous := s.do("POST", deskActions+"/export", text(`{"rows": 3}`))
		anonymous.want(t, http.StatusAccepted)
		path = anonymous.header.Get("Location")
		s.ended(path)
		if got := s.do("GET", path+"?result=true"); got.body != "n\n1\n2\n3\n" || got.header.Get("Content-Type") != "text/csv" {
			t.Error(got, got.body)
		}
		if got := s.do("GET", path, session(bob)); got.status != http.StatusNotFound {
			t.Error(got)
		}
		if got := s.do("GET", deskActions+"/export/runs"); !strings.Contains(got.body, `"items":[]`) {
			t.Error(got.body)
		}
		if got := s.do("POST", deskActions+"/export", text(`{"rows": "x"}`)); got.status != http.StatusBadRequest {
			t.Error("a run began with bad data:", got)
		}

		// One can be cancelled where the config says so, by who started it or who may reload the project.
		slow := s.do("POST", deskActions+"/export", session(ann), text(`{"rows": 1000000}`)).header.Get("Location")
		for who, want := range map[string]int{bob: http.StatusNotFound, reader: http.StatusNotFound, ann: http.StatusAccepted} {
			if got := s.do("DELETE", slow, session(who)); got.status != want {
				t.Errorf("%s, want %d", got, want)
			}
		}
		if got := s.trail("/api/v1/audit?filter[op]=cancel&filter[collection]=_actions.export", admin); len(got) != 1 || got[0].Actor.Name != "ann" || got[0].RecordID == "" {
			t.Errorf("%+v", got)
		}
		if run := s.ended(slow, session(ann)); !strings.Contains(run, `"status":"cancelled"`) {
			t.Error(run)
		}
	})
}

// ended waits for a run to end and gives it.
func (s *service) ended(path string, options ...option) string {
	s.t.Helper()
	for {
		got := s.do("GET", path, options...)
		got.want(s.t, http.StatusOK)
		if status := got.field("status"); status != "queued" && status != "running" {
			return got.body
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatal("the run does not end: ", got.body)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A call of an action that streams gives its progress, and a reader who was cut off goes on where they were.
func TestActionStream(t *testing.T) {
	s := runDesk(t, app.Config{})
	_, ann := s.user("ann", nil)
	all := s.do("POST", deskActions+"/export", session(ann), header("Accept", "text/event-stream"), text(`{"rows": 400}`))
	if all.status != http.StatusOK || all.header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(all)
	}
	ids, events := readEvents(t, all.body)
	if len(events) < 2 || events[len(events)-1] != "done" || !slices.Contains(events, "progress") || !strings.Contains(all.body, `"phase":"export","done":`) {
		t.Fatal(all.body)
	}
	path := all.header.Get("Location")
	rest := s.do("GET", path+"/events", session(ann), header("Last-Event-ID", ids[len(ids)-2]))
	if got, _ := readEvents(t, rest.body); !slices.Equal(got, ids[len(ids)-1:]) {
		t.Error(got, ids)
	}
	if got := s.do("GET", path+"/events"); got.status != http.StatusNotFound {
		t.Error(got)
	}
}

func readEvents(t *testing.T, body string) (ids, kinds []string) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			ids = append(ids, value)
		case "event":
			kinds = append(kinds, value)
		case "data":
			if !json.Valid([]byte(value)) {
				t.Error(value)
			}
		}
	}
	return ids, kinds
}

func TestActionsListed(t *testing.T) {
	s := runDesk(t, app.Config{})
	_, ann := s.user("ann", nil)
	names := func(options ...option) string {
		t.Helper()
		var list struct{ Items []struct{ Name string } }
		got := s.do("GET", deskActions, options...)
		if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
			return got.String()
		}
		var out []string
		for _, a := range list.Items {
			out = append(out, a.Name)
		}
		return strings.Join(out, " ")
	}
	for want, options := range map[string][]option{
		"echo export":            {},
		"echo export free later": {session(ann)},
		"free":                   {token(collectionToken)},
		denied:                   {token(readToken)},
	} {
		if got := names(options...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	got := s.do("GET", deskActions+"/echo/describe")
	for _, part := range []string{`"name":"title","type":"string","required":true`, `"execution":"sync"`, `"yourPermissions":{"get":true,"post":true}`, `"meta":{"label":"Echo"}`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("%s lacks %s", got.body, part)
		}
	}
	if strings.Contains(got.body, "secret") {
		t.Error("a hidden field is described")
	}
	if got := s.do("GET", deskActions+"/later/describe", session(ann)); !strings.Contains(got.body, `"output":{"mapping":{"details":["parts.a"],"progress":{`) || !strings.Contains(got.body, `"title":"Sums"`) {
		t.Error(got.body)
	}
	if got := s.do("GET", deskActions+"/free/describe"); got.String() != denied {
		t.Error(got)
	}
}

func TestActionScopes(t *testing.T) {
	s := runDesk(t, app.Config{})
	_, root := s.user("root", map[string]any{"isAdmin": true})
	if scopes := s.do("GET", "/api/v1/token/_scopes", session(root)).body; !strings.Contains(scopes, `"namespace.desk._actions.echo.read"`) || !strings.Contains(scopes, `"namespace.desk._actions.later.create"`) {
		t.Error(scopes)
	}
	for scope, want := range map[string]string{
		"namespace.desk._actions.echo.read":   "200 403 200",
		"namespace.desk._actions.echo.create": "403 200 200",
		"namespace.desk._actions.free.create": "403 403 403",
		"namespace.desk.items.read":           "403 403 403",
		"namespace.desk":                      "200 200 200",
	} {
		_, pat := s.pat(root, scope)
		var got []string
		for _, call := range []answer{
			s.do("GET", deskActions+"/echo", session(pat)),
			s.do("POST", deskActions+"/echo", session(pat), text(`{"title": "T"}`)),
			s.do("GET", deskActions+"/echo/describe", session(pat)),
		} {
			got = append(got, call.String()[:3])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", scope, got, want)
		}
	}
}

func TestActionCORS(t *testing.T) {
	s := runDesk(t, app.Config{})
	preflight := func(action, origin, method string) answer {
		t.Helper()
		return s.do("OPTIONS", deskActions+action, header("Origin", origin), header("Access-Control-Request-Method", method))
	}
	for origin, allowed := range map[string]bool{
		"https://app.example.com": true, "https://a.example.org": true, "https://a.b.example.org": true,
		"https://example.org": false, "http://a.example.org": false, "https://evilexample.org": false, "https://app.example.com.evil.net": false, "null": false,
	} {
		want := ""
		if allowed {
			want = origin
		}
		got := preflight("/echo", origin, "POST")
		if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != want || (got.header.Get("Access-Control-Allow-Methods") != "") != allowed {
			t.Errorf("%s: %s %v", origin, got, got.header)
		}
		call := s.do("GET", deskActions+"/echo?n=x", header("Origin", origin)) // a refusal can be read, too
		if call.status != http.StatusBadRequest || call.header.Get("Access-Control-Allow-Origin") != want || !slices.Contains(call.header.Values("Vary"), "Origin") {
			t.Errorf("%s: %s %v", origin, call, call.header)
		}
	}
	if got := preflight("/echo", "https://app.example.com", "POST"); got.header.Get("Access-Control-Max-Age") != "600" || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "X-Auth-Token") {
		t.Error(got.header)
	}
	if got := preflight("/echo", "https://app.example.com", "PATCH"); got.header.Get("Access-Control-Allow-Methods") != "" {
		t.Error(got.header)
	}
	if got := preflight("/free", "https://app.example.com", "POST"); got.status != http.StatusMethodNotAllowed || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error(got, got.header)
	}
}

// A call is in the audit log before it is done, without what is hidden or excluded and without contents of files.
func TestActionAudit(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		s := runDesk(t, cfg)
		_, ann := s.user("ann", nil)
		s.do("POST", deskActions+"/echo?dry=true", session(ann), text(`{"title": "T", "note": "canary-note", "secret": "canary-secret", "doc": {"src": "data:text/csv,canary-file", "path": "a.csv"}}`)).want(t, http.StatusOK)
		s.do("GET", deskActions+"/echo", session(ann)).want(t, http.StatusOK)
		got := s.do("GET", "/api/v1/_/desk/_/audit", admin)
		for _, part := range []string{`"kind":"action","op":"call"`, `"collection":"_actions.echo"`, `"actor":{"kind":"user"`, `"title":"T"`, `"note":"[redacted]"`, `"dry":true`, `"size":11`} {
			if !strings.Contains(got.body, part) {
				t.Errorf("%s lacks %s", got.body, part)
			}
		}
		if strings.Contains(got.body, "canary") || strings.Count(got.body, `"op":`) != 1 {
			t.Error(got.body)
		}
		if got := s.do("GET", "/api/v1/audit/verify?project=desk", admin); !strings.Contains(got.body, `"ok":true`) {
			t.Error(got.body)
		}
	})
}

// The sample's export, as people use it: with progress, and what a spreadsheet would take for a formula is text.
func TestSampleExport(t *testing.T) {
	s := run(t, nil)
	if err := os.CopyFS(filepath.Join(s.dir, "shop"), os.DirFS("../../projects/shop")); err != nil {
		t.Fatal(err)
	}
	s.do("POST", "/api/v1/project", admin, json1(map[string]any{"name": "shop", "configFile": "shop/project.json", "enabled": true})).want(t, http.StatusCreated)
	s.do("POST", "/api/v1/_/shop/categories", admin, text(`{"name": "Tents", "slug": "tents"}`)).want(t, http.StatusCreated)
	for _, name := range []string{"Tent", "=1+2, of a kind"} {
		slug := "tent-" + strconv.Itoa(len(name))
		s.do("POST", "/api/v1/_/shop/products", admin, json1(map[string]any{
			"sku": fmt.Sprintf("TEN-%04d", len(name)), "name": name, "slug": slug, "category": "tents", "brand": "B",
			"price": map[string]any{"amount": 100, "currency": "EUR"}, "variants": []map[string]any{{"sku": "a", "stock": 2}, {"sku": "b", "stock": 3}},
		})).want(t, http.StatusCreated)
	}
	res := s.do("POST", "/api/v1/_/shop/_/actions/export-products", admin, header("Accept", "text/event-stream"), text(`{}`))
	if !strings.Contains(res.body, `"message":"2 of 2 products"`) || !strings.Contains(res.body, "event: done") {
		t.Fatal(res.body)
	}
	got := s.do("GET", res.header.Get("Location")+"?result=true", admin)
	want := "sku,name,category,price,currency,stock\r\nTEN-0004,Tent,tents,100,EUR,5\r\nTEN-0015,\"'=1+2, of a kind\",tents,100,EUR,5\r\n"
	if got.body != want || got.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("%q %v", got.body, got.header)
	}
	if got := s.do("POST", "/api/v1/_/shop/_/actions/export-products", text(`{}`)); got.String() != denied {
		t.Error(got)
	}
}

// The example of docs/actions.md does what it says.
func TestActionsDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/actions.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(string(doc), "```"+language+"\n")
		text, _, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatal("there is no block of ", language)
		}
		return text
	}
	s := run(t, nil)
	s.file("store", "actions/restock.js", block("js"))
	s.register("store", "namespace: store\n"+block("yaml")+`
collections:
  - name: products
    fields: [{name: sku, type: string}, {name: stock, type: number}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`)
	_, ann := s.user("ann", nil)
	s.do("POST", "/api/v1/_/store/products", admin, text(`{"sku": "A-1", "stock": 2}`)).want(t, http.StatusCreated)
	for body, want := range map[string]string{
		`{"sku": "A-1", "count": 5}`: "200",
		`{"sku": "B-1", "count": 5}`: "404 script_error: there is no such product",
		`{"sku": "A-1", "count": 0}`: "400 validation_failed: data.count: *",
	} {
		got := s.do("POST", "/api/v1/_/store/_/actions/restock", session(ann), text(body))
		if prefix, open := strings.CutSuffix(want, "*"); got.String() != want && (!open || !strings.HasPrefix(got.String(), prefix)) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := s.do("GET", "/api/v1/_/store/products"); !strings.Contains(got.body, `"stock":7`) {
		t.Error(got.body)
	}
}
