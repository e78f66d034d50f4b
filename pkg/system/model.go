package system

import (
	"context"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// model is one kind of system record: what all of them have alike.
type model[T any] struct {
	coll store.Collection
	log  *audit.Log
	now  func() time.Time
	name string          // of the collection
	rev  func(*T) *int64 // where a record has its revision
	// resolver knows the fields of what the model is read as, and no other: nothing else can be filtered or sorted by.
	resolver query.Resolver
}

func newModel[T any](db store.Database, log *audit.Log, now func() time.Time, name string, readAs any, rev func(*T) *int64) model[T] {
	return model[T]{coll: db.Collection(name), log: log, now: now, name: name, rev: rev, resolver: query.Resolver{
		Tree: fieldsOf(reflect.TypeOf(readAs)), Hidden: document.NewPathSet("_rev", "createdBy", "updatedBy"), Limits: query.DefaultLimits(),
	}}
}

// byID reads a record, or gives errs.ErrNotFound.
func (m model[T]) byID(ctx context.Context, id string) (T, error) {
	oid, err := document.ParseID(id)
	if err != nil {
		var zero T
		return zero, err
	}
	return get[T](ctx, m.coll, idValue(oid))
}

// reveal reads a record if it may be seen. One that may not is errs.ErrNotFound, as if it were not there.
func (m model[T]) reveal(ctx context.Context, id string, may func(T) bool) (T, error) {
	var zero T
	v, err := m.byID(ctx, id)
	switch {
	case err != nil:
		return zero, err
	case !may(v):
		return zero, errs.ErrNotFound
	}
	return v, nil
}

// each reads the records with ids, in the order of their creation. Those that are not there are left out.
func (m model[T]) each(ctx context.Context, ids []string, fn func(T)) error {
	if len(ids) == 0 {
		return nil
	}
	return m.coll.Find(ctx, store.Query{Filter: mql.MustCompile(anyOf("_id", ids)), Sort: mql.Sort{{Path: "_id"}}}, func(doc bson.Raw) error {
		v, err := decode[T](doc)
		if err == nil {
			fn(v)
		}
		return err
	})
}

// update changes a record, with an entry in the audit log. After an error, too, it gives the record as it was to be.
func (m model[T]) update(ctx context.Context, id string, change func(*T) error) (T, error) {
	return m.rewrite(ctx, id, change, func(old, next *T, replace store.Op) error {
		return m.commit(ctx, audit.OpUpdate, old, next, replace)
	})
}

// rewrite changes a record as it is when the write happens: change is called again when another writer was first. save
// does the write, and what belongs to it.
func (m model[T]) rewrite(ctx context.Context, id string, change func(*T) error, save func(old, next *T, replace store.Op) error) (T, error) {
	var next T
	err := retry(ctx, func() error {
		old, err := m.byID(ctx, id)
		if err != nil {
			return err
		}
		next = old
		if err := change(&next); err != nil {
			return err
		}
		*m.rev(&next)++
		replace, err := replaceOp(next, *m.rev(&old))
		if err != nil {
			return err
		}
		return save(&old, &next, replace)
	})
	return next, err
}
