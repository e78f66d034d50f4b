package engine_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// failing is a store whose records can't be read while broken is true, and for which reads wait while it is held.
type failing struct {
	store.Store

	broken atomic.Bool
	held   sync.RWMutex
}

func (f *failing) Database(name string) store.Database { return failingDB{f.Store.Database(name), f} }

type failingDB struct {
	store.Database

	of *failing
}

func (d failingDB) Collection(name string) store.Collection {
	if strings.HasPrefix(name, "svc.") {
		return d.Database.Collection(name)
	}
	return failingCollection{d.Database.Collection(name), d.of}
}

type failingCollection struct {
	store.Collection

	of *failing
}

func (c failingCollection) Find(ctx context.Context, q store.Query, fn func(bson.Raw) error) error {
	c.of.held.RLock()
	defer c.of.held.RUnlock()
	if c.of.broken.Load() {
		return errors.New("the disk is full")
	}
	return c.Collection.Find(ctx, q, fn)
}

// TestS19WritesDoNotWaitForATroubledIndex is row S19: while indexing fails, writes are answered without it, and what was written meanwhile
// is found afterwards.
func TestS19WritesDoNotWaitForATroubledIndex(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		broken := &failing{Store: s}
		w := newWorld(t, broken, articles)
		engine.WaitForEver(w.engine)
		w.put("articles", doc(1, "title", "red fox"))
		w.soon("main", "fox", []int{1})
		broken.broken.Store(true)
		for n := 2; n <= 4; n++ {
			w.putUnread("articles", doc(n, "title", "red bird"))
		}
		broken.broken.Store(false)
		w.soon("main", "bird", []int{2, 3, 4})
		for w.engine.Queue(w.project, w.project.Collections["articles"]).LastError != nil {
			runtime.Gosched()
		}
		w.put("articles", doc(5, "title", "red cat"))
		w.finds("articles", "main", "cat", []int{5})
	})
}

// TestAsync: writes don't wait until they can be found by searches that are async, and are found a little later.
func TestAsync(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		slow := &failing{Store: s}
		w := newWorld(t, slow, strings.NewReplacer("mode: text", "mode: text, async: true", "mode: ngram", "mode: ngram, async: true").Replace(articles))
		engine.WaitForEver(w.engine)
		w.put("articles", doc(1, "title", "red fox"))
		w.soon("main", "fox", []int{1})
		slow.held.Lock()
		w.putUnread("articles", doc(2, "title", "red bird"))
		if q := w.engine.Queue(w.project, w.project.Collections["articles"]); q.Pending+q.InFlight == 0 || q.Since.IsZero() { // it is both when the feed tells of it while it is taken in
			t.Errorf("what waits: %+v", q)
		}
		slow.held.Unlock()
		w.soon("main", "bird", []int{2})
	})
}

// TestRegenerateTwice asks for an index anew while it is being made anew: both wait for the one that comes of it.
func TestRegenerateTwice(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		broken := &failing{Store: s}
		w := newWorld(t, broken, articles)
		w.put("articles", doc(1, "title", "red fox"))
		if err := w.engine.Settle(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
		c := w.project.Collections["articles"]
		broken.broken.Store(true)
		done := make(chan error, 2)
		for range 2 {
			before := engine.IndexNames(w.engine)
			go func() {
				done <- w.engine.Regenerate(t.Context(), w.project, c, "main", func(string, string, int64, int64) {})
			}()
			for slices.Equal(before, engine.IndexNames(w.engine)) {
				runtime.Gosched()
			}
		}
		broken.broken.Store(false)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
			for _, x := range w.engine.Queue(w.project, c).Searches {
				if x.State != engine.Ready {
					t.Errorf("%s is %s although it was made anew", x.Name, x.State)
				}
			}
		}
	})
}
