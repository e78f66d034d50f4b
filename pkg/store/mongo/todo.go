package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// TODO(contracts): all of this file is to be replaced.

func (d *database) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	panic("not yet")
}

func (d *database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	panic("not yet")
}

func (d *database) View(ctx context.Context) (store.View, error) { panic("not yet") }

func (d *database) Watch(ctx context.Context, w store.Watch, fn func(store.Event) error) error {
	panic("not yet")
}

func (d *database) Position(ctx context.Context) (store.Position, error) { panic("not yet") }

func (d *database) Validate(ctx context.Context, report func(store.Problem)) error { panic("not yet") }

func (c *collection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	panic("not yet")
}

func (c *collection) Stats(ctx context.Context) (store.Stats, error) { panic("not yet") }
