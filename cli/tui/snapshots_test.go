package tui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// ends gives the run of snapshots that was started last its end.
func (s *service) ends(status string, err *api.RunError) {
	s.change(func() {
		run := &s.snapRuns[0]
		run.Status, run.FinishedAt, run.Error = status, ago(-3*time.Second), err
		run.Phases = []api.RunPhase{{Phase: "plan", Done: 1, Total: 1}, {Phase: "collections", Done: 246, Total: 246, BytesDone: 640_900}, {Phase: "media", Done: 500, Total: 500}}
		run.Progress.RunCounters = api.RunCounters{Written: 3, Linked: 500, Deduplicated: 2}
	})
}

// TestTakeSnapshot takes one, leaves it, and comes back to it.
func TestTakeSnapshot(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6")
		term.shows(t, "Projects › blog › Snapshots\n", "▸  5s  19991231T235955Z-k3x9q2") // what most keys are about
		term.Press("g")
		term.shows(t, "▸    5s  snapshot  daily", "Snapshot by daily", "succeeded", "media", "500 files", "hardlinked 500", "warn: the file cover.jpg")
		term.Press("s")
		term.shows(t, "Take a snapshot\n", "By which profile?", "▸ daily", "3 last, 7 daily", "orders, customers")
		term.Press("down", "enter")
		if got := term.requests(); got != "POST /_/blog/_/admin/snapshots" {
			t.Errorf("it asks %s", got)
		}
		term.shows(t, "› Snapshots\n", "▸    0s  snapshot  orders   running", "Snapshot by orders", "running", "esc leaves it running, x cancels it")
		term.snaps <- samplePhase("plan", 1, 1)
		term.snaps <- samplePhase("collections", 60, 240)
		term.Settle()
		term.shows(t, "4s left of collections  at articles", "plan", "100%", "collections", "25%  60 of 240 records  4s left", "50/s", "files  written 1  hardlinked 30")
		term.snaps <- samplePhase("media", 250, 500)
		term.Settle()
		term.shows(t, "collections", "100%  60 records", "media", "50%  250 of 500 files")

		term.Press("esc")
		term.shows(t, "the run goes on; w shows it again, and so does svcctl snapshot attach blog")
		term.hides(t, "Snapshot by orders")
		term.Resize(60, 20)
		term.shows(t, "enter details  x cancel the run")
		term.Resize(120, 40)
		term.snaps <- samplePhase("media", 300, 500) // meanwhile
		term.Press("w")
		term.shows(t, "Snapshot by orders", "60%  300 of 500 files")
		term.Press("7") // another screen for a while
		term.snaps <- samplePhase("media", 400, 500)
		term.Press("6")
		term.shows(t, "80%  400 of 500 files")

		term.ends(api.RunSucceeded, nil)
		term.snaps <- sampleDone()
		term.Settle()
		term.shows(t, "succeeded", "Snapshot by orders", "succeeded  3s", "collections", "100%  246 records", "media", "100%  500 files", "deduplicated 2", "esc closes")
		term.Press("esc")
		term.hides(t, "the run goes on", "Snapshot by orders")
		term.Press("down", "up") // to another run, and back
		term.shows(t, "Snapshot by orders")
	})
}

// TestWhereSnapshotsBegin: the cursor begins on the run that goes on, and one that others begin later is shown wherever the cursor is.
func TestWhereSnapshotsBegin(t *testing.T) {
	t.Parallel()
	s := sample()
	s.snapRuns[0].Status, s.snapRuns[0].FinishedAt = api.RunRunning, api.Time{}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6")
		term.shows(t, "▸    5s  snapshot  daily    running", "Snapshot by daily", "esc leaves it running")
	})
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6")
		term.change(func() {
			run := term.snapRuns[1]
			run.ID, run.Status, run.FinishedAt, run.Error, run.Result = "6b01a2b3c4d5e6f708192c99", api.RunRunning, api.Time{}, nil, nil
			term.snapRuns = append([]api.Run{run}, term.snapRuns...)
		})
		term.Wait(3 * time.Second)
		term.shows(t, "▸  8s  19991231T235955Z-k3x9q2", "Check of 19991230T031500Z-q2d8zz", "running", "esc leaves it running")
		term.Press("esc")
		term.Wait(3 * time.Second)
		term.hides(t, "Check of 19991230T031500Z-q2d8zz")
	})
}

// TestSnapshotThatFails says why.
func TestSnapshotThatFails(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "s", "enter")
		term.snaps <- samplePhase("collections", 60, 240)
		failed := &api.RunError{Code: "snapshots_full", Message: "there is no space for the snapshot on the server"}
		term.ends(api.RunFailed, failed)
		term.snaps <- api.RunEvent{Event: api.EventError, Data: api.RunEventData{Message: failed.Message, Code: failed.Code, Status: api.RunFailed}}
		term.Settle()
		term.shows(t, "Snapshot by daily", "failed", "there is no space for the snapshot on the server\n", "esc closes")
	})
}

// TestCancelSnapshot cancels the run that goes on, wherever the cursor is.
func TestCancelSnapshot(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 30)
		term.Press("6", "x")
		term.shows(t, "no run goes on")
		term.Press("s", "enter", "end", "x")
		term.shows(t, "Cancel snapshot by daily, run 6b01a2b3c4d5e6f708192c02? It leaves nothing half. (y/n)")
		term.Press("n", "x", "y")
		if got := term.requests(); !strings.HasSuffix(got, "\nPOST /_/blog/_/admin/snapshots/6b01a2b3c4d5e6f708192c02/cancel") || strings.Count(got, "cancel") != 1 {
			t.Errorf("it asks %s", got)
		}
		term.shows(t, "6b01a2b3c4d5e6f708192c02 ends")
	})
}

// TestRestore asks for the namespace before anything is replaced.
func TestRestore(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "g", "R")
		term.shows(t, "move to a snapshot first")
		term.Press("down", "down", "down", "R")
		term.shows(t, "Restore 19991231T031500Z-p7m4aa into blog: 246 records of articles, old", "Mode replace: records that the snapshot does not have go", "Type blog to restore.")
		term.Type("q6?")
		term.Press("enter")
		term.shows(t, "type blog to restore, esc goes back")
		term.Press("backspace", "backspace", "backspace", "tab")
		term.shows(t, "Mode merge: records that the snapshot does not have stay")
		if got := term.requests(); got != "" {
			t.Errorf("without the name it asks %s", got)
		}
		term.Type("blog")
		term.Press("enter")
		if got := term.requests(); got != "POST /_/blog/_/admin/snapshots/19991231T031500Z-p7m4aa/restore" {
			t.Errorf("it asks %s", got)
		}
		term.shows(t, "▸    0s  restore", "Restore of 19991231T031500Z-p7m4aa", "running")
		// What a run goes through several times is one phase.
		for _, one := range []struct {
			phase       string
			done, total int64
		}{{"verify", 5, 5}, {"load", 40, 40}, {"index", 1, 1}, {"load", 10, 20}} {
			term.snaps <- samplePhase(one.phase, one.done, one.total)
		}
		term.Settle()
		term.shows(t, "verify", "load", "83%  50 of 60 records", "index")
		if n := strings.Count(term.View(), "\nload "); n != 1 {
			t.Errorf("load is shown %d times", n)
		}
		term.Press("end", "R") // one that can't be read
		term.Press("esc")
	})
}

// TestRestoreThatIsRefused stays where it was asked for.
func TestRestoreThatIsRefused(t *testing.T) {
	t.Parallel()
	s := sample()
	s.fail = map[string]api.Problem{"/_/blog/_/admin/snapshots/19991231T031500Z-p7m4aa/restore": {Status: 409, Code: "snapshots_busy", Detail: "one run of snapshots goes on at a time"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("6", "down", "R")
		term.Type("blog")
		term.Press("enter")
		term.shows(t, "Type blog to restore.", "error: one run of snapshots goes on at a time", "hint: svcctl snapshot attach blog")
		term.Press("enter") // again
		if n := strings.Count(term.requests(), "restore"); n != 2 {
			t.Errorf("it asks %d times", n)
		}
	})
}

// TestRestoreBehindFilter: a run is shown that a filter keeps out of the list.
func TestRestoreBehindFilter(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "/")
		term.Type("pinned")
		term.Press("enter", "R")
		term.Type("blog")
		term.Press("enter")
		term.shows(t, "Restore of 19991231T031500Z-p7m4aa", "running", "esc leaves it running")
	})
}

// TestSnapshotRunThatIsLost is found again when the service is back.
func TestSnapshotRunThatIsLost(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "s", "enter")
		term.snaps <- samplePhase("collections", 60, 240)
		term.Settle()
		term.change(func() { term.down = true })
		close(term.snaps)
		term.Wait(3 * time.Second)
		term.shows(t, "looking for it again")
		term.change(func() {
			term.down, term.service.snaps = false, make(chan api.RunEvent, 1)
		})
		term.service.snaps <- samplePhase("collections", 120, 240)
		term.Wait(20 * time.Second)
		term.shows(t, "50%  120 of 240 records", "esc leaves it running")
	})
}

// TestSnapshotHelp lists all keys of the screen, wherever the cursor is, and says of each what it is about.
func TestSnapshotHelp(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		const about = ", when the cursor is on a snapshot"
		term.Press("6", "g", "?")
		term.shows(t, "enter          details\n", "x              cancel the run, when one goes on\n", "s              take a snapshot\n", "R              restore"+about, "v              check"+about,
			"t              rehearse"+about, "D              diff"+about, "p              pin"+about)
		term.Press("esc")
		term.shows(t, "enter details  s take a snapshot  y YAML  / filter")
		term.Press("end", "up", "?")
		term.shows(t, "R              restore\n", "p              pin\n")
		term.hides(t, about)
	})
}

// TestSmallTerminal shows snapshots beside runs and one of them, which make way.
func TestSmallTerminal(t *testing.T) {
	t.Parallel()
	s := sample()
	for i := range 8 { // as many as are asked for
		old := s.snapRuns[1]
		old.ID = fmt.Sprintf("6b01a2b3c4d5e6f708192d%02d", i)
		s.snapRuns = append(s.snapRuns, old)
	}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		for runs, size := range map[int][2]int{3: {60, 20}, 4: {80, 24}} {
			term.Resize(size[0], size[1])
			term.Press("6", "g")
			term.shows(t, fmt.Sprintf("Runs, the latest first (%d of 10)", runs), "Snapshots, the newest first", "19991231T235955Z-k3x9q2", "Snapshot by daily", "succeeded  2.4s", "esc closes")
			term.Press("esc", "esc")
		}
		term.Resize(140, 45)
		term.Press("6", "g")
		term.shows(t, "Runs, the latest first (8 of 10)", "unreadable", "plan ", "collections ", "media ", "manifest ")
	})
}

// TestBackupKey starts one from where profiles are chosen.
func TestBackupKey(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "s")
		term.shows(t, "backup ")
		term.Press("end", "enter")
		if got := term.requests(); got != "POST /_/blog/_/admin/backup" {
			t.Errorf("it asks %s", got)
		}
	})
}

// TestSnapshotKeys does what else there is to do with a snapshot.
func TestSnapshotKeys(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		term.Press("6", "v")
		term.shows(t, "Check 19991231T235955Z-k3x9q2? All its files are read. (y/n)")
		term.Press("y")
		term.shows(t, "     0s  verify", "▸  5s  19991231T235955Z-k3x9q2", "Check of 19991231T235955Z-k3x9q2") // the cursor stays
		term.Press("esc")
		term.shows(t, "the run goes on; w shows it again")
		term.hides(t, "Check of 19991231T235955Z-k3x9q2")
		term.Press("w")
		term.shows(t, "Check of 19991231T235955Z-k3x9q2")
		term.Press("end", "up", "t")
		term.shows(t, "Restore 19991230T031500Z-q2d8zz on trial?")
		term.Press("y")
		term.shows(t, "Trial restore of 19991230T031500Z-q2d8zz")
		term.Press("end", "up", "p")
		term.shows(t, "19991230T031500Z-q2d8zz is pinned: it can't be deleted")
		term.shows(t, "damaged, pinned", "p unpin")
		term.Press("D")
		term.shows(t, "Since 19991230T031500Z-q2d8zz\n", "articles", "added 1, removed 1, changed 2, same 236", "changed  title, seo.title, …")
		term.Press("esc", "/")
		term.Type("orders")
		term.Press("enter", "enter")
		term.shows(t, "unreadable", "its manifest can't be read")
		want := strings.Join([]string{"POST /_/blog/_/admin/snapshots/19991231T235955Z-k3x9q2/verify", "POST /_/blog/_/admin/snapshots/19991230T031500Z-q2d8zz/drill", "PUT /_/blog/_/admin/snapshots/19991230T031500Z-q2d8zz"}, "\n")
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
	})
}

// TestWhatRunsCameTo: the list tells a dry run from a restore, and a check of a part from one of all, and what each has found or done.
func TestWhatRunsCameTo(t *testing.T) {
	t.Parallel()
	s := sample()
	run := func(n int, kind, input, result string) api.Run {
		at := ago(time.Duration(n) * time.Minute)
		return api.Run{
			ID: fmt.Sprintf("6b01a2b3c4d5e6f708192a%02d", n), Kind: kind, Name: "daily", Subject: "19991231T031500Z-p7m4aa", Status: api.RunSucceeded, CreatedAt: at, StartedAt: at, FinishedAt: at,
			Input: []byte(input), Result: []byte(result),
		}
	}
	s.snapRuns = []api.Run{
		run(1, api.RunKindRestore, `{"dryRun": true}`, `{"diff": {"collections": [{"collection": "articles", "changed": 3}]}}`),
		run(2, api.RunKindRestore, `{}`, `{"restored": {"into": "blog", "collections": [{"name": "articles", "fromSnapshot": 240}]}}`),
		run(3, api.RunKindVerify, `{"sample": 0.1}`, `{"verified": {"files": 50, "sample": 0.1}}`),
	}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(160, 40)
		term.Press("6", "g")
		term.shows(t, "dry run: would change 3 records", "240 records into blog", "50 files, no problems in a sample of 10%", "Dry run of a restore of 19991231T031500Z-p7m4aa")
		term.Press("enter")
		term.shows(t, "dry run of a restore of 19991231T031500Z-p7m4aa")
	})
}
