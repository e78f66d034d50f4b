package embedded_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

const tallyDocs = 600

// tallyStore is a collection in which a third of the documents is on.
func tallyStore(t *testing.T) (*embedded.Store, store.Collection, *mql.Filter) {
	t.Helper()
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	ops := make([]store.Op, tallyDocs)
	for i := range ops {
		ops[i] = insert(t, bson.D{{Key: "_id", Value: i}, {Key: "on", Value: i%3 == 0}, {Key: "n", Value: 0}})
	}
	must(t, c, ops...)
	return s, c, mql.MustCompile(bson.D{{Key: "on", Value: true}})
}

func countOf(t *testing.T, c store.Collection, f *mql.Filter) int64 {
	t.Helper()
	n, err := c.Count(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func foundOf(t *testing.T, c store.Collection, f *mql.Filter) (n int64) {
	t.Helper()
	if err := c.Find(t.Context(), store.Query{Filter: f}, func(bson.Raw) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// switched sets on in one document.
func switched(t *testing.T, id int, on bool) store.Op {
	t.Helper()
	u, err := mql.CompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "on", Value: on}}}, {Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store.Op{Kind: store.Update, ID: value(t, id), Update: u}
}

// What a count that is kept says is what there is, whatever kind of write has come between.
func TestKeptCountsFollowWrites(t *testing.T) {
	t.Parallel()
	s, c, on := tallyStore(t)
	off := mql.MustCompile(bson.D{{Key: "on", Value: bson.D{{Key: "$ne", Value: true}}}})
	for range 2 { // the second time they are kept
		countOf(t, c, on)
		countOf(t, c, off)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	next := tallyDocs
	writes := map[string]func(){
		"insert": func() {
			next++
			must(t, c, insert(t, bson.D{{Key: "_id", Value: next}, {Key: "on", Value: rng.IntN(2) == 0}}))
		},
		"update": func() { must(t, c, switched(t, rng.IntN(tallyDocs/2), rng.IntN(2) == 0)) },
		"twice in one write": func() {
			id := rng.IntN(tallyDocs / 2)
			must(t, c, switched(t, id, true), switched(t, id, false), switched(t, id, rng.IntN(2) == 0))
		},
		"delete": func() {
			op := store.Op{Kind: store.Delete, Filter: mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: tallyDocs / 2}}}})}
			must(t, c, op)
		},
		"many": func() {
			u := switched(t, 0, rng.IntN(2) == 0).Update
			must(t, c, store.Op{
				Kind: store.Update, Many: true, Update: u,
				Filter: mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: rng.IntN(20)}}}}),
			})
		},
		"write that fails": func() {
			results, err := c.Write(t.Context(), []store.Op{switched(t, 1, true), insert(t, bson.D{{Key: "_id", Value: 1}})}, true)
			if err != nil || results[1].Err == nil {
				t.Fatalf("Write: %v, %+v", err, results)
			}
		},
		"transaction": func() {
			err := s.Database("db").Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Collection("things").Write(ctx, []store.Op{switched(t, rng.IntN(tallyDocs/2), rng.IntN(2) == 0)}, true)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	}
	for round := range 40 {
		for name, write := range writes {
			write()
			for _, f := range []*mql.Filter{on, off} {
				if got, want := countOf(t, c, f), foundOf(t, c, f); got != want {
					t.Fatalf("round %d, %s: counted %d, there are %d", round, name, got, want)
				}
			}
		}
	}
}

// Whoever counts while others write sees each of their writes whole or not at all, also while the count that is kept is
// being made.
func TestKeptCountsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	_, c, on := tallyStore(t)
	var wg, writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(w)))
			for range 150 { // one goes on, one goes off: of documents that are no other writer's
				at := 90*w + 3*rng.IntN(30)
				ops := []store.Op{switched(t, at, false), switched(t, at+1, true)}
				back := []store.Op{switched(t, at, true), switched(t, at+1, false)}
				for _, pair := range [][]store.Op{ops, back} {
					if _, err := c.Write(t.Context(), pair, true); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for {
				if n, err := c.Count(t.Context(), on, 0); err != nil || n != tallyDocs/3 {
					t.Errorf("counted %d, %v; there are always %d", n, err, tallyDocs/3)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	wg.Wait()
}

// Counts are kept of what is asked for again, and only for as long as somebody asks.
func TestCountsAreKeptWhileAskedFor(t *testing.T) {
	t.Parallel()
	_, c, on := tallyStore(t)
	countOf(t, c, on)
	if n := embedded.Tallies(c); n != 0 {
		t.Errorf("%d counts are kept of a filter that was asked for once", n)
	}
	countOf(t, c, on)
	if n := embedded.Tallies(c); n != 1 {
		t.Errorf("%d counts are kept of a filter that was asked for twice, want 1", n)
	}
	one := mql.MustCompile(bson.D{{Key: "_id", Value: 1}})
	for range 3 {
		countOf(t, c, one)
	}
	if n := embedded.Tallies(c); n != 1 {
		t.Errorf("%d counts are kept, want 1: what is found by its _id is not worth it", n)
	}
	long := bson.A{}
	for i := range 20 {
		long = append(long, bson.D{{Key: "n", Value: bson.D{{Key: "$ne", Value: -i - 1}}}})
	}
	for _, slow := range []bson.D{{{Key: "s", Value: bson.Regex{Pattern: "x*y"}}}, {{Key: "$and", Value: long}}} {
		for range 3 {
			countOf(t, c, mql.MustCompile(slow))
		}
		if n := embedded.Tallies(c); n != 1 {
			t.Errorf("%d counts are kept, want 1: commits would wait for a match of %v", n, slow)
		}
	}
	for i := range tallyDocs {
		must(t, c, switched(t, i, i%2 == 0))
	}
	if n := embedded.Tallies(c); n != 0 {
		t.Errorf("%d counts are still kept, after more writes than a count is worth", n)
	}
	for i := range 12 {
		for range 2 {
			countOf(t, c, mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$ne", Value: -i}}}}))
		}
	}
	if n := embedded.Tallies(c); n != 8 {
		t.Errorf("%d counts are kept of 12 filters, want 8", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Count(ended, on, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a count that was cancelled ends with %v", err)
	}
}

// What was counted by an index that a repair makes anew is counted anew.
func TestKeptCountsEndWithARepair(t *testing.T) {
	t.Parallel()
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("n", "n"))
	ops := make([]store.Op, tallyDocs)
	for i := range ops {
		ops[i] = insert(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(i)}})
	}
	must(t, c, ops...)
	if err := embedded.Damage(s, join(numberedKey(3, 1, 2), keyOf(t, int32(3)), keyOf(t, int32(3))), nil); err != nil {
		t.Fatal(err)
	}
	all := mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 0}}}})
	for range 3 {
		if n := countOf(t, c, all); n != tallyDocs-1 {
			t.Fatalf("counted %d by an index that lacks one of %d", n, tallyDocs)
		}
	}
	if err := s.Repair(t.Context(), func(store.Problem) {}, nil); err != nil {
		t.Fatal(err)
	}
	if n := countOf(t, c, all); n != tallyDocs {
		t.Errorf("counted %d after the repair, there are %d", n, tallyDocs)
	}
}
