package jobs_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestR17Clocks is row R17 of the fault list: what becomes of slots when the clock is set forth and back, by daylight
// saving and in leap years. Missed slots are run once, the newest of them, and no slot is run twice.
func TestR17Clocks(t *testing.T) {
	type step struct {
		wait time.Duration // passes in steps of ten minutes, then
		jump time.Duration
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name, schedule, from string
		steps                []step
		want                 []string
	}{
		{
			"every hour", "0 * * * *", "2026-05-01T00:30:00Z",
			[]step{{wait: 3 * time.Hour}},
			[]string{"2026-05-01T01:00:00Z", "2026-05-01T02:00:00Z", "2026-05-01T03:00:00Z"},
		},
		{
			"an hour forth: the missed slot is run late", "0 * * * *", "2026-05-01T00:30:00Z",
			[]step{{wait: time.Hour, jump: time.Hour}, {wait: time.Hour}},
			[]string{"2026-05-01T01:00:00Z", "2026-05-01T02:00:00Z", "2026-05-01T03:00:00Z"},
		},
		{
			"five hours forth: the newest of the missed", "0 * * * *", "2026-05-01T00:30:00Z",
			[]step{{wait: time.Hour, jump: 5 * time.Hour}, {wait: time.Hour}},
			[]string{"2026-05-01T01:00:00Z", "2026-05-01T06:00:00Z", "2026-05-01T07:00:00Z"},
		},
		{
			"an hour back: what was run does not come again", "*/30 * * * *", "2026-05-01T00:15:00Z",
			[]step{{wait: time.Hour, jump: -time.Hour}, {wait: 2 * time.Hour}},
			[]string{"2026-05-01T00:30:00Z", "2026-05-01T01:00:00Z", "2026-05-01T01:30:00Z", "2026-05-01T02:00:00Z"},
		},
		{
			"30 days forth", "0 3 * * *", "2026-05-01T00:00:00Z",
			[]step{{wait: 12 * time.Hour, jump: 30 * day}, {wait: day}},
			[]string{"2026-05-01T03:00:00Z", "2026-05-31T03:00:00Z", "2026-06-01T03:00:00Z"},
		},
		{
			"30 days forth and back: the slots between still come, those run don't", "0 3 * * *", "2026-05-01T00:00:00Z",
			[]step{{wait: 12 * time.Hour, jump: 30 * day}, {wait: day, jump: -30 * day}, {wait: 2 * day}, {jump: 26 * day}, {wait: 4 * day}},
			[]string{
				"2026-05-01T03:00:00Z", "2026-05-31T03:00:00Z", "2026-06-01T03:00:00Z", // it is 1 May to 2 June
				"2026-05-02T03:00:00Z", "2026-05-03T03:00:00Z", "2026-05-04T03:00:00Z", // back in May
				"2026-05-30T03:00:00Z", // the newest that was missed, then those of before are passed
				"2026-06-02T03:00:00Z", "2026-06-03T03:00:00Z",
			},
		},
		{
			"30 days back, before the job was known", "0 3 * * *", "2026-05-01T00:00:00Z",
			[]step{{wait: 12 * time.Hour, jump: -30 * day}, {wait: day}},
			[]string{"2026-05-01T03:00:00Z", "2026-04-02T03:00:00Z"},
		},
		{
			"clocks set forward", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z",
			[]step{{wait: 2 * day}},
			[]string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		},
		{
			"clocks set back", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z",
			[]step{{wait: 2 * day}},
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		{
			"leap day", "0 12 29 2 *", "2028-02-27T00:00:00Z",
			[]step{{wait: 4 * day}},
			[]string{"2028-02-29T12:00:00Z"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				runner := runnerFunc(func(_ context.Context, call jobs.Call, _ *operation.Live) (any, error) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, call.Slot.Format(time.RFC3339))
					return nil, nil //nolint:nilnil // it gives nothing
				})
				s, c, p := teststore.Memory(t), &clock{}, aProject(t, map[string]string{"job": tt.schedule})
				c.set(tt.from)
				instances := []*instance{newInstance(t, s, c, runner), newInstance(t, s, c, runner)}
				look := func() {
					for _, i := range instances {
						pass(t, i, p)
						synctest.Wait() // the run has ended
					}
				}
				look()
				for _, step := range tt.steps {
					for range step.wait / (10 * time.Minute) {
						c.jump(10 * time.Minute)
						look()
					}
					c.jump(step.jump)
					look()
				}
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("slots (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestInstancesOfOtherConfigs has instances disagree about a schedule, as they do while a config is rolled out, or for as
// long as one of them can't load it: the slots of both are run, each once.
func TestInstancesOfOtherConfigs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		runner := runnerFunc(func(_ context.Context, call jobs.Call, _ *operation.Live) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, call.Slot.Format("15:04"))
			return nil, nil //nolint:nilnil // it gives nothing
		})
		s, c := teststore.Memory(t), &clock{}
		c.set("2026-05-01T00:05:00Z")
		older, newer := aProject(t, map[string]string{"job": "15,45 * * * *"}), aProject(t, map[string]string{"job": "0 * * * *"})
		newer.Namespace = older.Namespace
		instances := []*instance{newInstance(t, s, c, runner), newInstance(t, s, c, runner)}
		look := func(newest *project.Project) {
			pass(t, instances[0], older)
			synctest.Wait() // the run has ended
			pass(t, instances[1], newest)
			synctest.Wait()
		}
		for range 6 { // to 01:05
			look(older)
			c.jump(10 * time.Minute)
		}
		for range 12 { // to 03:05
			look(newer)
			c.jump(10 * time.Minute)
		}
		look(newer) // the slot of 03:00
		older = newer
		for range 13 { // to 05:15
			look(newer)
			c.jump(10 * time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"00:15", "00:45", "01:15", "01:45", "02:00", "02:15", "02:45", "03:00", "04:00", "05:00"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("slots (-want +got):\n%s", diff)
		}
	})
}
