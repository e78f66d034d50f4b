package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
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
	seen := map[string]int{}
	for round := range rounds {
		var run *api.Run
		until(t, "a restore begins", func() (ok bool) {
			var err error
			run, err = srv.RestoreSnapshot(t.Context(), "blog", snapshots[round%2], api.SnapshotRestore{})
			return err == nil
		})
		srv.comesTo(t, run, []string{"load", "safety", "swap"}[rand.IntN(3)])
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		srv = s.start()
		until(t, "the project is served", served)
		srv.whole(t, s.dir)
		seen[srv.version(t)]++
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d kills: %v", rounds, seen)
	if os.Getenv("SOAK") != "" && len(seen) < 2 {
		t.Error("no restore was done")
	}
}

// comesTo waits until a run is in a phase, or has ended. Of instances that share a store one waits there for another one that was killed.
func (s *server) comesTo(t *testing.T, run *api.Run, phase string) {
	t.Helper()
	there := errors.New("it is there")
	err := s.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(e api.RunEvent) error {
		if e.Data.Phase == phase {
			return there
		}
		return nil
	})
	if errors.Is(err, there) {
		return
	}
	if err == nil {
		run, err = s.SnapshotRun(t.Context(), "blog", run.ID)
	}
	if err != nil || run.Status != api.RunSucceeded {
		t.Fatalf("%v, %+v", err, run.Error)
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
