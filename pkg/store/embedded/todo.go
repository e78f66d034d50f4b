package embedded

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// TODO(contracts): all of this file is to be replaced.

func (d database) Validate(ctx context.Context, report func(store.Problem)) error { panic("not yet") }

func (c *Collection) Distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	panic("not yet")
}

func (st *state) distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	panic("not yet")
}
