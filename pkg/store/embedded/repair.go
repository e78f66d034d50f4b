package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// repairBytes is how much a repair commits at once.
const repairBytes = 4 << 20

// Repair checks everything as Validate does, and makes anew what can be: index entries, what is known of lists in them,
// and counters, from the documents; feeds begin behind what is damaged in them; keys that belong to nothing go.
// Documents it never changes. It calls report for each problem found; what is not Repairable is still there afterwards.
// It is for a store that nobody else uses (svcd check --store --repair, which the lock keeps from a store in use): every
// write waits until it is done.
func (s *Store) Repair(ctx context.Context, report func(store.Problem), progress func(Progress)) (err error) {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if err := s.disk.check(); err != nil {
		return err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	snap := s.db.NewSnapshot()
	defer closeInto(&err, snap.Close)
	v := newValidation(ctx, snap, report, progress)
	if err := v.run(""); err != nil || v.cat == nil {
		return err
	}
	r := repair{s: s, ctx: ctx, snap: snap, faults: v.faults}
	for _, c := range s.cat.sorted() {
		if err := r.collection(c); err != nil {
			return err
		}
	}
	return r.rest()
}

// repair makes anew what a validation has found to be wrong. It holds the commit mutex.
type repair struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // lives as long as the call that made it
	snap   *pebble.Snapshot
	faults faults
}

func (r *repair) collection(c *collection) error {
	set := c.indexes.Load()
	lists := false
	var bad []*index
	for _, x := range set.ready {
		if bits := r.faults.lists[x.id]; bits != 0 {
			x.multikey.Or(bits)
			lists = true
		}
		if r.faults.indexes[x.id] {
			bad = append(bad, x)
		}
	}
	if len(bad) > 0 {
		c.tallies = tallies{} // they may have been counted by these
	}
	if err := r.indexes(c, bad); err != nil {
		return err
	}
	n, wrong := r.faults.counts[c.id]
	if !wrong && !lists {
		return nil
	}
	err := r.s.write(func(b *pebble.Batch) error {
		if wrong {
			if err := b.Set(countsKey(c.id), n.encode(), nil); err != nil {
				return internal(err, "stage counters")
			}
		}
		return c.put(b, set)
	})
	if err == nil && wrong {
		c.counts = n
	}
	return err
}

// indexes makes the entries of indexes anew. If it ends half way they are marked as being built, which goes on when the
// store is opened again. All old entries go before the first new one comes: indexes side by side may share a damaged block.
func (r *repair) indexes(c *collection, bad []*index) error {
	if len(bad) == 0 {
		return nil
	}
	set := c.indexes.Load()
	isBad := func(x *index) bool { return slices.Contains(bad, x) }
	unready := newIndexSet(slices.Clone(set.all), slices.DeleteFunc(slices.Clone(set.ready), isBad))
	err := r.s.write(func(b *pebble.Batch) error {
		err := c.put(b, unready)
		for _, x := range bad {
			prefix := indexPrefix(c.id, x.id)
			err = errors.Join(err, b.DeleteRange(prefix, document.KeyAfter(prefix), nil))
		}
		return err
	})
	if err != nil {
		return err
	}
	r.s.cat.setIndexes(c, unready)
	if err := r.cut(c, set.all); err != nil {
		return err
	}
	for _, x := range bad {
		if err := r.entries(c, x); err != nil {
			return err
		}
	}
	if err := r.s.write(func(b *pebble.Batch) error { return c.put(b, set) }); err != nil {
		return err
	}
	r.s.cat.setIndexes(c, set)
	return nil
}

// cut takes entries that can't be read out of the tables, so that neither a read nor a compaction meets their blocks again:
// of a table, what is before and behind them goes on being used. Indexes side by side are cut out as one.
func (r *repair) cut(c *collection, all []*index) error {
	all = slices.SortedFunc(slices.Values(all), func(a, b *index) int { return cmp.Compare(a.id, b.id) })
	for i := 0; i < len(all); i++ {
		if !r.faults.unreadable[all[i].id] {
			continue
		}
		first := i
		for i+1 < len(all) && r.faults.unreadable[all[i+1].id] {
			i++
		}
		span := pebble.KeyRange{Start: indexPrefix(c.id, all[first].id), End: document.KeyAfter(indexPrefix(c.id, all[i].id))}
		err := guarded("cut out an index", func() error { return r.s.db.Excise(r.ctx, span) })
		if r.ctx.Err() != nil {
			return store.Ended(r.ctx)
		}
		if err != nil { // what is beside the entries is damaged, too
			r.s.opts.Logger.Warn("damaged entries not cut out", slog.String("index", all[i].def.Name), slog.Any("error", err))
		}
	}
	return nil
}

func (r *repair) entries(c *collection, x *index) (err error) {
	docs, prefix := docPrefix(c.id), indexPrefix(c.id, x.id)
	it, err := r.snap.NewIter(&pebble.IterOptions{LowerBound: docs, UpperBound: document.KeyAfter(docs)})
	if err != nil {
		return internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	b := r.s.db.NewBatch()
	defer func() { _ = b.Close() }() // returns memory only
	for ok := it.First(); ok; ok = it.Next() {
		doc, err := storedDoc(it.Value())
		if err != nil || doc.Validate() != nil {
			continue // told
		}
		e, err := x.entriesOf(doc)
		if err != nil {
			continue // told
		}
		for _, key := range e.keys {
			if err := setEntry(b, prefix, key, it.Key()[len(docs):]); err != nil {
				return internal(err, "stage an index entry")
			}
		}
		if b.Len() < repairBytes {
			continue
		}
		if r.ctx.Err() != nil {
			return store.Ended(r.ctx)
		}
		if err := r.s.applyLazily(b); err != nil {
			return err
		}
		_ = b.Close()
		b = r.s.db.NewBatch()
	}
	if err := it.Error(); err != nil {
		return internal(err, "read documents")
	}
	return r.s.applyLazily(b)
}

// rest repairs what belongs to no collection.
func (r *repair) rest() error {
	f := r.faults
	if len(f.feeds) == 0 && len(f.strangers) == 0 && f.nextID == 0 {
		return nil
	}
	return r.s.write(func(b *pebble.Batch) error {
		var err error
		for database, seq := range f.feeds {
			prefix := feedPrefix(database)
			// The last entry stays in any case: the numbers go on behind it.
			seq = min(seq, r.s.feeds.of(database).end().seq)
			err = errors.Join(err, b.DeleteRange(prefix, feedKey(prefix, seq), nil))
		}
		for _, rg := range f.strangers {
			err = errors.Join(err, b.DeleteRange(rg.Start, rg.End, nil))
		}
		if f.nextID != 0 {
			r.s.cat.nextID = max(r.s.cat.nextID, f.nextID)
			err = errors.Join(err, b.Set(keyNextID(), binary.BigEndian.AppendUint32(nil, r.s.cat.nextID), nil))
		}
		return internal(err, "repair")
	})
}
