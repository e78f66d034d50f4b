package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// first is the position before everything that a test does.
func first(tb testing.TB, db store.Database) store.Position {
	tb.Helper()
	p, err := db.Position(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

var errEnough = errors.New("enough")

// events gives what there is behind a position.
func events(tb testing.TB, db store.Database, w store.Watch) []store.Event {
	tb.Helper()
	var got []store.Event
	w.OnIdle = func(store.Position) error { return errEnough }
	err := db.Watch(tb.Context(), w, func(e store.Event) error {
		got = append(got, e)
		return nil
	})
	if !errors.Is(err, errEnough) {
		tb.Fatalf("Watch: %v", err)
	}
	return got
}

// text is an event in short: "things inserted 1".
func text(e store.Event) string {
	kind := map[store.EventKind]string{
		store.Inserted: "inserted", store.Updated: "updated", store.Deleted: "deleted",
		store.Dropped: "dropped", store.Renamed: "renamed",
	}[e.Kind]
	out := e.Collection + " " + kind
	if e.ID.Type != 0 {
		out += " " + e.ID.String()
	}
	if e.To != "" {
		out += " " + e.To
	}
	if e.Doc != nil {
		out += " " + e.Doc.String()
	}
	return out
}

func texts(list []store.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, text(e))
	}
	return out
}

func TestFeed(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return now }})
	db := s.Database("db")
	start := first(t, db)
	must(t, db.Collection("a"), insert(t, bson.D{{Key: "_id", Value: "x"}}), insert(t, bson.D{{Key: "_id", Value: int32(2)}}))
	must(t, db.Collection("svc.positions"), insert(t, bson.D{{Key: "_id", Value: 1}}))
	must(t, s.Database("other").Collection("a"), insert(t, bson.D{{Key: "_id", Value: 9}}))
	must(t, db.Collection("b"), insert(t, bson.D{{Key: "_id", Value: int32(1)}}))
	must(t, db.Collection("a"), store.Op{Kind: store.Replace, Doc: raw(t, bson.D{{Key: "_id", Value: "x"}, {Key: "n", Value: int32(1)}})})
	must(t, db.Collection("a"), store.Op{Kind: store.Delete, ID: value(t, 2)})
	if err := db.DropCollection(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	want := []string{`a inserted "x"`, `a inserted {"$numberInt":"2"}`, `b inserted {"$numberInt":"1"}`, `a updated "x"`, `a deleted {"$numberInt":"2"}`, `b dropped`}
	all := events(t, db, store.Watch{After: start})
	if d := cmp.Diff(want, texts(all)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	for i, e := range all {
		if !e.Time.Equal(now) {
			t.Errorf("%s at %v", text(e), e.Time)
		}
		if got := texts(events(t, db, store.Watch{After: e.Position})); !slices.Equal(got, want[i+1:]) {
			t.Errorf("behind %s: %q", text(e), got)
		}
	}
	doc := `{"_id": "x","n": {"$numberInt":"1"}}`
	got := texts(events(t, db, store.Watch{After: start, Collections: []string{"a"}, Documents: true}))
	want = []string{`a inserted "x" ` + doc, `a inserted {"$numberInt":"2"}`, `a updated "x" ` + doc, `a deleted {"$numberInt":"2"}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("with documents (-want +got):\n%s", d)
	}
	if got := events(t, db, store.Watch{}); len(got) > 0 {
		t.Errorf("from now on: %v", texts(got))
	}
	if names, err := db.CollectionNames(t.Context()); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("collections %v, %v", names, err)
	}
}

func TestPositionRefused(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	db := s.Database("db")
	must(t, db.Collection("a"), insert(t, bson.D{{Key: "_id", Value: 1}}))
	good := first(t, db)
	for name, p := range map[string]store.Position{
		"empty":            {},
		"cut":              good[:len(good)-1],
		"another version":  append(store.Position{99}, good[1:]...),
		"another database": first(t, s.Database("other")),
		"another store":    first(t, open(t, embedded.Options{InMemory: true}).Database("db")),
	} {
		if err := db.Watch(t.Context(), store.Watch{After: p}, nil); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What the store does not know any more, because it is an older copy of itself, is lost.
	future := slices.Clone(good)
	future[24]++
	if err := db.Watch(t.Context(), store.Watch{After: future}, nil); !errors.Is(err, store.ErrHistoryLost) {
		t.Errorf("a position of the future: %v", err)
	}
	changed := slices.Clone(good)
	changed[30]++
	if err := db.Watch(t.Context(), store.Watch{After: changed}, nil); !errors.Is(err, store.ErrHistoryLost) {
		t.Errorf("a position of another history: %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	ctx, cancel := context.WithCancel(t.Context())
	idle := make(chan struct{}, 100)
	watch := func(ctx context.Context) <-chan error {
		out := make(chan error, 1)
		go func() {
			w := store.Watch{OnIdle: func(store.Position) error { idle <- struct{}{}; return nil }}
			out <- s.Database("db").Watch(ctx, w, func(store.Event) error { return nil })
		}()
		select {
		case <-idle:
		case err := <-out:
			t.Fatalf("Watch: %v", err)
		}
		return out
	}
	canceled, closed := watch(ctx), watch(t.Context())
	cancel()
	if err := <-canceled; !errors.Is(err, context.Canceled) {
		t.Errorf("after ctx ended: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-closed; errs.KindOf(err) != errs.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

// chain is a document that many writers count up, each time with the insert of a document that has the new count as its
// _id: so the order of commits is known.
type chain struct {
	t *testing.T
	c store.Collection
}

func (c chain) begin() {
	must(c.t, c.c, insert(c.t, bson.D{{Key: "_id", Value: "chain"}, {Key: "n", Value: 0}}))
}

// run counts up until ctx ends or the store fails.
func (c chain) run(ctx context.Context) {
	for ctx.Err() == nil {
		doc, err := c.c.Get(ctx, value(c.t, "chain"))
		if err != nil {
			return
		}
		n := doc.Lookup("n").AsInt64()
		_, err = c.c.Write(ctx, []store.Op{
			{
				Kind: store.Replace, Doc: raw(c.t, bson.D{{Key: "_id", Value: "chain"}, {Key: "n", Value: n + 1}}),
				If: mql.MustCompile(bson.D{{Key: "n", Value: n}}),
			},
			insert(c.t, bson.D{{Key: "_id", Value: n + 1}}),
		}, true)
		if err != nil {
			return
		}
	}
}

// checker follows a feed that only chain writes to.
type checker struct {
	t    *testing.T
	next int64
	odd  bool  // the next event is the second of a pair
	doc  int64 // the highest count in a document that was told
}

func (c *checker) event(e store.Event) {
	if n, ok := e.Doc.Lookup("n").AsInt64OK(); ok {
		c.doc = max(c.doc, n)
	}
	e.Doc = nil
	switch id := e.ID; {
	case c.next == 0:
		if text(e) != `things inserted "chain"` {
			c.t.Errorf("first %s", text(e))
		}
		c.next = 1
	case !c.odd:
		if text(e) != `things updated "chain"` {
			c.t.Errorf("before %d: %s", c.next, text(e))
		}
		c.odd = true
	default:
		if n, ok := id.AsInt64OK(); !ok || n != c.next || e.Kind != store.Inserted {
			c.t.Errorf("instead of %d: %s", c.next, text(e))
		}
		c.next, c.odd = c.next+1, false
	}
}

// Watchers see each change once, in the order of commits, while many write; and what they were told of is there after
// a crash.
func TestFeedOrderAndCrash(t *testing.T) {
	for round := range 2 * soak() {
		fs := vfs.NewCrashableMem()
		opts := embedded.Options{Dir: "/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10}
		s := open(t, opts)
		start := first(t, s.Database("db"))
		c := chain{t: t, c: collection(s)}
		c.begin()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { c.run(ctx) })
		}
		var mu sync.Mutex
		told := make([]checker, 3)
		for i := range told {
			told[i].t = t
			wg.Go(func() {
				_ = s.Database("db").Watch(ctx, store.Watch{After: start, Documents: i == 0}, func(e store.Event) error {
					mu.Lock()
					defer mu.Unlock()
					told[i].event(e)
					return nil
				})
			})
		}
		rng := rand.New(rand.NewPCG(uint64(round), 7))
		for crash := range 5 {
			for range 20 {
				must(t, s.Database("pace").Collection("pace"), insert(t, bson.D{{Key: "_id", Value: bson.NewObjectID()}}))
			}
			mu.Lock()
			before := max(told[0].next, told[1].next, told[2].next, told[0].doc+1)
			mu.Unlock()
			after := opts
			after.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crash * 25, RNG: rng})
			recovered := open(t, after)
			check := checker{t: t}
			for _, e := range events(t, recovered.Database("db"), store.Watch{After: start}) {
				check.event(e)
			}
			doc, err := collection(recovered).Get(t.Context(), value(t, "chain"))
			if err != nil {
				t.Fatal(err)
			}
			if n := doc.Lookup("n").AsInt64(); check.odd || check.next != n+1 || check.next < before {
				t.Errorf("after a crash the feed goes to %d, the documents to %d, told was %d", check.next-1, n, before-1)
			}
			validateAndClose(t, recovered)
		}
		stop()
		wg.Wait()
		if told[0].next < 2 {
			t.Error("nothing was told")
		}
		validateAndClose(t, s)
	}
}

func TestFeedGoesOnAfterReopening(t *testing.T) {
	opts := embedded.Options{Dir: t.TempDir(), Ballast: -1}
	var want []string
	var start store.Position
	for i := range 3 {
		s := open(t, opts)
		if start == nil {
			start = first(t, s.Database("db"))
		}
		must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: i}}))
		must(t, s.Database("db-2").Collection("c"), insert(t, bson.D{{Key: "_id", Value: i}}))
		want = append(want, fmt.Sprintf(`things inserted {"$numberInt":"%d"}`, i))
		if d := cmp.Diff(want, texts(events(t, s.Database("db"), store.Watch{After: start}))); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		validateAndClose(t, s)
	}
}
