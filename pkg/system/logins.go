package system

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Failures are the failed logins under one key.
type Failures struct {
	Key   string    `bson:"_id"`
	Count int64     `bson:"count"`
	Last  time.Time `bson:"last"`
}

// Logins counts failed logins by key, in the store, so that every instance and every restart knows of them.
type Logins struct {
	coll store.Collection
	now  func() time.Time
}

// Get reads the failures under key; none is no error.
func (l *Logins) Get(ctx context.Context, key string) (Failures, error) {
	f, err := get[Failures](ctx, l.coll, store.Name(key))
	if errors.Is(err, errs.ErrNotFound) {
		return Failures{Key: key}, nil
	}
	return f, err
}

// Add counts a failure under key. Failures older than forget don't count any more.
func (l *Logins) Add(ctx context.Context, key string, forget time.Duration) (Failures, error) {
	now := l.now()
	forgotten := mql.MustCompile(bson.D{{Key: "_id", Value: key}, {Key: "last", Value: bson.D{{Key: "$lt", Value: now.Add(-forget)}}}})
	count := mql.MustCompileUpdate(bson.D{
		{Key: "$inc", Value: bson.D{{Key: "count", Value: int64(1)}}},
		{Key: "$max", Value: bson.D{{Key: "last", Value: now}}}, // of failures at once the last one counts, too
	})
	results, err := l.coll.Write(ctx, []store.Op{
		{Kind: store.Delete, Filter: forgotten},
		{Kind: store.Update, ID: store.Name(key), Update: count, Upsert: true, Return: store.ReturnAfter},
	}, false)
	if err != nil {
		return Failures{}, err
	}
	for _, r := range results {
		if r.Err != nil {
			return Failures{}, r.Err
		}
	}
	return decode[Failures](results[1].Doc)
}

// Clear forgets the failures under key.
func (l *Logins) Clear(ctx context.Context, key string) error {
	return drop(ctx, l.coll, key)
}

// Prune removes up to limit entries whose last failure is older than forget.
func (l *Logins) Prune(ctx context.Context, forget time.Duration, limit int64) error {
	old := mql.MustCompile(bson.D{{Key: "last", Value: bson.D{{Key: "$lt", Value: l.now().Add(-forget)}}}})
	var ops []store.Op
	err := l.coll.Find(ctx, store.Query{Filter: old, Limit: limit}, func(doc bson.Raw) error {
		f, err := decode[Failures](doc)
		ops = append(ops, store.Op{Kind: store.Delete, ID: store.Name(f.Key), If: old})
		return err
	})
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = l.coll.Write(ctx, ops, false) // one that failed again meanwhile stays
	return err
}
