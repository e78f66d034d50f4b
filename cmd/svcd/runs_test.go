package main

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

const deskConfig = `
namespace: blog
actions:
  - name: wait
    hooks: {handle: {type: javascript, file: wait.js}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
    meta: {methods: {post: {execution: {kind: async}}}}
collections:
  - name: notes
    fields: [{name: text, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

const waitScript = `module.exports = async (ctx) => {
  const notes = db.collection('notes')
  await notes.insert({text: 'begun'})
  while (!(await notes.findOne({text: 'go on'}))) await sleep(20)
  await notes.insert({text: 'ended'})
}`

// TestRunsOfDeadInstances kills an instance that does a run, and has another one sleep for too long: both runs are lost, as
// every instance tells, and the one that sleeps writes nothing of it when it wakes.
func TestRunsOfDeadInstances(t *testing.T) {
	t.Parallel()
	mongod := startMongoDB(t)
	s := newSvcd(t, "STORE_URI="+mongod.URI)
	s.write("projects/blog/project.yaml", deskConfig)
	s.write("projects/blog/wait.js", waitScript)
	rest := s.start()
	rest.register(t)
	var runs []string
	var instances []*server
	for n := range int64(2) {
		i := s.start()
		run := i.startWait(t)
		until(t, "the run has begun", func() bool {
			begun, err := rest.CountRecords(t.Context(), "blog", "notes", `{"text": "begun"}`)
			return err == nil && begun == n+1
		})
		runs, instances = append(runs, run), append(instances, i)
	}
	if _, _, err := instances[0].stop(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := instances[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lost := func(c *server, id string) func() bool {
		return func() bool {
			run, err := c.ActionRun(t.Context(), "blog", "wait", id)
			return err == nil && run.Status == api.RunLost && run.Error.Code == "run_lost" && run.Events[len(run.Events)-1].Event == api.EventError
		}
	}
	for _, id := range runs {
		until(t, "the run is lost", lost(rest, id))
	}
	if _, err := rest.CreateRecord(t.Context(), "blog", "notes", api.Record(`{"text": "go on"}`)); err != nil {
		t.Fatal(err)
	}
	if err := instances[1].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the one that slept knows", lost(instances[1], runs[1]))
	history, err := rest.ListActionRuns(t.Context(), "blog", "wait", api.RunLost, client.Query{})
	if err != nil || len(history.Items) != 2 || history.Items[0].ID != runs[1] || history.Items[1].ID != runs[0] || history.Items[0].FinishedAt.IsZero() {
		t.Errorf("%+v, %v", history, err)
	}
	if code, log, err := instances[1].stop(syscall.SIGTERM); code != 0 || err != nil { // what it does is over then
		t.Errorf("code %d, %v, %s", code, err, log)
	}
	ended, err := rest.CountRecords(t.Context(), "blog", "notes", `{"text": "ended"}`)
	if err != nil || ended != 0 {
		t.Errorf("%d runs wrote after they were given up (%v)", ended, err)
	}
}

// startWait starts a run of the action wait, as soon as the project is served here.
func (s *server) startWait(t *testing.T) (id string) {
	t.Helper()
	until(t, "the project is served", func() bool {
		resp, err := s.CallAction(t.Context(), "blog", "wait", nil, api.Record(`{}`))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var run api.Run
		if err := json.NewDecoder(resp.Body).Decode(&run); err != nil || resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.Status, err)
		}
		id = run.ID
		return true
	})
	return id
}

// until waits for something that comes.
func until(t *testing.T, what string, there func() bool) {
	t.Helper()
	for giveUp := time.Now().Add(2 * patience); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("not after %s: %s", 2*patience, what)
		}
	}
}
