package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func allOf(t *testing.T, s *embedded.Store) []string {
	t.Helper()
	var out []string
	for _, d := range find(t, collection(s), store.Query{Sort: sortBy("_id")}) {
		out = append(out, d.String())
	}
	return out
}

func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s := open(t, embedded.Options{Dir: dir + "/store", Ballast: -1})
	start := first(t, s.Database("db"))
	fill(t, collection(s), 1000)
	createIndex(t, collection(s), index("n", "n"))
	if err := embedded.Flush(s); err != nil {
		t.Fatal(err)
	}
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1000}, {Key: "n", Value: 1000}}))
	want, events1 := allOf(t, s), texts(events(t, s.Database("db"), store.Watch{After: start}))
	if err := s.Checkpoint(t.Context(), dir+"/backups/one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context(), dir+"/backups/one"); errs.KindOf(err) != errs.Conflict {
		t.Errorf("again: %v", err)
	}
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "later"}}))

	copied := open(t, embedded.Options{Dir: dir + "/backups/one", Ballast: -1})
	if d := cmp.Diff(want, allOf(t, copied)); d != "" {
		t.Errorf("the copy differs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(events1, texts(events(t, copied.Database("db"), store.Watch{After: start}))); d != "" {
		t.Errorf("the feed of the copy differs (-want +got):\n%s", d)
	}
	wantIndexed(t, collection(copied), 1001)
	must(t, collection(copied), insert(t, bson.D{{Key: "_id", Value: "in the copy alone"}}))
	if n, err := collection(s).Count(t.Context(), nil, 0); n != 1002 || err != nil {
		t.Errorf("the store has %d documents, %v", n, err)
	}
	// What the store learned after the copy was made, the copy does not know: it says so, rather than to skip changes.
	behind := first(t, s.Database("db"))
	if !lost(t, copied.Database("db"), behind) {
		t.Error("the copy goes on from a position that is not in it")
	}
	entries, err := os.ReadDir(dir + "/backups")
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the copy there are %v, %v", entries, err)
	}
}

// Checkpoints beside writes hold what was acknowledged before them, and are durable when Checkpoint returns; one that a
// crash cuts short is not there at all.
func TestCheckpointCrash(t *testing.T) {
	for round := range 2 * soak() {
		fs := vfs.NewCrashableMem()
		opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10}
		s := open(t, opts)
		c := chain{t: t, c: collection(s)}
		c.begin()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { c.run(ctx) })
		}
		var mu sync.Mutex
		made := map[string]int64{} // and the count that was acknowledged before
		wg.Go(func() {
			for i := 0; i < 15 && ctx.Err() == nil; i++ {
				doc, err := collection(s).Get(ctx, value(t, "chain"))
				if err != nil {
					return
				}
				// A read may see what is not on disk yet; behind a write of its own it is.
				must(t, s.Database("pace").Collection("c"), insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID()}}))
				dir := fmt.Sprint("/checkpoint", i)
				if err := s.Checkpoint(ctx, dir); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				made[dir] = doc.Lookup("n").AsInt64()
				mu.Unlock()
			}
		})
		rng := rand.New(rand.NewPCG(uint64(round), 5))
		seen := 0
		for crash := range 5 {
			for range 5 + rng.IntN(30) {
				must(t, s.Database("pace").Collection("pace"), insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID()}}))
			}
			for enough := false; !enough && !t.Failed(); {
				mu.Lock()
				enough = len(made) >= 2*crash
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			mu.Lock()
			promised := maps.Clone(made)
			mu.Unlock()
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crash * 25, RNG: rng})
			names, err := clone.List("/")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if !strings.HasPrefix(name, "checkpoint") || strings.HasSuffix(name, ".partial") {
					continue
				}
				dir := "/" + name
				copied := start(t, embedded.Options{Dir: dir, FS: clone, Ballast: -1})
				doc, err := collection(copied).Get(t.Context(), value(t, "chain"))
				if err != nil || doc.Lookup("n").AsInt64() < promised[dir] {
					t.Errorf("%s has %v, %v, want %d at least", dir, doc, err, promised[dir])
				}
				validateAndClose(t, copied)
				delete(promised, dir)
				seen++
			}
			if len(promised) > 0 {
				t.Errorf("not there after a crash: %v", promised)
			}
		}
		stop()
		wg.Wait()
		if seen == 0 {
			t.Error("no crash came after a checkpoint")
		}
		validateAndClose(t, s)
	}
}

// Where files can't be linked they are copied; where they can't be copied either, nothing stays.
func TestCheckpointElsewhere(t *testing.T) {
	mem := vfs.NewMem()
	fails := "nothing" // what can't be written there
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		elsewhere := strings.HasPrefix(op.Path, "/elsewhere")
		switch {
		case op.Kind == errorfs.OpLink:
			return syscall.EXDEV
		case elsewhere && strings.HasSuffix(op.Path, fails) && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite):
			return errors.New("no more")
		}
		return nil
	}))
	s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1})
	fill(t, collection(s), 10)
	if err := embedded.Flush(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context(), "/elsewhere/a"); err != nil {
		t.Fatal(err)
	}
	wantCount(t, open(t, embedded.Options{Dir: "/elsewhere/a", FS: mem, Ballast: -1}), 10)
	for _, fails = range []string{".sst", ".log"} {
		if err := s.Checkpoint(t.Context(), "/elsewhere/b"); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("without %s: %v", fails, err)
		}
	}
	if names, err := mem.List("/elsewhere"); err != nil || len(names) != 1 {
		t.Errorf("there are %v, %v", names, err)
	}
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "goes on"}}))
}

func wantCount(t *testing.T, s *embedded.Store, want int64) {
	t.Helper()
	if n, err := collection(s).Count(t.Context(), nil, 0); n != want || err != nil {
		t.Errorf("%d documents, %v, want %d", n, err, want)
	}
}
