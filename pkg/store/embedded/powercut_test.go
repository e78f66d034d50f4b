package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// seedOf is the seed of a random test: that of the environment (SEED=…), or a new one. It is logged.
func seedOf(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	tb.Logf("to repeat: SEED=%d", seed)
	return seed
}

// cutsPerStore is how many power cuts a store goes through before another one begins empty.
const cutsPerStore = 20

// TestR2PowerCut cuts the power at random calls of the file system while writers and everything else that changes files
// are at work, keeps some of what was not synced, and looks at what a new process finds. It then goes on with that.
// CUTS is the number of cuts.
func TestR2PowerCut(t *testing.T) {
	cuts, seed := figure(t, "CUTS", 200, 20), seedOf(t)
	r := rand.New(rand.NewPCG(seed, 0))
	began, acked := time.Now(), 0
	for done := 0; done < cuts; done += cutsPerStore {
		p := &plug{t: t, seed: r.Uint64(), ledger: newLedger(4), fs: vfs.NewCrashableMem()}
		p.r = rand.New(rand.NewPCG(p.seed, 1))
		for range min(cutsPerStore, cuts-done) {
			p.round()
			if t.Failed() {
				t.Fatalf("the %dth cut of store %d", p.generation, done/cutsPerStore)
			}
		}
		acked += p.ledger.acked
	}
	took := time.Since(began)
	t.Logf("%d cuts in %.1f s (%.0f/s), %d acknowledged steps, none lost", cuts, took.Seconds(), float64(cuts)/took.Seconds(), acked)
}

// plug is a store whose power is cut again and again.
type plug struct {
	t          *testing.T
	r          *rand.Rand
	seed       uint64
	generation int
	fs         *vfs.MemFS
	ledger     *ledger
	linking    sync.RWMutex
}

// linkFS keeps links and crashes of a MemFS apart: its Link takes a lock for reading twice, and a crash that wants the
// same lock for writing in between would wait for ever, as would everybody behind it.
type linkFS struct {
	vfs.FS
	linking *sync.RWMutex
}

func (fs linkFS) Link(from, to string) error {
	fs.linking.RLock()
	defer fs.linking.RUnlock()
	return fs.FS.Link(from, to)
}

// cut is what is left after the power went: the files, and what was settled just before and known just after.
type cut struct {
	fs      *vfs.MemFS
	settled []int
	ledger  *ledger
}

// round works with the store until the power is cut, and checks what is left.
func (p *plug) round() {
	p.generation++
	c := p.work()
	after := start(p.t, p.options(c.fs, nil))
	defer validateAndClose(p.t, after)
	found := contents(p.t, after.Database("db"))
	if err := c.ledger.resolve(found, c.settled); err != nil {
		p.t.Errorf("store %d: %v", p.seed, err)
	}
	wantFollowed(p.t, after.Database("db"), found)
	wantCopies(p.t, p.options(c.fs, nil))
	p.fs, p.ledger = c.fs, c.ledger
}

// options are those of a store of which files are small, so that there are many of them.
func (p *plug) options(fs *vfs.MemFS, inject errorfs.Injector) embedded.Options {
	opts := embedded.Options{Dir: "/a/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10, CacheSize: 1 << 20, FeedBytes: 16 << 10}
	if inject != nil {
		opts.FS = errorfs.Wrap(linkFS{FS: fs, linking: &p.linking}, inject)
		opts.OnFatal = func(err error) { p.t.Errorf("the engine failed: %v", err) }
	}
	return opts
}

// work runs everything on the store until the power is cut at one of the next calls of its file system.
func (p *plug) work() cut {
	var calls atomic.Int64
	at := int64(1 + p.r.IntN(1+p.r.IntN(400)))
	percent := []int{0, 100, p.r.IntN(101), p.r.IntN(101)}[p.r.IntN(4)]
	rng := rand.New(rand.NewPCG(p.seed, p.r.Uint64()))
	cuts := make(chan cut, 1)
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead || calls.Add(1) != at {
			return nil
		}
		c := cut{settled: p.ledger.settledSteps()}
		p.linking.Lock()
		c.fs = p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		p.linking.Unlock()
		c.ledger = p.ledger.clone()
		cuts <- c
		return nil
	})
	s, err := embedded.Open(p.t.Context(), p.options(p.fs, inject))
	if err != nil {
		p.t.Fatalf("Open: %v", err)
	}
	ctx, stop := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	db := s.Database("db")
	for i, j := range p.ledger.journals {
		w := newWorker(p.t, db, p.ledger, i, cloneState(j.base), p.r.Uint64(), p.generation)
		wg.Go(func() { wantStopped(p.t, ctx, w.run(ctx)) })
	}
	for i, job := range jobs(true) {
		r := rand.New(rand.NewPCG(p.seed, uint64(p.generation*100+i)))
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				wantStopped(p.t, ctx, job(ctx, s, r))
			}
		})
	}
	c := <-cuts
	stop()
	wg.Wait()
	if err := s.Close(); err != nil {
		p.t.Errorf("Close: %v", err)
	}
	return c
}

// wantStopped checks that a job has ended for no other reason than that it was to.
func wantStopped(t *testing.T, ctx context.Context, err error) {
	t.Helper()
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// job is something that goes on beside the writers.
type job func(context.Context, *embedded.Store, *rand.Rand) error

// jobs are all there are; those that go on until they are stopped only if they may.
func jobs(endless bool) []job {
	all := []job{changeIndexes, sweep, checkpoint}
	if endless {
		all = append(all, follow)
	}
	return all
}

// sweep lets documents expire, and cuts feeds down to their size.
func sweep(ctx context.Context, s *embedded.Store, _ *rand.Rand) error {
	embedded.Sweep(ctx, s)
	time.Sleep(time.Millisecond) // for the others
	return nil
}

// checkpoint copies the store.
func checkpoint(ctx context.Context, s *embedded.Store, r *rand.Rand) error {
	time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	return s.Checkpoint(ctx, embedded.Dir(s)+fmt.Sprint("-copy-", r.Uint64()))
}

// wantCopies checks that copies that were made are stores, and removes them.
func wantCopies(t *testing.T, opts embedded.Options) {
	t.Helper()
	parent := opts.FS.PathDir(opts.Dir)
	names, err := opts.FS.List(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		dir := opts.FS.PathJoin(parent, name)
		if dir == opts.Dir {
			continue
		}
		if !strings.HasSuffix(name, ".partial") {
			of := opts
			of.Dir = dir
			s := start(t, of)
			wantFollowed(t, s.Database("db"), contents(t, s.Database("db")))
			validateAndClose(t, s)
		}
		if err := opts.FS.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// follow lets the follower work for a while.
func follow(ctx context.Context, s *embedded.Store, _ *rand.Rand) error {
	f := follower{db: s.Database("db")}
	return f.follow(ctx, false)
}

// changeIndexes makes an index of each kind, and drops another.
func changeIndexes(ctx context.Context, s *embedded.Store, r *rand.Rand) error {
	c := s.Database("db").Collection([]string{shared, shared, "own0"}[r.IntN(3)])
	pool := []store.Index{index("x0", "n", "v"), index("x1", "tags", "v"), index("x2", "-n", "v"), index("x3", "u"), index("x4", "v"), index("x5", "until")}
	pool[1].Sparse, pool[3].Unique = true, true
	pool[4].Partial = mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 3}}}})
	pool[5].ExpireAfter = time.Second
	err := c.CreateIndex(ctx, pool[r.IntN(len(pool))])
	if e := errs.From(err); e != nil && e.Code == "dropped" { // with its collection
		err = nil
	}
	if r.IntN(2) == 0 {
		return err
	}
	return errors.Join(err, c.DropIndex(ctx, fmt.Sprint("x", r.IntN(len(pool)))))
}

func cloneState(s state) state {
	out := state{}
	maps.Copy(out, s)
	return out
}
