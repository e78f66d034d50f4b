package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
)

func testConcurrency(t *testing.T, s store.Store) {
	for _, c := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"one of many inserts with one id wins", func(f *fixture) {
			f.race(15, 16, "dup _id[_id]", func(round, i int) error {
				return f.apply(insert(fmt.Sprintf(`{"_id":%d,"by":%d}`, round, i)), i%2 == 0)
			})
		}},
		{"one of many inserts with one unique value wins", func(f *fixture) {
			f.index(unique(on("u")))
			f.race(15, 16, "dup u[u]", func(round, i int) error {
				return f.apply(insert(fmt.Sprintf(`{"_id":"%d/%d","u":%d}`, round, i, round)), i%2 == 0)
			})
		}},
		{"a counter loses no update", testCounter},
		{"increments lose nothing", testIncrements},
		{"one of many upserts inserts", testUpsertRace},
		{"each takes another document", testQueue},
		{"batches that cross each other", testCrossing},
		{"readers see whole batches", testSnapshots},
		{"an index built under writes", testBuildUnderWrites},
		{"a unique index built under writes", testUniqueBuildUnderWrites},
		{"one index from many sides", testSameIndex},
		{"collections come into being at once", testManyCollections},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newFixture(t, s)) })
	}
}

// race lets racers do at once what only one of them can do, in several rounds: the others get refusal. The one leaves a
// document behind.
func (f *fixture) race(rounds, racers int, refusal string, attempt func(round, i int) error) {
	f.t.Helper()
	for round := range rounds {
		outcomes := make([]string, racers)
		var g sync.WaitGroup
		for i := range racers {
			g.Go(func() { outcomes[i] = outcome(attempt(round, i)) })
		}
		g.Wait()
		counts := map[string]int{}
		for _, o := range outcomes {
			counts[o]++
		}
		if counts["ok"] != 1 || counts[refusal] != racers-1 {
			f.t.Fatalf("round %d: %v", round, counts)
		}
	}
	if n, err := f.Count(f.t.Context(), nil, 0); err != nil || n != int64(rounds) {
		f.t.Errorf("%d documents (%v), want %d", n, err, rounds)
	}
}

// apply writes one op, and gives what it came to as an error: of the call, or of the op. Atomically or not, which
// have to exclude each other.
func (f *fixture) apply(op store.Op, atomic bool) error {
	results, err := f.Write(f.t.Context(), []store.Op{op}, atomic)
	if err != nil {
		return err
	}
	return results[0].Err
}

// testCounter increments one document from many sides, by conditional replaces.
func testCounter(f *fixture) {
	const workers, increments = 8, 20
	f.given(`{"_id":1,"n":0}`)
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for done := 0; done < increments; {
				d, err := f.Get(f.t.Context(), value(`1`))
				if err != nil {
					return err
				}
				n := d.Lookup("n").AsInt64()
				op := when(fmt.Sprintf(`{"n":%d}`, n), replace(fmt.Sprintf(`{"_id":1,"n":%d}`, n+1)))
				switch err := f.apply(op, done%4 == 0); {
				case err == nil:
					done++
				case !errors.Is(err, store.ErrStale):
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	if got, want := f.contents(), doc(fmt.Sprintf(`{"_id":1,"n":%d}`, workers*increments)).String(); got != want {
		f.t.Errorf("got %s, want %s", got, want)
	}
}

// testIncrements adds to one document from many sides. Each value has to come back exactly once.
func testIncrements(f *fixture) {
	const workers, increments = 16, 25
	f.given(`{"_id":1,"n":0}`)
	seen := make([]atomic.Int64, workers*increments+1)
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			op := returning(store.ReturnAfter, "", change1(`{"$inc":{"n":1}}`))
			if w%2 == 0 {
				op = returning(store.ReturnAfter, "", by(`{"n":{"$gte":0}}`, "", change(`{"$inc":{"n":1}}`)))
			}
			last := int64(0)
			for i := range increments {
				results, err := f.Write(f.t.Context(), []store.Op{op}, i%5 == 0)
				if err == nil {
					err = results[0].Err
				}
				if err != nil {
					return err
				}
				n := results[0].Doc.Lookup("n").AsInt64()
				if n <= last || n > workers*increments {
					return fmt.Errorf("worker %d: %d after %d", w, n, last)
				}
				last = n
				seen[n].Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	for n := range seen {
		if times := seen[n].Load(); n > 0 && times != 1 {
			f.t.Errorf("%d came back %d times", n, times)
		}
	}
}

// testUpsertRace upserts one unique key from many sides: one document comes into being, and all count on it.
func testUpsertRace(f *fixture) {
	const racers = 64
	f.index(unique(on("u")))
	for round := range 3 {
		where := filter(fmt.Sprintf(`{"u":%d}`, round))
		op := store.Op{Kind: store.Update, Filter: where, Update: update(`{"$inc":{"n":1}}`), Upsert: true}
		var inserted, found atomic.Int64
		var g errgroup.Group
		for i := range racers {
			g.Go(func() error {
				results, err := f.Write(f.t.Context(), []store.Op{op}, i%8 == 0)
				if err == nil {
					err = results[0].Err
				}
				if err != nil {
					return err
				}
				found.Add(results[0].Matched)
				if results[0].Upserted.Type != 0 {
					inserted.Add(1)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			f.t.Fatal(err)
		}
		if inserted.Load() != 1 || found.Load() != racers-1 {
			f.t.Errorf("round %d: %d inserted, %d found", round, inserted.Load(), found.Load())
		}
		if n, err := f.Count(f.t.Context(), filter(fmt.Sprintf(`{"u":%d,"n":%d}`, round, racers)), 0); err != nil || n != 1 {
			f.t.Errorf("round %d: the document does not count %d: %v", round, racers, err)
		}
	}
}

// testQueue takes documents in order from many sides: each goes to one.
func testQueue(f *fixture) {
	const n, workers = 60, 6
	f.index(on("at"))
	for i := range n {
		f.given(fmt.Sprintf(`{"_id":%d,"at":%d}`, i, i))
	}
	take := returning(store.ReturnBefore, "", by(`{"at":{"$gte":0}}`, "at", change(`{"$unset":{"at":""},"$set":{"taken":true}}`)))
	end := returning(store.ReturnBefore, "", by(`{"taken":true}`, "_id", store.Op{Kind: store.Delete}))
	taken := make([]atomic.Int64, n)
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for {
				results, err := f.Write(f.t.Context(), []store.Op{take}, false)
				if err == nil {
					err = results[0].Err
				}
				if err != nil {
					return err
				}
				if results[0].Doc == nil {
					return nil
				}
				taken[results[0].Doc.Lookup("_id").AsInt64()].Add(1)
				if results, err = f.Write(f.t.Context(), []store.Op{end}, false); err != nil {
					return err
				}
				if results[0].Err != nil || results[0].Modified != 1 {
					return fmt.Errorf("a document that was taken is not there: %s", result(results[0]))
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	for id := range taken {
		if times := taken[id].Load(); times != 1 {
			f.t.Errorf("document %d was taken %d times", id, times)
		}
	}
	f.wantContents()
}

// testCrossing sends atomic batches over the same documents in opposite orders: all must come through, each whole.
func testCrossing(f *fixture) {
	const workers, batches = 4, 15
	f.given(`{"_id":1,"by":""}`, `{"_id":2,"by":""}`)
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for b := range batches {
				ops := []store.Op{
					replace(fmt.Sprintf(`{"_id":1,"by":"%d/%d"}`, w, b)), replace(fmt.Sprintf(`{"_id":2,"by":"%d/%d"}`, w, b)),
				}
				if w%2 == 0 {
					ops[0], ops[1] = ops[1], ops[0]
				}
				results, err := f.Write(f.t.Context(), ops, true)
				if err == nil {
					err = errors.Join(results[0].Err, results[1].Err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	one, _ := f.Get(f.t.Context(), value(`1`))
	two, _ := f.Get(f.t.Context(), value(`2`))
	if a, b := one.Lookup("by").StringValue(), two.Lookup("by").StringValue(); a != b || a == "" {
		f.t.Errorf("the last batches are %q and %q, want one", a, b)
	}
}

// testSnapshots moves an amount between documents while others sum it up: the sum never changes. The documents are
// too many and too large for one batch of any adapter.
func testSnapshots(f *fixture) {
	const n, reads = 1500, 6
	f.manyDocuments(n)
	want := int64(n * (n - 1) / 2)

	ctx, cancel := context.WithCancel(f.t.Context())
	var g sync.WaitGroup
	var moves atomic.Int64
	var stopped atomic.Bool
	g.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			low, high := i%(n/2), n-1-i%(n/2)
			swap := i / (n / 2) % 2 // every second round puts things back
			ops := []store.Op{
				replace(fmt.Sprintf(`{"_id":%d,"n":%d}`, low, low+1-swap)), replace(fmt.Sprintf(`{"_id":%d,"n":%d}`, high, high-1+swap)),
			}
			results, err := f.Write(ctx, ops, true)
			if err == nil {
				err = errors.Join(results[0].Err, results[1].Err)
			}
			if err != nil {
				if ctx.Err() == nil {
					f.t.Errorf("move %d: %v", i, err)
				}
				stopped.Store(true)
				return
			}
			moves.Add(1)
		}
	})
	for i := 0; i < reads || moves.Load() == 0 && !stopped.Load(); i++ { // the writer may be slow to begin
		var sum int64
		err := f.Find(ctx, store.Query{}, func(d bson.Raw) error {
			sum += d.Lookup("n").AsInt64()
			return nil
		})
		if err != nil || sum != want {
			f.t.Errorf("sum %d, want %d: %v", sum, want, err)
		}
	}
	cancel()
	g.Wait()
	if moves.Load() == 0 {
		f.t.Error("nothing was written meanwhile")
	}
}

// testBuildUnderWrites builds an index while documents come, change and go. Afterwards it must say what a scan says.
func testBuildUnderWrites(f *fixture) {
	const n = 900
	for i := range n {
		f.mustWrite(store.Op{Kind: store.Insert, Doc: numbered(i, i%10)})
	}
	var g errgroup.Group
	for w := range 3 {
		g.Go(func() error {
			for i := w; i < n; i += 3 {
				op := store.Op{Kind: store.Replace, Doc: numbered(i, 20+i%7)}
				switch i % 6 {
				case 1:
					op = store.Op{Kind: store.Delete, ID: op.Doc.Lookup("_id")}
				case 2:
					op = store.Op{Kind: store.Insert, Doc: numbered(n+i, i%7)}
				}
				if err := f.apply(op, false); err != nil {
					return err
				}
			}
			return nil
		})
	}
	f.index(on("n"))
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	where := filter(`{"n":{"$gte":3}}`)
	q := store.Query{Filter: where, Sort: sortBy("n _id")}
	if e, err := f.Explain(f.t.Context(), q); err != nil || strings.Join(e.Indexes, " ") != "n" {
		f.t.Errorf("Explain = %+v, %v", e, err)
	}
	byIndex := f.find(q)
	f.drop(on("n"))
	if scan := f.find(q); byIndex != scan {
		f.t.Errorf("index: %s\nscan:  %s", byIndex, scan)
	}
}

// testUniqueBuildUnderWrites builds a unique index while a second document with one key comes in: either the build
// or the insert is refused.
func testUniqueBuildUnderWrites(f *fixture) {
	for round := range 8 {
		f.mustWrite(insert(fmt.Sprintf(`{"_id":"%d/a","u":%d}`, round, round)))
		var inserted, built error
		var g sync.WaitGroup
		g.Go(func() {
			inserted = f.apply(insert(fmt.Sprintf(`{"_id":"%d/b","u":%d}`, round, round)), false)
		})
		g.Go(func() { built = f.CreateIndex(f.t.Context(), unique(on("u"))) })
		g.Wait()

		var dup *store.DuplicateKeyError
		var violation *store.ViolationError
		switch {
		case inserted == nil && errors.As(built, &violation):
			f.wantIndexes()
			f.mustWrite(remove(fmt.Sprintf(`"%d/b"`, round)))
		case built == nil && errors.As(inserted, &dup):
			f.drop(on("u"))
		default:
			f.t.Fatalf("round %d: insert: %v, build: %v", round, inserted, built)
		}
	}
}

func testSameIndex(f *fixture) {
	for i := range 50 {
		f.mustWrite(store.Op{Kind: store.Insert, Doc: numbered(i, i)})
	}
	var g errgroup.Group
	for range 6 {
		g.Go(func() error { return f.CreateIndex(f.t.Context(), unique(on("n"))) })
	}
	if err := g.Wait(); err != nil {
		f.t.Error(err)
	}
	f.wantIndexes(unique(on("n")))
}

// testManyCollections makes collections by their first write, from many sides, atomically and not.
func testManyCollections(f *fixture) {
	var g errgroup.Group
	for i := range 12 {
		c := f.db.Collection(fmt.Sprintf("c%d", i%4))
		g.Go(func() error {
			results, err := c.Write(f.t.Context(), []store.Op{{Kind: store.Insert, Doc: numbered(i, i)}}, i%3 == 0)
			if err != nil {
				return err
			}
			return results[0].Err
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.wantCollections("c0", "c1", "c2", "c3")
	for i := range 12 {
		if _, err := f.db.Collection(fmt.Sprintf("c%d", i%4)).Get(f.t.Context(), value(strconv.Itoa(i))); err != nil {
			f.t.Errorf("document %d: %v", i, err)
		}
	}
}
