package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

const restoresConfig = `
namespace: blog
snapshots: [{name: all}]
collections:
  - name: library
    fields: [{name: title, type: string}, {name: file, type: file}, {name: more, type: "file[]"}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: notes
    fields: [{name: title, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// TestR1Restores ends svcd without warning while it restores snapshots: what it serves then is all of one of them, records and files.
func TestR1Restores(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killRestores(t, newReleased(t), 8, 160)
	})
	t.Run("mongodb", func(t *testing.T) { // where each start may wait until the process before is taken for dead
		t.Parallel()
		killRestores(t, newReleased(t, ownMongoDB(t, time.Second)), 2, 20)
	})
}

// R1: an instance is killed while it restores, and others go on: who follows the run there learns what has become of it, and is told nothing else meanwhile.
func TestR1RestoreOfDeadInstance(t *testing.T) {
	t.Parallel()
	s := newReleased(t, ownMongoDB(t, time.Second))
	rest := s.start()
	snapshots := rest.versions(t, s)
	is, phases := "second", []string{"swap"}
	if os.Getenv("SOAK") != "" { // each takes half a minute, until one is taken for dead
		phases = []string{"swap", "load", "swap", "safety"}
	}
	for round, phase := range phases {
		dies := s.start()
		dies.servedLibrary(t)
		run, err := dies.begin(t, func() (*api.Run, error) {
			return dies.RestoreSnapshot(t.Context(), "blog", snapshots[round%2], api.SnapshotRestore{})
		})
		if err != nil {
			t.Fatal(err)
		}
		dies.comesTo(t, run, phase)
		if _, _, err := dies.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for t.Context().Err() == nil {
				now, err := rest.SnapshotRun(t.Context(), "blog", run.ID)
				if err != nil || now.Status == api.RunLost {
					t.Errorf("%v, %+v", err, now)
				}
				if err != nil || !now.Active() {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
		_ = rest.reaches(t, run, ended)
		<-over
		rest.servedLibrary(t)
		now := rest.version(t)
		rest.toldOf(t, run, now != is)
		is = now
		rest.whole(t, s.dir)
	}
}

const restoredRecords = 30

func killRestores(t *testing.T, s svcd, rounds, soak int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = soak
	}
	srv := s.start()
	snapshots := srv.versions(t, s)
	is := "second"
	done, undone := 0, 0
	for round := 0; round < rounds || (done == 0 || undone == 0) && round < rounds+extraRounds; round++ {
		to, at := 0, aims[round%len(aims)]
		if is == "first" {
			to = 1
		}
		run, err := srv.begin(t, func() (*api.Run, error) {
			return srv.RestoreSnapshot(t.Context(), "blog", snapshots[to], api.SnapshotRestore{})
		})
		if err != nil {
			t.Fatal(err)
		}
		srv.comesTo(t, run, at)
		moment := 8
		if at == ended || at == "swap" {
			moment = 60
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(moment)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		srv = s.start()
		srv.servedLibrary(t)
		srv.whole(t, s.dir)
		now := srv.version(t)
		srv.toldOf(t, run, now != is)
		if now != is {
			is = now
			done++
		} else {
			undone++
		}
		if t.Failed() {
			t.Fatalf("round %d, %s", round, at)
		}
	}
	until(t, "an event tells of a restore that was taken back", func() bool {
		events, err := srv.ProjectEvents(t.Context(), "blog")
		return err == nil && slices.ContainsFunc(events.Items, func(e api.ProjectEvent) bool { return e.Reason == "RestoreUndone" })
	})
	t.Logf("%d restores were done, %d were not", done, undone)
	if done == 0 || undone == 0 {
		t.Error("all kills came before the swap, or all behind it")
	}
}

func (srv *server) servedLibrary(t *testing.T) {
	t.Helper()
	until(t, "the project is served", func() bool {
		_, err := srv.CountRecords(t.Context(), "blog", "library", "")
		return err == nil
	})
}

// versions makes a project, and snapshots of two versions of its records, of which it has the second one then.
func (srv *server) versions(t *testing.T, s svcd) (snapshots []string) {
	t.Helper()
	s.write("projects/blog/project.yaml", restoresConfig)
	srv.register(t)
	srv.servedLibrary(t)
	var ids []string
	for _, version := range []string{"first", "second"} {
		for n := range restoredRecords {
			body := api.Record(fmt.Sprintf(`{"title":%q,"file":%s}`, version, fileOf(fmt.Sprint(version, n), 3000)))
			note := api.Record(fmt.Sprintf(`{"title":%q}`, version))
			if version == "first" {
				ids = append(ids, srv.mustCreate(t, "library", body), srv.mustCreate(t, "notes", note))
				continue
			}
			for i, collection := range []string{"library", "notes"} {
				if _, err := srv.UpdateRecord(t.Context(), "blog", collection, ids[2*n+i], []api.Record{body, note}[i], client.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		run, err := srv.CreateSnapshot(t.Context(), "blog", "all")
		if err != nil {
			t.Fatal(err)
		}
		until(t, "a snapshot is taken", func() bool {
			run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
			return err == nil && run.Status == "succeeded"
		})
		result, err := client.SnapshotResultOf(run)
		if err != nil {
			t.Fatal(err)
		}
		snapshots = append(snapshots, result.Snapshot)
	}
	return snapshots
}

// toldOf wants a run to end as its restore has: that was done, or was not.
func (srv *server) toldOf(t *testing.T, run *api.Run, done bool) {
	t.Helper()
	var last api.RunEvent
	err := srv.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(e api.RunEvent) error { last = e; return nil })
	if err == nil {
		run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if last.Data.Status != run.Status {
		t.Errorf("its last event says %q, and the run %q", last.Data.Status, run.Status)
	}
	if !done {
		if run.Error == nil || run.Error.Code != "restore_undone" && run.Error.Code != "run_lost" { // lost: it had not begun to change anything
			t.Errorf("nothing was restored, and the run is %s, %+v", run.Status, run.Error)
		}
		return
	}
	result, err := client.SnapshotResultOf(run)
	if err != nil || run.Status != api.RunSucceeded || result.Restored == nil || len(result.Restored.Collections) != 2 {
		t.Fatalf("it was restored, and the run is %s, %+v, %+v, %v", run.Status, run.Error, result.Restored, err)
	}
	if _, err := srv.Snapshot(t.Context(), "blog", result.Restored.Safety, false); err != nil {
		t.Errorf("the snapshot of what was before: %v", err)
	}
}

// aims are the phases of a restore in which svcd is killed, one in each round: what has begun with the first is hardly ever done, and of what has ended records are others.
var aims = []string{"load", ended, "safety", "swap"}

const (
	ended       = "the end" // is no phase
	extraRounds = 8         // until a kill has come before what it is to come before, and one behind it
)

// reaches waits until a run is in a phase, or has ended; of what has ended it says so.
func (s *server) reaches(t *testing.T, run *api.Run, phase string) (end bool) {
	t.Helper()
	there := errors.New("it is there")
	err := s.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(e api.RunEvent) error {
		if e.Data.Phase == phase {
			return there
		}
		return nil
	})
	if err != nil && !errors.Is(err, there) {
		t.Fatal(err)
	}
	return err == nil
}

// comesTo waits until a run is in a phase, or has ended well. Of instances that share a store one waits there for another one that was killed.
func (s *server) comesTo(t *testing.T, run *api.Run, phase string) {
	t.Helper()
	if !s.reaches(t, run, phase) {
		return
	}
	now, err := s.SnapshotRun(t.Context(), "blog", run.ID)
	if err != nil || now.Status != api.RunSucceeded {
		t.Fatalf("%v, %+v", err, now)
	}
}

// mustCreate creates a record. Instances that share a store refuse that for a while after one was killed while it restores.
func (s *server) mustCreate(t *testing.T, collection string, body api.Record) (id string) {
	t.Helper()
	var rec api.Record
	var err error
	until(t, "a record is created", func() bool {
		rec, err = s.CreateRecord(t.Context(), "blog", collection, body)
		return !isStatus(err, http.StatusServiceUnavailable)
	})
	var r stored
	if err == nil {
		err = json.Unmarshal(rec, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// version is the one that all records have.
func (s *server) version(t *testing.T) string {
	t.Helper()
	found := map[string]int{}
	for _, collection := range []string{"library", "notes"} {
		for rec, err := range s.Records(t.Context(), "blog", collection, client.Query{Limit: 1000}) {
			var r struct{ Title string }
			if err == nil {
				err = json.Unmarshal(rec, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
			found[r.Title]++
		}
	}
	for version, n := range found {
		if n == 2*restoredRecords && len(found) == 1 {
			return version
		}
	}
	t.Errorf("there are records of %v", found)
	return ""
}
