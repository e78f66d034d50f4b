package operation_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/store"
)

// fullStore is one whose disk is full at times: it takes no writes then.
type fullStore struct {
	store.Store

	full *atomic.Bool
}

func (f fullStore) Database(name string) store.Database {
	return fullDatabase{f.Store.Database(name), f.full}
}

type fullDatabase struct {
	store.Database

	full *atomic.Bool
}

func (d fullDatabase) Collection(name string) store.Collection {
	return fullCollection{d.Database.Collection(name), d.full}
}

type fullCollection struct {
	store.Collection

	full *atomic.Bool
}

func (c fullCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if c.full.Load() && !store.MayUseReserve(ctx) {
		return nil, store.ErrFull
	}
	return c.Collection.Write(ctx, ops, atomic)
}

func (c fullCollection) CreateIndex(ctx context.Context, index store.Index) error {
	if c.full.Load() { // which takes more than there is in the reserve
		return store.ErrFull
	}
	return c.Collection.CreateIndex(ctx, index)
}

// TestFirstOnFullDisk: the first run of a project that may use the reserve goes without indexes, which a later one makes; another one is refused.
func TestFirstOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		var full atomic.Bool
		full.Store(true)
		inner := w.store
		w.store = fullStore{w.store, &full}
		i := w.instance(operation.Options{Alone: true})
		if _, err := i.Start(t.Context(), spec(w), atOnce); !errors.Is(err, store.ErrFull) {
			t.Errorf("without the reserve: %v", err)
		}
		start := func(ctx context.Context) {
			run, err := i.Start(ctx, spec(w), atOnce)
			if err != nil {
				t.Fatal(err)
			}
			if run, _ := i.wait(refOf(run)); run.Status != operation.Succeeded {
				t.Errorf("%+v", run)
			}
			synctest.Wait()
		}
		indexes := func() int {
			all, err := inner.Database(w.database).Collection("svc.runs").Indexes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		start(store.WithReserve(t.Context()))
		if n := indexes(); n != 0 {
			t.Errorf("there are %d indexes", n)
		}
		full.Store(false)
		start(t.Context())
		if indexes() == 0 {
			t.Error("no later run makes the indexes")
		}
	})
}

func atOnce(context.Context, *operation.Live) (operation.Outcome, error) {
	return operation.Outcome{}, nil
}

// TestRunOnFullDisk: where nobody else can take a run over, a disk that stays full does not make it lost: it ends as its work does, which its followers, who asks for it
// and who lists runs learn at once, and the record as soon as it can be written.
func TestRunOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		var full atomic.Bool
		w.store = fullStore{w.store, &full}
		i := w.instance(operation.Options{Alone: true})
		refs := map[string]operation.Ref{}
		for name, err := range map[string]error{"fails": store.ErrFull, "succeeds": nil} {
			refs[name] = i.start(spec(w), func(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
				time.Sleep(time.Minute) // far longer than another instance would wait to hear of it
				if ctx.Err() != nil {
					t.Errorf("%s: %v", name, context.Cause(ctx))
				}
				return operation.Outcome{Result: "done"}, err
			})
		}
		full.Store(true)
		time.Sleep(time.Minute + time.Second) // nobody waits for the disk
		for name, want := range map[string][2]string{"fails": {"failed", "store_full"}, "succeeds": {"succeeded", ""}} {
			run, events := i.wait(refs[name])
			code := ""
			if run.Error != nil {
				code = run.Error.Code
			}
			if got := [2]string{string(run.Status), code}; got != want || len(events) == 0 {
				t.Errorf("%s: told is %v", name, got)
			}
			page, err := i.List(t.Context(), w.database, operation.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Items {
				if r.ID == refs[name].ID && string(r.Status) != want[0] {
					t.Errorf("%s: listed as %s", name, r.Status)
				}
			}
		}
		if page, err := i.List(t.Context(), w.database, operation.Query{Active: true}); err != nil || len(page.Items) != 0 {
			t.Errorf("active are %d, %v", len(page.Items), err)
		}
		time.Sleep(time.Hour)
		full.Store(false)
		i.patrol() // which finds them running
		time.Sleep(5 * time.Second)
		after := w.instance(operation.Options{Alone: true}) // reads what is on record
		after.patrol()
		wantEnd(t, "on record", after, refs["fails"], "failed", "store_full", `"done"`, "", "error failed")
		wantEnd(t, "on record", after, refs["succeeds"], "succeeded", "", `"done"`, "", "done succeeded")
	})
}

// TestCloseOnFullDisk: neither who follows a run nor who closes waits for a record that can't be written.
func TestCloseOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		var full atomic.Bool
		w.store = fullStore{w.store, &full}
		i := w.instance(operation.Options{Alone: true})
		ref := i.start(spec(w), func(context.Context, *operation.Live) (operation.Outcome, error) {
			full.Store(true)
			return operation.Outcome{}, store.ErrFull
		})
		began := time.Now()
		if i.wait(ref); time.Since(began) > 0 {
			t.Errorf("its end was told after %s", time.Since(began))
		}
		began = time.Now()
		i.Close(t.Context())
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
