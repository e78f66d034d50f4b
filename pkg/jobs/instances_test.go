package jobs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestR18Instances is row R18 of the fault list: three instances on one store, which are killed, and paused for 20 s. Each
// slot of each job is executed once, or accounted for as lost, skipped or missed; none is executed twice, no two runs of
// one job overlap in what they write, and nothing that a run writes after it was given up is in the store. With SOAK set
// it goes through 10,000 slots.
func TestR18Instances(t *testing.T) {
	const jobCount, interval = 10, 30 * time.Second
	slots := 300
	if os.Getenv("SOAK") != "" {
		slots = 10_000
	}
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		s, c := teststore.Memory(t), &clock{}
		schedules := map[string]string{}
		for n := range jobCount {
			schedules["job"+strconv.Itoa(n)] = "every 30s"
		}
		p := aProject(t, schedules)
		db := s.Database(project.DatabaseName(p.Namespace))

		// A run notes that it began, works for up to 40 s, and notes that it ended.
		run := func(i func() *instance) runnerFunc {
			return func(ctx context.Context, call jobs.Call, run *operation.Live) (any, error) {
				own := i()
				note := func(what string) error {
					if err := own.link.Wait(ctx); err != nil {
						return err
					}
					return insert(context.WithoutCancel(ctx), own.link.Database(project.DatabaseName(p.Namespace)), what, run, bson.D{
						{Key: "_id", Value: run.Run().ID + "/" + strconv.FormatInt(rand.Int64(), 36)},
						{Key: "job", Value: call.Job.Name},
						{Key: "slot", Value: call.Slot.Unix()},
					})
				}
				if err := note("began"); err != nil {
					return nil, err
				}
				for end := time.Now().Add(time.Duration(call.Slot.Unix()/30%8) * 5 * time.Second); time.Now().Before(end); {
					time.Sleep(5 * time.Second) // and does not care for its context
				}
				return nil, note("ended")
			}
		}
		start := func() *instance {
			var i *instance
			i = newInstance(t, s, c, run(func() *instance { return i }))
			i.start(t.Context(), c, p)
			return i
		}
		instances := []*instance{start(), start(), start()}
		pass(t, instances[0], p) // has seen all jobs
		began := time.Now()
		kills, pauses := 0, 0
		for time.Since(began) < time.Duration(slots/jobCount)*interval {
			time.Sleep(time.Duration(5+random.IntN(40)) * time.Second)
			n := random.IntN(len(instances))
			if random.IntN(3) == 0 {
				kills++
				instances[n].kill(t.Context())
				instances[n] = start()
				continue
			}
			pauses++
			instances[n].link.Pause()
			time.Sleep(20 * time.Second)
			instances[n].link.Resume()
		}
		time.Sleep(2 * time.Minute) // what is active ends, what is lost is found
		now := time.Now()

		executed := map[string]int{} // by job and slot
		for _, what := range []string{"began", "ended"} {
			seen := map[string]int{}
			err := db.Collection(what).Find(t.Context(), storeQuery(), func(doc bson.Raw) error {
				seen[doc.Lookup("job").StringValue()+" "+strconv.FormatInt(doc.Lookup("slot").Int64(), 10)]++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for slot, n := range seen {
				if n != 1 {
					t.Errorf("%s: %s %d times", slot, what, n)
				}
				if what == "ended" && executed[slot] == 0 {
					t.Errorf("%s ended and did not begin", slot)
				}
			}
			if what == "began" {
				executed = seen
			}
		}
		states, err := instances[0].List(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var claimed, skipped, missed int64
		for _, st := range states {
			claimed, skipped, missed = claimed+st.Claimed, skipped+st.Skipped, missed+st.Missed
			due := int64(0)
			for slot := st.Job.Schedule.Next(began); !slot.After(now); slot = st.Job.Schedule.Next(slot) {
				due++
			}
			if got := st.Claimed + st.Skipped + st.Missed; got < due-1 || got > due+1 { // the first and the last may be under way
				t.Errorf("%s: %d slots were due, %d run, %d skipped and %d missed", st.Job.Name, due, st.Claimed, st.Skipped, st.Missed)
			}
		}
		if lost := claimed - int64(len(executed)); lost < 0 || lost > int64(kills+pauses)*jobCount {
			t.Errorf("%d runs were recorded, %d executed", claimed, len(executed))
		}
		if kills == 0 || pauses == 0 || len(executed) < slots/4 {
			t.Errorf("%d kills, %d pauses, %d slots executed: that tests little", kills, pauses, len(executed))
		}
		t.Logf("%d kills, %d pauses: %d slots run, %d of them executed, %d skipped, %d missed", kills, pauses, claimed, len(executed), skipped, missed)
	})
}

// TestAPausedHoldersWritesFail holds an instance up in the middle of a run until another one has given the run up and the
// next slot is run there. What the first then writes fails.
func TestAPausedHoldersWritesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, p := teststore.Memory(t), &clock{}, aProject(t, map[string]string{"job": "every 1m"})
		db := s.Database(project.DatabaseName(p.Namespace))
		late := make(chan error, 1)
		var first *instance
		first = newInstance(t, s, c, runnerFunc(func(ctx context.Context, _ jobs.Call, run *operation.Live) (any, error) {
			first.link.Pause()
			time.Sleep(90 * time.Second)
			first.link.Resume()
			late <- insert(context.WithoutCancel(ctx), db, "work", run, bson.D{{Key: "_id", Value: "late"}})
			return nil, errors.New("too late")
		}))
		other := newInstance(t, s, c, runnerFunc(func(ctx context.Context, call jobs.Call, run *operation.Live) (any, error) {
			return nil, insert(ctx, db, "work", run, bson.D{{Key: "_id", Value: call.Slot}})
		}))
		pass(t, first, p)
		time.Sleep(time.Minute)
		pass(t, first, p)
		other.start(t.Context(), c, p)
		if err := <-late; !errors.Is(err, operation.ErrLost) {
			t.Errorf("the write after the pause: %v", err)
		}
		page, err := other.History(t.Context(), p, "job", operation.Query{Status: operation.Lost})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%d lost runs, %v", len(page.Items), err)
		}
		n, err := db.Collection("work").Count(t.Context(), nil, 0)
		if err != nil || n != 1 {
			t.Errorf("%d runs wrote, %v; want the next slot's only", n, err)
		}
	})
}
