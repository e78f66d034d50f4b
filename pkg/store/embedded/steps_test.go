package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// byID is the filter for a document.
func byID(id int64) *mql.Filter { return mql.MustCompile(bson.D{{Key: "_id", Value: id}}) }

// set is the update that makes a document what it is in a version.
func set(version int64) *mql.Update {
	return mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{
		{Key: "v", Value: version}, {Key: "n", Value: version % 5}, {Key: "pad", Value: padding(version)},
	}}})
}

// mine gives the _ids of the worker's documents in a collection, those that may go by themselves left out.
func (w *worker) mine(coll string) (ids []int64) {
	for k, v := range w.cur {
		if k.coll == coll && v > 0 && k.id%idsPerWriter < mortals {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// change updates a document, or finds and modifies it.
func (w *worker) change() (step, func(context.Context) error) {
	coll := w.anyCollection()
	ids := w.mine(coll)
	if len(ids) == 0 {
		return step{}, nil
	}
	id, version := ids[w.r.IntN(len(ids))], w.version
	op := store.Op{Kind: store.Update, Update: set(version), Return: store.Returning(w.r.IntN(3))}
	if w.r.IntN(2) == 0 {
		op.ID = value(w.tb, id)
	} else {
		op.Filter, op.Sort = byID(id), sortBy("-v")
	}
	before := w.cur[key{coll, id}]
	return step{Effects: []effect{{coll, id, version}}}, func(ctx context.Context) error {
		results, err := w.db.Collection(coll).Write(ctx, []store.Op{op}, false)
		if err != nil {
			return err
		}
		want := []int64{0, before, version}[op.Return]
		if r := results[0]; r.Err != nil || r.Matched != 1 || r.Modified != 1 || (want != 0 && r.Doc.Lookup("v").AsInt64() != want) {
			w.tb.Errorf("update of %s/%d from version %d to %d: %+v", coll, id, before, version, r)
		}
		return nil
	}
}

// many updates or deletes all of the worker's documents in a collection that have a certain version or a lower one.
func (w *worker) many() (step, func(context.Context) error) {
	coll := w.anyCollection()
	ids := w.mine(coll)
	if len(ids) == 0 {
		return step{}, nil
	}
	limit := w.cur[key{coll, ids[w.r.IntN(len(ids))]}]
	filter := mql.MustCompile(bson.D{
		{Key: "_id", Value: bson.D{{Key: "$gte", Value: int64(w.number * idsPerWriter)}, {Key: "$lt", Value: int64(w.number*idsPerWriter + mortals)}}},
		{Key: "v", Value: bson.D{{Key: "$lte", Value: limit}}},
	})
	op := store.Op{Kind: store.Update, Filter: filter, Many: true, Update: set(w.version)}
	e := effect{Coll: coll, Version: w.version}
	if w.r.IntN(3) == 0 {
		op, e.Version = store.Op{Kind: store.Delete, Filter: filter, Many: true}, 0
	}
	s := step{Loose: w.r.IntN(2) == 0}
	for _, e.ID = range ids {
		if w.cur[key{coll, e.ID}] <= limit {
			s.Effects = append(s.Effects, e)
		}
	}
	return s, func(ctx context.Context) error {
		results, err := w.db.Collection(coll).Write(ctx, []store.Op{op}, !s.Loose)
		if err == nil && (results[0].Err != nil || results[0].Matched != int64(len(s.Effects))) {
			w.tb.Errorf("%d documents of %s: %+v", len(s.Effects), coll, results[0])
		}
		return err
	}
}

// mortals is the first of a worker's _ids, counted from its first, that are for documents that expire.
const mortals = 900

// mortal inserts or replaces a document that has expired, or will long after the test.
func (w *worker) mortal() (step, func(context.Context) error) {
	id, version := int64(w.number*idsPerWriter+mortals+w.r.IntN(6)), w.version
	until, e := time.Now().Add(-time.Hour), effect{shared, id, -version}
	if w.r.IntN(2) == 0 {
		until, e.Version = time.Now().Add(1000*time.Hour), version
	}
	doc := raw(w.tb, bson.D{
		{Key: "_id", Value: id},
		{Key: "v", Value: version},
		{Key: "n", Value: version % 5},
		{Key: "u", Value: fmt.Sprint("u", id)},
		{Key: "until", Value: until},
		{Key: "mortal", Value: e.Version < 0},
		{Key: "pad", Value: padding(version)},
	})
	op := store.Op{Kind: store.Replace, Filter: byID(id), Doc: doc, Upsert: true}
	return step{Effects: []effect{e}}, w.write(shared, []store.Op{op}, false)
}

var errChangedMind = errors.New("this transaction is not to be")

// transaction writes to two collections; one in four changes its mind.
func (w *worker) transaction() (step, func(context.Context) error) {
	own := w.own()
	first, effects := w.ops(shared, w.someIDs(1+w.r.IntN(4)))
	second, more := w.ops(own, w.someIDs(1+w.r.IntN(4)))
	effects = append(effects, more...)
	abort := w.r.IntN(4) == 0
	do := func(ctx context.Context) error {
		err := w.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			for coll, ops := range map[string][]store.Op{shared: first, own: second} {
				if _, err := tx.Collection(coll).Write(ctx, ops, false); err != nil {
					return err
				}
			}
			for _, e := range effects {
				doc, err := tx.Collection(e.Coll).Get(ctx, value(w.tb, e.ID))
				if e.Version != 0 && (err != nil || !bytes.Equal(doc, w.doc(e.ID, e.Version))) {
					return fmt.Errorf("a transaction does not see what it wrote: %v, %w", doc, err)
				}
			}
			if abort {
				return errChangedMind
			}
			return nil
		})
		if abort && errors.Is(err, errChangedMind) {
			return errRefused
		}
		return err
	}
	if abort {
		return step{}, do
	}
	return step{Effects: effects}, do
}

// rename gives the worker's own collection its other name.
func (w *worker) rename() (step, func(context.Context) error) {
	from := w.own()
	to := fmt.Sprint("also", w.number)
	if from == to {
		to = fmt.Sprint("own", w.number)
	}
	var effects []effect
	for k, v := range w.cur {
		if k.coll == from {
			effects = append(effects, effect{Coll: from, ID: k.id}, effect{to, k.id, v})
		}
	}
	if len(effects) == 0 {
		return step{}, nil
	}
	if all, ok := w.db.(store.Replacer); ok && len(effects)%4 == 0 {
		return step{Effects: effects}, func(ctx context.Context) error {
			return all.ReplaceCollections(ctx, []store.Rename{{From: from, To: to}})
		}
	}
	return step{Effects: effects}, func(ctx context.Context) error { return w.db.RenameCollection(ctx, from, to, true) }
}
