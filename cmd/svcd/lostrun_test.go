package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// A run of snapshots that is lost with svcd says what to do, without contradicting itself, and an event of the project tells of it.
func TestLostSnapshotRunIsTold(t *testing.T) {
	t.Parallel()
	s := newSvcd(t)
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", 3000, strings.Repeat("x", 1000))); err != nil {
		t.Fatal(err)
	}
	for range 5 { // one may end before
		run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		srv = s.start()
		srv.served(t)
		until(t, "the run has ended", func() bool {
			now, err := srv.SnapshotRun(t.Context(), "blog", run.ID)
			if err == nil {
				run = now
			}
			return err == nil && !run.Active()
		})
		if run.Status != api.RunLost {
			continue
		}
		if m := run.Error.Message; strings.Contains(m, "see what it has done") || !strings.Contains(m, "leaves nothing half; start it again") {
			t.Errorf("it says %q", m)
		}
		until(t, "an event tells of it", func() bool {
			events, err := srv.ProjectEvents(t.Context(), "blog")
			if err != nil {
				return false
			}
			for _, e := range events.Items {
				if e.Reason == "SnapshotRunLost" && strings.Contains(e.Message, run.ID) {
					return true
				}
			}
			return false
		})
		return
	}
	t.Skip("no kill came before the end of a run")
}
