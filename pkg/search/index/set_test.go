package index_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/search/index"
)

// put applies records whose ids are their words in field 1.
func put(t *testing.T, ix *index.Index, ids ...string) {
	t.Helper()
	var changes []index.Change
	for _, id := range ids {
		changes = append(changes, index.Change{ID: []byte(id), Rev: 1, Fields: map[index.Field][]index.Token{1: {{Term: id}, {Term: "all"}}}})
	}
	if err := ix.Apply(t.Context(), changes, nil); err != nil {
		t.Fatal(err)
	}
}

// found gives the ids of the records with a term, sorted.
func found(t *testing.T, v *index.View, term string) string {
	t.Helper()
	m, err := v.Search(t.Context(), index.Query{Groups: []index.Group{{Leaves: []index.Leaf{{Field: 1, Terms: []string{term}, Boost: 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	var out []string
	for h := range m.All() {
		out = append(out, string(h.ID))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// these fills a set with records, and counts how often.
func these(fills *atomic.Int32, ids ...string) index.Fill {
	return func(_ context.Context, add func(id []byte, rev int64) error) error {
		fills.Add(1)
		for _, id := range ids {
			if err := add([]byte(id), 1); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestSetsWhileWritten has writers, and readers who make sets and let go of them, at the same time; whenever they pause every answer
// within a set is what the records say, and in between none is more than what they have ever said.
func TestSetsWhileWritten(t *testing.T) {
	t.Parallel()
	w := &world{T: t, r: rand.New(rand.NewPCG(*seed, 1)), dir: t.TempDir(), records: map[string]record{}}
	w.db = open(t, w.dir)
	defer closeDB(t, w.db)
	w.ix = openIndex(t, w.db, "a")
	var store sync.Mutex // of w.records, which is what a store would be
	w.write()
	fill := func(_ context.Context, add func(id []byte, rev int64) error) error {
		store.Lock()
		now := maps.Clone(w.records)
		store.Unlock()
		for id, r := range now {
			if r.public {
				if err := add([]byte(id), r.rev); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for round := range *rounds / 6 {
		var work sync.WaitGroup
		work.Go(func() {
			for range 10 {
				changes, position := w.change(&store)
				if err := w.ix.Apply(t.Context(), changes, position); err != nil {
					t.Error(err)
				}
			}
			if round%3 == 0 {
				if err := w.ix.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		for reader := range 3 {
			work.Go(func() {
				for i := range 5 {
					v, err := w.ix.ViewSet(t.Context(), "public", func(r record) bool { return r.public }, fill)
					if err != nil {
						t.Error(err)
						return
					}
					found(t, v, "w1")
					if err := v.Close(); err != nil {
						t.Error(err)
					}
					if (i+reader+round)%4 == 0 {
						w.ix.Forget("public")
					}
				}
			})
		}
		work.Wait()
		w.check(w.view("public"), "public")
		w.check(w.view(""), "")
		w.ix.Forget("public")
		w.check(w.view("public"), "public")
	}
}

// TestFillIsTakenOver cancels who fills a set while another one waits for it.
func TestFillIsTakenOver(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	put(t, ix, "x", "y")
	ctx, cancel := context.WithCancel(t.Context())
	began, waits, first := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := ix.ViewSet(ctx, "s", nil, func(ctx context.Context, _ func([]byte, int64) error) error {
			close(began)
			<-ctx.Done()
			<-waits
			return context.Cause(ctx)
		})
		first <- err
	}()
	<-began
	second := make(chan string)
	var fills atomic.Int32
	go func() {
		v, err := ix.ViewSet(t.Context(), "s", nil, these(&fills, "x"))
		if err != nil {
			second <- err.Error()
			return
		}
		second <- found(t, v, "all")
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	cancel()
	close(waits)
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who was cancelled got %v", err)
	}
	if got := <-second; got != "x" || fills.Load() != 1 {
		t.Errorf("who waited got %q with %d fills", got, fills.Load())
	}
	failed := errors.New("the store is away")
	if _, err := ix.ViewSet(t.Context(), "t", nil, func(context.Context, func([]byte, int64) error) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a fill that failed gave %v", err)
	}
}

// TestSetsAreBounded forgets what was not used for the longest, and nothing that is in use.
func TestSetsAreBounded(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]index.Options{"sets": {Sets: 2}, "bytes": {SetBytes: 700}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Dir = t.TempDir()
			db, err := index.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer closeDB(t, db)
			ix := openIndex(t, db, "a")
			put(t, ix, "x", "y", "z")
			fills := map[string]*atomic.Int32{}
			view := func(set string) *index.View {
				if fills[set] == nil {
					fills[set] = &atomic.Int32{}
				}
				v, err := ix.ViewSet(t.Context(), set, nil, these(fills[set], set))
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			inUse := view("x")
			for _, set := range []string{"y", "z", "y", "z", "x"} {
				v := view(set)
				if got := found(t, v, "all"); got != set {
					t.Errorf("the set %s has %q", set, got)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			put(t, ix, "new") // Change.In is nil: in no set
			if got := found(t, inUse, "all"); got != "x" {
				t.Errorf("a view has %q after its time", got)
			}
			if err := inUse.Close(); err != nil {
				t.Error(err)
			}
			if x, y := fills["x"].Load(), fills["y"].Load(); x != 1 || y != 2 {
				t.Errorf("the set in use was filled %d times, want 1; another one %d times, want 2", x, y)
			}
			if s, err := ix.Stats(); err != nil || s.Sets > 2 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// TestDrop drops an index that a view uses.
func TestDrop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir)
	ix, other := openIndex(t, db, "a"), openIndex(t, db, "b")
	put(t, ix, "x", "y")
	put(t, other, "z")
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, ix, "in memory")
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Drop("a"); err != nil {
		t.Fatal(err)
	}
	if names := db.Names(); !slices.Equal(names, []string{"b"}) {
		t.Errorf("there are %v", names)
	}
	if err := ix.Apply(t.Context(), nil, []byte("1")); !errors.Is(err, index.ErrDropped) {
		t.Errorf("a change of what was dropped: %v", err)
	}
	if _, err := ix.View(); !errors.Is(err, index.ErrDropped) {
		t.Errorf("a view of what was dropped: %v", err)
	}
	again := openIndex(t, db, "a")
	put(t, again, "again")
	if got := found(t, v, "all"); got != "in memory x y" {
		t.Errorf("the view has %q", got)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	closeDB(t, db)
	db = open(t, dir)
	defer closeDB(t, db)
	for name, want := range map[string]string{"a": "again", "b": "z"} {
		v, err := openIndex(t, db, name).View()
		if err != nil {
			t.Fatal(err)
		}
		if got := found(t, v, "all"); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "none"} {
		if err := db.Drop(name); err != nil {
			t.Error(err)
		}
	}
	if n, err := db.Keys(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// TestDropsAreFinished ends the process, as it were, while a view keeps what was dropped.
func TestDropsAreFinished(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	db := openOn(t, disk)
	ix := openIndex(t, db, "a")
	put(t, ix, "x")
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Drop("a"), db.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	closeDB(t, db)
	db = openOn(t, crashed)
	defer closeDB(t, db)
	if n, err := db.Keys(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	ix := openIndex(t, db, "a")
	for i := range 10 {
		put(t, ix, "x", fmt.Sprint("y", i))
	}
	if err := ix.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := ix.Stats(); err != nil || s.Records != 11 || s.Dead != 9 || s.Disk == 0 || s.Memory == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestClosed uses what was closed.
func TestClosed(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	ix := openIndex(t, db, "a")
	put(t, ix, "x")
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Close(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("closing with a view that is open: %v", err)
	}
	if got := found(t, v, "all"); got != "x" {
		t.Errorf("the view has %q", got)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	_, indexErr := db.Index("a")
	_, viewErr := ix.View()
	_, setErr := ix.ViewSet(t.Context(), "s", nil, nil)
	_, statsErr := ix.Stats()
	for what, err := range map[string]error{
		"Apply": ix.Apply(t.Context(), nil, []byte("1")), "Flush": ix.Flush(t.Context()), "DB.Flush": db.Flush(t.Context()),
		"Renew": db.Renew(t.Context()), "Drop": db.Drop("a"), "Close": db.Close(t.Context()),
		"Index": indexErr, "View": viewErr, "ViewSet": setErr, "Stats": statsErr,
	} {
		if !errors.Is(err, index.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOthersDontMatter asks an index within a set, and one that has nothing but the records of the set: the answers are the same to the
// last bit, or they would tell of records that are not in it.
func TestOthersDontMatter(t *testing.T) {
	t.Parallel()
	w := &world{T: t, r: rand.New(rand.NewPCG(*seed, 9)), records: map[string]record{}}
	db := open(t, t.TempDir())
	defer closeDB(t, db)
	w.ix = openIndex(t, db, "all")
	alone := openIndex(t, db, "alone")
	for round := range *rounds {
		changes, position := w.change(&sync.Mutex{})
		if err := w.ix.Apply(t.Context(), changes, position); err != nil {
			t.Fatal(err)
		}
		for i := range changes {
			changes[i].Gone = changes[i].Gone || !w.records[string(changes[i].ID)].public
		}
		if err := alone.Apply(t.Context(), changes, position); err != nil {
			t.Fatal(err)
		}
		if round%7 == 0 {
			if err := w.ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		within := w.view("public")
		other, err := alone.View()
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			q, to := w.query(), unit(w.r, 8)
			if d := gocmp.Diff(answer(t, other, q, to), answer(t, within, q, to)); d != "" {
				t.Fatalf("%+v: %s", q, d)
			}
		}
		if err := errors.Join(within.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// answer is all that a view says, but for the numbers of records.
func answer(t *testing.T, v *index.View, q index.Query, to []float32) (out []any) {
	t.Helper()
	m, err := v.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	near, err := v.Nearest(t.Context(), 9, to, 10)
	if err != nil {
		t.Fatal(err)
	}
	words, err := v.Expand(t.Context(), 1, "w12", 1, 5)
	if err != nil {
		t.Fatal(err)
	}
	hits := m.Top(20)
	var numbers []uint32
	for _, h := range append(slices.Clone(hits), near...) {
		out = append(out, string(h.ID), h.Score)
	}
	for _, h := range hits {
		numbers = append(numbers, h.Number)
	}
	whys, err := v.Explain(t.Context(), q, numbers)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, v.Len(), m.Len(), words, whys)
}
