package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// R1: svcd is killed while a restore makes a project. After the restart there is a whole one, or none and nothing of it, so that the next
// restore makes it.
func TestR1KillInFounding(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killInFounding(t, newReleased(t), 4, 200)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killInFounding(t, newReleased(t, ownMongoDB(t, 5*time.Second)), 2, 40)
	})
}

func killInFounding(t *testing.T, s svcd, rounds, soak int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = soak
	}
	const size = 1500
	srv := startTaken(t, s, size)
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	kept, gone := 0, 0
	for round := 0; round < rounds || kept == 0 || gone == 0; round++ { // else no kill has come in the middle
		if round == 10*rounds {
			t.Fatalf("of %d rounds all but none: %d were kept, %d were not", round, kept, gone)
		}
		copied := fmt.Sprint("copy", round)
		into := api.SnapshotRestore{Into: copied}
		run, err := srv.begin(t, func() (*api.Run, error) {
			return srv.RestoreSnapshot(t.Context(), "blog", id, into)
		})
		if err != nil {
			t.Fatal(err)
		}
		phase, moment := []string{"load", "index", "swap", "swap"}[randtest.Of(t).IntN(4)], randtest.Of(t).IntN(60)
		switch {
		case round < 2*rounds:
		case kept == 0: // on a machine so slow that none is
			phase = ended
		default:
			phase, moment = "load", 0
		}
		srv.comesTo(t, run, phase)
		time.Sleep(time.Duration(moment) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		srv = s.start()
		srv.served(t)
		if srv.founded(t, s.dir, copied, size) {
			kept++
		} else {
			gone++
			run, err := srv.begin(t, func() (*api.Run, error) { return srv.RestoreSnapshot(t.Context(), "blog", id, into) })
			srv.ends(t, run, err)
			if !srv.founded(t, s.dir, copied, size) {
				t.Fatalf("round %d: the next restore makes nothing", round)
			}
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d were kept, %d were not", kept, gone)
}

// founded waits until what a restore has begun is ended: by a project that is whole, and served, or by nothing that is left of it.
func (s *server) founded(t *testing.T, dir, namespace string, size int64) (there bool) {
	t.Helper()
	until(t, "what was begun is ended", func() bool {
		list, err := s.Projects().List(t.Context(), client.Query{Filter: fmt.Sprintf(`{"namespace":%q}`, namespace)})
		if err != nil {
			t.Fatal(err)
		}
		if there = len(list.Items) > 0; !there {
			return true
		}
		n, err := s.CountRecords(t.Context(), namespace, "sets", "")
		if err == nil && n != size { // nobody is ever served half of it
			t.Fatalf("%s: %d records", namespace, n)
		}
		return err == nil && list.Items[0].Enabled
	})
	traces := []string{"projects/.*", "projects/*/.founding", "data/uploads/.*"}
	if there {
		if named, onDisk := s.wholeIn(t, dir, namespace); named != takenFiles || onDisk != takenFiles {
			t.Errorf("%s: %d files, %d on disk", namespace, named, onDisk)
		}
	} else {
		traces = append(traces, "projects/"+namespace, "data/uploads/"+namespace)
		if _, err := s.CountRecords(t.Context(), namespace, "sets", ""); !isStatus(err, http.StatusNotFound) {
			t.Errorf("%s: %v", namespace, err)
		}
	}
	for _, pattern := range traces {
		if left, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left, %v", namespace, left, err)
		}
	}
	return there
}

// Where the directory of projects is mounted to be read, a restore that would make a project says so, as its dry run does, and leaves nothing
// that is in the way of others.
func TestFoundingOnReadOnlyProjects(t *testing.T) {
	s := newSvcd(t)
	if err := os.MkdirAll(filepath.Join(s.dir, "projects", "blog", "snapshots"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = withMounts(t, s, `mount --bind projects projects && mount -o remount,bind,ro projects && mount -t tmpfs -o size=20m tmpfs projects/blog/snapshots`)
	srv := startTaken(t, s, 10)
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	for range 2 {
		for _, dry := range []bool{true, false} {
			run, err := srv.begin(t, func() (*api.Run, error) {
				return srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{Into: "copy", DryRun: dry})
			})
			if err == nil {
				err = srv.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(api.RunEvent) error { return nil })
			}
			if err == nil {
				run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
			}
			if err != nil || run.Error == nil || run.Error.Code != "no_projects_dir" {
				t.Errorf("dry run %v: %v, %+v", dry, err, run)
			}
			if srv.founded(t, s.dir, "copy", 10) {
				t.Error("there is a project")
			}
		}
	}
}
