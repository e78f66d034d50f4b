package due_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/due"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const nightly = `{name: daily, enabled: true, schedule: "0 3 * * *"}`

// TestPass takes a snapshot at each slot, once: after a restart, too, and the newest of those that were missed.
func TestPass(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", nightly+`, {name: off, schedule: "0 3 * * *"}, {name: hand, enabled: true}`)
		i := w.instance("a")
		report := i.pass()
		equal(t, "profiles", []int{2, 1, 0}, []int{report.Profiles, report.Scheduled, report.Checked})
		equal(t, "next", at(t, "2026-05-02T03:00:00Z"), report.Next)
		equal(t, "before the first slot", []string(nil), i.took())
		i.passed(24*time.Hour, 6*time.Hour)
		equal(t, "the first day", []string{"snapshot daily 2026-05-02T03:00:00Z"}, i.took())

		i = w.instance("a") // anew, three days later
		w.clock.Pass(3 * 24 * time.Hour)
		i.pass()
		i.pass()
		equal(t, "of those that were missed", []string{"snapshot daily 2026-05-05T03:00:00Z"}, i.took())
		standing := i.standing(operation.Snapshot, "daily")
		equal(t, "succeeded", w.clock.Now(), standing.Succeeded)
		equal(t, "next", at(t, "2026-05-06T03:00:00Z"), standing.Next)
		if n := len(i.snapshots("daily")); n != 2 {
			t.Errorf("%d snapshots", n)
		}
	})
}

// TestIntervals are counted from the epoch.
func TestIntervals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T07:30:00Z", `{name: often, enabled: true, schedule: every 6h}`)
	i := w.instance("a")
	i.pass()
	i.passed(12*time.Hour, time.Hour)
	equal(t, "begun", []string{"snapshot often 2026-05-01T12:00:00Z", "snapshot often 2026-05-01T18:00:00Z"}, i.took())
}

// TestDaylightSaving has a snapshot for each day, whatever the clocks do in that night.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	for start, want := range map[string][]string{
		"2026-03-28T00:00:00Z": {"2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		"2026-10-24T00:00:00Z": {"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		t.Run(start[:10], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t), start, `{name: daily, enabled: true, schedule: "CRON_TZ=Europe/Berlin 30 2 * * *"}`)
			i := w.instance("a")
			i.pass()
			i.passed(3*24*time.Hour, 30*time.Minute)
			for n := range want {
				want[n] = "snapshot daily " + want[n]
			}
			equal(t, "begun", want, i.took())
		})
	}
}

// TestInstances has several look at once: one of them takes each snapshot.
func TestInstances(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", nightly)
		var all []*instance
		for _, name := range []string{"a", "b", "c"} {
			i := w.instance(name)
			i.pass()
			all = append(all, i)
		}
		for day := range 5 {
			w.clock.Pass(24 * time.Hour)
			var looks sync.WaitGroup
			for _, i := range all {
				looks.Go(func() {
					for range 3 {
						if _, err := i.Pass(t.Context(), w.p); err != nil {
							t.Error(err)
						}
					}
				})
			}
			looks.Wait()
			var took []string
			for _, i := range all {
				i.settle()
				took = append(took, i.took()...)
			}
			want := "snapshot daily " + at(t, "2026-05-02T03:00:00Z").Add(time.Duration(day)*24*time.Hour).Format(time.RFC3339)
			equal(t, "begun by all", []string{want}, took)
		}
		if n := len(all[0].snapshots("daily")); n != 5 {
			t.Errorf("%d snapshots", n)
		}
	})
}

var errDisk = errs.New(errs.Full, "snapshots_full", "there is no space")

// TestFailing tries again after pauses that double, until one succeeds, and keeps nobody else from their snapshots.
func TestFailing(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", nightly+`, {name: other, enabled: true, schedule: "0 4 * * *"}`)
		i := w.instance("a")
		i.pass()
		i.failing(func(_ context.Context, order runs.Start) error {
			if order.Profile == "daily" {
				return errDisk
			}
			return nil
		})
		w.clock.Pass(15 * time.Hour) // 03:00
		var tries []time.Duration
		for minute := range 70 {
			i.pass()
			for _, began := range i.took() {
				if strings.HasPrefix(began, "snapshot daily 2026-05-02T03:00:00Z") {
					tries = append(tries, time.Duration(minute)*time.Minute)
				} else if began != "snapshot other 2026-05-02T04:00:00Z" {
					t.Error(began)
				}
			}
			w.clock.Pass(time.Minute)
		}
		equal(t, "tries", []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute, 31 * time.Minute, 63 * time.Minute}, tries)
		if n := len(i.snapshots("other")); n != 1 {
			t.Errorf("%d snapshots of the other profile", n)
		}
		standing := i.standing(operation.Snapshot, "daily")
		if !standing.Failing() || standing.Why != errDisk.Message || standing.Code != errDisk.Code {
			t.Errorf("%+v", standing)
		}

		i = w.instance("b") // which knows it from the store
		if standing := i.standing(operation.Snapshot, "daily"); !standing.Failing() {
			t.Errorf("another instance: %+v", standing)
		}
		w.clock.Pass(2 * time.Hour)
		i.pass()
		equal(t, "begun", []string{"snapshot daily 2026-05-02T03:00:00Z"}, i.took())
		if standing := i.standing(operation.Snapshot, "daily"); standing.Failing() || standing.Succeeded.IsZero() {
			t.Errorf("after success: %+v", standing)
		}
		w.clock.Pass(2 * time.Hour)
		i.pass()
		equal(t, "begun after success", []string(nil), i.took())
	})
}

// TestFailingNextSlot takes the place of another try.
func TestFailingNextSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: often, enabled: true, schedule: "*/10 * * * *"}`)
	i := w.instance("a")
	i.pass()
	i.failing(func(context.Context, runs.Start) error { return errDisk })
	i.passed(25*time.Minute, time.Minute)
	equal(t, "begun", []string{
		"snapshot often 2026-05-01T12:10:00Z", "snapshot often 2026-05-01T12:10:00Z", "snapshot often 2026-05-01T12:10:00Z", "snapshot often 2026-05-01T12:10:00Z",
		"snapshot often 2026-05-01T12:20:00Z", "snapshot often 2026-05-01T12:20:00Z", "snapshot often 2026-05-01T12:20:00Z",
	}, i.took())
}

// blocked has runs wait until the context ends, or release is called.
func (i *instance) blocked() (release func()) {
	gate := make(chan struct{})
	i.failing(func(ctx context.Context, _ runs.Start) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(gate) })
}

func (i *instance) look() due.Report {
	i.Helper()
	report, err := i.Pass(i.Context(), i.p)
	if err != nil {
		i.Fatal(err)
	}
	return report
}

// TestLong passes over a slot that comes while the run before goes on, and has others wait for it.
func TestLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly+`, {name: other, enabled: true, schedule: "30 3 * * *"}`)
	i := w.instance("a")
	i.pass()
	release := i.blocked()
	w.clock.Pass(15 * time.Hour)
	i.look()
	w.clock.Pass(48 * time.Hour)
	report := i.look()
	if !report.Tasks[0].Running && !report.Tasks[1].Running {
		t.Errorf("%+v", report.Tasks)
	}
	release()
	i.settle()
	equal(t, "begun", []string{"snapshot daily 2026-05-02T03:00:00Z"}, i.took())
	i.pass()
	equal(t, "afterwards", []string{"snapshot other 2026-05-03T03:30:00Z"}, i.took())
	i.pass()
	equal(t, "in the end", []string(nil), i.took())
}

// TestCancelled is not tried again.
func TestCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly)
	i := w.instance("a")
	i.pass()
	i.blocked()
	w.clock.Pass(15 * time.Hour)
	i.look()
	page, err := i.all.List(t.Context(), project.DatabaseName(w.p.Namespace), operation.Query{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Trigger != operation.Schedule {
		t.Fatal(page, err)
	}
	ref := operation.Ref{Kind: operation.Snapshot, Name: "daily", ID: page.Items[0].ID}
	if err := i.all.Cancel(t.Context(), project.DatabaseName(w.p.Namespace), ref); err != nil {
		t.Fatal(err)
	}
	i.settle()
	i.took()
	i.failing(nil)
	i.passed(20*time.Hour, time.Hour)
	equal(t, "begun", []string(nil), i.took())
	if s := i.standing(operation.Snapshot, "daily"); s.Failing() {
		t.Errorf("%+v", s)
	}
}

// TestLost has the instance that does a run be gone: another one takes the snapshot.
func TestLost(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", nightly)
		dead, heir := w.instance("dead"), w.instance("heir")
		dead.pass()
		heir.pass()
		dead.blocked()
		w.clock.Pass(15 * time.Hour)
		dead.look()
		// It is said to be lost by somebody who has the store to himself.
		finder, err := operation.New(operation.Options{Store: s, Now: w.clock.Now, Registerer: prometheus.NewRegistry(), Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := finder.Patrol(t.Context(), project.DatabaseName(w.p.Namespace)); err != nil {
			t.Fatal(err)
		}
		if s := heir.standing(operation.Snapshot, "daily"); !s.Failing() || s.Code != operation.ErrLost.Code {
			t.Errorf("%+v", s)
		}
		equal(t, "at once", []string(nil), heir.took())
		w.clock.Pass(time.Minute)
		heir.pass()
		equal(t, "a minute later", []string{"snapshot daily 2026-05-02T03:00:00Z"}, heir.took())
	})
}

const checked = `{name: daily, enabled: true, verify: {schedule: "0 5 * * *", sample: 0.5, snapshots: newest}, drill: {schedule: "0 6 * * 0"}}`

// TestChecks are done by who has a snapshot. One that has found damage is not tried again before its next slot.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", checked)
	i := w.instance("a")
	report := i.pass()
	equal(t, "profiles", []int{1, 0, 1}, []int{report.Profiles, report.Scheduled, report.Checked})
	i.passed(24*time.Hour, time.Hour)
	equal(t, "without snapshots", []string(nil), i.took())
	if _, err := i.snaps.Create(t.Context(), w.p, snapshot.Profile{Name: "daily", Mode: snapshot.JSON}, nil); err != nil {
		t.Fatal(err)
	}
	var orders []runs.Start
	i.failing(func(_ context.Context, order runs.Start) error {
		orders = append(orders, order)
		return nil
	})
	i.passed(24*time.Hour, time.Hour)
	equal(t, "with one", []string{"verify daily 2026-05-02T05:00:00Z", "verify daily 2026-05-03T05:00:00Z", "drill daily 2026-05-03T06:00:00Z"}, i.took())
	if o := orders[0]; o.Sample != 0.5 || !o.Newest {
		t.Errorf("%+v", o)
	}
	i.failing(func(_ context.Context, order runs.Start) error {
		if order.Kind == operation.Verify {
			return errs.New(errs.Conflict, snapshot.ErrDamaged.Code, "damaged: x")
		}
		return errs.New(errs.Conflict, runs.DrillDiffers, "2 records differ")
	})
	i.passed(7*24*time.Hour, 12*time.Hour)
	i.pass() // the last drill has waited for a check
	equal(t, "what finds damage", 8, len(i.took()))
	for kind, why := range map[operation.Kind]string{operation.Verify: "damaged: x", operation.Drill: "2 records differ"} {
		if s := i.standing(kind, "daily"); s.Why != why || !s.Failing() {
			t.Errorf("%s: %+v", kind, s)
		}
	}
}

// TestDrilledByHand: a drill that somebody has started counts as the first one.
func TestDrilledByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", checked)
	i := w.instance("a")
	i.pass()
	if s := i.standing(operation.Drill, "daily"); !s.Succeeded.IsZero() {
		t.Fatalf("%+v", s)
	}
	spec := operation.Spec{Database: project.DatabaseName(w.p.Namespace), Kind: operation.Drill, Name: "daily", Trigger: operation.Manual}
	ended := make(chan struct{})
	spec.Ended = func(*operation.Run) { close(ended) }
	_, err := i.all.Start(t.Context(), spec, func(context.Context, *operation.Live) (operation.Outcome, error) { return operation.Outcome{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	i.pass()
	if s := i.standing(operation.Drill, "daily"); s.Succeeded.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestDisabled has what is enabled anew, or is there again, begin with the first slot from then on.
func TestDisabled(t *testing.T) {
	t.Parallel()
	for what, meanwhile := range map[string]string{"disabled": strings.Replace(nightly, "true", "false", 1), "gone": "", "another": `{name: other, enabled: true}`} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly)
			i := w.instance("a")
			i.pass()
			i.passed(24*time.Hour, time.Hour)
			equal(t, "begun", 1, len(i.took()))
			enabled := w.p
			w.p = w.load(meanwhile)
			i.passed(48*time.Hour, time.Hour)
			w.p = enabled
			i.pass()
			equal(t, "while it was not", []string(nil), i.took())
			i.passed(24*time.Hour, time.Hour)
			equal(t, "begun", []string{"snapshot daily 2026-05-05T03:00:00Z"}, i.took())
		})
	}
}

// TestSweep removes what crashes left, also of a project that has no profiles any more, once.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", "")
	left := func() string { return filepath.Join(w.dir, "snapshots", "gone", ".partial-abcdef") }
	for range 2 { // instances
		if err := os.MkdirAll(left(), 0o700); err != nil {
			t.Fatal(err)
		}
		i := w.instance("a")
		i.pass()
		if _, err := os.Stat(left()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is left: %v", err)
		}
		if err := os.MkdirAll(left(), 0o700); err != nil {
			t.Fatal(err)
		}
		i.pass()
		if _, err := os.Stat(left()); err != nil {
			t.Errorf("what is being made is swept: %v", err)
		}
	}
}

// TestSweepAfterFailure removes what a run has left that has failed.
func TestSweepAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly)
	i := w.instance("a")
	i.pass()
	left := filepath.Join(w.dir, "snapshots", "daily", ".trash-x")
	i.failing(func(context.Context, runs.Start) error { return errors.Join(os.MkdirAll(left, 0o700), errDisk) })
	w.clock.Pass(15 * time.Hour)
	i.pass()
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	i.pass() // sees that it has failed
	i.pass()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// TestFolder can't be used: it is told, and what the store knows goes on.
func TestFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly)
	if err := os.WriteFile(filepath.Join(w.dir, "snapshots"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := w.instance("a").Pass(t.Context(), w.p)
	if err == nil || report.Folder == nil || report.Scheduled != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestRetain removes what is not kept, as a run, after each snapshot.
func TestRetain(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 2}}, {name: off, retention: {keepLast: 1}}`)
		i := w.instance("a")
		i.pass()
		for range 3 {
			if _, err := i.snaps.Create(t.Context(), w.p, snapshot.Profile{Name: "off", Mode: snapshot.JSON}, nil); err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		for range 4 {
			i.passed(24*time.Hour, 12*time.Hour)
			i.took()
			ids = append(ids, i.snapshots("daily")[0])
			for range 2 {
				i.retain()
			}
			if n := len(i.took()); n != max(0, min(1, len(ids)-2)) {
				t.Errorf("%d runs after %d snapshots", n, len(ids))
			}
		}
		equal(t, "left", []string{ids[3], ids[2]}, i.snapshots("daily"))
		equal(t, "of a profile that is not enabled", 3, len(i.snapshots("off")))
	})
}

// retain waits for the end of what it begins.
func (i *instance) retain() time.Time {
	i.Helper()
	next, err := i.Retain(i.Context(), i.p)
	if err != nil {
		i.Fatal(err)
	}
	i.settle()
	return next
}

// TestRetainInUse tries again later, and TestRetainFails after a pause.
func TestRetainInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 1}}`)
	i := w.instance("a")
	i.pass()
	i.passed(48*time.Hour, 12*time.Hour)
	i.took()
	old := i.snapshots("daily")[1]
	err := i.snaps.Read(t.Context(), w.p, old, func(*folder.Folder, *snapshot.Manifest) error {
		i.retain()
		equal(t, "runs", 1, len(i.took()))
		for range 3 {
			if next := i.retain(); next != w.clock.Now().Add(10*time.Minute) {
				t.Errorf("next is %s", next)
			}
		}
		equal(t, "runs after it", 0, len(i.took()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Pass(10 * time.Minute)
	i.retain()
	equal(t, "left", 1, len(i.snapshots("daily")))
}

func TestRetainFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 1}}`)
	i := w.instance("a")
	i.pass()
	i.passed(48*time.Hour, 12*time.Hour)
	i.took()
	i.failing(func(context.Context, runs.Start) error { return errDisk })
	i.retain()
	if next := i.retain(); next != w.clock.Now().Add(time.Minute) {
		t.Errorf("next is %s", next)
	}
	if s := i.standing(operation.Prune, "daily"); !s.Failing() || s.Why != errDisk.Message {
		t.Errorf("%+v", s)
	}
	equal(t, "runs", 1, len(i.took()))
	i.failing(nil)
	w.clock.Pass(time.Minute)
	i.retain()
	i.retain()
	if s := i.standing(operation.Prune, "daily"); s.Failing() {
		t.Errorf("%+v", s)
	}
	equal(t, "left", 1, len(i.snapshots("daily")))
}

// TestMetrics are of the snapshots that there are, and go with their profiles.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", nightly+`, {name: none}`)
	i := w.instance("a")
	i.pass()
	i.passed(48*time.Hour, 12*time.Hour)
	i.took()
	i.retain()
	newest := float64(at(t, "2026-05-03T12:00:00Z").Unix())
	equal(t, "metrics", map[string]float64{
		"svc_snapshots daily": 2, "svc_snapshots none": 0, "svc_snapshots_damaged daily": 0, "svc_snapshots_damaged none": 0,
		"svc_snapshot_last_success_timestamp_seconds daily": newest,
	}, i.gauges())
	ids := i.snapshots("daily")
	if _, err := i.snaps.Verify(t.Context(), w.p, ids[1], snapshot.VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, "snapshots", "daily", ids[0], "manifest.json")); err != nil {
		t.Fatal(err)
	}
	i.retain()
	got := i.gauges()
	equal(t, "verified", newest, got["svc_snapshot_last_verified_timestamp_seconds daily"])
	equal(t, "damaged", 1.0, got["svc_snapshots_damaged daily"])
	if got["svc_snapshot_last_success_timestamp_seconds daily"] >= newest {
		t.Error("a snapshot that can't be read counts as a success")
	}
	w.p = w.load(`{name: none}`)
	i.retain()
	if _, there := i.gauges()["svc_snapshots daily"]; !there {
		t.Error("snapshots of a profile that is gone are told of no more")
	}
	i.Forget(w.p.Namespace)
	equal(t, "of a project that is gone", map[string]float64{}, i.gauges())
}

// TestMetricsOfDrills: when a drill has last come back equal is told as a check of everything is, and one that fails moves nothing.
func TestMetricsOfDrills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: daily, enabled: true, drill: {schedule: "0 6 * * *"}}`)
	i := w.instance("a")
	i.pass()
	info, err := i.snaps.Create(t.Context(), w.p, snapshot.Profile{Name: "daily", Mode: snapshot.JSON}, nil)
	if err != nil {
		t.Fatal(err)
	}
	verified := func(want float64) {
		t.Helper()
		i.pass() // sees how the drill has ended
		i.retain()
		equal(t, "verified", want, i.gauges()["svc_snapshot_last_verified_timestamp_seconds daily"])
	}
	verified(0)
	for range 2 {
		i.passed(24*time.Hour, 24*time.Hour)
		verified(float64(w.clock.Now().Unix()))
	}
	last := float64(w.clock.Now().Unix())
	if err := os.Remove(filepath.Join(w.dir, "snapshots", "daily", info.ID, "indexes.json")); err != nil {
		t.Fatal(err)
	}
	i.passed(24*time.Hour, 24*time.Hour)
	verified(last)
	equal(t, "begun", 3, len(i.took()))
	if s := i.standing(operation.Drill, "daily"); !s.Failing() {
		t.Errorf("%+v", s)
	}
}

// gauges are the metrics by name and profile, but for sizes.
func (i *instance) gauges() map[string]float64 {
	i.Helper()
	families, err := i.metrics.Gather()
	if err != nil {
		i.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "svc_snapshot") || f.GetName() == "svc_snapshot_bytes" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "profile" {
					out[f.GetName()+" "+l.GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
	}
	return out
}

// BenchmarkIdle is what a project costs whose snapshots are looked after, while nothing is due: of one profile with a hundred snapshots, and
// of none.
func BenchmarkIdle(b *testing.B) {
	for name, profiles := range map[string]string{
		"hundred": `{name: daily, enabled: true, schedule: "@yearly", retention: {keepLast: 200}, verify: {schedule: "@yearly"}}`, "none": "",
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, teststore.Memory(b), "2026-05-01T12:00:00Z", profiles)
			i := w.instance("a")
			if profiles != "" {
				for range 100 {
					w.clock.Pass(time.Second)
					if _, err := i.snaps.Create(b.Context(), w.p, snapshot.Profile{Name: "daily", Mode: snapshot.JSON}, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			i.pass()
			for b.Loop() {
				i.pass()
				i.retain()
			}
		})
	}
}
