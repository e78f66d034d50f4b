package mongo

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const maxDistinct = 16 << 20 // bytes of values, as a server has it

// Distinct gives the different values that path has.
func (c *collection) Distinct(ctx context.Context, path string, filter *mql.Filter) (values []bson.RawValue, err error) {
	if err := store.CheckPath(path); err != nil {
		return nil, err
	}
	err = c.read(ctx, func(ctx context.Context) (bool, error) {
		values, err = retrySnapshot(ctx, func() ([]bson.RawValue, error) {
			if c.database.store.sharded {
				return c.gather(ctx, path, filter)
			}
			return c.distinct(ctx, path, filter)
		})
		return len(values) > 0, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(values, document.Compare)
	return values, nil
}

// distinct lets the server find the values.
func (c *collection) distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	// A condition that an index can't tell keeps the server from reading the values from its keys: those of lists and
	// of missing fields are not what the documents have (seen on 6.0).
	never := bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: "undefined"}}}}
	list, err := c.snapshot.Distinct(ctx, path, bson.D{{Key: "$and", Value: bson.A{
		rawFilter(filter), bson.D{{Key: "$nor", Value: bson.A{never}}},
	}}}).Raw()
	if err != nil {
		return nil, err
	}
	return list.Values()
}

// gather finds the values here. Routers have no snapshot for the command distinct, and no transaction.
func (c *collection) gather(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	first, _, _ := strings.Cut(path, ".")
	opts := options.Find().SetBatchSize(maxBatch).SetProjection(bson.D{{Key: first, Value: 1}})
	cursor, err := c.snapshot.Find(ctx, rawFilter(filter), opts)
	if err != nil {
		return nil, err
	}
	defer closeCursor(ctx, cursor)
	g := gatherer{seen: map[string]bool{}}
	for cursor.Next(ctx) {
		if err := mql.EachValue(cursor.Current, path, g.add); err != nil {
			return nil, err
		}
	}
	return g.values, cursor.Err()
}

// gatherer is a set of values.
type gatherer struct {
	seen   map[string]bool
	key    []byte
	values []bson.RawValue
	size   int
}

// add takes up a value.
func (g *gatherer) add(v bson.RawValue) error {
	g.key = document.AppendKey(g.key[:0], v, false)
	if g.seen[string(g.key)] {
		return nil
	}
	g.seen[string(g.key)] = true
	if g.size += len(v.Value); g.size > maxDistinct {
		return store.ErrDistinctSize
	}
	g.values = append(g.values, bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)})
	return nil
}
