package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// R4: where the disk of the store is full before a restore, or gets so on its way, in what it notes or loads, the records are those of before or of the snapshot, whole, the failure says
// what to do, and the next one goes when there is room.
func TestR4RestoreOnFullDisk(t *testing.T) {
	t.Parallel()
	const size = 3000
	s := onSmallDisk(t, newSvcd(t), 200)
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", size, strings.Repeat("x", 1000))); err != nil {
		t.Fatal(err)
	}
	number := func(n int) {
		t.Helper()
		if _, err := srv.BulkUpdate(t.Context(), "blog", "sets", inSet("one"), api.Record(fmt.Sprintf(`{"n":%d}`, n))); err != nil {
			t.Fatal(err)
		}
	}
	number(1)
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	disk := fmt.Sprintf("/proc/%d/root%s/data", srv.cmd.Process.Pid, s.dir)
	filler := filepath.Join(disk, "filler")
	failed := 0
	for _, left := range []int64{60 << 20, 0} { // below 64 MiB the store refuses writes, and 0 is what it did not expect
		for _, phase := range []string{"", "verify", "load", "safety", "swap"} { // "": before it begins
			what := fmt.Sprintf("%d bytes are left from %q on", left, phase)
			number(2)
			if phase == "" {
				takeRoom(t, filler, disk, left)
			}
			run, err := srv.begin(t, func() (*api.Run, error) { return srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{}) })
			if err == nil && phase != "" {
				_ = srv.reaches(t, run, phase)
				takeRoom(t, filler, disk, left)
			}
			until(t, "the service tells of its disk, or the restore has ended and given back what it took", func() bool {
				if srv.Ready(t.Context()) != nil || err != nil {
					return true
				}
				now, err := srv.SnapshotRun(t.Context(), "blog", run.ID)
				return err == nil && !now.Active()
			})
			time.Sleep(time.Second) // in which it goes as far as it can
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if err == nil { // how it has ended is noted when there is room
				until(t, "the run ends", func() bool {
					now, err := srv.SnapshotRun(t.Context(), "blog", run.ID)
					if err == nil {
						run = now
					}
					return err == nil && !run.Active()
				})
			}
			restored := err == nil && run.Status == api.RunSucceeded
			if !restored {
				failed++
			}
			if err == nil && !restored && (run.Error == nil || run.Error.Code == "internal") {
				t.Errorf("%s: %+v", what, run.Error)
			}
			until(t, "there is room again", func() bool { return srv.Ready(t.Context()) == nil })
			srv.served(t)
			until(t, "writes are taken", func() bool {
				_, err := srv.CreateRecord(t.Context(), "blog", "sets", api.Record(`{"set":"other"}`))
				return err == nil
			})
			n := whole(t, "one", srv.sets(t, "sets")["one"], size)
			if n != 1 && n != 2 || restored && n != 1 {
				t.Errorf("%s: the records are as of %d", what, n)
			}
			if err == nil {
				err = fmt.Errorf("%s %+v", run.Status, run.Error)
			}
			t.Logf("%s: %v, the records are as of %d", what, err, n)
			srv.wholeSnapshots(t, what)
		}
	}
	if failed < 2 {
		t.Errorf("%d restores failed: this tested little", failed)
	}
	run, err = srv.begin(t, func() (*api.Run, error) { return srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{}) })
	srv.ends(t, run, err)
	if n := whole(t, "one", srv.sets(t, "sets")["one"], size); n != 1 {
		t.Errorf("the records are as of %d", n)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

// R4: while the disk of the store stays below what is kept free on it, who restores is told that, at once, and the records are as before; there is a run of it, also when there is room again.
func TestR4RestoreWhileDiskIsFull(t *testing.T) {
	t.Parallel()
	const size = 3000
	s := onSmallDisk(t, newSvcd(t), 200)
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", size, strings.Repeat("x", 1000))); err != nil {
		t.Fatal(err)
	}
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	if _, err := srv.BulkUpdate(t.Context(), "blog", "sets", inSet("one"), api.Record(`{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	disk := fmt.Sprintf("/proc/%d/root%s/data", srv.cmd.Process.Pid, s.dir)
	filler := filepath.Join(disk, "filler")
	if run, err = srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{}); err != nil {
		t.Fatal(err)
	}
	_ = srv.reaches(t, run, "load")
	takeRoom(t, filler, disk, 60<<20)
	told := func(when string) {
		t.Helper()
		var last api.RunEvent
		err := srv.FollowSnapshotRun(t.Context(), "blog", run.ID, 0, func(e api.RunEvent) error { last = e; return nil })
		if err == nil {
			run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
		}
		if err != nil || run.Status != api.RunFailed || run.Error.Code != "store_full" || !strings.Contains(run.Error.Message, "the disk of the store has") || last.Data.Code != "store_full" {
			t.Errorf("%s: %v, %s %+v, %+v", when, err, run.Status, run.Error, last)
		}
		if n := whole(t, "one", srv.sets(t, "sets")["one"], size); n != 2 {
			t.Errorf("%s: the records are as of %d", when, n)
		}
		list, err := srv.ListSnapshotRuns(t.Context(), "blog", client.SnapshotRunsQuery{Kind: api.RunKindRestore})
		if err != nil || len(list.Items) != 1 || list.Items[0].Status != api.RunFailed {
			t.Errorf("%s: %v, %+v", when, err, list)
		}
	}
	told("while it is full")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	until(t, "writes are taken", func() bool {
		_, err := srv.CreateRecord(t.Context(), "blog", "sets", api.Record(`{"set":"other"}`))
		return err == nil
	})
	again, err := srv.begin(t, func() (*api.Run, error) { return srv.CreateSnapshot(t.Context(), "blog", "daily") }) // which goes once it is on record
	srv.ends(t, again, err)
	told("when there is room again")
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

// R4: where the disk of the snapshots is full, what can't be noted of them is refused, and what was is as it was; what is not to be kept goes all the same, which makes room; all that is there
// is whole.
func TestR4NotesOnFullDisk(t *testing.T) {
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
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", 100, "")); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 3 {
		run, err := srv.begin(t, func() (*api.Run, error) { return srv.CreateSnapshot(t.Context(), "blog", "daily") })
		ids = append(ids, srv.ends(t, run, err))
		time.Sleep(1100 * time.Millisecond) // ids are of seconds
	}
	pinned := func(id string) bool {
		t.Helper()
		info, err := srv.Snapshot(t.Context(), "blog", id, false)
		if err != nil {
			t.Fatal(err)
		}
		return info.Pinned
	}
	disk := fmt.Sprintf("/proc/%d/root%s/projects/blog/snapshots", srv.cmd.Process.Pid, s.dir)
	filler := filepath.Join(disk, "filler")
	takeRoom(t, filler, disk, 0)
	if _, err := srv.PinSnapshot(t.Context(), "blog", ids[2], true); !isStatus(err, http.StatusInsufficientStorage) {
		t.Errorf("a pin: %v", err)
	}
	if pinned(ids[2]) {
		t.Error("it is pinned")
	}
	run, err := srv.begin(t, func() (*api.Run, error) {
		return srv.VerifySnapshot(t.Context(), "blog", ids[2], api.SnapshotVerify{})
	})
	if err == nil {
		_ = srv.reaches(t, run, ended)
		run, err = srv.SnapshotRun(t.Context(), "blog", run.ID)
	}
	if err != nil || run.Status != api.RunFailed || run.Error.Code != "snapshots_full" {
		t.Errorf("a check: %v, %+v", err, run)
	}
	run, err = srv.begin(t, func() (*api.Run, error) { return srv.PruneSnapshots(t.Context(), "blog", "daily") })
	srv.ends(t, run, err)
	list, err := srv.ListSnapshots(t.Context(), "blog", "", client.Query{Limit: 1000})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != ids[2] {
		t.Errorf("a prune has left %+v, %v", list, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	srv.wholeSnapshots(t, "a full disk")
	if _, err := srv.PinSnapshot(t.Context(), "blog", ids[2], true); err != nil || !pinned(ids[2]) {
		t.Errorf("with room: %v", err)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}
