package gate

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// database is one through its door.
type database struct {
	store.Database
	door *door
}

func (d *database) Collection(name string) store.Collection {
	c := d.Database.Collection(name)
	if store.IsBookkeeping(name) {
		return c
	}
	gated := &collection{c, d.door}
	if keeper, ok := c.(store.ImageKeeper); ok {
		return &keeping{gated, keeper}
	}
	return gated
}

// keeping is a collection whose feed can keep what documents were. That is no more gated than its indexes are.
type keeping struct {
	*collection
	store.ImageKeeper
}

// writing does something that changes records.
func (d *door) writing(ctx context.Context, fn func() error) error {
	leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}

func (d *database) DropCollection(ctx context.Context, name string) error {
	return d.door.writing(ctx, func() error { return d.Database.DropCollection(ctx, name) })
}

func (d *database) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	return d.door.writing(ctx, func() error { return d.Database.RenameCollection(ctx, from, to, replace) })
}

func (d *database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	return d.door.writing(ctx, func() error { return d.Database.Transact(ctx, fn) })
}

func (d *database) View(ctx context.Context) (store.View, error) {
	if err := d.door.check(ctx); err != nil {
		return nil, err
	}
	return d.Database.View(ctx)
}

// collection is one through the door of its database. Indexes and figures are not gated.
type collection struct {
	store.Collection
	door *door
}

func (c *collection) Get(ctx context.Context, id bson.RawValue) (bson.Raw, error) {
	if err := c.door.check(ctx); err != nil {
		return nil, err
	}
	return c.Collection.Get(ctx, id)
}

func (c *collection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if err := c.door.check(ctx); err != nil {
		return err
	}
	return c.Collection.Find(ctx, q, fn)
}

func (c *collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error) {
	if err := c.door.check(ctx); err != nil {
		return 0, err
	}
	return c.Collection.Count(ctx, filter, limit)
}

func (c *collection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	if err := c.door.check(ctx); err != nil {
		return nil, err
	}
	return c.Collection.Distinct(ctx, path, filter)
}

func (c *collection) Explain(ctx context.Context, q store.Query) (store.Explanation, error) {
	if err := c.door.check(ctx); err != nil {
		return store.Explanation{}, err
	}
	return c.Collection.Explain(ctx, q)
}

func (c *collection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	if err := c.door.check(ctx); err != nil {
		return err
	}
	return c.Collection.Aggregate(ctx, p, o, fn)
}

func (c *collection) ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions) (store.AggregateExplanation, error) {
	if err := c.door.check(ctx); err != nil {
		return store.AggregateExplanation{}, err
	}
	return c.Collection.ExplainAggregate(ctx, p, o)
}

func (c *collection) Write(ctx context.Context, ops []store.Op, atomic bool) (results []store.Result, err error) {
	err = c.door.writing(ctx, func() error {
		results, err = c.Collection.Write(ctx, ops, atomic)
		return err
	})
	return results, err
}
