package records

import (
	"bytes"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// bulkWriter writes one chunk of a bulk update or delete.
type bulkWriter struct {
	service *Service
	c       *Call
	grant   access.Grant
	match   *mql.Filter
	op      func(access.Grant, bson.Raw) (store.Op, error)
	ids     []bson.ObjectID
	items   []Item
}

// run writes the chunk. With an error, left names the items that it was not done with.
func (w *bulkWriter) run(ctx context.Context) (left []int, err error) {
	left = make([]int, len(w.ids))
	for i := range left {
		left[i] = i
	}
	for range conflictRetries {
		stale, err := w.try(ctx, left)
		if err != nil || len(stale) == 0 {
			return left, err
		}
		left = stale
	}
	if w.atomic() {
		return left, errBusyRecord
	}
	for _, i := range left {
		w.items[i].Err = errBusyRecord
	}
	return nil, nil
}

func (w *bulkWriter) atomic() bool { return w.c.isAtomic() }

// try writes the records named by todo and gives back those that changed meanwhile.
func (w *bulkWriter) try(ctx context.Context, todo []int) (stale []int, err error) {
	found, err := w.read(ctx, todo)
	if err != nil {
		return nil, err
	}
	b := batch{c: w.c, grant: w.grant, items: w.items}
	for _, i := range todo {
		raw, ok := found[w.ids[i]]
		if w.items[i] = (Item{ID: w.items[i].ID}); !ok {
			w.lost(i)
			continue
		}
		op, err := w.op(w.grant, raw)
		if w.items[i].Err = err; err == nil {
			b.add(i, change{Op: op, before: raw})
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	err = w.service.commit(ctx, &b)
	for _, i := range b.at {
		if e := w.items[i].Err; errors.Is(e, store.ErrStale) || w.atomic() && errors.Is(e, errs.ErrNotFound) {
			stale = append(stale, i)
		}
	}
	switch {
	case len(stale) == 0:
		return nil, err
	case w.atomic(): // none is written
		return todo, nil
	}
	return stale, err
}

// lost says that a record is not there any more, or out of reach.
func (w *bulkWriter) lost(i int) {
	if w.atomic() {
		w.items[i].gone = true
	} else {
		w.items[i].Err = errs.ErrNotFound
	}
}

// read gives the records named by todo that still match, by id.
func (w *bulkWriter) read(ctx context.Context, todo []int) (map[bson.ObjectID]bson.Raw, error) {
	ids := make(bson.A, len(todo))
	for k, i := range todo {
		ids[k] = w.ids[i]
	}
	named := mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	found := make(map[bson.ObjectID]bson.Raw, len(todo))
	err := w.service.collection(ctx, w.c).Find(ctx, store.Query{Filter: mql.And(named, w.match)}, func(doc bson.Raw) error {
		found[idOf(doc)] = bytes.Clone(doc)
		return nil
	})
	return found, err
}
