package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

func withSnapshots(profiles string) string {
	return config("blog", "title", "") + "snapshots: [" + profiles + "]\n"
}

// snapshots gives what there is, the newest first.
func (w *world) snapshots(p *project.Project) []snapshot.Info {
	w.Helper()
	all, err := w.taken.List(context.Background(), p)
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// take makes a snapshot of the profile hand as soon as the controller, which may be cleaning up, leaves it to.
func (w *world) take(p *project.Project) snapshot.Info {
	w.Helper()
	profile, err := snapshot.ProfileOf(p, "hand")
	if err != nil {
		w.Fatal(err)
	}
	var info snapshot.Info
	w.idle(func() (err error) {
		info, err = w.taken.Create(w.Context(), p, profile, nil)
		return err
	})
	return info
}

// drop deletes one, likewise.
func (w *world) drop(p *project.Project, id string) {
	w.Helper()
	w.idle(func() error { return w.taken.Delete(w.Context(), p, id) })
}

// idle does what the controller may be in the way of for a moment.
func (w *world) idle(do func() error) {
	w.Helper()
	eventually(w.T, func() string {
		err := do()
		if errors.Is(err, snapshot.ErrBusy) {
			return err.Error()
		}
		if err != nil {
			w.Fatal(err)
		}
		return ""
	})
}

func (w *world) message(id, typ string) string {
	st, _ := w.Board.Get(id)
	c, _ := st.Condition(typ)
	return c.Message
}

// TestSnapshotsAreTaken has them be taken every second, and the older ones go.
func TestSnapshotsAreTaken(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(withSnapshots(`{name: often, enabled: true, schedule: every 1s, retention: {keepLast: 2}}, {name: off, schedule: every 1s}`))
		w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "True Scheduled", status.SnapshotsVerified: "", status.Ready: "True Serving"})
		diff(t, "message", "1 enabled profile, 1 with a schedule", w.message(id, status.SnapshotsScheduled))
		seen := map[string]bool{}
		eventually(t, func() string {
			all := w.snapshots(p)
			for _, info := range all {
				if info.Profile != "often" {
					t.Fatalf("a snapshot of %s", info.Profile)
				}
				seen[info.ID] = true
			}
			if len(seen) < 4 || len(all) > 2 {
				return fmt.Sprintf("%d were taken, %d are there", len(seen), len(all))
			}
			return ""
		})

		// Without profiles that are enabled there is no condition, and nothing is taken.
		w.serveAnew(id, withSnapshots(`{name: often, schedule: every 1s}`))
		eventually(t, func() string { return w.condition(id, status.SnapshotsScheduled) })
	})
}

// TestASecondReconcileOfSnapshotsWritesNothing: with nothing due there is nothing to do.
func TestASecondReconcileOfSnapshotsWritesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		_, id := w.serve(withSnapshots(`{name: rarely, enabled: true, schedule: "@yearly", retention: {keepLast: 2}, verify: {schedule: "@yearly"}}`))
		w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "True Scheduled", status.SnapshotsVerified: "Unknown Unverified", status.Ready: "True Serving"})
		s.take()
		for range 3 {
			for _, name := range []string{"snapshot", "retention"} {
				if err := w.reconcile(name, id); err != nil {
					t.Fatal(err)
				}
			}
		}
		diff(t, "writes", []string(nil), s.take())
	})
}

func TestSnapshotsOfAStoreThatFails(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.store.failOn("svc.due", errors.New("down"))
	_, id := w.serve(withSnapshots(`{name: often, enabled: true, schedule: every 1s}`))
	w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "False StoreError", status.Ready: "False StoreError"})
	w.store.failOn("svc.due", nil)
	w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "True Scheduled", status.Ready: "True Serving"})
}

// TestSnapshotsFail tells why, and serves on.
func TestSnapshotsFail(t *testing.T) {
	s := newEmbedded(t)
	w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Events = system.New(s, system.Options{Now: d.Now}).Events })
	dir := filepath.Join(w.ProjectsDir, "blog", "snapshots")
	write(t, filepath.Join(dir, "often"), "no folder")
	_, id := w.serve(withSnapshots(`{name: often, enabled: true, schedule: every 1s}, {name: other, enabled: true, schedule: every 1s}`))
	w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "False SnapshotFailed", status.Ready: "True Serving", status.Reconciling: ""})
	if text := w.message(id, status.SnapshotsScheduled); !strings.HasPrefix(text, "often: ") || strings.Contains(text, dir) {
		t.Errorf("message %q", text)
	}
	eventually(t, func() string { // the other profile goes on
		if p, err := w.Registry.Get("blog"); err != nil || len(w.snapshots(p)) == 0 {
			return "nothing is taken"
		}
		return ""
	})
	told := func(what string) {
		eventually(t, func() string {
			all := w.told(id)
			for _, e := range all {
				if strings.HasPrefix(e, what) {
					return ""
				}
			}
			return fmt.Sprintf("no event %s: %v", what, all)
		})
	}
	told("Warning SnapshotFailed")
	if err := os.Remove(filepath.Join(dir, "often")); err != nil {
		t.Fatal(err)
	}
	w.wantConditions(id, map[string]string{status.SnapshotsScheduled: "True Scheduled", status.Ready: "True Serving"})
}

// TestSnapshotsVerified tells of damage until it is gone.
func TestSnapshotsVerified(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	p, id := w.serve(withSnapshots(`{name: hand, enabled: true, verify: {schedule: every 1s}}`))
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "Unknown Unverified", status.SnapshotsScheduled: "True Scheduled", status.Ready: "True Serving"})
	info := w.take(p)
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "True Verified"})
	name := filepath.Join(p.Dir, "snapshots", "hand", info.ID, "indexes.json")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write(t, name, "{}")
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "False SnapshotDamaged", status.Ready: "True Serving"})
	if text := w.message(id, status.SnapshotsVerified); !strings.HasPrefix(text, "hand/"+info.ID+" (indexes.json: ") {
		t.Errorf("message %q", text)
	}
	w.drop(p, info.ID)
	eventually(t, func() string { // and there is none to be checked any more
		if err := w.reconcile("snapshot", id); err != nil {
			return err.Error()
		}
		if c := w.condition(id, status.SnapshotsVerified); c == "False SnapshotDamaged" {
			return c
		}
		return ""
	})
}

// TestSnapshotsVerifiedByHand: checks and drills that somebody has started count as those by schedule do; and damage says what ends it.
func TestSnapshotsVerifiedByHand(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	p, id := w.serve(withSnapshots(`{name: hand, enabled: true, verify: {schedule: 0 0 1 1 *}}`))
	info := w.take(p)
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "Unknown Unverified"})
	check := func() {
		t.Helper()
		if _, err := w.taken.Verify(t.Context(), p, info.ID, snapshot.VerifyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	check()
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "True Verified"})
	write(t, filepath.Join(p.Dir, "snapshots", "hand", info.ID, "indexes.json"), "{}")
	check()
	w.wantConditions(id, map[string]string{status.SnapshotsVerified: "False SnapshotDamaged"})
	if text := w.message(id, status.SnapshotsVerified); !strings.HasSuffix(text, "; this is told until the snapshot is deleted (svcctl snapshot delete), pruned, or found whole by a check of everything") {
		t.Errorf("message %q", text)
	}
}

// TestSnapshotsVerifiedAtOnce: a check by hand and a deletion show at once, and not with the next round; and of a check of a part it is told that it was one.
func TestSnapshotsVerifiedAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(withSnapshots(`{name: hand, enabled: true, verify: {schedule: every 1s}}`))
		info := w.take(p)
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "True Verified", status.Ready: "True Serving"})
		// From here on nothing is due for a year, and no round of its own comes in the time of the test.
		w.serveAnew(id, withSnapshots(`{name: hand, enabled: true, verify: {schedule: "@yearly"}}`))
		p, err := w.Registry.Get("blog")
		if err != nil {
			t.Fatal(err)
		}
		check := func(sample float64) {
			if _, err := w.taken.Verify(t.Context(), p, info.ID, snapshot.VerifyOptions{Sample: sample}); err != nil {
				t.Fatal(err)
			}
		}
		says := func(want string) {
			t.Helper()
			eventually(t, func() string {
				if got := w.condition(id, status.SnapshotsVerified) + ": " + w.message(id, status.SnapshotsVerified); !strings.HasPrefix(got, want) {
					return got
				}
				return ""
			})
		}
		check(0)
		says("True Verified: the snapshots of 1 profile were found whole")
		name := filepath.Join(p.Dir, "snapshots", "hand", info.ID, "indexes.json")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, "{}")
		check(0)
		says("False SnapshotDamaged: hand/" + info.ID + " (indexes.json: ")
		write(t, name, string(text))
		check(0)
		says("True Verified: the snapshots of 1 profile were found whole")
		write(t, name, "{}")
		check(0)
		says("False SnapshotDamaged")
		w.drop(p, info.ID)
		info = w.take(p)
		check(0.5)
		says("True Verified: a sample of the files of the snapshots of 1 profile was found whole")
		check(0)
		says("True Verified: the snapshots of 1 profile were found whole")
	})
}

// TestSnapshotsRehearsed tells that a drill has failed, and what it has found, until that is gone, and when one has last gone well.
func TestSnapshotsRehearsed(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(withSnapshots(`{name: hand, enabled: true, drill: {schedule: every 1s}}`))
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "Unknown Unverified", status.Ready: "True Serving"})
		info := w.take(p)
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "True Verified"})
		eventually(t, func() string {
			if at := w.gauge("svc_snapshot_last_verified_timestamp_seconds", "hand"); at < float64(info.ConsistentAt.Unix()) {
				return fmt.Sprint("it was rehearsed at ", at)
			}
			return ""
		})
		s.failOn("write svc.restores", errors.New("no store")) // where a drill notes what it makes
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "False DrillFailed", status.Ready: "True Serving"})
		if text := w.message(id, status.SnapshotsVerified); !strings.HasPrefix(text, "hand: ") || strings.Contains(text, "no store") {
			t.Errorf("message %q", text)
		}
		s.failOn("write svc.restores", nil)
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "True Verified"})
		name := filepath.Join(p.Dir, "snapshots", "hand", info.ID, "indexes.json")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(text string) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			write(t, name, text)
		}
		replace("{}")
		w.wantConditions(id, map[string]string{status.SnapshotsVerified: "False SnapshotDamaged", status.Ready: "True Serving"})
		if text := w.message(id, status.SnapshotsVerified); !strings.HasPrefix(text, "hand/"+info.ID+" (indexes.json: ") {
			t.Errorf("message %q", text)
		}
		replace(string(text))
		eventually(t, func() string { // damage is told until a check finds the snapshot whole, whatever drills do
			if _, err := w.taken.Verify(t.Context(), p, info.ID, snapshot.VerifyOptions{}); err != nil {
				return err.Error()
			}
			return strings.TrimPrefix(w.condition(id, status.SnapshotsVerified), "True Verified")
		})
	})
}

// gauge is what a metric of a profile is; 0: there is none.
func (w *world) gauge(name, profile string) float64 {
	w.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "profile" && l.GetValue() == profile {
					return m.GetGauge().GetValue()
				}
			}
		}
	}
	return 0
}

// TestSnapshotsOfAProjectThatIsGone has a project be unregistered: its metrics go, its snapshots stay.
func TestSnapshotsOfAProjectThatIsGone(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	p, id := w.serve(withSnapshots(`{name: often, enabled: true, schedule: every 1s}`))
	has := func() bool {
		families, err := w.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "svc_snapshot_last_success_timestamp_seconds" && len(f.GetMetric()) > 0 {
				return true
			}
		}
		return false
	}
	eventually(t, func() string {
		if !has() {
			return "there is no metric"
		}
		return ""
	})
	if err := w.Unregister(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { // nobody else has it looked at
		if has() {
			return "the metrics are left"
		}
		return ""
	})
	if len(w.snapshots(p)) == 0 {
		t.Error("the snapshots are gone")
	}
}

// TestSnapshotsAreNotWatched: what is taken is no change of the files, wherever it is.
func TestSnapshotsAreNotWatched(t *testing.T) {
	for _, dir := range []string{"snapshots", "saved/here"} {
		w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
		p, id := w.serve(withSnapshots(`{name: often, enabled: true, schedule: every 1s}`) + "snapshotPath: " + dir + "\n")
		eventually(t, func() string {
			if n := len(w.snapshots(p)); n < 2 {
				return fmt.Sprintf("%d snapshots", n)
			}
			return ""
		})
		for _, name := range []string{"often/x.yaml", "x"} { // what has another name than those of snapshots
			write(t, filepath.Join(p.Dir, dir, name), "x")
		}
		looks := w.reconciles("project")
		eventually(t, func() string {
			if n := len(w.snapshots(p)); n < 4 {
				return fmt.Sprintf("%d snapshots", n)
			}
			return ""
		})
		if n := w.reconciles("project") - looks; n > 0 {
			t.Errorf("%s: the project was looked at %v times", dir, n)
		}
		write(t, filepath.Join(p.Dir, "project.yaml"), config("blog", "headline", ""))
		w.eventuallyServed(2)
		// A round that has begun with the old config may still tell of it; the one behind it takes that back.
		w.wantConditions(id, map[string]string{status.SnapshotsScheduled: ""})
	}
}

// reconciles gives how often a controller has looked.
func (w *world) reconciles(name string) float64 {
	w.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.Fatal(err)
	}
	n := 0.0
	for _, f := range families {
		if f.GetName() != "svc_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == name {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
