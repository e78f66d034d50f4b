package records_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// meddler is a store on which something happens between a read and the write that follows it.
type meddler struct {
	store.Store
	before func() // called before each write
}

type meddledDatabase struct {
	store.Database
	m *meddler
}

type meddledCollection struct {
	store.Collection
	m *meddler
}

func (m *meddler) Database(name string) store.Database {
	return meddledDatabase{m.Store.Database(name), m}
}

func (d meddledDatabase) Collection(name string) store.Collection {
	return meddledCollection{d.Database.Collection(name), d.m}
}

func (c meddledCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if before := c.m.before; before != nil {
		before()
	}
	return c.Collection.Write(ctx, ops, atomic)
}

// meddled is a world in which others changes come between the service's read and its write, times times.
func meddled(t *testing.T, s store.Store, config string, times int, change func(w *world)) *world {
	t.Helper()
	m := &meddler{Store: s}
	w := newWorld(t, s, config)
	quiet := *w
	w.service = records.New(m, quiet.now, quiet.logs, nil, nil)
	m.before = func() {
		if times > 0 {
			times--
			change(&quiet)
		}
	}
	return w
}

func TestUpdateSeesAChangeInBetween(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		var id string
		w := meddled(t, s, bulkConfig("{}"), 1, func(w *world) {
			if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, `{"owner": "all"}`)}); err != nil {
				t.Error(err)
			}
		})
		id = w.put(`{"n": 1}`)
		if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, `{"n": 2}`)}); err != nil {
			t.Fatal(show(err))
		}
		if w.stored(id) != `{"n":2,"owner":"all"}` {
			t.Error(w.stored(id))
		}
	})
}

// A record that goes out of the caller's reach in between is not written.
func TestPermissionFilterHoldsAtTheWrite(t *testing.T) {
	for _, verb := range []string{"update", "delete", "bulk update", "bulk delete"} {
		t.Run(verb, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				var id string
				w := meddled(t, s, bulkConfig("{}"), 1, func(w *world) {
					if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, `{"owner": "bob"}`)}); err != nil {
						t.Error(err)
					}
				})
				id = w.put(`{"n": 1}`)
				body := doc(t, `{"n": 2}`)
				var err error
				var res records.BulkResult
				switch verb {
				case "update":
					_, err = w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: body})
				case "delete":
					_, err = w.service.Delete(t.Context(), w.call("alice"), id)
				case "bulk update":
					res, err = w.service.BulkUpdate(t.Context(), w.call("alice"), where(t, `{}`), body)
				case "bulk delete":
					res, err = w.service.BulkDelete(t.Context(), w.call("alice"), where(t, `{}`))
				}
				if len(res.Items) == 1 && err == nil {
					err = res.Items[0].Err
				}
				if !errors.Is(err, errs.ErrNotFound) {
					t.Error(show(err))
				}
				if w.stored(id) != `{"n":1,"owner":"bob"}` {
					t.Error(w.stored(id))
				}
			})
		})
	}
}

// A record that never holds still is given up on, in the end.
func TestBusyRecord(t *testing.T) {
	for _, mode := range []string{"continue", "atomic"} {
		t.Run(mode, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				var id string
				w := meddled(t, s, bulkConfig("{mode: "+mode+"}"), 1000, func(w *world) {
					if _, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: doc(t, `{"owner": "all"}`)}); err != nil {
						t.Error(err)
					}
				})
				id = w.put(`{"n": 1}`)
				w.put(`{"n": 5}`)
				body := doc(t, `{"n": 2}`)
				_, err := w.service.Update(t.Context(), w.call("admin"), id, records.Change{Body: body})
				if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.RetryAfter == 0 {
					t.Error(show(err))
				}
				if _, err := w.service.Delete(t.Context(), w.call("admin"), id); errs.KindOf(err) != errs.Unavailable {
					t.Error(show(err))
				}
				res, err := w.service.BulkUpdate(t.Context(), w.call("admin"), where(t, `{}`), body)
				const busy = "busy_record: the record is being changed too often at once: try again"
				want := "1 failed: " + busy + " | ok"
				if mode == "atomic" {
					want = busy
				}
				if got := outcome(res, err); got != want {
					t.Error(got)
				}
				if w.stored(id) != `{"n":1,"owner":"all"}` {
					t.Error(w.stored(id))
				}
			})
		})
	}
}

// slowStore is a store whose reads take until their context ends.
type slowStore struct{ store.Store }

type slowDatabase struct{ store.Database }

type slowCollection struct{ store.Collection }

func (s *slowStore) Database(name string) store.Database { return slowDatabase{s.Store.Database(name)} }

func (d slowDatabase) Collection(name string) store.Collection {
	return slowCollection{d.Database.Collection(name)}
}

func (c slowCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	<-ctx.Done()
	return c.Collection.Get(ctx, id)
}

func (c slowCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	<-ctx.Done()
	return c.Collection.Find(ctx, q, fn)
}

func (c slowCollection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	<-ctx.Done()
	return c.Collection.Count(ctx, filter, limit)
}

// busyStore counts the reads that go on.
type busyStore struct {
	store.Store

	working *atomic.Int64
}

type busyDatabase struct {
	store.Database

	working *atomic.Int64
}

type busyCollection struct {
	store.Collection

	working *atomic.Int64
}

func (s busyStore) Database(name string) store.Database {
	return busyDatabase{s.Store.Database(name), s.working}
}

func (d busyDatabase) Collection(name string) store.Collection {
	return busyCollection{d.Database.Collection(name), d.working}
}

func (c busyCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	c.working.Add(1)
	defer c.working.Add(-1)
	return c.Collection.Find(ctx, q, fn)
}

func (c busyCollection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	c.working.Add(1)
	defer c.working.Add(-1)
	return c.Collection.Count(ctx, filter, limit)
}

func (c busyCollection) Aggregate(ctx context.Context, p *pipeline.Pipeline, opts store.AggregateOptions, fn func(doc bson.Raw) error) error {
	c.working.Add(1)
	defer c.working.Add(-1)
	return c.Collection.Aggregate(ctx, p, opts, fn)
}
