package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// fill inserts n documents {_id: i, n: i}.
func fill(tb testing.TB, c store.Collection, n int) {
	tb.Helper()
	var ops []store.Op
	for i := range n {
		ops = append(ops, insert(tb, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}))
	}
	must(tb, c, ops...)
}

// wantIndexed looks for all documents by the index "n".
func wantIndexed(t *testing.T, c store.Collection, want int) {
	t.Helper()
	q := store.Query{Sort: sortBy("n")}
	if got := find(t, c, q); len(got) != want {
		t.Errorf("%d documents by index n, want %d", len(got), want)
	}
	if e, err := c.Explain(t.Context(), q); err != nil || strings.Join(e.Indexes, " ") != "n" {
		t.Errorf("index n is not used: %+v, %v", e, err)
	}
}

// A build that a crash has cut short goes on by itself; CreateIndex waits for it.
func TestBuildGoesOn(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1}
	c := collection(open(t, opts))
	fill(t, c, 20)
	if err := embedded.MarkIndex(c, index("n", "n")); err != nil {
		t.Fatal(err)
	}
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 20}, {Key: "n", Value: 20}})) // has an entry already

	opts.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	c = collection(open(t, opts))
	createIndex(t, c, index("n", "n"))
	wantIndexed(t, c, 21)
}

// A unique index that a build finds violated after a restart goes, though nobody waits for it.
func TestViolationAfterCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1}
	c := collection(open(t, opts))
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}}), insert(t, bson.D{{Key: "_id", Value: 2}, {Key: "n", Value: 1}}))
	unique := index("n", "n")
	unique.Unique = true
	if err := embedded.MarkIndex(c, unique); err != nil {
		t.Fatal(err)
	}
	opts.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	s := open(t, opts)
	c = collection(s)
	var violation *store.ViolationError
	if err := c.CreateIndex(t.Context(), unique); !errors.As(err, &violation) || len(violation.IDs) != 2 {
		t.Errorf("got %v", err)
	}
	if _, err := c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 3}, {Key: "n", Value: 1}})}, false); err != nil {
		t.Error(err)
	}
	validateAndClose(t, s) // no entries are left
}

// TestBuildCrash builds indexes while others write, and pulls the plug at random moments: the builds go on, and what they
// make is what the documents say.
func TestBuildCrash(t *testing.T) {
	for round := range soak() {
		fs := vfs.NewCrashableMem()
		opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10}
		s := open(t, opts)
		c := collection(s)
		const docs = 600
		fill(t, c, docs)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for w := range 3 {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(w)))
			wg.Go(func() {
				for ctx.Err() == nil {
					id := rng.IntN(docs/3)*3 + w // of its own
					doc := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: bson.A{id, docs + rng.IntN(docs)}}}
					if _, err := c.Write(ctx, []store.Op{{Kind: store.Replace, Doc: raw(t, doc)}}, false); err != nil {
						return
					}
				}
			})
		}
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprint("n", i)
				if err := c.CreateIndex(ctx, index(name, "n")); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if err := c.DropIndex(ctx, name); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		rng := rand.New(rand.NewPCG(uint64(round), 99))
		resumed := 0
		for crash := range 6 {
			for range rng.IntN(20) {
				must(t, s.Database("pace").Collection("pace"), insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID()}}))
			}
			after := opts
			after.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crash * 20, RNG: rng})
			recovered := start(t, after)
			rc := collection(recovered)
			for _, name := range embedded.Building(rc) {
				resumed++
				createIndex(t, rc, index(name, "n"))
			}
			if n, err := rc.Count(t.Context(), mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 0}}}}), 0); err != nil || n != docs {
				t.Errorf("%d documents, %v", n, err)
			}
			validateAndClose(t, recovered)
		}
		stop()
		wg.Wait()
		if resumed == 0 {
			t.Error("no build was cut short")
		}
		validateAndClose(t, s)
	}
}

// waitUntilBuilding waits for the build of an index, whose caller gets done, to begin.
func waitUntilBuilding(t *testing.T, c store.Collection, done <-chan error) {
	t.Helper()
	for len(embedded.Building(c)) == 0 {
		select {
		case err := <-done:
			t.Fatalf("the build ended before it was seen: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// Whoever waits last for a build takes it along; until then it goes on for the others.
func TestBuildWaiters(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	fill(t, c, 10)
	release := embedded.HoldBuilds(s)
	ctx, cancel := context.WithCancel(t.Context())
	wait := func(ctx context.Context) <-chan error {
		out := make(chan error, 1)
		go func() { out <- c.CreateIndex(ctx, index("n", "n")) }()
		return out
	}
	one := wait(ctx)
	waitUntilBuilding(t, c, one)
	if err := c.CreateIndex(t.Context(), index("n", "m")); errs.KindOf(err) != errs.Conflict {
		t.Errorf("another index of the same name: %v", err)
	}
	cancel()
	if err := <-one; !errors.Is(err, context.Canceled) {
		t.Errorf("the only one, canceled: %v", err)
	}
	if left := embedded.Building(c); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	ctx, cancel = context.WithCancel(t.Context())
	one = wait(ctx)
	two := wait(t.Context())
	for embedded.Waiters(c, "n") < 2 {
		select {
		case err := <-one:
			t.Fatalf("the first build: %v", err)
		case err := <-two:
			t.Fatalf("the second build: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-one; !errors.Is(err, context.Canceled) {
		t.Errorf("one of two, canceled: %v", err)
	}
	release()
	if err := <-two; err != nil {
		t.Errorf("the other: %v", err)
	}
	wantIndexed(t, c, 10)

	release = embedded.HoldBuilds(s)
	three := make(chan error, 1)
	go func() { three <- c.CreateIndex(t.Context(), index("m", "m")) }()
	waitUntilBuilding(t, c, three)
	if err := c.DropIndex(t.Context(), "m"); err != nil {
		t.Error(err)
	}
	if err := <-three; errs.KindOf(err) != errs.Conflict {
		t.Errorf("dropped while it was built: %v", err)
	}
	release()
}

func TestPartialIndex(t *testing.T) {
	opts := embedded.Options{Dir: t.TempDir(), Ballast: -1}
	unique := index("n", "n")
	unique.Unique = true
	unique.Partial = mql.MustCompile(bson.D{{Key: "live", Value: true}})
	doc := func(id int, n int, live bool) store.Op {
		return insert(t, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: n}, {Key: "live", Value: live}})
	}
	outcome := func(c store.Collection, op store.Op) string {
		t.Helper()
		results, err := c.Write(t.Context(), []store.Op{op}, false)
		var dup *store.DuplicateKeyError
		switch {
		case err != nil:
			t.Fatal(err)
		case errors.As(results[0].Err, &dup):
			return "duplicate"
		case results[0].Err != nil:
			return results[0].Err.Error()
		}
		return "ok"
	}
	s := open(t, opts)
	must(t, collection(s), doc(1, 7, true), doc(2, 7, false), doc(3, 7, false))
	createIndex(t, collection(s), unique)
	validateAndClose(t, s)

	c := collection(open(t, opts))
	if got, err := c.Indexes(t.Context()); err != nil || len(got) != 1 || !got[0].Equal(unique) {
		t.Errorf("after reopening: %+v, %v", got, err)
	}
	createIndex(t, c, unique)
	replace := func(op store.Op) store.Op { op.Kind = store.Replace; return op }
	steps := []struct {
		name string
		op   store.Op
		want string
	}{
		{"outside", doc(4, 7, false), "ok"},
		{"inside, taken", doc(5, 7, true), "duplicate"},
		{"moving in", replace(doc(2, 7, true)), "duplicate"},
		{"moving out", replace(doc(1, 7, false)), "ok"},
		{"moving in when free", replace(doc(2, 7, true)), "ok"},
		{"inside, taken again", replace(doc(3, 7, true)), "duplicate"},
		{"inside, another key", replace(doc(3, 8, true)), "ok"},
	}
	for _, step := range steps {
		if got := outcome(c, step.op); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	other := unique
	other.Partial = mql.MustCompile(bson.D{{Key: "live", Value: false}})
	if err := c.CreateIndex(t.Context(), other); errs.From(err).Code != "index_exists" {
		t.Errorf("another filter: %v", err)
	}
}

func TestIndexRefused(t *testing.T) {
	c := collection(open(t, embedded.Options{InMemory: true}))
	for name, change := range map[string]func(x *store.Index){
		"expiry of two fields":   func(x *store.Index) { x.Keys = append(x.Keys, store.IndexKey{Path: "m"}); x.ExpireAfter = time.Hour },
		"expiry in milliseconds": func(x *store.Index) { x.ExpireAfter = time.Millisecond },
		"negative expiry":        func(x *store.Index) { x.ExpireAfter = -time.Second },
		"late expiry":            func(x *store.Index) { x.ExpireAfter = 1 << 32 * time.Second },
		"sparse and partial":     func(x *store.Index) { x.Sparse, x.Partial = true, mql.MustCompile(bson.D{{Key: "a", Value: 1}}) },
		"partial with a regex":   func(x *store.Index) { x.Partial = mql.MustCompile(bson.D{{Key: "a", Value: bson.Regex{Pattern: "x"}}}) },
		"partial with a $ne": func(x *store.Index) {
			x.Partial = mql.MustCompile(bson.D{{Key: "a", Value: bson.D{{Key: "$ne", Value: 1}}}})
		},
		"a name that is taken":     func(x *store.Index) { x.Name = "_id_" },
		"one field twice":          func(x *store.Index) { x.Keys = append(x.Keys, x.Keys[0]) },
		"a path with an empty end": func(x *store.Index) { x.Keys[0].Path = "a." },
	} {
		x := index("x", "n")
		change(&x)
		if err := c.CreateIndex(t.Context(), x); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names := embedded.Building(c); len(names) > 0 || !slices.Equal(names, nil) {
		t.Errorf("left behind: %v", names)
	}
}
