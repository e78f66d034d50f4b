package embedded_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// meddling is a file system that does something whenever a table is read, as long as it is on and not at it already.
type meddling struct {
	vfs.FS

	on, busy atomic.Bool
	meddle   func()
}

func (m *meddling) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := m.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return meddled{File: f, m: m}, nil
}

type meddled struct {
	vfs.File

	m *meddling
}

func (f meddled) ReadAt(p []byte, at int64) (int, error) {
	if f.m.on.Load() && f.m.busy.CompareAndSwap(false, true) {
		f.m.meddle()
		f.m.busy.Store(false)
	}
	return f.File.ReadAt(p, at)
}

const (
	nomads    = 400 // documents of meddledWith that are in memory
	nomadStep = 10  // between their _ids
)

// meddledWith gives a store with 4000 documents in tables, of which a search without an index reads many blocks. The one
// with the _id 0 is here. Whoever writes to nomads, as the meddling is to, has no table to read, which the search is at.
func meddledWith(t *testing.T) (*embedded.Store, *meddling) {
	t.Helper()
	fs := &meddling{FS: vfs.NewMem()}
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1, CacheSize: 1 << 20, MemTableSize: 64 << 20})
	c := collection(s)
	rng := rand.New(rand.NewPCG(1, 2))
	var ops []store.Op
	for i := range nomads * nomadStep {
		pad := make([]byte, 1000)
		for j := range pad {
			pad[j] = byte(rng.Uint32())
		}
		ops = append(ops, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "here", Value: i == 0}, {Key: "pad", Value: pad}}))
	}
	must(t, c, ops...)
	if err := embedded.Flush(s); err != nil {
		t.Fatal(err)
	}
	every := mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$mod", Value: bson.A{nomadStep, 0}}}}})
	must(t, c, store.Op{Kind: store.Update, Filter: every, Many: true, Update: setTo("pad", "")})
	return s, fs
}

// The one document that matches is another one after each block that a search without an index reads, so every search of
// a snapshot gives one that does not match any more. The write still finds it, soon, and those who move it never wait for
// the search.
func TestOneIsFoundWhileOthersGoOn(t *testing.T) {
	quick := where("here", true)
	slow := mql.MustCompile(bson.D{{Key: "here", Value: true}, {Key: "pad", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$regex", Value: "x$|z{450}y{450}"}}}}}})
	for _, round := range []struct {
		moves  int
		filter *mql.Filter
	}{ // as many as may be looked at while nobody can write, and more
		{1, quick},
		{150, quick},
		{60, slow},
	} {
		moves := round.moves
		for _, sort := range []mql.Sort{nil, sortBy("_id")} {
			s, fs := meddledWith(t)
			c := collection(s)
			rng := rand.New(rand.NewPCG(1, 2))
			here, moved, reads, hindered := 0, 0, 0, false
			fs.meddle = func() {
				if reads++; hindered || reads%10 > 0 {
					return
				}
				done := make(chan error, 1)
				go func() {
					for range moves {
						from, to := here, rng.IntN(nomads)*nomadStep
						if from == to {
							continue
						}
						move := []store.Op{
							{Kind: store.Update, ID: value(t, from), Update: setTo("here", false)},
							{Kind: store.Update, ID: value(t, to), Update: setTo("here", true)},
						}
						results, err := c.Write(t.Context(), move, true)
						if err := errors.Join(err, results[0].Err, results[1].Err); err != nil {
							done <- err
							return
						}
						here = to
						moved++
					}
					done <- nil
				}()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(20 * time.Second):
					hindered = true
					t.Error("others can't write while a search reads")
				}
			}
			fs.on.Store(true)
			for i := range 5 {
				r, err := one(t.Context(), c, store.Op{Kind: store.Update, Filter: round.filter, Sort: sort, Update: inc("n", 1)})
				if err != nil || r.Matched != 1 {
					t.Errorf("%d moves at a time, sort %v, write %d: %+v, %v", moves, sort, i, r, err)
				}
			}
			if moved < 10 {
				t.Errorf("only %d moves", moved)
			}
			fs.on.Store(false)
			if n, err := c.Count(t.Context(), where("n", bson.D{{Key: "$gte", Value: 1}}), 0); n == 0 || err != nil {
				t.Errorf("%d documents are written to, %v", n, err)
			}
			validateAndClose(t, s)
		}
	}
}

// What a search finds is taken away before anybody can write to it, twice, and nothing else matches then: an upsert inserts
// a document, and another write finds none.
func TestAllThatIsFoundIsGone(t *testing.T) {
	for _, changed := range []int{1, 150} { // as many as may be looked at while nobody can write, and more
		for _, upsert := range []bool{false, true} {
			s, fs := meddledWith(t)
			c := collection(s)
			const second = (nomads - 1) * nomadStep
			put := func(id int, here bool) {
				must(t, c, store.Op{Kind: store.Update, ID: value(t, id), Update: update(bson.D{
					{Key: "$set", Value: bson.D{{Key: "here", Value: here}}}, {Key: "$inc", Value: bson.D{{Key: "changes", Value: 1}}},
				})})
			}
			stage := 0
			fs.meddle = func() {
				switch {
				case stage == 0: // the first search sees the first
					put(0, false)
					put(second, true)
					stage = 1
				case stage == 1 && embedded.Chased(c): // the second search sees the second
					put(second, false)
					for i := range changed - 1 {
						put(i*nomadStep, false)
					}
					stage = 2
				}
			}
			fs.on.Store(true)
			r, err := one(t.Context(), c, store.Op{Kind: store.Update, Filter: where("here", true), Upsert: upsert, Update: setTo("found", true)})
			fs.on.Store(false)
			if err != nil || stage != 2 || r.Matched != 0 || (r.Upserted.Type != 0) != upsert {
				t.Errorf("%d changed, upsert %v: stage %d, %+v, %v", changed, upsert, stage, r, err)
			}
			both := mql.MustCompile(bson.D{{Key: "here", Value: true}, {Key: "found", Value: true}})
			for _, filter := range []*mql.Filter{where("found", true), both} {
				if n, err := c.Count(t.Context(), filter, 0); (n == 1) != upsert || n > 1 || err != nil {
					t.Errorf("%d changed, upsert %v: %d documents, %v", changed, upsert, n, err)
				}
			}
			validateAndClose(t, s)
		}
	}
}

// Many take documents from one queue: each is taken once, and whoever finds none inserts one if that is asked for.
func TestQueue(t *testing.T) {
	const docs, workers, each = 300, 16, 25
	for _, upsert := range []bool{false, true} {
		for _, sort := range []mql.Sort{nil, sortBy("-_id")} {
			c := collection(open(t, embedded.Options{InMemory: true}))
			for i := range docs {
				must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "state", Value: "ready"}}))
			}
			op := store.Op{
				Kind: store.Update, Filter: where("state", "ready"), Sort: sort, Upsert: upsert,
				Update: update(bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: "taken"}}}, {Key: "$inc", Value: bson.D{{Key: "times", Value: 1}}}}),
			}
			var matched, upserted atomic.Int64
			var g errgroup.Group
			for range workers {
				g.Go(func() error {
					for range each {
						r, err := one(t.Context(), c, op)
						if err != nil {
							return err
						}
						matched.Add(r.Matched)
						if r.Upserted.Type != 0 {
							upserted.Add(1)
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			want := 0
			if upsert {
				want = workers*each - docs
			}
			if matched.Load() != docs || upserted.Load() != int64(want) {
				t.Errorf("sort %v, upsert %v: %d matched, %d upserted", sort, upsert, matched.Load(), upserted.Load())
			}
			if n, err := c.Count(t.Context(), where("times", 1), 0); n != int64(docs+want) || err != nil {
				t.Errorf("sort %v, upsert %v: %d documents were taken once, %v", sort, upsert, n, err)
			}
		}
	}
}
