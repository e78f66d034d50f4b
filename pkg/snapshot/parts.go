package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// part is a collection that is restored.
type part struct {
	name   string
	col    *Collection         // in the snapshot
	config *project.Collection // of one that the config does not have, one of that name without anything in it
	known  bool                // that the config has it
	names  *document.Names     // what its fields are stored as

	live    bool          // it is there
	indexes []store.Index // that it gets
	images  bool          // its feed keeps what documents were

	shadow string // that takes its place; "": there is nothing to take it
	out    Restored
}

// stored is the collection's name in the store.
func (p *part) stored() string { return p.config.StoredName() }

// through gives a collection of the store whose fields are named as the config does.
func (p *part) through(db store.Database, name string) store.Collection {
	if p.names == nil {
		return db.Collection(name)
	}
	return fieldnames.Wrap(db, map[string]*document.Names{name: p.names}).Collection(name)
}

var errBadMode = errs.New(errs.Invalid, "bad_mode", "the mode of a restore has to be replace or merge")

// Has is nil if all of some collections are in the snapshot, else errs.NotFound.
func (m *Manifest) Has(collections []string) error {
	for _, name := range collections {
		if m.collection(name) == nil {
			return errs.New(errs.NotFound, "collection_not_found", "the snapshot has no collection %q: look at the snapshot for those that it has", name)
		}
	}
	return nil
}

// plan finds what goes where.
func (r *restore) plan(ctx context.Context) error {
	m := r.from.m
	if err := m.Has(r.o.Collections); err != nil {
		return err
	}
	there, err := r.raw.CollectionNames(ctx)
	if err != nil {
		return err
	}
	specs, err := r.indexes(ctx)
	if err != nil {
		return err
	}
	r.declared()
	for i := range m.Collections {
		c := &m.Collections[i]
		if len(r.o.Collections) > 0 && !slices.Contains(r.o.Collections, c.Name) {
			continue
		}
		one, err := r.part(c)
		if err != nil {
			return err
		}
		one.live = slices.Contains(there, one.stored())
		if err := r.partIndexes(ctx, one, specs[c.Name]); err != nil {
			return err
		}
		if one.live || c.Documents > 0 || len(one.indexes) > 0 {
			one.shadow = fmt.Sprintf("%s%s.%d", shadowMark, r.short, i)
		}
		one.out = Restored{Name: c.Name, Unchanged: one.shadow == ""}
		r.parts = append(r.parts, one)
	}
	slices.SortFunc(r.parts, func(a, b *part) int { return cmp.Compare(a.name, b.name) })
	if r.is != nil && !slices.ContainsFunc(r.result.Drift, func(d Drift) bool { return d.Kind == DriftConfig }) {
		r.drift("", DriftElsewhere, "the config is another one than that of the snapshot, but not in the fields of what is restored")
	}
	return nil
}

// shadowMark begins the names of collections that are being restored: they are for bookkeeping, which nobody reaches.
const shadowMark = "svc.restore."

// canBe refuses a name that no collection of a project has.
func (c *Collection) canBe() error {
	if store.IsBookkeeping(c.Name) || store.CheckCollectionName(c.Name) != nil {
		return fmt.Errorf("no collection of a project has the name %q", c.Name)
	}
	return nil
}

// part finds the place of a collection.
func (r *restore) part(c *Collection) (*part, error) {
	if err := c.canBe(); err != nil {
		return nil, damaged("%s", err)
	}
	one := &part{name: c.Name, col: c, config: r.p.Collections[c.Name]}
	if one.known = one.config != nil; one.known {
		one.names = one.config.FieldNames
		r.fieldDrift(one)
		return one, nil
	}
	for _, other := range r.p.Collections {
		if other.StoredName() == c.Name {
			return nil, errs.New(errs.Conflict, "collection_renamed",
				"the collection %s of the snapshot was renamed to %s since: name the other collections to restore them, or roll the config back first", c.Name, other.Name)
		}
	}
	one.config = &project.Collection{Name: c.Name}
	r.drift(c.Name, DriftUndeclared, "the config does not have the collection: it is in the store, and nobody can reach it")
	return one, nil
}

// indexes reads the file of them.
func (r *restore) indexes(ctx context.Context) (indexes, error) {
	f := r.from.m.file(indexesFile)
	if f == nil {
		return nil, damaged("%s: the manifest does not have it", indexesFile)
	}
	text, err := r.from.dir.Read(indexesFile, maxIndexes)
	switch {
	case err != nil:
		return nil, cmp.Or(ctx.Err(), damaged("%s: %s", indexesFile, cause(err)))
	case sumOf(text) != f.SHA256:
		return nil, damaged("%s: %s", indexesFile, errSum)
	}
	x, err := decodeIndexes(text)
	if err != nil {
		return nil, damaged("%s: %s", indexesFile, err)
	}
	return x, nil
}

// partIndexes finds the indexes that a collection gets: those of the snapshot, which its records keep to; a merge leaves those that there
// are. What the config has otherwise is made, or removed, by who looks after indexes.
func (r *restore) partIndexes(ctx context.Context, one *part, saved collectionSpec) error {
	coll := one.through(r.raw, one.stored())
	var live []store.Index
	if one.live {
		var err error
		if live, err = coll.Indexes(ctx); err != nil {
			return err
		}
		if keeper, ok := r.raw.Collection(one.stored()).(store.ImageKeeper); ok {
			if one.images, err = keeper.KeepsImages(ctx); err != nil {
				return err
			}
		}
	}
	var of []store.Index
	for i := range saved.Indexes {
		x, err := saved.Indexes[i].index()
		if err != nil {
			return damaged("%s: %s", indexesFile, err)
		}
		of = append(of, x)
	}
	if one.live {
		r.indexDrift(one, of, live)
	}
	if one.indexes = of; r.o.Mode == Merge && one.live {
		one.indexes = live
	}
	return nil
}

// indexDrift tells of indexes that the snapshot has otherwise than there are.
func (r *restore) indexDrift(one *part, saved, live []store.Index) {
	var other []string
	has := func(list []store.Index, x store.Index) bool { return slices.ContainsFunc(list, x.Equal) }
	for _, x := range saved {
		if !has(live, x) {
			other = append(other, x.Name)
		}
	}
	for _, x := range live {
		if !has(saved, x) && !slices.Contains(other, x.Name) {
			other = append(other, x.Name)
		}
	}
	if len(other) == 0 {
		return
	}
	slices.Sort(other)
	r.drift(one.name, DriftIndexes, "the snapshot and the collection have other indexes: "+strings.Join(other, ", "))
}

var errViolates = errs.New(errs.Conflict, "restore_violates", "several records would have the same value of a unique index")

// violation is the error of records that do not go together with an index.
func violation(name string, err error) error {
	if v, ok := errors.AsType[*store.ViolationError](err); ok {
		ids := make([]string, 0, len(v.IDs))
		for _, id := range v.IDs {
			ids = append(ids, textOfID(id))
		}
		return errs.New(errViolates.Kind, errViolates.Code, "several records of %s would have the same value of the unique index %s, such as %s: remove all but one of them first, or restore with the mode replace",
			name, v.Index, strings.Join(ids, ", ")).With(err)
	}
	return err
}
