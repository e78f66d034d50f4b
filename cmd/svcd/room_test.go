package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/errs"
)

// keyed asks for a run of snapshots by a request with an Idempotency-Key, the same one for the same request, when no other run goes on.
func (s *server) keyed(t *testing.T, path, body string) (status int) {
	t.Helper()
	until(t, "nothing goes on", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/api/v1/_/blog/_/admin/snapshots/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Admin-Token", adminToken)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%x", path+body))
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		status = a.StatusCode
		return a.Body.Close() == nil && status != http.StatusConflict
	})
	return status
}

// Where the disk of the store has less than is kept free, nothing is written, but what only reads snapshots or removes them goes, and is in the audit log.
func TestR4RoomIsMadeOnFullDisk(t *testing.T) {
	t.Parallel()
	s := onSmallDisk(t, newSvcd(t), 200)
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", 100, "x")); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
		ids = append(ids, srv.ends(t, run, err))
	}
	disk := fmt.Sprintf("/proc/%d/root%s/data", srv.cmd.Process.Pid, s.dir)
	filler := filepath.Join(disk, "filler")
	takeRoom(t, filler, disk, 40<<20)
	until(t, "writes are refused", func() bool {
		_, err := srv.CreateRecord(t.Context(), "blog", "sets", api.Record(`{"set":"other"}`))
		return errs.KindOf(err) == errs.Full || err != nil && strings.Contains(err.Error(), "the disk of the store has")
	})
	ctx := t.Context()
	runs := func(what string, start func() (*api.Run, error)) {
		t.Helper()
		run, err := srv.begin(t, start)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		until(t, what+" ends", func() bool {
			now, err := srv.SnapshotRun(ctx, "blog", run.ID)
			if err == nil {
				run = now
			}
			return err == nil && !run.Active()
		})
		if run.Status != api.RunSucceeded {
			t.Errorf("%s: %s %+v", what, run.Status, run.Error)
		}
	}
	runs("a check", func() (*api.Run, error) { return srv.VerifySnapshot(ctx, "blog", ids[0], api.SnapshotVerify{}) })
	runs("a dry run", func() (*api.Run, error) {
		return srv.RestoreSnapshot(ctx, "blog", ids[0], api.SnapshotRestore{DryRun: true})
	})
	runs("a prune", func() (*api.Run, error) { return srv.PruneSnapshots(ctx, "blog", "daily") })
	if _, err := srv.RestoreSnapshot(ctx, "blog", ids[0], api.SnapshotRestore{}); err == nil {
		t.Error("a restore starts")
	}
	for _, keyed := range []struct {
		path, body string
		status     int
	}{
		{ids[0] + "/verify", `{}`, http.StatusAccepted},
		{ids[0] + "/restore", `{"dryRun": true}`, http.StatusAccepted},
		{ids[0] + "/restore", `{"dryRun": false}`, http.StatusInsufficientStorage},
		{"prune", `{}`, http.StatusAccepted},
	} {
		if status, again := srv.keyed(t, keyed.path, keyed.body), srv.keyed(t, keyed.path, keyed.body); status != keyed.status || again != status {
			t.Errorf("%s with a key: %d, and then %d", keyed.path, status, again)
		}
	}
	if err := errors.Join(
		func() error { _, err := srv.PinSnapshot(ctx, "blog", ids[0], true); return err }(),
		func() error { _, err := srv.PinSnapshot(ctx, "blog", ids[0], false); return err }(),
		func() error { _, err := srv.DiffSnapshot(ctx, "blog", ids[0], client.SnapshotDiffQuery{}); return err }(),
		func() error {
			f, err := srv.DownloadSnapshot(ctx, "blog", ids[0])
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, f)
			return errors.Join(err, f.Close())
		}(),
		srv.DeleteSnapshot(ctx, "blog", ids[0]),
	); err != nil {
		t.Error(err)
	}
	noted := map[string]bool{}
	for e, err := range srv.Audit(ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		noted[e.Op] = true
	}
	for _, op := range []string{audit.OpVerifySnapshot, audit.OpPrune, audit.OpPin, audit.OpUnpin, audit.OpDownload, audit.OpDeleteSnapshot} {
		if !noted[op] {
			t.Errorf("the audit log has no %s: %v", op, noted)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}
