package due_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// TestClocks: whatever the clock is set to, each slot is done once, the newest of those that were missed is made up for, snapshots go on with the first slot of the time that
// it is, and what is pinned, dated in the future, or the newest that was found whole is there.
func TestClocks(t *testing.T) {
	t.Parallel()
	type step struct {
		jump, wait time.Duration
	}
	for _, tt := range []struct {
		name  string
		steps []step
		want  []string
		left  []string // dates of the snapshots that are there in the end, the newest first
	}{
		{
			"back a day: what was done does not come again", []step{{0, 2 * day}, {-day, 2 * day}, {0, day}},
			[]string{"2026-05-02", "2026-05-03", "2026-05-04", "2026-05-05"},
			[]string{"2026-05-05", "2026-05-04", "2026-05-02"}, // the two newest, and the one that was found whole
		},
		{
			"forth a year: the newest of the missed, and on", []step{{0, 2 * day}, {year, day}},
			[]string{"2026-05-02", "2026-05-03", "2027-05-03", "2027-05-04"},
			[]string{"2027-05-04", "2027-05-03", "2026-05-02"},
		},
		{
			"forth a year and back: what the future has is kept, and the present goes on", []step{{0, 2 * day}, {year, day}, {-year, 3 * day}},
			[]string{"2026-05-02", "2026-05-03", "2027-05-03", "2027-05-04", "2026-05-04", "2026-05-05", "2026-05-06", "2026-05-07"},
			[]string{"2027-05-04", "2027-05-03", "2026-05-07", "2026-05-06", "2026-05-02"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 2}}`)
			i := w.instance("a")
			i.pass()
			checked := false
			for _, s := range tt.steps {
				w.clock.Pass(s.jump)
				for rest := s.wait; ; rest -= 6 * time.Hour {
					i.pass()
					i.retain()
					if ids := i.snapshots("daily"); !checked && len(ids) == 1 {
						checked = true
						if _, err := i.snaps.Verify(t.Context(), w.p, ids[0], snapshot.VerifyOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					if rest <= 0 {
						break
					}
					w.clock.Pass(6 * time.Hour)
				}
			}
			var slots, left []string
			for _, began := range i.took() {
				if kind, slot := began[:8], began[len(began)-20:]; kind == "snapshot" {
					slots = append(slots, slot[:10])
				}
			}
			equal(t, "slots", tt.want, slots)
			for _, id := range i.snapshots("daily") {
				left = append(left, id[:4]+"-"+id[4:6]+"-"+id[6:8])
			}
			equal(t, "left", tt.left, left)
		})
	}
}

// TestRetainClocks: a removal that failed, or left what was in use, while the clock was a year ahead is tried again when it is right, not in a year.
func TestRetainClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 1}}`)
	i := w.instance("a")
	i.pass()
	i.passed(2*day, 12*time.Hour)
	w.clock.Pass(year)
	i.failing(func(_ context.Context, order runs.Start) error {
		if order.Kind == operation.Prune {
			return errDisk
		}
		return nil
	})
	i.retain()
	i.retain() // which sees that it has failed
	i.failing(nil)
	w.clock.Pass(-year)
	i.retain()
	i.retain()
	if n := len(i.snapshots("daily")); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	if s := i.standing(operation.Prune, "daily"); s.Failing() {
		t.Errorf("%+v", s)
	}
}

// TestTriesClocks: so is a snapshot that failed then.
func TestTriesClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), "2026-05-01T12:00:00Z", `{name: yearly, enabled: true, schedule: "0 3 1 1 *"}`)
	i := w.instance("a")
	i.pass()
	i.failing(func(context.Context, runs.Start) error { return errDisk })
	w.clock.Pass(year)
	i.pass()
	i.pass()
	equal(t, "begun", 1, len(i.took()))
	i.failing(nil)
	w.clock.Pass(-90 * day)
	i.pass()
	i.pass()
	if n := len(i.snapshots("yearly")); n != 1 {
		t.Errorf("%d snapshots", n)
	}
}

// TestRetainInstances: of several instances that share the folder each begins to remove what is not kept, nothing goes twice, and what is to stay stays.
func TestRetainInstances(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, "2026-05-01T12:00:00Z", `{name: daily, enabled: true, schedule: "0 3 * * *", retention: {keepLast: 2}}`)
		all := []*instance{w.instance("a"), w.instance("b")}
		for _, i := range all {
			i.pass()
		}
		var ids []string
		for range 5 {
			w.clock.Pass(day)
			all[0].pass()
			ids = append([]string{all[0].snapshots("daily")[0]}, ids...)
		}
		if err := all[1].snaps.Pin(t.Context(), w.p, ids[4], true); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			var looks sync.WaitGroup
			for _, i := range all {
				looks.Go(func() {
					if _, err := i.Retain(t.Context(), w.p); err != nil {
						t.Error(err)
					}
				})
			}
			looks.Wait()
			for _, i := range all {
				i.settle()
			}
			w.clock.Pass(time.Minute)
		}
		equal(t, "left", []string{ids[0], ids[1], ids[4]}, all[0].snapshots("daily"))
		equal(t, "runs that failed", false, slices.ContainsFunc(all, func(i *instance) bool { s := i.standing(operation.Prune, "daily"); return s.Failing() }))
	})
}
