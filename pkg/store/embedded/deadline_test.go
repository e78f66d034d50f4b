package embedded_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestReadsStopWorking ends the contexts of slow reads, by a deadline and by cancel. When the read comes back, nothing of it is
// left: each read has a snapshot of the engine for as long as it works.
func TestReadsStopWorking(t *testing.T) {
	t.Parallel()
	s := open(t, embedded.Options{Dir: t.TempDir()})
	c := collection(s)
	var ops []store.Op
	for i := range 3000 {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: strconv.Itoa(i)}, {Key: "s", Value: strings.Repeat("ab", 1500)}, {Key: "k", Value: int64(1)}})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: doc})
	}
	if _, err := c.Write(t.Context(), ops, false); err != nil {
		t.Fatal(err)
	}
	slow := mql.MustCompile(bson.D{{Key: "s", Value: bson.D{{Key: "$regex", Value: "(a|b|ab)*(b|a|ba)*(ab|a|b)*c$"}}}})
	none := func(bson.Raw) error { return nil }
	run := func(ctx context.Context, stages ...bson.D) error {
		list := bson.A{}
		for _, stage := range stages {
			list = append(list, stage)
		}
		p, err := pipeline.Compile(list, pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			return err
		}
		return c.Aggregate(ctx, p, store.AggregateOptions{}, none)
	}
	match := bson.D{{Key: "$match", Value: slow.Raw()}}
	lookup := bson.D{{Key: "$lookup", Value: bson.D{
		{Key: "from", Value: "things"}, {Key: "localField", Value: "k"}, {Key: "foreignField", Value: "k"}, {Key: "as", Value: "x"}, {Key: "pipeline", Value: bson.A{match}},
	}}}
	for name, read := range map[string]func(ctx context.Context) error{
		"find": func(ctx context.Context) error { return c.Find(ctx, store.Query{Filter: slow}, none) },
		"sort": func(ctx context.Context) error {
			return c.Find(ctx, store.Query{Filter: slow, Sort: mql.Sort{{Path: "s"}}}, none)
		},
		"count":     func(ctx context.Context) error { _, err := c.Count(ctx, slow, 0); return err },
		"distinct":  func(ctx context.Context) error { _, err := c.Distinct(ctx, "s", slow); return err },
		"aggregate": func(ctx context.Context) error { return run(ctx, match, bson.D{{Key: "$count", Value: "n"}}) },
		"lookup":    func(ctx context.Context) error { return run(ctx, lookup, bson.D{{Key: "$count", Value: "n"}}) },
		"facet": func(ctx context.Context) error {
			p, err := pipeline.Facets(slow, []string{"k"}, 10)
			if err != nil {
				return err
			}
			return c.Aggregate(ctx, p, store.AggregateOptions{}, none)
		},
		"update": func(ctx context.Context) error {
			_, err := c.Write(ctx, []store.Op{{Kind: store.Delete, Filter: slow, Many: true}}, false)
			return err
		},
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		timer := time.AfterFunc(20*time.Millisecond, giveUp)
		if err := read(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, given up: %v", name, err)
		}
		if n := embedded.Snapshots(s); n != 0 {
			t.Errorf("%s, given up: %d reads go on", name, n)
		}
		timer.Stop()
		giveUp()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, out of time: %v", name, err)
		}
		if n := embedded.Snapshots(s); n != 0 {
			t.Errorf("%s, out of time: %d reads go on", name, n)
		}
		cancel()
	}
}

// endsWhenAsked is a context that ends once it has been asked for its error some times.
type endsWhenAsked struct {
	context.Context

	left atomic.Int32
}

func (c *endsWhenAsked) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestReadsOfOwnWritesStopWorking is the same within a transaction, where what is slow is a single text that the transaction itself
// wrote: the context is asked all along. A transaction that gave up reading goes on.
func TestReadsOfOwnWritesStopWorking(t *testing.T) {
	t.Parallel()
	s := open(t, embedded.Options{InMemory: true})
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: "c"}}))
	slow := mql.MustCompile(bson.D{{Key: "s", Value: bson.D{{Key: "$regex", Value: "(a|b|ab)*(b|a|ba)*(ab|a|b)*c$"}}}})
	none := func(bson.Raw) error { return nil }
	err := transact(t.Context(), s, func(ctx context.Context, c store.TxCollection) error {
		if _, err := one(ctx, c, store.Op{Kind: store.Update, ID: value(t, 1), Update: setTo("s", strings.Repeat("ab", 1<<20))}); err != nil {
			return err
		}
		for name, read := range map[string]func(ctx context.Context) error{
			"find":     func(ctx context.Context) error { return c.Find(ctx, store.Query{Filter: slow}, none) },
			"explain":  func(ctx context.Context) error { _, err := c.Explain(ctx, store.Query{Filter: slow}); return err },
			"count":    func(ctx context.Context) error { _, err := c.Count(ctx, slow, 0); return err },
			"distinct": func(ctx context.Context) error { _, err := c.Distinct(ctx, "s", slow); return err },
		} {
			until := &endsWhenAsked{Context: ctx}
			until.left.Store(20)
			if err := read(until); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := one(ctx, c, store.Op{Kind: store.Update, ID: value(t, 1), Update: setTo("s", "short")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := collection(s).Count(t.Context(), where("s", "short"), 0); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wantIdle(t, s)
}
