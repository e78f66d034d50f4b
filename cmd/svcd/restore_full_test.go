package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// R4: where the disk of the store is full before a restore, or gets so on its way, in what it notes or loads, the records are those of before or of the snapshot, whole, the failure says
// what to do, and the next one goes when there is room.
func TestR4RestoreOnFullDisk(t *testing.T) {
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
			run, err := srv.RestoreSnapshot(t.Context(), "blog", id, api.SnapshotRestore{})
			if err == nil && phase != "" {
				_ = srv.reaches(t, run, phase)
				takeRoom(t, filler, disk, left)
			}
			until(t, "the service tells of its disk", func() bool { return srv.Ready(t.Context()) != nil })
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
