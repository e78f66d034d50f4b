package embedded

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// RenameCollection gives a collection another name. Nothing but its entry in the catalog is written anew.
func (d database) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	name := collectionName{database: d.name, collection: to}
	if err := errors.Join(store.CheckCollectionName(from), name.check()); err != nil {
		return err
	}
	if err := d.s.disk.check(); err != nil {
		return err
	}
	d.s.expiring.Lock()
	defer d.s.expiring.Unlock()
	d.s.commit.Lock()
	defer d.s.commit.Unlock()
	coll := d.s.cat.get(collectionName{database: d.name, collection: from})
	if coll == nil {
		return errs.ErrNotFound
	}
	target := d.s.cat.get(name)
	switch {
	case target != nil && !replace:
		return store.ErrCollectionExists
	case target == coll:
		return nil
	}
	return d.s.rename(coll, name, target)
}

// rename gives coll another name, in place of target if there is one. The caller holds the commit mutex.
func (s *Store) rename(coll *collection, name collectionName, target *collection) error {
	b := s.newCommit(false)
	b.note(name.database, change{kind: store.Renamed, name: coll.name.collection, to: name.collection})
	moved := &collection{name: name, id: coll.id, indexes: coll.indexes, counts: coll.counts, images: coll.images}
	err := errors.Join(
		b.batch.Delete(catalogKey(coll.name.database, coll.name.collection), nil),
		moved.put(b.batch, moved.indexes.Load()),
	)
	gone := []*collection{coll}
	if target != nil {
		err = errors.Join(err, b.erase([]*collection{target}))
		gone = append(gone, target)
	}
	if err != nil {
		return errors.Join(internal(err, "rename a collection"), b.discard())
	}
	if err := b.apply(); err != nil {
		return err
	}
	coll.renamed = moved
	s.cat.replace(gone, moved)
	return b.wait()
}
