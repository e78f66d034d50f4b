package job_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

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
