package records

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// bulkChunk is how many records a bulk write in mode continue holds in memory at once.
const bulkChunk = 500

// Item is the outcome of one record of a bulk write.
type Item struct {
	ID     string // "" when the record never came into being
	Record *Record
	Err    error
	// Warning is what went wrong behind the write, which stands; "" for nothing.
	Warning string

	raw  bson.Raw // as it was stored by a bulk create
	gone bool     // nothing to do: deleted, or out of the filter's reach, since it was matched
}

// BulkResult is the outcome of a bulk write, item by item in the order of the request.
type BulkResult struct {
	Items   []Item
	Matched int    // bulk update and delete: records that the filter found
	Extra   bson.D // further members of the answer, which a hook made
	Warning string // what went wrong behind the write, which stands; "" for nothing
}

// Failed counts the items that were not written.
func (b BulkResult) Failed() int {
	n := 0
	for _, it := range b.Items {
		if it.Err != nil {
			n++
		}
	}
	return n
}

// bulkGrant gives the right to method in bulk.
func (s *Service) bulkGrant(ctx context.Context, c *Call, m access.Method) (access.Grant, error) {
	g, err := s.grant(ctx, c, m)
	if err == nil && !g.Bulk {
		err = deniedWithin(c, m, func(right string) string { return "bulk " + right })
	}
	return g, err
}

// MayBulk is May for bulk writes.
func (s *Service) MayBulk(ctx context.Context, c *Call, m access.Method) error {
	_, err := s.bulkGrant(ctx, c, m)
	return err
}

// BulkCreate stores many records. In mode continue each item stands by itself; in mode atomic all are stored or none,
// and the first failure is the error.
func (s *Service) BulkCreate(ctx context.Context, c *Call, bodies bson.A) (BulkResult, error) {
	g, err := s.bulkGrant(ctx, c, access.Post)
	if err != nil {
		return BulkResult{}, err
	}
	c.bulk = true
	defer func() { c.bulk = false }()
	if limit := c.Collection.Bulk.MaxItems; len(bodies) > limit {
		return BulkResult{}, errs.New(errs.Limit, "bulk_limit", "%d items, the limit is %d: send them in several requests", len(bodies), limit)
	}
	if err := c.affects(len(bodies)); err != nil {
		return BulkResult{}, err
	}
	if err := c.filesFit(1, bodies...); err != nil {
		return BulkResult{}, err
	}
	end := s.beginFiles(ctx, c)
	defer end()
	res := BulkResult{Items: make([]Item, len(bodies))}
	raws := make([]bson.Raw, len(bodies))
	for i, b := range bodies {
		body, ok := b.(bson.D)
		if !ok {
			res.Items[i].Err = errs.Validation([]errs.FieldError{{Rule: "type", Message: "must be an object"}})
			continue
		}
		if c.Again {
			if res.Items[i].raw, err = s.madeBefore(ctx, c, i); err != nil {
				return BulkResult{}, err
			}
		}
		if res.Items[i].raw == nil {
			raws[i], res.Items[i] = s.bulkItem(ctx, c, g, body, i)
		}
	}
	b := batch{c: c, grant: g, items: res.Items}
	for i, raw := range raws {
		if raw != nil {
			b.add(i, change{Op: store.Op{Kind: store.Insert, Doc: raw}})
		}
	}
	err = s.commit(ctx, &b)
	if c.DryRun {
		return res, err
	}
	if err := s.bulkMade(ctx, &b, err); err != nil {
		return BulkResult{}, err
	}
	end()
	for i := range res.Items {
		it := &res.Items[i]
		if it.Err != nil || it.raw == nil {
			continue
		}
		w, err := s.written(ctx, c, it.raw)
		if err != nil {
			return BulkResult{}, err
		}
		w = s.answered(ctx, c, g, "post.return", w)
		it.ID, it.Record, it.Warning = w.ID, w.Record, w.Warning
	}
	return s.bulkAnswered(ctx, c, g, "post.bulkReturn", res), nil
}

// bulkMade notes on each item what is stored of it: what commit wrote, or what the same request made that was carried out
// meanwhile. failed is the error of commit.
func (s *Service) bulkMade(ctx context.Context, b *batch, failed error) error {
	for k, i := range b.at {
		it := &b.items[i]
		if it.raw = b.ops[k].Doc; it.Err == nil && failed == nil {
			continue
		}
		made, err := s.madeBefore(ctx, b.c, i)
		switch {
		case made != nil:
			it.raw, it.Err = made, nil
		case failed != nil:
			return failed
		case err != nil: // the item has an error already
			continue
		}
	}
	if len(b.at) == 0 {
		return failed
	}
	return nil
}

// bulkItem is what a bulk create stores of one body; nil with an error, or where a hook has answered instead.
func (s *Service) bulkItem(ctx context.Context, c *Call, g access.Grant, body bson.D, place int) (bson.Raw, Item) {
	raw, err := s.newRecord(ctx, c, g, body, place)
	if err != nil {
		return nil, Item{Err: err}
	}
	if c.handled() {
		return nil, Item{}
	}
	w, done, err := s.handle(ctx, c, g, raw)
	if done || err != nil {
		return nil, Item{ID: w.ID, Record: w.Record, Err: err}
	}
	return raw, Item{}
}

// BulkUpdate merges body into every record that the filter finds.
func (s *Service) BulkUpdate(ctx context.Context, c *Call, where query.Where, body bson.D) (BulkResult, error) {
	return s.bulkChange(ctx, c, where, Change{Mode: Merge, Body: body})
}

func (s *Service) bulkChange(ctx context.Context, c *Call, where query.Where, ch Change) (BulkResult, error) {
	return s.bulkWrite(ctx, c, access.Put, where, ch.Body, func(g access.Grant, raw bson.Raw) (store.Op, error) {
		next, err := s.changed(ctx, c, g, raw, ch)
		return store.Op{Kind: store.Replace, Doc: next, If: unchanged(raw)}, err
	})
}

// BulkDelete removes every record that the filter finds.
func (s *Service) BulkDelete(ctx context.Context, c *Call, where query.Where) (BulkResult, error) {
	return s.bulkWrite(ctx, c, access.Delete, where, nil, func(_ access.Grant, raw bson.Raw) (store.Op, error) {
		return store.Op{Kind: store.Delete, ID: raw.Lookup("_id"), If: unchanged(raw)}, nil
	})
}

// bulkWrite finds the records once, so that what it reports as matched is what it works on, then writes them chunk by
// chunk (mode continue) or all at once (mode atomic). A record that changes in between is read again; one that then
// no longer matches the filter is left alone, and in mode atomic was never matched. When the store fails after some
// records are written, the others have its error, and the whole has none.
func (s *Service) bulkWrite(ctx context.Context, c *Call, m access.Method, where query.Where, body bson.D, op func(access.Grant, bson.Raw) (store.Op, error)) (BulkResult, error) {
	g, match, err := s.bulkFilter(ctx, c, m, where)
	if err != nil {
		return BulkResult{}, err
	}
	c.bulk = true
	defer func() { c.bulk = false }()
	ids, err := s.matching(ctx, c, match)
	if err != nil {
		return BulkResult{}, err
	}
	if err := c.filesFit(len(ids), body); err != nil {
		return BulkResult{}, err
	}
	chunk := bulkChunk
	if c.isAtomic() {
		chunk = max(len(ids), 1)
	}
	end := s.beginFiles(ctx, c)
	defer end()
	res := BulkResult{Items: make([]Item, len(ids)), Matched: len(ids)}
	for i, id := range ids {
		res.Items[i].ID = id.Hex()
	}
	for start := 0; start < len(ids); start += chunk {
		end := min(start+chunk, len(ids))
		w := bulkWriter{service: s, c: c, grant: g, match: match, op: op, ids: ids[start:end], items: res.Items[start:end]}
		left, err := w.run(ctx)
		if err == nil {
			continue
		}
		if c.isAtomic() || start == 0 && len(left) == end { // nothing is written
			return BulkResult{}, err
		}
		for _, i := range left {
			w.items[i].Err = err
		}
		for i := end; i < len(ids); i++ {
			res.Items[i].Err = err
		}
		break
	}
	res.Items = slices.DeleteFunc(res.Items, func(it Item) bool { return it.gone })
	res.Matched = len(res.Items)
	end()
	if m == access.Delete {
		res = s.eachAnswered(ctx, c, g, "delete.return", res)
		for i := range res.Items {
			it := &res.Items[i]
			it.Warning = bothWarnings(c.leftOf(it.ID), it.Warning)
		}
		return s.bulkAnswered(ctx, c, g, "delete.bulkReturn", res), nil
	}
	return s.bulkAnswered(ctx, c, g, "put.bulkReturn", s.eachAnswered(ctx, c, g, "put.return", res)), nil
}

// bulkFilter gives the records that a bulk write may touch: those that the caller may both write and read, since the
// answer counts them.
func (s *Service) bulkFilter(ctx context.Context, c *Call, m access.Method, where query.Where) (access.Grant, *mql.Filter, error) {
	g, err := s.bulkGrant(ctx, c, m)
	if err != nil {
		return g, nil, err
	}
	read, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return g, nil, err
	}
	r := s.resolver(ctx, c, read)
	r.Hidden = r.Hidden.Union(neverNamed(g))
	f, err := r.Filter(where)
	return g, mql.And(read.Filter, g.Filter, f), err
}

// matching lists the ids that a bulk write works on.
func (s *Service) matching(ctx context.Context, c *Call, match *mql.Filter) ([]bson.ObjectID, error) {
	limit, tooMany := c.mostMatching()
	var ids []bson.ObjectID
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	q := store.Query{Filter: match, Sort: mql.Sort{{Path: "_id"}}, Limit: limit + 1}
	err := s.collection(ctx, c).Find(ctx, q, func(doc bson.Raw) error {
		ids = append(ids, idOf(doc))
		return nil
	})
	if err == nil && int64(len(ids)) > limit {
		err = tooMany
	}
	return ids, s.storeError(ctx, err)
}
