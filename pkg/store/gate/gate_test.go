package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/storetest"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance: an open gate changes nothing.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.RunAround(t, func(t *testing.T) store.Store {
		t.Helper()
		return gate.New(teststore.Memory(t))
	})
}

func insert(t *testing.T, id string) []store.Op {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	return []store.Op{{Kind: store.Insert, Doc: doc}}
}

// TestShut: what writes records is refused, of that database alone, and what reads them goes on until it is refused, too; what is for
// bookkeeping is not.
func TestShut(t *testing.T) {
	t.Parallel()
	g := gate.New(teststore.Memory(t))
	ctx, db := t.Context(), g.Database("a")
	c := db.Collection("things")
	none, err := pipeline.Compile(bson.A{}, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(bson.Raw) error { return nil }
	reads := map[string]func() error{
		"get":    func() error { _, err := c.Get(ctx, store.Name("x")); return err },
		"find":   func() error { return c.Find(ctx, store.Query{}, nothing) },
		"count":  func() error { _, err := c.Count(ctx, nil, 0); return err },
		"values": func() error { _, err := c.Distinct(ctx, "a", nil); return err },
		"how":    func() error { _, err := c.Explain(ctx, store.Query{}); return err },
		"stages": func() error { return c.Aggregate(ctx, none, store.AggregateOptions{}, nothing) },
		"how it goes": func() error {
			_, err := c.ExplainAggregate(ctx, none, store.AggregateOptions{})
			return err
		},
		"view": func() error {
			v, err := db.View(ctx)
			if err == nil {
				err = v.Close()
			}
			return err
		},
	}
	writes := map[string]func() error{
		"write":  func() error { _, err := c.Write(ctx, insert(t, "y"), true); return err },
		"drop":   func() error { return db.DropCollection(ctx, "none") },
		"rename": func() error { return db.RenameCollection(ctx, "none", "x", true) },
		"indexes": func() error {
			gated, _ := db.(store.Gated)
			return gated.Writing(ctx, func() error { return nil })
		},
		"transaction": func() error {
			return db.Transact(ctx, func(context.Context, store.Tx) error { return nil })
		},
	}
	check := func(when string, of map[string]func() error, refused bool) {
		t.Helper()
		for name, do := range of {
			if err := do(); errors.Is(err, gate.ErrShut) != refused {
				t.Errorf("%s %s: %v", name, when, err)
			}
		}
	}
	shut, err := g.Shut(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	check("without writes", writes, true)
	check("without writes", reads, false)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := shut.Reads(over); !errors.Is(err, store.ErrCanceled) {
		t.Errorf("reads are refused by somebody who has given up: %v", err)
	}
	check("without writes", reads, false)
	if err := shut.Reads(ctx); err != nil {
		t.Fatal(err)
	}
	check("while it is shut", writes, true)
	check("while it is shut", reads, true)
	if _, err := db.Collection("svc.x").Write(ctx, insert(t, "y"), true); err != nil {
		t.Errorf("bookkeeping: %v", err)
	}
	if _, err := g.Database("b").Collection("things").Write(ctx, insert(t, "y"), true); err != nil {
		t.Errorf("another database: %v", err)
	}
	shut.Open()
	shut.Open()
	check("after it was opened", writes, false)
	check("after it was opened", reads, false)
}

// TestShutWaits for writes that are under way, for as long as it may, and for others who have shut it.
func TestShutWaits(t *testing.T) {
	t.Parallel()
	g := gate.New(teststore.Memory(t))
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- g.Database("a").Transact(t.Context(), func(context.Context, store.Tx) error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := g.Shut(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shut while somebody writes: %v", err)
	}
	if _, err := g.Database("a").Collection("things").Write(t.Context(), insert(t, "x"), true); err != nil {
		t.Errorf("open again: %v", err)
	}
	shut := make(chan gate.Shut, 2)
	for range 2 {
		go func() {
			one, err := g.Shut(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			shut <- one
		}()
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	first := <-shut
	select {
	case <-shut:
		t.Error("it was shut twice")
	default:
	}
	first.Open()
	(<-shut).Open()
	if _, err := g.Database("a").Collection("things").Write(t.Context(), insert(t, "y"), true); err != nil {
		t.Errorf("open at last: %v", err)
	}
}

// TestUnderWay: what reads while records are replaced gives nothing from then on, and fails: it may be of old records and new ones.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	g := gate.New(teststore.Memory(t))
	c := g.Database("a").Collection("things")
	for n := range 3 {
		if _, err := c.Write(t.Context(), insert(t, string(rune('a'+n))), true); err != nil {
			t.Fatal(err)
		}
	}
	none, err := pipeline.Compile(bson.A{}, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(fn func(bson.Raw) error) error{
		"find": func(fn func(bson.Raw) error) error { return c.Find(t.Context(), store.Query{}, fn) },
		"stages": func(fn func(bson.Raw) error) error {
			return c.Aggregate(t.Context(), none, store.AggregateOptions{}, fn)
		},
	} {
		for at := range 3 {
			seen := 0
			err := read(func(bson.Raw) error {
				if seen == at {
					shut, err := g.Shut(t.Context(), "a")
					if err != nil {
						return err
					}
					defer shut.Open()
					if err := shut.Reads(t.Context()); err != nil {
						return err
					}
				}
				seen++
				return nil
			})
			if !errors.Is(err, gate.ErrShut) || seen != at+1 {
				t.Errorf("%s, records are replaced at document %d: %d were given, %v", name, at, seen, err)
			}
		}
	}
}

// TestMoment: who has begun before the records of a database were replaced neither reads the new ones nor writes over them.
func TestMoment(t *testing.T) {
	t.Parallel()
	g := gate.New(teststore.Memory(t))
	records, others := g.Database("one").Collection("records"), g.Database("two").Collection("records")
	before := g.Moment(t.Context())
	use := func(ctx context.Context, c store.Collection) [2]error {
		_, err := c.Count(ctx, nil, 0)
		doc, _ := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}})
		return [2]error{err, store.WriteAll(ctx, c, store.Op{Kind: store.Insert, Doc: doc})}
	}
	open, refused := [2]error{}, [2]error{gate.ErrShut, gate.ErrShut}
	want := func(when string, ctx context.Context, c store.Collection, want [2]error) {
		t.Helper()
		if got := use(ctx, c); !errors.Is(got[0], want[0]) || !errors.Is(got[1], want[1]) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	want("at first", before, records, open)
	shut, err := g.Shut(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	shut.Open()
	want("when only writes were refused", before, records, open)
	if shut, err = g.Shut(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // as often as one likes
		if err := shut.Reads(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shut.Open()
	want("of before", before, records, refused)
	want("of before, elsewhere", before, others, open)
	want("of now", g.Moment(t.Context()), records, open)
	want("of no moment", t.Context(), records, open)
}

// TestBusy: who writes is seen, and that of another database is not.
func TestBusy(t *testing.T) {
	g := gate.New(teststore.Memory(t))
	if g.Busy("a") {
		t.Error("it is busy before anybody wrote")
	}
	if _, err := g.Database("a").Collection("c").Write(t.Context(), insert(t, "x"), true); err != nil {
		t.Fatal(err)
	}
	if !g.Busy("a") || g.Busy("b") {
		t.Errorf("busy: a %v, b %v", g.Busy("a"), g.Busy("b"))
	}
}
