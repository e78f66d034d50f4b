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
	Rev   int64     `bson:"_rev"`
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
	f, err := get[Failures](ctx, l.coll, stringValue(key))
	if errors.Is(err, errs.ErrNotFound) {
		return Failures{Key: key}, nil
	}
	return f, err
}

// Add counts a failure under key. Failures older than forget don't count any more.
func (l *Logins) Add(ctx context.Context, key string, forget time.Duration) (Failures, error) {
	var f Failures
	err := retry(ctx, func() error {
		old, err := l.Get(ctx, key)
		if err != nil {
			return err
		}
		now := l.now()
		f = Failures{Key: key, Rev: old.Rev + 1, Count: old.Count + 1, Last: now}
		if now.Sub(old.Last) > forget {
			f.Count = 1
		}
		if old.Rev == 0 {
			err = insert(ctx, l.coll, f)
		} else {
			var op store.Op
			if op, err = replaceOp(f, old.Rev); err == nil {
				err = write(ctx, l.coll, op)
			}
		}
		if isDuplicate(err) || errors.Is(err, errs.ErrNotFound) {
			return store.ErrStale // added or cleared meanwhile
		}
		return err
	})
	return f, err
}

// Clear forgets the failures under key.
func (l *Logins) Clear(ctx context.Context, key string) error {
	err := write(ctx, l.coll, store.Op{Kind: store.Delete, ID: stringValue(key)})
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// Prune removes up to limit entries whose last failure is older than forget.
func (l *Logins) Prune(ctx context.Context, forget time.Duration, limit int64) error {
	old, err := mql.Compile(bson.D{{Key: "last", Value: bson.D{{Key: "$lt", Value: l.now().Add(-forget)}}}})
	if err != nil {
		return err
	}
	var ops []store.Op
	err = l.coll.Find(ctx, store.Query{Filter: old, Limit: limit}, func(doc bson.Raw) error {
		f, err := decode[Failures](doc)
		ops = append(ops, store.Op{Kind: store.Delete, ID: stringValue(f.Key), If: old})
		return err
	})
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = l.coll.Write(ctx, ops, false) // one that failed again meanwhile stays
	return err
}
