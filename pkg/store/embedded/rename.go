package embedded

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

var _ store.Replacer = database{}

// RenameCollection gives a collection another name. Nothing but its entry in the catalog is written anew.
func (d database) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	return d.renaming(ctx, []store.Rename{{From: from, To: to}}, func() error {
		coll, name := d.collection(from), collectionName{database: d.name, collection: to}
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
		return d.s.rename([]renamed{{coll, name, target}})
	})
}

// ReplaceCollections has collections take the places of others, all in one step.
func (d database) ReplaceCollections(ctx context.Context, renames []store.Rename) error {
	if err := store.CheckRenames(renames); err != nil {
		return err
	}
	return d.renaming(ctx, renames, func() error {
		all := make([]renamed, 0, len(renames))
		for _, r := range renames {
			coll, name := d.collection(r.From), collectionName{database: d.name, collection: r.To}
			if coll == nil {
				return errs.ErrNotFound
			}
			all = append(all, renamed{coll, name, d.s.cat.get(name)})
		}
		return d.s.rename(all)
	})
}

// renaming runs fn, which renames, under the commit mutex.
func (d database) renaming(ctx context.Context, renames []store.Rename, fn func() error) error {
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, r := range renames {
		if err := errors.Join(store.CheckCollectionName(r.From), store.CheckCollectionName(r.To)); err != nil {
			return err
		}
	}
	if err := d.s.disk.check(); err != nil {
		return err
	}
	d.s.expiring.Lock()
	defer d.s.expiring.Unlock()
	d.s.commit.Lock()
	defer d.s.commit.Unlock()
	return fn()
}

// collection gives one that exists; nil: it does not.
func (d database) collection(name string) *collection {
	return d.s.cat.get(collectionName{database: d.name, collection: name})
}

// renamed is a collection that gets another name, in place of target if there is one.
type renamed struct {
	coll   *collection
	name   collectionName
	target *collection
}

// rename gives collections of one database other names. The caller holds the commit mutex.
func (s *Store) rename(all []renamed) error {
	if len(all) == 0 {
		return nil
	}
	b := s.newCommit(false)
	var gone, erased, moved []*collection
	var err error
	for _, r := range all {
		b.note(r.name.database, change{kind: store.Renamed, name: r.coll.name.collection, to: r.name.collection})
		to := &collection{name: r.name, id: r.coll.id, indexes: r.coll.indexes, counts: r.coll.counts, images: r.coll.images}
		err = errors.Join(
			err, b.batch.Delete(catalogKey(r.coll.name.database, r.coll.name.collection), nil),
			to.put(b.batch, to.indexes.Load()),
		)
		gone, moved = append(gone, r.coll), append(moved, to)
		if r.target != nil {
			gone, erased = append(gone, r.target), append(erased, r.target)
		}
	}
	if err = errors.Join(err, b.erase(erased)); err != nil {
		return errors.Join(internal(err, "rename a collection"), b.discard())
	}
	if err := b.apply(); err != nil {
		return err
	}
	for i, r := range all {
		r.coll.renamed = moved[i]
	}
	s.cat.replace(gone, moved...)
	return b.wait()
}
