package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// call is one method of the port with arguments that succeed on a working store, or with Watch, go on until the end.
type call struct {
	name string
	run  func(ctx context.Context) error
}

// calls is every method that takes a context.
func (f *fixture) calls(database string) []call {
	find := func(bson.Raw) error { return nil }
	return []call{
		{"Ping", f.store.Ping},
		{"CollectionNames", func(ctx context.Context) error { _, err := f.db.CollectionNames(ctx); return err }},
		{"Get", func(ctx context.Context) error { _, err := f.Get(ctx, value(`1`)); return err }},
		{"Find", func(ctx context.Context) error { return f.Find(ctx, store.Query{}, find) }},
		{"Count", func(ctx context.Context) error { _, err := f.Count(ctx, nil, 0); return err }},
		{"Explain", func(ctx context.Context) error { _, err := f.Explain(ctx, store.Query{}); return err }},
		{"Aggregate", func(ctx context.Context) error { return f.Aggregate(ctx, joining(), store.AggregateOptions{}, find) }},
		{"ExplainAggregate", func(ctx context.Context) error {
			_, err := f.ExplainAggregate(ctx, joining(), store.AggregateOptions{})
			return err
		}},
		{"Write one", func(ctx context.Context) error {
			_, err := f.Write(ctx, []store.Op{insert(`{"_id":7}`)}, false)
			return err
		}},
		{"Write many", func(ctx context.Context) error {
			_, err := f.Write(ctx, []store.Op{remove(`1`), insert(`{"_id":8}`)}, false)
			return err
		}},
		{"Write atomic", func(ctx context.Context) error {
			_, err := f.Write(ctx, []store.Op{remove(`1`), insert(`{"_id":9}`)}, true)
			return err
		}},
		{"Indexes", func(ctx context.Context) error { _, err := f.Indexes(ctx); return err }},
		{"CreateIndex", func(ctx context.Context) error { return f.CreateIndex(ctx, on("b")) }},
		{"DropIndex", func(ctx context.Context) error { return f.DropIndex(ctx, "a") }},
		{"Distinct", func(ctx context.Context) error { _, err := f.Distinct(ctx, "a", nil); return err }},
		{"Stats", func(ctx context.Context) error { _, err := f.Stats(ctx); return err }},
		{"Write by filter", func(ctx context.Context) error {
			_, err := f.Write(ctx, []store.Op{many(by(`{}`, "", change(`{"$set":{"b":1}}`)))}, false)
			return err
		}},
		{"Write and return", func(ctx context.Context) error {
			_, err := f.Write(ctx, []store.Op{returning(store.ReturnAfter, "", by(`{}`, "", change(`{"$set":{"b":1}}`)))}, false)
			return err
		}},
		{"Transact", func(ctx context.Context) error {
			return f.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Collection("things").Write(ctx, []store.Op{insert(`{"_id":10}`)}, false)
				return err
			})
		}},
		{"View", func(ctx context.Context) error {
			v, err := f.db.View(ctx)
			if err != nil {
				return err
			}
			_, err = v.Collection("things").Count(ctx, nil, 0)
			return errors.Join(err, v.Close())
		}},
		{"Position", func(ctx context.Context) error { _, err := f.db.Position(ctx); return err }},
		{"Watch", func(ctx context.Context) error {
			return f.db.Watch(ctx, store.Watch{}, func(store.Event) error { return nil })
		}},
		{"Validate", func(ctx context.Context) error { return f.db.Validate(ctx, func(store.Problem) {}) }},
		{"RenameCollection", func(ctx context.Context) error { return f.db.RenameCollection(ctx, "things", "others", false) }},
		{"DropCollection", func(ctx context.Context) error { return f.db.DropCollection(ctx, "things") }},
		{"DropDatabase", func(ctx context.Context) error { return f.store.DropDatabase(ctx, database) }},
	}
}

// reads is every method of a Reader.
func reads(of string, r store.Reader) []call {
	return []call{
		{of + ".Get", func(ctx context.Context) error { _, err := r.Get(ctx, value(`1`)); return err }},
		{of + ".Find", func(ctx context.Context) error {
			return r.Find(ctx, store.Query{}, func(bson.Raw) error { return nil })
		}},
		{of + ".Count", func(ctx context.Context) error { _, err := r.Count(ctx, nil, 0); return err }},
		{of + ".Distinct", func(ctx context.Context) error { _, err := r.Distinct(ctx, "a", nil); return err }},
		{of + ".Explain", func(ctx context.Context) error { _, err := r.Explain(ctx, store.Query{}); return err }},
		{of + ".Aggregate", func(ctx context.Context) error {
			return r.Aggregate(ctx, joining(), store.AggregateOptions{}, func(bson.Raw) error { return nil })
		}},
		{of + ".ExplainAggregate", func(ctx context.Context) error {
			_, err := r.ExplainAggregate(ctx, joining(), store.AggregateOptions{})
			return err
		}},
	}
}

var errGivenUp = errors.New("given up")

func testCancellation(t *testing.T, s store.Store) {
	name := databaseName(t, s)
	db := s.Database(name)
	f := &fixture{t: t, store: s, db: db, Collection: db.Collection("things")}
	f.index(on("a"))
	f.given(`{"_id":1,"a":1}`)
	before := f.contents()

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	check := func(c call) {
		t.Helper()
		for _, ended := range []struct {
			ctx  context.Context //nolint:containedctx // it is what is tested
			want *errs.Error
		}{{canceled, store.ErrCanceled}, {expired, store.ErrDeadline}} {
			if err := c.run(ended.ctx); !errors.Is(err, ended.want) || !errors.Is(err, ended.ctx.Err()) {
				t.Errorf("%s, its context has ended with %v: %v", c.name, ended.ctx.Err(), err)
			}
		}
	}
	for _, c := range f.calls(name) {
		check(c)
	}
	v, err := db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(reads("View", v.Collection("things")), call{"View.CollectionNames", func(ctx context.Context) error {
		_, err := v.CollectionNames(ctx)
		return err
	}}) {
		check(c)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	for i := range append(reads("Tx", nil), call{}) { // each in a transaction of its own, which it ends
		err := db.Transact(t.Context(), func(_ context.Context, tx store.Tx) error {
			things := tx.Collection("things")
			c := append(reads("Tx", things), call{"Tx.Write", func(ctx context.Context) error {
				_, err := things.Write(ctx, []store.Op{insert(`{"_id":11}`)}, false)
				return err
			}})[i]
			if err := c.run(canceled); !errors.Is(err, store.ErrCanceled) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s with a canceled context: %v", c.name, err)
			}
			return errGivenUp
		})
		if !errors.Is(err, errGivenUp) {
			t.Errorf("Transact: %v", err)
		}
	}
	if got := f.contents(); got != before {
		t.Errorf("calls that ended before they started left %s", got)
	}
	f.wantIndexes(on("a"))

	t.Run("in the middle of a transaction", func(t *testing.T) {
		f := newFixture(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		err := f.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			results, err := tx.Collection("things").Write(ctx, []store.Op{insert(`{"_id":1}`)}, false)
			cancel()
			return errors.Join(err, results[0].Err)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Transact: %v", err)
		}
		f.wantContents()
		f.given(`{"_id":1}`) // nothing is held
	})

	t.Run("in the middle of a read", func(t *testing.T) {
		const n = 2000
		f := newFixture(t, s)
		f.manyDocuments(n)
		for _, q := range []store.Query{{}, {Sort: sortBy("-n")}} {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := f.Find(ctx, q, func(bson.Raw) error {
				if calls++; calls == 10 {
					cancel()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) || calls > n/2 {
				t.Errorf("sort %v: ended with %v after %d documents", q.Sort, err, calls)
			}
		}
		f.given(`{"_id":"after"}`) // a read that ended early holds nothing up
	})
}

func testClose(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("waits for what runs", func(t *testing.T) {
		s := open(t)
		f := fixtureToClose(t, s, open)
		f.manyDocuments(1200)

		started, release := make(chan struct{}), make(chan struct{})
		var read atomic.Int64
		found := make(chan error, 1)
		go func() {
			found <- f.Find(t.Context(), store.Query{}, func(bson.Raw) error {
				if read.Add(1) == 1 {
					close(started)
					<-release
				}
				return nil
			})
		}()
		select {
		case <-started:
		case err := <-found:
			t.Fatalf("Find: %v", err)
		}
		closed := make(chan string, 1)
		go func() {
			err := s.Close()
			closed <- fmt.Sprintf("%v after %d documents", err, read.Load())
		}()
		close(release)
		if err := <-found; err != nil {
			t.Errorf("Find during Close: %v", err)
		}
		if got := <-closed; got != "<nil> after 1200 documents" {
			t.Errorf("Close came back with %s", got)
		}
	})

	t.Run("ends views and watches", func(t *testing.T) {
		s := open(t)
		f := fixtureToClose(t, s, open)
		after := f.position()
		f.given(`{"_id":1,"a":1}`)
		v := f.view()
		started, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- f.db.Watch(t.Context(), store.Watch{After: after}, func(store.Event) error { close(started); return nil })
		}()
		select {
		case <-started:
		case err := <-ended:
			t.Fatalf("Watch: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-ended; errs.KindOf(err) != errs.Unavailable {
			t.Errorf("Watch ended with %v", err)
		}
		if _, err := v.Collection("things").Count(t.Context(), nil, 0); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a view of a closed store: %v", err)
		}
	})

	t.Run("refuses what comes later", func(t *testing.T) {
		s := open(t)
		f := fixtureToClose(t, s, open)
		f.given(`{"_id":1,"a":1}`)
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		for _, c := range f.calls("storetest-closed") {
			if err := c.run(t.Context()); errs.KindOf(err) != errs.Unavailable {
				t.Errorf("%s on a closed store: %v", c.name, err)
			}
		}
		if s.Database("any").Collection("any") == nil {
			t.Error("a closed store gives nil handles")
		}
	})
}

// fixtureToClose is a fixture on s whose database another store drops, because s will be closed.
func fixtureToClose(t *testing.T, s store.Store, open func(t *testing.T) store.Store) *fixture {
	t.Helper()
	db := s.Database(databaseName(t, open(t)))
	return &fixture{t: t, store: s, db: db, Collection: db.Collection("things")}
}
