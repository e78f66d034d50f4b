package engine

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// Vectors whose text no record has any more, or whose reference no search, are dropped every now and then, and so are indexes of projects
// that are not served.

const (
	sweepEvery = 6 * time.Hour
	// sweepGrace is how long a vector is kept at least: it may be of a record that was written while the records were read.
	sweepGrace     = time.Hour
	sweepLease     = "vectors"
	sweepLeaseTime = time.Minute
)

// sweeps sweeps the vectors of all projects until the engine closes.
func (e *Engine) sweeps() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		if err := e.dropUnserved(); err != nil {
			e.o.Logger.WarnContext(e.ctx, "search indexes that nothing needs can't be dropped; that is tried again", "error", err)
		}
		for _, t := range e.all() {
			err := t.asOnlyOne(e.ctx, sweepLease, sweepLeaseTime, t.sweep)
			if err != nil && e.ctx.Err() == nil && !errors.Is(err, lease.ErrHeld) {
				e.o.Logger.WarnContext(e.ctx, "vectors that nothing needs can't be dropped; that is tried again", "namespace", t.namespace, "error", err)
			}
		}
	}
}

// dropUnserved drops the indexes of projects that are not served: they went while this instance was stopped. Those that come back have
// theirs made anew.
func (e *Engine) dropUnserved() error {
	e.mu.Lock() // none comes to be served meanwhile, whose indexes these would be
	defer e.mu.Unlock()
	served := map[string]bool{}
	for _, t := range e.tenants {
		served[t.database] = true
	}
	var all []error
	for _, name := range e.db.Names() {
		if n, ok := parseName(name); !ok || !served[n.database] {
			all = append(all, e.db.Drop(name))
		}
	}
	return errors.Join(all...)
}

// embedding gives the indexes of mode vector. It is false if it is not known what they will have: one is not made yet, or the settings
// don't have its group for now.
func (s *shelf) embedding() (out []*built, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.searches {
		if one.config.Mode == search.Vector && one.live == nil {
			return nil, false
		}
		for _, b := range []*built{one.live, one.next} {
			switch {
			case b == nil || b.state.Form.Mode != search.Vector:
			case b.state.Form.Reference == "":
				return nil, false
			default:
				out = append(out, b)
			}
		}
	}
	return out, true
}

// eachEmbedded calls fn for what is embedded of all records. It fails if a script did not run that may later: what it says is not known.
func (b *built) eachEmbedded(ctx context.Context, fn func(text string)) error {
	how := b.bound.Load()
	var ids []bson.ObjectID
	docs := map[bson.ObjectID]bson.Raw{}
	size := 0
	some := func() error {
		for rest := ids; len(rest) > 0; {
			said, n, err := how.say(ctx, rest, docs)
			if err != nil {
				return err
			}
			for _, id := range rest[:n] {
				if err := said[id].failed; err != nil && errs.From(err).RetryAfter > 0 {
					return err
				}
				for _, text := range how.embedTexts(docs[id], said[id]) {
					fn(text)
				}
			}
			rest = rest[n:]
		}
		ids, size = ids[:0], 0
		clear(docs)
		return nil
	}
	err := b.s.records().Find(ctx, store.Query{Filter: how.Filter}, func(doc bson.Raw) error {
		id := idOf(doc)
		ids, docs[id] = append(ids, id), bytes.Clone(doc)
		if size += len(doc); len(ids) < chunk && size < chunkBytes {
			return nil
		}
		return some()
	})
	if err != nil {
		return err
	}
	return some()
}

// sweep drops the vectors that no record needs, unless it can't be known which these are.
func (t *tenant) sweep(ctx context.Context) error {
	needed := map[vectorKey]bool{}
	for _, s := range t.all() {
		all, ok := s.embedding()
		if !ok {
			return nil
		}
		for _, b := range all {
			if err := b.eachEmbedded(ctx, func(text string) { needed[newVectorKey(b.state.Form.Reference, text)] = true }); err != nil {
				return err
			}
		}
	}
	for after := ""; ; {
		var ops []store.Op
		n, before := 0, t.e.o.Now().Add(-sweepGrace)
		q := store.Query{
			Filter: mql.On("_id", &mql.Cmp{Op: mql.Gt, Value: store.Name(after)}), Sort: byID(), Limit: vectorsAtOnce,
			Project: mql.MustCompileProjection(bson.D{{Key: "at", Value: 1}}),
		}
		err := t.db.Collection(vectorsCollection).Find(ctx, q, func(doc bson.Raw) error {
			id, _ := document.Field(doc, "_id")
			at, _ := document.Field(doc, "at")
			after, _ = id.StringValueOK()
			n++
			if when, _ := at.TimeOK(); !needed[vectorKey(after)] && when.Before(before) {
				ops = append(ops, store.Op{Kind: store.Delete, ID: store.Name(after)})
			}
			return nil
		})
		if err == nil && len(ops) > 0 {
			_, err = t.db.Collection(vectorsCollection).Write(ctx, ops, false) // one that is gone is gone
		}
		if err != nil || n == 0 {
			return err
		}
	}
}
