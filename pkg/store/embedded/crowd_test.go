package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// An index is built while documents are written all the time, and those that are there are so large that more is written
// while many of them are read than may change in one step.
func TestBuildAmongLargeDocuments(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	large := strings.Repeat("x", 1<<20)
	for i := range 64 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "pad", Value: large}}))
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				var ops []store.Op
				for j := range 100 {
					ops = append(ops, insert(t, bson.D{{Key: "_id", Value: fmt.Sprint(w, "/", i, "/", j)}, {Key: "n", Value: i % 50}}))
				}
				must(t, c, ops...)
			}
		})
	}
	createIndex(t, c, index("n", "n"))
	stop()
	writers.Wait()
}

// What an update makes of documents counts, not how large it is itself.
func TestAtomicWriteTooLarge(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	embedded.SetLimits(s, embedded.Limits{Commit: 4 << 20})
	c := collection(s)
	var ops []store.Op
	for i := range 10 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 0}, {Key: "pad", Value: strings.Repeat("x", 1<<20)}}))
		ops = append(ops, store.Op{Kind: store.Update, ID: value(t, i), Update: inc("n", 1)})
	}
	if _, err := c.Write(t.Context(), ops, true); errs.KindOf(err) != errs.Limit {
		t.Errorf("atomic: %v", err)
	}
	err := s.Database("db").Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Collection("things").Write(ctx, ops, false)
		return err
	})
	if errs.KindOf(err) != errs.Limit {
		t.Errorf("transaction: %v", err)
	}
	if n, err := c.Count(t.Context(), where("n", 0), 0); n != 10 || err != nil {
		t.Errorf("%d are as they were, %v", n, err)
	}
	// By themselves they are no more than a commit each.
	before := embedded.Commits(s)
	must(t, c, ops...)
	if n := embedded.Commits(s) - before; n < 2 {
		t.Errorf("10 MiB were written in %d commits", n)
	}
	if n, err := c.Count(t.Context(), where("n", 1), 0); n != 10 || err != nil {
		t.Errorf("%d were changed, %v", n, err)
	}
}

// The entries of one document in all indexes count together.
func TestEntriesOfAllIndexes(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("one", "list", "text"))
	createIndex(t, c, index("other", "text", "list"))
	var list bson.A
	for i := range 40 {
		list = append(list, i)
	}
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "list", Value: list}, {Key: "text", Value: strings.Repeat("x", 1<<20)}}
	if _, err := one(t.Context(), c, insert(t, doc)); errs.KindOf(err) != errs.TooLarge {
		t.Errorf("80 MiB of entries: %v", err)
	}
	if err := c.DropIndex(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	must(t, c, insert(t, doc))
}

// Collections with numbers in a row are dropped together: but none that is another database's, and all of each.
func TestDropDatabaseAmongOthers(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	gone, kept := s.Database("gone"), s.Database("kept")
	for i := range 40 {
		name := fmt.Sprint("c", i)
		must(t, gone.Collection(name), insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}))
		if i%3 == 0 {
			createIndex(t, gone.Collection(name), index("n", "n"))
		}
		if i%7 == 0 {
			must(t, kept.Collection(name), insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}))
			createIndex(t, kept.Collection(name), index("n", "n"))
		}
	}
	view, err := gone.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := s.DropDatabase(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := validate(t.Context(), s); err != nil { // it tells of what belongs to nothing
		t.Error(err)
	}
	for i := range 40 {
		name := fmt.Sprint("c", i)
		for _, tc := range []struct {
			r    store.Reader
			want bool
		}{{gone.Collection(name), false}, {kept.Collection(name), i%7 == 0}, {view.Collection(name), true}} {
			if n, err := tc.r.Count(t.Context(), where("n", i), 0); err != nil || n == 1 != tc.want {
				t.Errorf("%s has %d, %v", name, n, err)
			}
		}
	}
	if names, err := gone.CollectionNames(t.Context()); len(names) > 0 || err != nil {
		t.Errorf("there still are %v, %v", names, err)
	}
	if names, err := view.CollectionNames(t.Context()); len(names) != 40 || err != nil {
		t.Errorf("the view has %v, %v", names, err)
	}
}

// Watchers that are many look less often; all are told of everything, in order.
func TestManyWatchers(t *testing.T) {
	const writes = 300
	s := open(t, embedded.Options{InMemory: true})
	start := first(t, s.Database("db"))
	var watchers sync.WaitGroup
	for range 50 {
		watchers.Go(func() {
			next := 0
			err := s.Database("db").Watch(t.Context(), store.Watch{After: start}, func(e store.Event) error {
				if id, ok := e.ID.AsInt64OK(); !ok || int(id) != next {
					t.Errorf("told of %v, not of %d", e.ID, next)
				}
				if next++; next == writes {
					return errLookAway
				}
				return nil
			})
			if !errors.Is(err, errLookAway) {
				t.Errorf("Watch: %v", err)
			}
		})
	}
	for i := range writes {
		must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: i}}))
	}
	watchers.Wait()
}

// Between the moment when a watcher learns where the feed ends and that when it reads, all of it may be cut off.
func TestWatchedEndCutOff(t *testing.T) {
	var now atomic.Int64
	s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
	fill(t, collection(s), 10)
	now.Store((1000 * time.Hour).Milliseconds())
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "later"}}))
	embedded.Sweep(t.Context(), s)
	if err := embedded.ReadFeed(s, "db", 5); !errors.Is(err, store.ErrHistoryLost) {
		t.Errorf("read what is cut off: %v", err)
	}
}

// A clock that was wrong for a while takes no history away.
func TestFeedOfWrongClock(t *testing.T) {
	hour := func(n int64) int64 { return (time.Duration(n) * time.Hour).Milliseconds() }
	for name, wrong := range map[string]int64{"behind": 0, "ahead": hour(3000)} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(hour(1000))
			s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return time.UnixMilli(now.Load()) }})
			start := first(t, s.Database("db"))
			put := func(from, n int) {
				for i := range n {
					must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: from + i}}))
				}
			}
			put(0, 10)
			now.Store(wrong)
			put(100, 50)
			now.Store(hour(1001))
			put(200, 10)
			embedded.Sweep(t.Context(), s)
			if n := len(events(t, s.Database("db"), store.Watch{After: start})); n != 70 {
				t.Errorf("%d of 70 changes within an hour are kept", n)
			}
			// In time they go, with what is behind them.
			now.Store(hour(4000))
			put(300, 1)
			embedded.Sweep(t.Context(), s)
			if !lost(t, s.Database("db"), start) {
				t.Error("what is old is kept")
			}
		})
	}
}

// Of several who make a copy in one place one does, and the others are told that it is there.
func TestCheckpointsInOnePlace(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	fill(t, collection(s), 10)
	var made atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			switch err := s.Checkpoint(t.Context(), "/copy"); {
			case err == nil:
				made.Add(1)
			case errs.KindOf(err) != errs.Conflict:
				t.Errorf("Checkpoint: %v", err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("%d copies were made", made.Load())
	}
}

// What a transaction is doing when its time is up ends with an error of its context; the caller is told of the reason.
func TestTransactionCutShort(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(s *embedded.Store)
		want error
	}{
		"time is up": {func(*embedded.Store) {}, store.ErrTransactionTime},
		"closed":     {func(s *embedded.Store) { go func() { _ = s.Close() }() }, store.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, embedded.Options{InMemory: true})
			if errors.Is(tc.want, store.ErrTransactionTime) {
				embedded.SetLimits(s, embedded.Limits{Transaction: 20 * time.Millisecond})
			}
			err := s.Database("db").Transact(t.Context(), func(ctx context.Context, _ store.Tx) error {
				tc.end(s)
				<-ctx.Done()
				return store.Ended(ctx)
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("Transact: %v", err)
			}
		})
	}
}
