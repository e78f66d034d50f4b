package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// history is what one writer did to its documents: for each _id all versions that it tried to write, 0 for a delete,
// and how many of them are acknowledged.
type history struct {
	mu    sync.Mutex
	tried map[int][]int64
	acked map[int]int
}

func newHistory() *history { return &history{tried: map[int][]int64{}, acked: map[int]int{}} }

// acknowledged gives, for each _id, how many versions are.
func (h *history) acknowledged() map[int]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[int]int{}
	maps.Copy(out, h.acked)
	return out
}

// writer changes its own documents at random, one call at a time, until a call fails.
type writer struct {
	t       *testing.T
	r       *rand.Rand
	c       store.Collection
	h       *history
	first   int // its lowest _id
	version int64
}

const idsPerWriter = 8

// step changes one document, or two as one; it says whether the store still works.
func (w *writer) step() bool {
	n := 1 + w.r.IntN(2)
	ids := w.r.Perm(idsPerWriter)[:n]
	w.version++
	ops := make([]store.Op, n)
	w.h.mu.Lock()
	for i, k := range ids {
		id := w.first + k
		versions := w.h.tried[id]
		version := w.version
		switch exists := len(versions) > 0 && versions[len(versions)-1] != 0; {
		case exists && w.r.IntN(4) == 0:
			version = 0
			ops[i] = store.Op{Kind: store.Delete, ID: value(w.t, id)}
		case exists:
			ops[i] = store.Op{Kind: store.Replace, Doc: w.doc(id)}
		default:
			ops[i] = store.Op{Kind: store.Insert, Doc: w.doc(id)}
		}
		w.h.tried[id] = append(versions, version)
	}
	w.h.mu.Unlock()
	results, err := w.c.Write(w.t.Context(), ops, true)
	if err != nil {
		return false
	}
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	for i, k := range ids {
		if results[i].Err != nil {
			w.t.Errorf("op on %d: %v", w.first+k, results[i].Err)
		}
		w.h.acked[w.first+k] = len(w.h.tried[w.first+k])
	}
	return true
}

func (w *writer) doc(id int) bson.Raw {
	doc := bson.D{{Key: "_id", Value: id}, {Key: "v", Value: w.version}, {Key: "n", Value: w.r.IntN(5)}}
	if w.r.IntN(3) == 0 {
		doc = append(doc, bson.E{Key: "tags", Value: bson.A{w.r.IntN(5), w.r.IntN(5)}})
	}
	return raw(w.t, append(doc, bson.E{Key: "pad", Value: fmt.Sprintf("%*d", w.r.IntN(2000), 0)}))
}

// wantRecovered checks that a store has, of each document, the last acknowledged version or one tried later.
func wantRecovered(t *testing.T, s *embedded.Store, h *history, acked map[int]int) {
	t.Helper()
	if err := s.Validate(t.Context()); err != nil {
		t.Errorf("Validate: %v", err)
	}
	found := map[int]int64{}
	for _, d := range find(t, collection(s), store.Query{}) {
		found[int(d.Lookup("_id").AsInt64())] = d.Lookup("v").AsInt64()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, versions := range h.tried {
		allowed := versions[max(acked[id]-1, 0):]
		ok := acked[id] == 0 && found[id] == 0
		for _, v := range allowed {
			ok = ok || v == found[id]
		}
		if !ok {
			t.Errorf("document %d has version %d, acknowledged and later are %v", id, found[id], allowed)
		}
	}
}

// TestCrash pulls the plug at random moments, with part of what was not synced lost, and looks at what a new process
// finds.
func TestCrash(t *testing.T) {
	for round := range 4 * soak() {
		fs := vfs.NewCrashableMem()
		// A small table of recent writes, so that crashes meet flushes and compactions.
		opts := embedded.Options{Dir: "/a/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10}
		s := open(t, opts)
		h := newHistory()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 4 {
			w := &writer{t: t, r: rand.New(rand.NewPCG(uint64(round), uint64(i))), c: collection(s), h: h, first: i * idsPerWriter}
			wg.Go(func() {
				for ctx.Err() == nil && w.step() {
				}
			})
		}
		wg.Go(func() { // indexes come and go meanwhile
			for i := 0; ctx.Err() == nil; i++ {
				x := index(fmt.Sprint("x", i%3), []string{"n", "tags", "-n"}[i%3], "v")
				err := errors.Join(collection(s).CreateIndex(ctx, x), collection(s).DropIndex(ctx, fmt.Sprint("x", (i+1)%3)))
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
		rng := rand.New(rand.NewPCG(uint64(round), 99))
		for crash := range 10 {
			for range 30 {
				must(t, s.Database("db").Collection("pace"), insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID()}}))
			}
			acked := h.acknowledged()
			after := opts
			after.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crash * 11, RNG: rng})
			recovered := open(t, after)
			wantRecovered(t, recovered, h, acked)
			must(t, collection(recovered), insert(t, bson.D{{Key: "_id", Value: "writes go on"}}))
			validateAndClose(t, recovered)
		}
		stop()
		wg.Wait()
		validateAndClose(t, s)
	}
}

// TestFailingDisk lets the nth change of the file system fail, once or for good, and checks that nothing was
// acknowledged that a new process does not find.
func TestFailingDisk(t *testing.T) {
	step := 7
	if soak() > 1 {
		step = 1
	}
	for _, forGood := range []bool{false, true} {
		for n := 1; n < 400; n += step {
			t.Run(fmt.Sprintf("call %d for good %v", n, forGood), func(t *testing.T) { failAt(t, int64(n), forGood) })
		}
	}
}

func failAt(t *testing.T, n int64, forGood bool) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	inject := &failure{at: n, forGood: forGood}
	failed := make(chan struct{}, 100)
	opts := embedded.Options{
		Dir: "/store", FS: errorfs.Wrap(mem, inject), Ballast: -1, MemTableSize: 256 << 10,
		OnFatal: func(error) { failed <- struct{}{} },
	}
	h := newHistory()
	s, err := embedded.Open(t.Context(), opts)
	if err == nil {
		w := &writer{t: t, r: rand.New(rand.NewPCG(uint64(n), 1)), c: collection(s), h: h}
		for i := 0; i < 150 && w.step(); i++ {
			if i == 20 {
				err = collection(s).CreateIndex(t.Context(), index("n", "n", "tags"))
			}
		}
		if len(failed) > 0 {
			if err := s.Ping(t.Context()); errs.KindOf(err) != errs.Unavailable {
				t.Errorf("Ping after the engine failed: %v", err)
			}
		}
		defer s.Close()
	}
	if err != nil && errs.KindOf(err) != errs.Unavailable && errs.KindOf(err) != errs.Full && errs.KindOf(err) != errs.Internal {
		t.Errorf("got %v", err)
	}
	recovered := open(t, embedded.Options{Dir: "/store", FS: mem.CrashClone(vfs.CrashCloneCfg{}), Ballast: -1})
	wantRecovered(t, recovered, h, h.acknowledged())
}

// failure fails the nth call that changes something, and if for good all that follow.
type failure struct {
	mu      sync.Mutex
	at      int64
	calls   int64
	forGood bool
}

func (*failure) String() string { return "the nth call" }

func (f *failure) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpFileClose {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls == f.at || (f.forGood && f.calls > f.at) {
		return errorfs.ErrInjected
	}
	return nil
}

// TestFullDisk fills the disk under the store: the ballast lets the write in hand be finished, later ones are refused
// until there is room again, and reads go on.
func TestFullDisk(t *testing.T) {
	var full, ballast atomic.Bool
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		isBallast := strings.HasSuffix(op.Path, "BALLAST")
		switch {
		case isBallast && op.Kind == errorfs.OpRemove:
			ballast.Store(false)
		case isBallast && op.Kind == errorfs.OpCreate && !full.Load():
			ballast.Store(true)
		}
		if full.Load() && (isBallast || ballast.Load()) && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: 1 << 20})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 0}}))
	if !ballast.Load() {
		t.Fatal("there is no ballast")
	}
	full.Store(true)
	done := 0
	var err error
	for err == nil && done < 100 {
		done++
		_, err = c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: done}})}, false)
	}
	if errs.KindOf(err) != errs.Full || ballast.Load() {
		t.Fatalf("after %d writes on a full disk: %v, ballast %v", done, err, ballast.Load())
	}
	if done < 2 {
		t.Error("the write that met the full disk was not finished")
	}
	if n, err := c.Count(t.Context(), nil, 0); err != nil || n != int64(done) {
		t.Errorf("%d documents, %v, want %d", n, err, done)
	}
	full.Store(false)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: "again"}}))
	if !ballast.Load() {
		t.Error("the ballast is not made again")
	}
	recovered := open(t, embedded.Options{Dir: "/store", FS: mem.CrashClone(vfs.CrashCloneCfg{}), Ballast: -1})
	if n, err := collection(recovered).Count(t.Context(), nil, 0); err != nil || n != int64(done)+1 {
		t.Errorf("%d documents after a crash, %v, want %d", n, err, done+1)
	}
}
