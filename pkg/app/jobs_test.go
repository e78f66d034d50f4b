package app_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

const jobsConfig = `
namespace: plant
admin: {tokens: [{name: deploy, value: ` + projectToken + `}]}
jobs:
  - {type: javascript, file: jobs/hello.js, cron: "0 3 * * *", timeout: 10s, meta: {label: Hello}}
  - {name: slow, type: javascript, file: jobs/slow.js}
  - {name: fill, type: javascript, file: jobs/fill.js}
  - {name: steps, type: javascript, file: jobs/steps.js}
  - {name: broken, type: javascript, file: jobs/broken.js}
collections:
  - name: items
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// runPlant starts a service with a project that has jobs.
func runPlant(t *testing.T, change func(c *app.Config)) *service {
	t.Helper()
	s := run(t, change)
	for name, text := range map[string]string{
		"hello": "module.exports = (ctx) => { console.log('I am', ctx.job.name); return {greeting: 'hello'} }\n",
		"slow":  "module.exports = async () => { console.warn('slowly'); await sleep(120000) }\n",
		"fill": "module.exports = async () => { await db.collection('items').insert({n: 1}); " +
			"await db.transaction(async (tx) => { await tx.collection('items').insert({n: 2}) }); return db.collection('items').count() }\n",
		"steps":  "module.exports = (ctx) => { ctx.progress('begun'); console.log('on'); ctx.progress({phase: 'copy', done: 3, total: 4, message: 'rows', else: 1}) }\n",
		"broken": "\nmodule.exports = () => {\n  const secret = null\n  return secret.value\n}\n",
	} {
		path := filepath.Join(s.dir, "plant", "jobs", name+".js")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.register("plant", jobsConfig)
	return s
}

const plantJobs = "/api/v1/_/plant/_/jobs"

func TestJobs(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	s.do("GET", plantJobs, admin).contains(t, 200, `"name":"broken"`, `"name":"hello","file":"jobs/hello.js","cron":"0 3 * * *","timeout":10000,"meta":{"label":"Hello"},"suspended":false`, `"lastRun":null`)
	s.do("GET", plantJobs+"/hello/next", admin).contains(t, 200, `T03:00:00.000Z","`)
	s.do("GET", plantJobs+"/slow/next", admin).contains(t, 200, `{"times":[]}`)

	done := s.do("POST", plantJobs+"/hello/run?wait=true", admin)
	done.contains(t, 200, `"status":"succeeded"`, `"trigger":"manual"`, `"by":{"kind":"admin"`, `"result":{"greeting":"hello"}`, `"message":"I am hello","level":"info"`)
	path := done.header.Get("Location")
	if path != plantJobs+"/hello/runs/"+done.field("id") {
		t.Errorf("Location: %s", path)
	}
	s.do("GET", path, admin).contains(t, 200, `"status":"succeeded"`)
	s.do("GET", strings.Replace(path, "/hello/", "/slow/", 1), admin).contains(t, 404, "run_not_found")
	s.do("GET", plantJobs+"/hello", admin).contains(t, 200, `"lastRun":{"id":"`+done.field("id"))
	s.do("GET", plantJobs+"/hello/runs?limit=1&status=succeeded", admin).contains(t, 200, `"id":"`+done.field("id"), `"hasMore":false`)
	s.do("GET", plantJobs+"/hello/runs?status=failed", admin).contains(t, 200, `{"items":[]`)

	stream := s.do("GET", path+"/events", admin)
	stream.contains(t, 200, "id: 1\nevent: log\ndata: {\"operation\":\"job\",\"name\":\"hello\",\"id\":\""+done.field("id"), "id: 2\nevent: done\ndata: {")
	if media := stream.header.Get("Content-Type"); media != "text/event-stream" {
		t.Errorf("a stream is %s", media)
	}
	again := s.do("GET", path+"/events", admin, header("Last-Event-ID", "1"))
	again.contains(t, 200, "id: 2\nevent: done\n")
	if strings.Contains(again.body, "id: 1\n") {
		t.Error("an event comes again")
	}
	s.do("GET", path+"/events", admin, header("Last-Event-ID", "2")).want(t, http.StatusNoContent)
	s.do("GET", path+"/events", admin, header("Last-Event-ID", "x")).contains(t, 400, "bad_event_id")
	s.do("POST", plantJobs+"/hello/run", admin, header("Accept", "text/event-stream")).contains(t, 200, "event: done\n", `"status":"succeeded"`)

	s.do("POST", plantJobs+"/fill/run?wait=true", admin).contains(t, 200, `"status":"succeeded"`, `"result":2`)

	s.do("POST", plantJobs+"/steps/run?wait=true", admin).contains(t, 200, `"progress":{"phase":"copy","message":"rows","done":3,"total":4}`,
		`"id":1,"at":`, `"event":"progress"`, `"message":"begun"`, `"phase":"copy","done":3,"total":4,`)

	failed := s.do("POST", plantJobs+"/broken/run?wait=true", admin)
	failed.contains(t, 200, `"status":"failed"`, `"code":"script_failed"`, `"level":"error"`, `jobs/broken.js:4:`)
}

func TestJobRunsDontOverlapAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	run := s.do("POST", plantJobs+"/slow/run", admin)
	run.contains(t, 202, `"status":"running"`)
	s.do("POST", plantJobs+"/slow/run", admin, key("k")).contains(t, 409, "job_running")
	path := run.header.Get("Location")
	s.do("DELETE", path, admin).contains(t, 202, `"id":"`)
	s.do("GET", path+"/events", admin).contains(t, 200, "event: error\n", `"code":"run_cancelled"`)
	s.do("GET", path, admin).contains(t, 200, `"status":"cancelled"`)
	s.do("DELETE", path, admin).contains(t, 409, "run_ended")

	// A key keeps no refusal that says to come again when the run has ended.
	s.do("POST", plantJobs+"/slow/run", admin, key("k")).contains(t, 202, `"status":"running"`)
}

func TestSuspendedJobs(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	s.do("POST", plantJobs+"/hello/suspend", token(projectToken)).contains(t, 200, `"suspended":true`, `"nextRun":null`, `"suspendedBy":{"kind":"token"`)
	s.do("POST", plantJobs+"/hello/run?wait=true", admin).contains(t, 200, `"status":"succeeded"`)
	s.do("POST", plantJobs+"/hello/resume", admin).contains(t, 200, `"suspended":false`, `"nextRun":"`)
}

// Who has a job run, suspended or resumed, or a run cancelled, is in the audit log, as all that is done to a project.
func TestAuditOfJobs(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	s.do("POST", plantJobs+"/none/run", admin).want(t, http.StatusNotFound)
	s.do("DELETE", plantJobs+"/slow/runs/none", admin).want(t, http.StatusNotFound)
	s.do("POST", plantJobs+"/hello/suspend").want(t, http.StatusForbidden)
	for _, act := range []string{"/hello/suspend", "/hello/resume"} {
		s.do("POST", plantJobs+act, token(projectToken)).want(t, http.StatusOK)
	}
	path := s.do("POST", plantJobs+"/slow/run", admin).header.Get("Location")
	s.do("DELETE", path, admin, header("X-Request-Id", "req-8")).want(t, http.StatusAccepted)
	var got []string
	for _, e := range s.trail("/api/v1/audit?sort=at&filter[namespace]=plant&filter[op][ne]=create", admin) {
		got = append(got, e.Actor.Kind+" "+e.Actor.Name+": "+e.Op+" "+e.Collection+" "+e.RecordID)
		if e.Op == "cancel" && e.RequestID != "req-8" || e.Address != "127.0.0.1" {
			t.Errorf("%+v", e)
		}
	}
	want := []string{
		"token deploy: suspend _jobs.hello ", "token deploy: resume _jobs.hello ",
		"admin admin token: run _jobs.slow ", "admin admin token: cancel _jobs.slow " + path[strings.LastIndexByte(path, '/')+1:],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestJobsTakeRights has a user without rights, one who may read, and what a project's own token may.
func TestJobsTakeRights(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	_, nobody := s.user("nobody", nil)
	_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read"}})
	reads := []string{"", "/hello", "/hello/next", "/hello/runs", "/hello/runs/x", "/hello/runs/x/events"}
	writes := []string{"/hello/run", "/hello/suspend", "/hello/resume"}
	for _, path := range reads {
		s.do("GET", plantJobs+path).want(t, http.StatusForbidden)
		s.do("GET", plantJobs+path, session(nobody)).want(t, http.StatusForbidden)
		if got := s.do("GET", plantJobs+path, session(reader)).status; got == http.StatusForbidden {
			t.Errorf("GET %s: %d for who may read", path, got)
		}
	}
	for _, path := range writes {
		s.do("POST", plantJobs+path).want(t, http.StatusForbidden)
		s.do("POST", plantJobs+path, session(reader)).want(t, http.StatusForbidden)
	}
	s.do("DELETE", plantJobs+"/hello/runs/x", session(reader)).want(t, http.StatusForbidden)
}

// TestStreamsEndWithTheService opens a stream of a run that goes on for long, and has the service stop.
func TestStreamsEndWithTheService(t *testing.T) {
	t.Parallel()
	s := runPlant(t, func(c *app.Config) { c.ShutdownGrace = time.Second })
	run := s.do("POST", plantJobs+"/slow/run", admin)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+run.header.Get("Location")+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	admin(req)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var got []string
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "event: ") {
			got = append(got, line)
			if len(got) == 1 {
				s.do("POST", "/api/v1/admin/shutdown", admin).want(t, http.StatusAccepted)
			}
		}
	}
	if lines.Err() != nil || len(got) != 2 || got[1] != "event: stopping" {
		t.Errorf("%q, %v", got, lines.Err())
	}
}

// contains checks the status of an answer, and that its body contains texts.
func (a answer) contains(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%q is not in %s", text, a.body)
		}
	}
}
