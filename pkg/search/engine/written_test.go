package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// late is a store whose feed tells of changes only while it is not held, and that counts the records that are found in it.
type late struct {
	store.Store

	held  sync.RWMutex
	found atomic.Int64
}

func (l *late) Database(name string) store.Database { return lateDB{l.Store.Database(name), l} }

type lateDB struct {
	store.Database

	of *late
}

func (d lateDB) Watch(ctx context.Context, w store.Watch, fn func(store.Event) error) error {
	return d.Database.Watch(ctx, w, func(e store.Event) error {
		d.of.held.RLock()
		defer d.of.held.RUnlock()
		return fn(e)
	})
}

func (d lateDB) Position(ctx context.Context) (store.Position, error) {
	d.of.held.RLock()
	defer d.of.held.RUnlock()
	return d.Database.Position(ctx)
}

func (d lateDB) Collection(name string) store.Collection {
	return lateCollection{d.Database.Collection(name), d.of}
}

type lateCollection struct {
	store.Collection

	of *late
}

func (c lateCollection) Find(ctx context.Context, q store.Query, fn func(bson.Raw) error) error {
	return c.Collection.Find(ctx, q, func(doc bson.Raw) error {
		c.of.found.Add(1)
		return fn(doc)
	})
}

// settle waits until everything is indexed that was written until now.
func (w *world) settle() {
	w.t.Helper()
	word := fmt.Sprintf("a%db%dc%dd", w.rev, w.rev, w.rev) // which none of before is like
	w.write("articles", doc(60_000, "title", word))
	w.soon("main", word, []int{60_000})
	if err := w.engine.Settle(w.t.Context(), w.project); err != nil {
		w.t.Fatal(err)
	}
}

// TestHandedOver writes records that the index has as they were handed over: nobody reads them, whether the feed tells of them before or
// afterwards.
func TestHandedOver(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		for _, first := range []string{"the writer", "the feed"} {
			l := &late{Store: s}
			w := newWorld(t, l, articles)
			engine.WaitForEver(w.engine)
			engine.Gather(w.engine, 1000*time.Hour) // what the feed tells of is about to be read
			c := w.project.Collections["articles"]
			settle := func() {
				t.Helper()
				if err := w.engine.Settle(t.Context(), w.project); err != nil {
					t.Fatal(err)
				}
			}
			told := func() {
				for engine.Handed(w.engine, w.project, c) > 0 {
					time.Sleep(time.Millisecond)
				}
			}
			settle()
			w.put("articles", doc(1, "title", "red fox"), doc(3, "title", "red fox"))
			w.finds("articles", "main", "fox", []int{1, 3})
			told()
			l.held.Lock()
			since := w.engine.Writing(w.project, c)
			written := w.write("articles", doc(1, "title", "grey wolf"), doc(2, "title", "grey goose"), doc(3))
			if first == "the feed" {
				l.held.Unlock()
				for engine.Behind(w.engine, w.project, c) < 3 {
					time.Sleep(time.Millisecond)
				}
			}
			w.engine.Written(t.Context(), w.project, c, since, written)
			w.finds("articles", "main", "grey", []int{1, 2})
			w.finds("articles", "main", "fox", nil)
			if first == "the writer" {
				l.held.Unlock()
				told()
			}
			settle()
			if n := l.found.Load(); n > 0 {
				t.Errorf("%s comes first, and %d records were read that had been handed over", first, n)
			}
			w.close()
		}
	})
}

// TestHandedOverLate hands a record over when the feed has told of a newer version, or other writers have handed one over: the newest is
// what is found in the end, and it is found as soon as its writer is answered.
func TestHandedOverLate(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		l := &late{Store: s}
		w := newWorld(t, l, articles)
		engine.WaitForEver(w.engine)
		w.put("articles", doc(1, "title", "red fox"), doc(2, "title", "red hen"), doc(3, "title", "red cow"), doc(4, "title", "red cat"))
		c := w.project.Collections["articles"]
		w.settle()
		before := w.engine.Writing(w.project, c)
		old := w.write("articles", doc(1, "title", "old fox"), doc(2, "title", "old hen"), doc(3, "title", "old cow"))
		w.put("articles", doc(1, "title", "new fox"))
		w.write("articles", doc(2, "title", "new hen"), doc(3))
		w.settle()
		w.engine.Written(t.Context(), w.project, c, before, old) // the feed has told
		w.finds("articles", "main", "new", []int{1, 2})
		w.finds("articles", "main", "old", nil)

		l.held.Lock()
		before = w.engine.Writing(w.project, c)
		old = w.write("articles", doc(1, "title", "ancient fox"), doc(2, "title", "ancient hen"), doc(4, "title", "ancient cat"))
		w.put("articles", doc(1, "title", "young fox"))
		w.put("articles", doc(4))
		w.write("articles", doc(2, "title", "young hen")) // by another instance
		w.engine.Written(t.Context(), w.project, c, before, old)
		w.finds("articles", "main", "fox", []int{1})
		w.finds("articles", "main", "+young +fox", []int{1})
		w.finds("articles", "main", "cat", nil)
		l.held.Unlock()
		w.settle()
		w.finds("articles", "main", "young", []int{1, 2})
		w.finds("articles", "main", "ancient", nil)
	})
}

// TestHandedOverInTurmoil has writers hand the same few records over in any order, and others write behind the engine's back: in the end the
// index has what the store has.
func TestHandedOverInTurmoil(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		l := &late{Store: s}
		w := newWorld(t, l, articles)
		w.settle()
		c := w.project.Collections["articles"]
		const records, rounds = 8, 150
		var one sync.Mutex // of w.write; what comes of it is handed over in any order
		var all sync.WaitGroup
		for side := range 5 {
			r := rand.New(rand.NewPCG(uint64(side), rand.Uint64()))
			all.Go(func() {
				for n := range rounds {
					since := w.engine.Writing(w.project, c)
					d := doc(r.IntN(records), "title", fmt.Sprintf("word%dx%d", side, n))
					if r.IntN(4) == 0 {
						d = d[:1]
					}
					one.Lock()
					written := w.write("articles", d)
					one.Unlock()
					if side == 0 { // another instance
						continue
					}
					if r.IntN(3) == 0 {
						time.Sleep(time.Duration(r.IntN(12)) * time.Millisecond)
					}
					w.engine.Written(t.Context(), w.project, c, since, written)
				}
			})
		}
		for range rounds / 10 {
			l.held.Lock()
			time.Sleep(10 * time.Millisecond)
			l.held.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
		all.Wait()
		w.settle()
		var want, found []int
		err := w.records("articles").Find(t.Context(), store.Query{}, func(raw bson.Raw) error {
			title, _ := document.Field(raw, "title")
			hits, err := w.look("articles", "main", title.StringValue())
			if err != nil || len(hits) != 1 {
				t.Errorf("%s finds %v, %v", title, hits, err)
			}
			found = append(found, hits...)
			at := raw.Lookup("_id").ObjectID()
			want = append(want, int(at[10])<<8|int(at[11]))
			return nil
		})
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("records %v are found as %v, %v", want, found, err)
		}
		for _, x := range w.engine.Queue(w.project, c).Searches {
			if x.Mode.Indexed() && x.Records != len(want) {
				t.Errorf("%s has %d records of %d", x.Name, x.Records, len(want))
			}
		}
	})
}

// TestHandedOverBeforeTheFeed hands a record over that was written before the place from which the feed tells of changes: it tells neither of
// that nor of what came behind it until there.
func TestHandedOverBeforeTheFeed(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		l := &late{Store: s}
		l.held.Lock()
		w := newWorld(t, l, articles)
		engine.WaitForEver(w.engine)
		c := w.project.Collections["articles"]
		since := w.engine.Writing(w.project, c)
		old := w.write("articles", doc(1, "title", "old fox"))
		w.write("articles", doc(1, "title", "new fox")) // by another instance
		l.held.Unlock()
		w.soon("main", "new", []int{1})
		w.engine.Written(t.Context(), w.project, c, since, old)
		w.finds("articles", "main", "new", []int{1})
		w.finds("articles", "main", "old", nil)
	})
}

// TestHandedOverRenamed hands a record over with the names that fields had when it was written: they have others by then.
func TestHandedOverRenamed(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		l := &late{Store: s}
		w := newWorld(t, l, articles)
		engine.WaitForEver(w.engine)
		w.put("articles", doc(1, "title", "red fox"))
		w.settle()
		before, names := w.project, engine.IndexNames(w.engine)
		l.held.Lock()
		since := w.engine.Writing(before, before.Collections["articles"])
		written := w.write("articles", doc(1, "title", "grey wolf"))
		now := w.load(before.Namespace, strings.NewReplacer("name: title", "name: heading", "[title", "[heading", "{title:", "{heading:").Replace(articles))
		c := now.Collections["articles"]
		c.FieldNames = document.NewNames(map[string]string{"heading": "title"}, nil)
		now.FieldNames = map[string]*document.Names{c.StoredName(): c.FieldNames}
		now.Generation = before.Generation + 1
		w.project = now
		if err := w.engine.Serve(now); err != nil {
			t.Fatal(err)
		}
		if got := engine.IndexNames(w.engine); !slices.Equal(got, names) {
			t.Fatalf("other indexes: %q for %q", got, names)
		}
		w.engine.Written(t.Context(), before, before.Collections["articles"], since, written)
		l.held.Unlock()
		w.settle()
		w.finds("articles", "main", "wolf", []int{1})
	})
}

// TestHandedOverBesideOthers hands a record over that another program has changed behind that, which leaves what tells versions apart as it is.
func TestHandedOverBesideOthers(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, &late{Store: s}, articles)
		engine.WaitForEver(w.engine)
		w.settle()
		c := w.project.Collections["articles"]
		since := w.engine.Writing(w.project, c)
		written := w.write("articles", doc(1, "title", "old fox"))
		w.rev--
		w.write("articles", doc(1, "title", "new fox"))
		w.rev++
		w.settle()
		w.engine.Written(t.Context(), w.project, c, since, written)
		w.finds("articles", "main", "new", []int{1})
		w.finds("articles", "main", "old", nil)
	})
}
