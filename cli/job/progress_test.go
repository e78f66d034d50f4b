package job_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// The tables of jobs and runs fit into the terminal.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	at := api.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	run := api.Run{
		ID: "6b037616fca127dd6d99ab14", Kind: "job", Name: "cancel-unpaid", Status: api.RunFailed, Trigger: "schedule", CreatedAt: at, StartedAt: at, FinishedAt: at,
		Error: &api.RunError{Message: "the shop's register could not be reached by the job"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = api.List[api.Job]{Items: []api.Job{{Name: "cancel-unpaid", Cron: "CRON_TZ=Europe/Berlin 30 3 * * *", NextRun: at, LastRun: &run, File: "jobs/cancel-unpaid.js"}}}
		if strings.HasSuffix(r.URL.Path, "/runs") {
			answer = api.List[api.Run]{Items: []api.Run{run}}
		}
		w.Header().Set("Content-Type", api.MediaJSON)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for _, line := range []string{"list shop", "history shop cancel-unpaid"} {
		var out bytes.Buffer
		st := &command.State{
			In: strings.NewReader(""), Out: &out, Err: &out, OutWidth: 80, Now: time.Now, Home: t.TempDir(), Version: "test", Env: func(string) (string, bool) { return "", false },
		}
		code := cli.Run(t.Context(), st, append([]string{"job"}, append(strings.Fields(line), "--server", server.URL)...))
		if code != command.ExitOK || !strings.Contains(out.String(), "…") {
			t.Errorf("svcctl job %s: exit code %d\n%s", line, code, out.String())
		}
		for text := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")); n > 80 {
				t.Errorf("svcctl job %s: %d characters: %s", line, n, text)
			}
		}
	}
}

// How far a run of a job is goes to those who wait for it, and is in its log and in the history.
func TestProgressOfRuns(t *testing.T) {
	t.Parallel()
	run := api.Run{ID: "r1", Kind: "job", Name: "copy", Status: api.RunSucceeded, Progress: api.RunProgress{Phase: "copy", Done: 3, Total: 4, Message: "rows"}}
	run.Events = []api.RunEvent{
		{ID: 1, Event: api.EventProgress, Data: api.RunEventData{Message: "begun", Phase: "copy", BytesDone: 5}},
		{ID: 2, Event: api.EventProgress, Data: api.RunEventData{Message: "rows", Phase: "copy", Done: 3, Total: 4}},
		{ID: 3, Event: api.EventDone, Data: api.RunEventData{Status: api.RunSucceeded}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = run
		switch {
		case strings.HasSuffix(r.URL.Path, "/events"):
			w.Header().Set("Content-Type", api.MediaEvents)
			for _, e := range run.Events {
				data, err := json.Marshal(e.Data)
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write([]byte("id: " + string('0'+byte(e.ID)) + "\nevent: " + e.Event + "\ndata: " + string(data) + "\n\n"))
			}
			return
		case strings.HasSuffix(r.URL.Path, "/runs"):
			answer = api.List[api.Run]{Items: []api.Run{run}}
		}
		w.Header().Set("Content-Type", api.MediaJSON)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for line, wants := range map[string][]string{
		"run shop copy --wait": {"copy 5 bytes begun\n", "copy 3 of 4 rows\n"},
		"logs shop copy":       {"progress  copy 5 bytes begun\n", "progress  copy 3 of 4 rows\n"},
		"history shop copy":    {"copy 3 of 4 rows"},
	} {
		var out bytes.Buffer
		st := &command.State{
			In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now, Home: t.TempDir(), Version: "test",
			Env: func(name string) (string, bool) {
				return map[string]string{"SVC_SERVER": server.URL, "SVC_TOKEN": "t"}[name], name == "SVC_SERVER" || name == "SVC_TOKEN"
			},
		}
		code := cli.Run(t.Context(), st, append([]string{"job"}, append(strings.Fields(line), "--server", server.URL)...))
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("svcctl job %s (exit code %d): %q is not in\n%s", line, code, want, out.String())
			}
		}
	}
}
