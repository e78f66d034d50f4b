package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
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
	t.Run("embedded", func(t *testing.T) { killRestores(t, newSvcd(t), 8, 160) })
	t.Run("mongodb", func(t *testing.T) { // where each start may wait until the process before is taken for dead
		killRestores(t, newSvcd(t, ownMongoDB(t, time.Second)), 2, 20)
	})
}

const restoredRecords = 30

func killRestores(t *testing.T, s svcd, rounds, soak int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = soak
	}
	s.write("projects/blog/project.yaml", restoresConfig)
	srv := s.start()
	srv.register(t)
	served := func() bool {
		_, err := srv.CountRecords(t.Context(), "blog", "library", "")
		return err == nil
	}
	until(t, "the project is served", served)
	var ids, snapshots []string
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
		until(t, "the project is served", served)
		srv.whole(t, s.dir)
		if now := srv.version(t); now != is {
			is = now
			done++
		} else {
			undone++
		}
		if t.Failed() {
			t.Fatalf("round %d, %s", round, at)
		}
	}
	t.Logf("%d restores were done, %d were not", done, undone)
	if done == 0 || undone == 0 {
		t.Error("all kills came before the swap, or all behind it")
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
