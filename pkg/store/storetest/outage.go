package storetest

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Outage is a store as one of many processes sees it that is paused or dies, while the others go on with the same store.
// It is for tests of what they do then. Views, feeds and what is in the middle of a transaction are not held up.
type Outage struct {
	store.Store

	mu   sync.Mutex
	open chan struct{} // closed while the process goes
	dead bool
}

// NewOutage gives a process that goes.
func NewOutage(s store.Store) *Outage {
	o := &Outage{Store: s, open: make(chan struct{})}
	close(o.open)
	return o
}

// Pause makes everything wait that begins from now on.
func (o *Outage) Pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = make(chan struct{})
}

// Resume ends a pause.
func (o *Outage) Resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.open)
}

// Kill makes everything fail from now on.
func (o *Outage) Kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
}

// Wait returns when the process goes, as whatever it does has to wait for that.
func (o *Outage) Wait(ctx context.Context) error {
	o.mu.Lock()
	open := o.open
	o.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
		return store.Ended(ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return store.ErrClosed
	}
	return nil
}

// Database gives a database of the store.
func (o *Outage) Database(name string) store.Database {
	return outageDatabase{o.Store.Database(name), o}
}

type outageDatabase struct {
	store.Database

	o *Outage
}

func (d outageDatabase) Collection(name string) store.Collection {
	return outageCollection{d.Database.Collection(name), d.o}
}

func (d outageDatabase) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	if err := d.o.Wait(ctx); err != nil {
		return err
	}
	return d.Database.Transact(ctx, fn)
}

type outageCollection struct {
	store.Collection

	o *Outage
}

func (c outageCollection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	if err := c.o.Wait(ctx); err != nil {
		return nil, err
	}
	return c.Collection.Get(ctx, id)
}

func (c outageCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if err := c.o.Wait(ctx); err != nil {
		return err
	}
	return c.Collection.Find(ctx, q, fn)
}

func (c outageCollection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	if err := c.o.Wait(ctx); err != nil {
		return 0, err
	}
	return c.Collection.Count(ctx, filter, limit)
}

func (c outageCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if err := c.o.Wait(ctx); err != nil {
		return nil, err
	}
	return c.Collection.Write(ctx, ops, atomic)
}

func (c outageCollection) CreateIndex(ctx context.Context, index store.Index) error {
	if err := c.o.Wait(ctx); err != nil {
		return err
	}
	return c.Collection.CreateIndex(ctx, index)
}
