package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// R1: svcd is killed while a restore makes a project. After the restart there is a whole one, or none and nothing of it, so that the next
// restore makes it.
func TestR1KillInFounding(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { killInFounding(t, newSvcd(t), 10) })
	t.Run("mongodb", func(t *testing.T) { killInFounding(t, newSvcd(t, ownMongoDB(t, 5*time.Second)), 2) })
}

func killInFounding(t *testing.T, s svcd, rounds int) {
	t.Helper()
	soak := os.Getenv("SOAK") != ""
	if soak {
		rounds *= 20
	}
	const size = 1500
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", size, "")); err != nil {
		t.Fatal(err)
	}
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	kept, gone := 0, 0
	for round := range rounds {
		copied := fmt.Sprint("copy", round)
		into := api.SnapshotRestore{Into: copied}
		begun := make(chan error, 1)
		go func() { // it may be cut off anywhere
			_, err := srv.RestoreSnapshot(t.Context(), "blog", id, into)
			begun <- err
		}()
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-begun
		srv = s.start()
		srv.served(t)
		var there bool
		until(t, "what was begun is ended", func() bool {
			list, err := srv.Projects().List(t.Context(), client.Query{Filter: fmt.Sprintf(`{"namespace":%q}`, copied)})
			if err != nil {
				t.Fatal(err)
			}
			if there = len(list.Items) > 0; !there {
				return true
			}
			n, err := srv.CountRecords(t.Context(), copied, "sets", "")
			if err == nil && n != size { // nobody is ever served half of it
				t.Fatalf("round %d: %d records", round, n)
			}
			return err == nil && list.Items[0].Enabled
		})
		left, err := filepath.Glob(filepath.Join(s.dir, "projects", ".*"))
		marks, _ := filepath.Glob(filepath.Join(s.dir, "projects", "*", ".founding"))
		if err != nil || len(left)+len(marks) > 0 {
			t.Fatalf("round %d: %v, %v are left, %v", round, left, marks, err)
		}
		if there {
			kept++
			continue
		}
		if _, err := os.Stat(filepath.Join(s.dir, "projects", copied)); !os.IsNotExist(err) {
			t.Fatalf("round %d: a folder of a project that is not: %v", round, err)
		}
		if _, err := srv.CountRecords(t.Context(), copied, "sets", ""); !isStatus(err, http.StatusNotFound) {
			t.Fatalf("round %d: %v", round, err)
		}
		gone++
		run, err := srv.begin(t, func() (*api.Run, error) { return srv.RestoreSnapshot(t.Context(), "blog", id, into) })
		srv.ends(t, run, err)
		if n, err := srv.CountRecords(t.Context(), copied, "sets", ""); n != size || err != nil {
			t.Fatalf("round %d: %d records, %v", round, n, err)
		}
	}
	t.Logf("%d were kept, %d were not", kept, gone)
	if soak && (kept == 0 || gone == 0) {
		t.Error("no kill has come in the middle")
	}
}
