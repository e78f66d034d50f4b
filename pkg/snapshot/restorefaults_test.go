package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// brokenStore is a store whose operations fail as a test says, before they are done or behind that.
type brokenStore struct {
	store.Store

	ask    func(op, name string) (before, after error)
	atOnce bool // it is a store in which collections take the places of others at once, if the one behind is

	mu      sync.Mutex
	shadows map[string]map[string]bool // collections of restores that were written to, by database
}

func (f *brokenStore) do(op, name string, fn func() error) error {
	before, after := f.ask(op, name)
	if before != nil {
		return before
	}
	if err := fn(); err != nil {
		return err
	}
	return after
}

func (f *brokenStore) Database(name string) store.Database {
	d := &brokenDatabase{f.Store.Database(name), f, name}
	if all, ok := d.Database.(store.Replacer); ok && f.atOnce {
		return &brokenReplacer{d, all}
	}
	return d
}

// brokenReplacer is a database in which collections take the places of others at once.
type brokenReplacer struct {
	*brokenDatabase

	all store.Replacer
}

func (d *brokenReplacer) ReplaceCollections(ctx context.Context, renames []store.Rename) error {
	return d.f.do("replace", "", func() error { return d.all.ReplaceCollections(ctx, renames) })
}

func (f *brokenStore) DropDatabase(ctx context.Context, name string) error {
	return f.do("drop", name, func() error { return f.Store.DropDatabase(ctx, name) })
}

type brokenDatabase struct {
	store.Database

	f    *brokenStore
	name string
}

func (d *brokenDatabase) Collection(name string) store.Collection {
	if strings.HasPrefix(name, "svc.restore.") {
		d.f.mu.Lock()
		defer d.f.mu.Unlock()
		if d.f.shadows[d.name] == nil {
			d.f.shadows[d.name] = map[string]bool{}
		}
		d.f.shadows[d.name][name] = true
	}
	return &brokenCollection{d.Database.Collection(name), d.f, name}
}

func (d *brokenDatabase) CollectionNames(ctx context.Context) (names []string, err error) {
	err = d.f.do("names", "", func() error {
		names, err = d.Database.CollectionNames(ctx)
		return err
	})
	return names, err
}

func (d *brokenDatabase) DropCollection(ctx context.Context, name string) error {
	return d.f.do("drop", name, func() error { return d.Database.DropCollection(ctx, name) })
}

func (d *brokenDatabase) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	return d.f.do("rename", from, func() error { return d.Database.RenameCollection(ctx, from, to, replace) })
}

func (d *brokenDatabase) View(ctx context.Context) (v store.View, err error) {
	err = d.f.do("view", "", func() error {
		v, err = d.Database.View(ctx)
		return err
	})
	return v, err
}

type brokenCollection struct {
	store.Collection

	f    *brokenStore
	name string
}

func (c *brokenCollection) Get(ctx context.Context, id bson.RawValue) (doc bson.Raw, err error) {
	err = c.f.do("get", c.name, func() error {
		doc, err = c.Collection.Get(ctx, id)
		return err
	})
	return doc, err
}

func (c *brokenCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	return c.f.do("find", c.name, func() error { return c.Collection.Find(ctx, q, fn) })
}

func (c *brokenCollection) Write(ctx context.Context, ops []store.Op, atomic bool) (results []store.Result, err error) {
	err = c.f.do("write", c.name, func() error {
		results, err = c.Collection.Write(ctx, ops, atomic)
		return err
	})
	if err != nil {
		results = nil
	}
	return results, err
}

func (c *brokenCollection) CreateIndex(ctx context.Context, x store.Index) error {
	return c.f.do("index", c.name, func() error { return c.Collection.CreateIndex(ctx, x) })
}

func (c *brokenCollection) Indexes(ctx context.Context) (list []store.Index, err error) {
	err = c.f.do("indexes", c.name, func() error {
		list, err = c.Collection.Indexes(ctx)
		return err
	})
	return list, err
}

func (c *brokenCollection) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = c.f.do("stats", c.name, func() error {
		stats, err = c.Collection.Stats(ctx)
		return err
	})
	return stats, err
}

// troubled is a project whose restores meet failures: of the operation with a number from 1, counted over the store and the disk, and of
// all behind it if it stays so. Of the store's, one of two is done all the same; of the disk's, two of four find no space.
type troubled struct {
	*world

	f     *brokenStore
	fails nth
	other bool // these are the other ones

	told, left []snapshot.Ended // by the goroutine that restores
}

var errLost = errs.New(errs.Unavailable, "lost", "the store can't be reached")

func newTroubled(w *world) *troubled {
	out := &troubled{world: w}
	out.f = &brokenStore{Store: w.store, shadows: map[string]map[string]bool{}}
	out.f.ask = func(op, name string) (error, error) {
		switch err := out.fails.fault(op, name); {
		case err == nil:
			return nil, nil
		case (out.fails.at%2 == 0) != out.other && !out.fails.stays:
			return nil, errLost
		}
		return errLost, nil
	}
	out.faults = out.fails.fault
	out.begin(0, false)
	return out
}

// begin is a process that has just been started.
func (w *troubled) begin(at int, stays bool) {
	w.fails.mu.Lock()
	w.fails.n, w.fails.at, w.fails.stays, w.fails.what = 0, at, stays, syscall.EIO
	if (at/2%2 == 1) != w.other {
		w.fails.what = syscall.ENOSPC
	}
	w.fails.mu.Unlock()
	w.gate = gate.New(w.store)
	w.snaps = snapshot.New(snapshot.Options{
		Store: w.f, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Gate: w.gate,
		Fault: func(op, name string) error { return w.faults(op, name) },
		Ended: func(_ context.Context, e snapshot.Ended) error {
			w.told = append(w.told, e)
			return w.fails.fault("tell", "")
		},
		Left: func(_ context.Context, e snapshot.Ended) { w.left = append(w.left, e) },
	})
}

// outcome is what a restore is told to note of its result.
func outcome(done *snapshot.RestoreResult) ([]byte, error) {
	var b []byte
	for _, c := range done.Collections {
		b = fmt.Appendf(b, "%s %d %d ", c.Name, c.Records, c.Restored)
	}
	return b, nil
}

// tells wants it to have been told how a restore for a run has ended, each time in the same way, if anything has begun to change. done is what is noted of one that is done.
func (w *troubled) tells(t *testing.T, run string, forward bool, done []byte) {
	t.Helper()
	if !forward {
		done = nil
	}
	for _, e := range w.told {
		is := e.Project == w.p && e.Run.ID == run && e.Run.Namespace == w.p.Namespace && e.Snapshot != ""
		if !is || e.Forward != forward || forward == (e.Safety == "") || string(e.Outcome) != string(done) {
			t.Errorf("forward %v: told is %+v %s, want %s", forward, e, e.Outcome, done)
		}
	}
	if forward && len(w.told) == 0 {
		t.Error("nobody is told that it is done")
	}
}

// leaves wants nothing to be left of restores but the snapshots that they have taken, all of which but those that stay are looked into.
func (w *troubled) leaves(t *testing.T, stay ...string) {
	t.Helper()
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	for database, names := range w.f.shadows {
		for name := range names {
			stats, err := w.store.Database(database).Collection(name).Stats(t.Context())
			if err != nil || stats.Documents > 0 || len(stats.IndexBytes) > 0 {
				t.Errorf("%s is left: %+v, %v", name, stats, err)
			}
		}
	}
	n, err := w.db.Collection("svc.restores").Count(t.Context(), notLast, 0)
	if n != 0 || err != nil {
		t.Errorf("%d notes of restores are left, %v", n, err)
	}
	for name := range contents(t, w.media) {
		if strings.Contains(name, "/.restore/") {
			t.Errorf("%s is left", name)
		}
	}
	if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
		t.Error(err)
	}
	list, err := w.snaps.List(t.Context(), w.p)
	if err != nil {
		t.Error(err)
	}
	for _, info := range list {
		if !slices.Contains(stay, info.ID) {
			w.verify(info)
		}
	}
}

// notLast leaves out the note of how the last restore was ended that another process had left.
var notLast = mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: "last"}}}})

// begun has but two snapshots be there, so that each safety snapshot is made as the first.
func (w *troubled) begun(t *testing.T, stay ...string) {
	t.Helper()
	list, err := w.snaps.List(t.Context(), w.p)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if slices.Contains(stay, info.ID) {
			continue
		}
		if err := w.snaps.Delete(t.Context(), w.p, info.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// reaches says that requests reach the records.
func (w *troubled) reaches() error {
	_, err := w.records("items").Count(w.Context(), nil, 1)
	return err
}

// each restores again and again, with another failure each time, and wants the project to be as it was before or as the snapshot has it,
// at the latest when what was left of the restore has been ended.
func (w *troubled) each(t *testing.T, o snapshot.RestoreOptions, stays bool, first, pace int) {
	t.Helper()
	w.fillWith(6, 30)
	info := w.create("daily")
	w.change()
	w.insert("legacy", bson.D{{Key: "_id", Value: "b"}})
	before, old := w.state(), w.create("daily")
	reference := w.restore(info, o)
	noted, err := outcome(&reference)
	if err != nil || len(noted) == 0 {
		t.Fatal(err)
	}
	after := w.state()
	w.restore(old, replaceAll)
	if cmp.Equal(before, after) || !cmp.Equal(before, w.state()) {
		t.Fatal("the two states are no good")
	}
	ends := map[bool]int{}
	for at := first; ; at += pace {
		w.begun(t, info.ID, old.ID)
		w.begin(at, stays)
		w.clock.Pass(time.Second)
		w.told, o.Run = nil, snapshot.Run{Namespace: w.p.Namespace, ID: fmt.Sprint(at), Outcome: outcome}
		_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, o, nil)
		reached := w.fails.n >= at
		if stays { // the process was ended by that; another one comes
			w.begin(0, false)
		} else {
			w.fails.heal()
		}
		if err := w.snaps.Recover(t.Context(), w.p); err != nil {
			t.Fatalf("operation %d: %v", at, err)
		}
		got := w.state()
		isOld, isNew := cmp.Equal(before, got), cmp.Equal(after, got)
		switch {
		case !isOld && !isNew:
			t.Fatalf("operation %d leaves a mixture: %v\nto before %s\nto the snapshot %s", at, err, cmp.Diff(before, got), cmp.Diff(after, got))
		case err == nil && !isNew:
			t.Fatalf("operation %d failed, and nothing was said", at)
		}
		w.tells(t, fmt.Sprint(at), isNew, noted)
		if err := w.reaches(); err != nil {
			t.Fatalf("operation %d leaves the project shut: %v", at, err)
		}
		var stay []string
		if reached && (ends[false]+ends[true])%8 > 0 { // what is wrong in them stays so, and all is looked into every now and then
			stay = []string{info.ID, old.ID}
		}
		w.leaves(t, stay...)
		if t.Failed() {
			t.Fatalf("operation %d: %v", at, err)
		}
		ends[isNew]++
		if isNew {
			w.restore(old, replaceAll)
		}
		if !reached {
			if err != nil {
				t.Fatalf("nothing failed: %v", err)
			}
			t.Logf("%d restores were as before, %d as the snapshot", ends[false], ends[true])
			if ends[false]*pace < 50 || ends[true] < 1 {
				t.Error("that is few")
			}
			return
		}
	}
}

// R4: whichever operation of the store or on the disk fails while records are restored, they and their files are all as before, or all as
// in the snapshot. Those of the store may have been done all the same.
func TestR4RestoreFails(t *testing.T) { eachTrouble(t, false) }

// R1: a process that ends at any operation of a restore leaves everything as before or, when the next one has looked, as in the snapshot.
func TestR1RestoreEnds(t *testing.T) { eachTrouble(t, true) }

func eachTrouble(t *testing.T, stays bool) {
	t.Helper()
	t.Parallel()
	for _, mode := range []snapshot.RestoreMode{snapshot.Replace, snapshot.Merge} {
		t.Run(string(mode), func(t *testing.T) {
			o := snapshot.RestoreOptions{Media: true, Mode: mode}
			for _, other := range []bool{false, true} { // each operation fails in each way
				t.Run(fmt.Sprint("at once, other ", other), func(t *testing.T) {
					t.Parallel()
					w := newTroubled(newWorld(t, teststore.Memory(t)))
					w.f.atOnce, w.other = true, other
					w.each(t, o, stays, 1, 1)
				})
			}
			teststore.EachParallel(t, func(t *testing.T, s store.Store) {
				pace := 1
				switch {
				case os.Getenv("SOAK") != "":
				case s.Name() == "embedded": // all of them are tried at once
					pace = 4
				default:
					pace = 13
				}
				w := newTroubled(newWorld(t, s))
				w.other = randtest.Of(t).IntN(2) == 1
				w.each(t, o, stays, 1+randtest.Of(t).IntN(pace), pace)
			})
		})
	}
}

// TestRestoreStuck: while a restore that is decided can't be done, nobody reaches the records; it is done as soon as it can be.
func TestRestoreStuck(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newTroubled(newWorld(t, s))
		w.fillWith(6, 30)
		info := w.create("daily")
		want := w.state()
		w.change()
		var broken atomic.Bool
		broken.Store(true)
		w.f.ask = func(op, _ string) (error, error) {
			if op == "rename" && broken.Load() {
				return errLost, nil
			}
			return nil, nil
		}
		_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, nil)
		if e := errs.From(err); e == nil || e.Code != "restore_unfinished" || e.Kind != errs.Unavailable {
			t.Errorf("%v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.snaps.Run(ctx, func() []*project.Project { return []*project.Project{w.p} })
		}()
		defer func() {
			stop()
			<-done
		}()
		if err := w.reaches(); !errors.Is(err, gate.ErrShut) {
			t.Errorf("the records are reached: %v", err)
		}
		broken.Store(false)
		for w.reaches() != nil {
			if t.Context().Err() != nil {
				t.Fatal("it stays shut")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if diff := cmp.Diff(want, w.state()); diff != "" {
			t.Error(diff)
		}
		w.leaves(t)
	})
}

// TestRestoreStuckEndedElsewhere: where another process has done a restore that is stuck here, this one opens what it keeps shut, and what depends on the records is looked at
// here, too.
func TestRestoreStuckEndedElsewhere(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newTroubled(newWorld(t, s))
		w.fillWith(6, 30)
		info := w.create("daily")
		want := w.state()
		w.change()
		w.f.ask = func(op, _ string) (error, error) {
			if op == "rename" {
				return errLost, nil
			}
			return nil, nil
		}
		replaced := 0
		w.snaps = snapshot.New(snapshot.Options{
			Store: w.f, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Gate: w.gate,
			Replaced: func(*project.Project) { replaced++ },
		})
		_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, nil)
		if e := errs.From(err); e == nil || e.Code != "restore_unfinished" || replaced > 0 {
			t.Errorf("%v, replaced %d times", err, replaced)
		}
		other := snapshot.New(snapshot.Options{Store: w.store, Media: w.library, Version: "1.2.3", Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler)})
		if err := other.Recover(t.Context(), w.p); err != nil {
			t.Fatal(err)
		}
		if err := w.reaches(); !errors.Is(err, gate.ErrShut) {
			t.Errorf("the records are reached: %v", err)
		}
		for range 2 {
			if err := w.snaps.Recover(t.Context(), w.p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.reaches(); err != nil || replaced != 1 {
			t.Errorf("%v, replaced %d times", err, replaced)
		}
		if diff := cmp.Diff(want, w.state()); diff != "" {
			t.Error(diff)
		}
		w.leaves(t)
	})
}

// TestRecoverAbandoned: a restore whose process does not show, and that still holds what makes it alone, is not ended; at a start it is left to
// that one, and otherwise what keeps writers away stays until it is over.
func TestRecoverAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	journal := w.db.Collection("svc.restores")
	doc := encode(t, bson.D{{Key: "_id", Value: "restore"}, {Key: "restore", Value: "abcdef"}, {Key: "step", Value: "loading"}, {Key: "swaps", Value: bson.A{}}, {Key: "media", Value: false}})
	if err := store.WriteAll(t.Context(), journal, store.Op{Kind: store.Insert, Doc: doc}); err != nil {
		t.Fatal(err)
	}
	held := false
	_, err := w.snaps.Create(t.Context(), w.p, w.profile("daily"), func(snapshot.Progress) {
		if held {
			return
		}
		held = true
		if err := w.snaps.RecoverAbandoned(t.Context(), w.p); !errors.Is(err, snapshot.ErrBusy) {
			t.Errorf("while it is held: %v", err)
		}
		if err := w.snaps.Recover(t.Context(), w.p); err != nil {
			t.Errorf("at a start: %v", err)
		}
		if _, err := journal.Get(t.Context(), store.Name("restore")); err != nil {
			t.Errorf("it has been ended: %v", err)
		}
	})
	if err != nil || !held {
		t.Fatal(held, err)
	}
	if err := w.snaps.RecoverAbandoned(t.Context(), w.p); err != nil {
		t.Error(err)
	}
	if _, err := journal.Get(t.Context(), store.Name("restore")); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("it is left: %v", err)
	}
}

// TestRecoverAbandonedBefore: a restore that begins ends what another process has left, and does not keep what that one has left at the gates from being taken away:
// it waits for that.
func TestRecoverAbandonedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	info := w.create("daily")
	journal := w.db.Collection("svc.restores")
	doc := encode(t, bson.D{{Key: "_id", Value: "restore"}, {Key: "restore", Value: "abcdef"}, {Key: "step", Value: "loading"}, {Key: "swaps", Value: bson.A{}}, {Key: "media", Value: false}})
	if err := store.WriteAll(t.Context(), journal, store.Op{Kind: store.Insert, Doc: doc}); err != nil {
		t.Fatal(err)
	}
	asked := false
	_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, func(p snapshot.Progress) {
		if p.Phase != snapshot.Loading || asked {
			return
		}
		asked = true
		if err := w.snaps.RecoverAbandoned(t.Context(), w.p); err != nil {
			t.Errorf("while a restore waits: %v", err)
		}
		ours, err := journal.Get(t.Context(), store.Name("restore"))
		if err != nil || strings.Contains(ours.String(), "abcdef") {
			t.Errorf("there is %s, %v", ours, err)
		}
	})
	if err != nil || !asked {
		t.Fatal(asked, err)
	}
}

// TestRecoverAbandonedSince: a restore of another process that has taken this one for dead, and is gone by now, is not ended because one of this process goes on that
// does not know that yet.
func TestRecoverAbandonedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(1, 1)
	info := w.create("daily")
	journal := w.db.Collection("svc.restores")
	asked := false
	_, err := w.snaps.Restore(t.Context(), w.p, info.ID, w.p, replaceAll, func(p snapshot.Progress) {
		if p.Phase != snapshot.Safety || asked {
			return
		}
		asked = true
		if err := w.snaps.RecoverAbandoned(t.Context(), w.p); err != nil {
			t.Errorf("what is noted is this restore's: %v", err)
		}
		theirs := encode(t, bson.D{{Key: "_id", Value: "restore"}, {Key: "restore", Value: "abcdef"}, {Key: "step", Value: "decided"}, {Key: "swaps", Value: bson.A{}}, {Key: "media", Value: false}})
		if err := store.WriteAll(t.Context(), journal, store.Op{Kind: store.Replace, ID: store.Name("restore"), Doc: theirs}); err != nil {
			t.Fatal(err)
		}
		if err := w.snaps.RecoverAbandoned(t.Context(), w.p); !errors.Is(err, snapshot.ErrBusy) {
			t.Errorf("what is noted is another one's: %v", err)
		}
	})
	if e := errs.From(err); !asked || e == nil || e.Code != "restore_taken_over" {
		t.Fatal(asked, err)
	}
	if err := w.snaps.RecoverAbandoned(t.Context(), w.p); err != nil {
		t.Error(err)
	}
	if _, err := journal.Get(t.Context(), store.Name("restore")); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("it is left: %v", err)
	}
}
