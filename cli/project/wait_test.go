package project

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// answers serves one status after the other, and the last one again; at the end it calls done.
func answers(t *testing.T, done func(), list ...api.ProjectStatus) *client.Client {
	t.Helper()
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list[min(n, len(list)-1)]); err != nil {
			t.Error(err)
		}
		if n++; n > len(list) {
			done()
		}
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{Server: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func status(state, reason, message string) api.ProjectStatus {
	return api.ProjectStatus{Conditions: []api.Condition{{Type: "Ready", Status: state, Reason: reason, Message: message}}}
}

func TestWaitReady(t *testing.T) {
	t.Parallel()
	var (
		good    = status("True", "Serving", "generation 2 is served")
		pending = status("False", "Pending", "ConfigValid: not loaded yet")
		busy    = status("Unknown", "Progressing", "IndexesConverged: not judged yet")
		store   = status("False", "StoreError", "IndexesConverged: the store failed; it is tried again")
		failed  = status("False", "UniqueViolation", "IndexesConverged: articles: records share a value")
		off     = api.ProjectStatus{Phase: api.PhaseDisabled, Conditions: busy.Conditions}
	)
	for name, tc := range map[string]struct {
		answers  []api.ProjectStatus
		patience int
		exit     int
		text     string
	}{
		"at once":             {answers: []api.ProjectStatus{good}},
		"after a while":       {answers: []api.ProjectStatus{pending, store, busy, good}},
		"failed":              {answers: []api.ProjectStatus{busy, failed}, exit: command.ExitFailed, text: "records share a value"},
		"invalid":             {answers: []api.ProjectStatus{status("False", "Invalid", "ConfigValid: x")}, exit: command.ExitFailed, text: "ConfigValid: x"},
		"disabled":            {answers: []api.ProjectStatus{off}, exit: command.ExitFailed, text: "disabled"},
		"old failure is over": {answers: []api.ProjectStatus{failed, good}, patience: 1},
		"old failure stays":   {answers: []api.ProjectStatus{failed, failed}, patience: 1, exit: command.ExitFailed, text: "records share a value"},
		"nothing known":       {answers: []api.ProjectStatus{{}, good}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answers(t, func() {}, tc.answers...)
			got, err := waitReady(t.Context(), c, &api.Project{ID: "1", Namespace: "blog"}, tc.patience)
			if exit := exitOf(t, err); exit != tc.exit || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("exit code %d, %v", exit, err)
			}
			if got == nil || got.Conditions[0] != tc.answers[len(tc.answers)-1].Conditions[0] {
				t.Errorf("the last status is %+v", got)
			}
		})
	}
}

// When the time is over, the error says what was waited for.
func TestWaitReadyTimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := answers(t, func() { cancel(context.DeadlineExceeded) }, status("Unknown", "Progressing", "IndexesConverged: 1 of 2"))
	_, err := waitReady(deadline{ctx}, c, &api.Project{ID: "1", Namespace: "blog"}, 0)
	if exitOf(t, err) != command.ExitTimeout || !strings.Contains(err.Error(), "IndexesConverged: 1 of 2") {
		t.Errorf("got %v", err)
	}
}

// deadline is a context that ends as one does whose time is over.
type deadline struct{ context.Context }

func (d deadline) Err() error {
	if d.Context.Err() == nil {
		return nil
	}
	return context.DeadlineExceeded
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	own, ok := errors.AsType[*command.Error](err)
	if !ok {
		t.Fatalf("%v is no error of ours", err)
	}
	return own.Exit
}
