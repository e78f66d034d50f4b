package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

const takenConfig = `
namespace: blog
snapshots: [{name: daily, collectionDedup: true, retention: {keepLast: 1}}]
collections:
  - name: sets
    bulk: {mode: atomic, maxItems: 5000}
    fields: [{name: set, type: string}, {name: k, type: string}, {name: n, type: number}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: library
    fields: [{name: file, type: file}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// takenFiles is how many files startTaken has the project have.
const takenFiles = 20

// startTaken starts svcd with a project of takenConfig, which has a set of so many records, and some files.
func startTaken(t *testing.T, s svcd, size int) *server {
	t.Helper()
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", size, "")); err != nil {
		t.Fatal(err)
	}
	for n := range takenFiles {
		srv.mustCreate(t, "library", api.Record(fmt.Sprintf(`{"file":%s}`, fileOf(fmt.Sprint(n), 3000))))
	}
	return srv
}

// ends waits for the end of a run, and gives the snapshot that it was about.
func (s *server) ends(t *testing.T, run *api.Run, err error) string {
	t.Helper()
	if err == nil {
		err = s.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(api.RunEvent) error { return nil })
	}
	if err == nil {
		run, err = s.SnapshotRun(t.Context(), "blog", run.ID)
	}
	if err != nil || run.Status != api.RunSucceeded {
		t.Fatalf("%v, %+v", err, run.Error)
	}
	return run.Subject
}

// R1: svcd is killed in the midst of taking, restoring, pruning, importing and checking snapshots. After the restart the records are as
// one of the two sides has them, whole; every snapshot that there is is, too, by a check of everything; and the next one goes.
func TestR1KillInSnapshots(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killInSnapshots(t, newReleased(t), 5, 200) // each kind once
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killInSnapshots(t, newReleased(t, ownMongoDB(t, 5*time.Second)), 4, 80)
	})
}

func killInSnapshots(t *testing.T, s svcd, rounds, soak int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds = soak
	}
	const size = 1500
	srv := startTaken(t, s, size)
	for round := range rounds {
		now := round + 2
		until(t, "writes are taken", func() bool { // instances that share a store wait a while for one that is killed while it restores
			_, err := srv.BulkUpdate(t.Context(), "blog", "sets", inSet("one"), api.Record(fmt.Sprintf(`{"n":%d}`, now)))
			if err != nil && !isStatus(err, http.StatusServiceUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		run, err := srv.begin(t, func() (*api.Run, error) { return srv.CreateSnapshot(t.Context(), "blog", "daily") })
		id := srv.ends(t, run, err)
		archive := srv.downloaded(t, id)
		if _, err := srv.BulkUpdate(t.Context(), "blog", "sets", inSet("one"), api.Record(`{"n":-1}`)); err != nil {
			t.Fatal(err)
		}
		may := map[int]bool{-1: true}
		what := []string{"take", "restore", "prune", "import", "backup"}[round%5]
		ended := make(chan struct{})
		if what == "import" {
			if err := srv.DeleteSnapshot(t.Context(), "blog", id); err != nil {
				t.Fatal(err)
			}
		}
		go func() { // it may be cut off anywhere
			defer close(ended)
			switch what {
			case "take":
				_, _ = srv.CreateSnapshot(t.Context(), "blog", "daily")
			case "restore":
				_, _ = srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{})
			case "prune":
				_, _ = srv.PruneSnapshots(t.Context(), "blog", "")
			case "import":
				_, _ = srv.ImportSnapshot(t.Context(), "blog", "", bytes.NewReader(archive), int64(len(archive)))
			case "backup":
				_, _ = srv.RestoreBackup(t.Context(), "blog", api.SnapshotRestore{}, bytes.NewReader(archive), int64(len(archive)))
			}
		}()
		if what == "restore" || what == "backup" {
			may[now] = true
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(150)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-ended
		srv = s.start()
		srv.served(t)
		if n := whole(t, "one", srv.sets(t, "sets")["one"], size); !may[n] {
			t.Errorf("round %d, %s: the records are as of %d, and were -1 or %d", round, what, n, now)
		}
		if named, _ := srv.whole(t, s.dir); named != takenFiles {
			t.Errorf("round %d, %s: %d files", round, what, named)
		}
		srv.wholeSnapshots(t, what)
		for _, left := range leftovers(t, s.dir) {
			t.Errorf("round %d, %s: %s is left", round, what, left)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// begin starts a run, once what a killed process did counts as lost.
func (s *server) begin(t *testing.T, start func() (*api.Run, error)) (run *api.Run, err error) {
	t.Helper()
	until(t, "nothing goes on", func() bool {
		run, err = start()
		var refused *client.Error
		return !errors.As(err, &refused) || refused.Problem.Code != "snapshots_busy"
	})
	return run, err
}

// wholeSnapshots checks every snapshot that there is.
func (s *server) wholeSnapshots(t *testing.T, what string) {
	t.Helper()
	list, err := s.ListSnapshots(t.Context(), "blog", "", client.Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list.Items {
		run, err := s.begin(t, func() (*api.Run, error) {
			return s.VerifySnapshot(t.Context(), "blog", info.ID, api.SnapshotVerify{})
		})
		if id := s.ends(t, run, err); id != info.ID || info.Problem != "" {
			t.Errorf("after %s: %+v", what, info)
		}
	}
}

// leftovers are folders of snapshots that are not whole, once the service had a while to clean up.
func leftovers(t *testing.T, dir string) (left []string) {
	t.Helper()
	for giveUp := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all, err := filepath.Glob(filepath.Join(dir, "projects", "blog", "snapshots", "*", ".*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 || time.Now().After(giveUp) {
			return all
		}
	}
}

func (s *server) downloaded(t *testing.T, id string) []byte {
	t.Helper()
	f, err := s.DownloadSnapshot(t.Context(), "blog", id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// R4: where there is no space for a snapshot, that is said, those that are there stay whole, and the next one goes when there is.
func TestSnapshotsOnFullDisk(t *testing.T) {
	t.Parallel()
	s := newSvcd(t)
	s.write("projects/blog/project.yaml", takenConfig)
	if err := os.Mkdir(filepath.Join(s.dir, "projects", "blog", "snapshots"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = onSmallDisk(t, s, 0)
	s.under[len(s.under)-1] = `mount -t tmpfs -o size=10m tmpfs projects/blog/snapshots && exec "$0" "$@"`
	srv := s.start()
	srv.register(t)
	fill := func() {
		t.Helper()
		for range 8 {
			noise, random := make([]byte, 256<<10), randtest.Of(t)
			for i := range noise {
				noise[i] = byte('!' + random.IntN(90))
			}
			text := strings.NewReplacer(`"`, "_", `\`, "_").Replace(string(noise))
			if _, err := srv.CreateRecord(t.Context(), "blog", "sets", api.Record(`{"set":"`+text+`"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	run, err := srv.CreateBackup(t.Context(), "blog")
	first := srv.ends(t, run, err)
	archive := srv.downloaded(t, first)
	fill()
	fill()
	fill()
	run, err = srv.CreateBackup(t.Context(), "blog")
	if err == nil {
		if err = srv.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(api.RunEvent) error { return nil }); err == nil {
			run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
		}
	}
	if err != nil || run.Status != api.RunFailed || run.Error.Code != "snapshots_full" {
		t.Fatalf("%v, %+v %+v", err, run.Status, run.Error)
	}
	if _, err := srv.DownloadBackup(t.Context(), "blog", ""); !isStatus(err, http.StatusInsufficientStorage) {
		t.Errorf("a backup for a download: %v", err)
	}
	srv.wholeSnapshots(t, "a full disk")
	if err := srv.DeleteSnapshot(t.Context(), "blog", first); err != nil {
		t.Fatal(err)
	}
	run, err = srv.CreateBackup(t.Context(), "blog")
	srv.ends(t, run, err)
	if _, err := srv.ImportSnapshot(t.Context(), "blog", "", bytes.NewReader(archive), -1); !isStatus(err, http.StatusInsufficientStorage) {
		t.Errorf("an import: %v", err)
	}
	srv.wholeSnapshots(t, "a full disk")
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

func isStatus(err error, status int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == status
}
