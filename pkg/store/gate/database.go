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

// writing does something that changes records. It has not been done for sure when others have gone on without this process meanwhile.
func (d *door) writing(ctx context.Context, fn func() error) error {
	began, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer d.leave()
	if err := fn(); err != nil {
		return err
	}
	if d.gate.await(context.WithoutCancel(ctx)) != nil || d.still(began) != nil { // who writes is waited for, so that it is by others alone
		return errMissed
	}
	return nil
}

// reading does something that reads records. still is for what is given away before the end.
func (d *door) reading(ctx context.Context, fn func(still func() error) error) error {
	began, err := d.check(ctx)
	if err != nil {
		return err
	}
	still := func() error { return d.still(began) }
	err = fn(still)
	if over := still(); over != nil { // then an error may be of that, too
		return over
	}
	if err != nil {
		return err
	}
	if err := d.gate.await(ctx); err != nil {
		return err
	}
	return still()
}

// each is fn for as long as the records are what they were.
func each(still func() error, fn func(doc bson.Raw) error) func(doc bson.Raw) error {
	return func(doc bson.Raw) error {
		if err := still(); err != nil {
			return err
		}
		return fn(doc)
	}
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

// Still implements store.Steady, for contexts of a Moment.
func (d *database) Still(ctx context.Context) error {
	_, err := d.door.check(ctx)
	return err
}

// Writing implements store.Gated.
func (d *database) Writing(ctx context.Context, fn func() error) error {
	return d.door.writing(ctx, fn)
}

func (d *database) View(ctx context.Context) (store.View, error) {
	if _, err := d.door.check(ctx); err != nil {
		return nil, err
	}
	return d.Database.View(ctx)
}

// collection is one through the door of its database. Indexes and figures are not gated.
type collection struct {
	store.Collection
	door *door
}

func (c *collection) Get(ctx context.Context, id bson.RawValue) (doc bson.Raw, err error) {
	err = c.door.reading(ctx, func(func() error) error {
		doc, err = c.Collection.Get(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return doc, nil
}

func (c *collection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	return c.door.reading(ctx, func(still func() error) error { return c.Collection.Find(ctx, q, each(still, fn)) })
}

func (c *collection) Count(ctx context.Context, filter *mql.Filter, limit int64) (n int64, err error) {
	err = c.door.reading(ctx, func(func() error) error {
		n, err = c.Collection.Count(ctx, filter, limit)
		return err
	})
	return n, err
}

func (c *collection) Distinct(ctx context.Context, path string, filter *mql.Filter) (values []bson.RawValue, err error) {
	err = c.door.reading(ctx, func(func() error) error {
		values, err = c.Collection.Distinct(ctx, path, filter)
		return err
	})
	return values, err
}

func (c *collection) Explain(ctx context.Context, q store.Query) (how store.Explanation, err error) {
	err = c.door.reading(ctx, func(func() error) error {
		how, err = c.Collection.Explain(ctx, q)
		return err
	})
	return how, err
}

func (c *collection) Aggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions, fn func(doc bson.Raw) error) error {
	return c.door.reading(ctx, func(still func() error) error { return c.Collection.Aggregate(ctx, p, o, each(still, fn)) })
}

func (c *collection) ExplainAggregate(ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions) (how store.AggregateExplanation, err error) {
	err = c.door.reading(ctx, func(func() error) error {
		how, err = c.Collection.ExplainAggregate(ctx, p, o)
		return err
	})
	return how, err
}

func (c *collection) Write(ctx context.Context, ops []store.Op, atomic bool) (results []store.Result, err error) {
	err = c.door.writing(ctx, func() error {
		results, err = c.Collection.Write(ctx, ops, atomic)
		return err
	})
	return results, err
}
