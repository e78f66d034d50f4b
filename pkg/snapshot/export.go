package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// source is a collection to be exported.
type source struct {
	name   string              // in the config; of one that this does not have, in the store
	config *project.Collection // of one that the config does not have, one of that name without anything in it
	known  bool                // that the config has it
	est    store.Stats
}

// records writes the records and their files as they are at one moment.
func (c *creation) records(ctx context.Context) error {
	c.tracker.begin(Plan, 1, 0)
	db := fieldnames.Wrap(c.s.o.Store.Database(project.DatabaseName(c.p.Namespace)), c.p.FieldNames)
	files, err := c.holdFiles(ctx)
	if err != nil {
		return err
	}
	defer files.release(ctx)
	view, err := db.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // it was only read
	c.manifest.ConsistentAt, c.manifest.Position = millisecond(c.s.o.Now()), view.Position()
	sources, err := c.sources(ctx, db, view)
	if err != nil {
		return err
	}
	var documents, bytes int64
	for _, src := range sources {
		documents, bytes = documents+src.est.Documents, bytes+src.est.Bytes
	}
	c.tracker.done(1, 0)
	c.tracker.begin(Collections, documents, bytes)
	for i, dir := range []string{collectionsDir, dbDir} {
		if c.profile.Mode == Both || (c.profile.Mode == DB) == (i == 1) {
			if err := c.dir.Make(dir); err != nil {
				return err
			}
		}
	}
	all := indexes{}
	for _, src := range sources {
		c.tracker.at(src.name)
		if err := c.export(ctx, view.Collection(src.config.StoredName()), src, files); err != nil {
			return err
		}
		list, err := all.add(ctx, db.Collection(src.config.StoredName()), src.name)
		if err != nil {
			return err
		}
		if c.profile.Mode != JSON {
			if err := c.metadata(ctx, src.name, list); err != nil {
				return err
			}
		}
	}
	c.tracker.tell()
	files.release(ctx) // what is in the snapshot stays, whatever becomes of it elsewhere
	if err := view.Close(); err != nil {
		return err
	}
	text, err := all.encode()
	if err == nil {
		err = c.write(ctx, indexesFile, text, 0)
	}
	if err != nil {
		return err
	}
	return files.hash(ctx)
}

// sources lists the collections of the snapshot by name: those of the config, and those in the store that it does not have.
func (c *creation) sources(ctx context.Context, db store.Database, view store.View) ([]source, error) {
	there, err := view.CollectionNames(ctx)
	if err != nil {
		return nil, err
	}
	var out []source
	stored := map[string]bool{}
	for _, col := range c.p.Collections {
		stored[col.StoredName()] = true
		if c.profile.takes(col.Name) {
			out = append(out, source{name: col.Name, config: col, known: true})
		}
	}
	for _, name := range there {
		switch {
		case stored[name] || !c.profile.takes(name):
		case c.p.Collections[name] != nil:
			c.tracker.warn("the collection " + name + " in the store is left out: it belongs to none of the config, which has another of that name")
		default:
			out = append(out, source{name: name, config: &project.Collection{Name: name}})
		}
	}
	slices.SortFunc(out, func(a, b source) int { return cmp.Compare(a.name, b.name) })
	for i := range out {
		if out[i].est, err = db.Collection(out[i].config.StoredName()).Stats(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var byID = mql.Sort{{Path: "_id"}} //nolint:gochecknoglobals // a constant

// export writes the records of a collection, in the order of their ids. Where the snapshot before may have the same, they are only compared
// at first: to compress them is most of the work.
func (c *creation) export(ctx context.Context, from store.Reader, src source, files *fileTaker) error {
	out := Collection{Name: src.name, File: fileName(src.name), Undeclared: !src.known}
	take := files.take
	if was := c.likely(src); was != nil {
		same, err := c.compare(ctx, from, src, take, was)
		if err != nil {
			return err
		}
		if same {
			c.exported(*was)
			return nil
		}
		take = files.again // those that it names are in the snapshot
	}
	var lines, raw *exportFile
	var err error
	defer func() {
		lines.close()
		raw.close()
	}()
	if c.profile.Mode != DB {
		if lines, err = c.newExport(path.Join(collectionsDir, out.File+jsonEnding), true); err != nil {
			return err
		}
	}
	if c.profile.Mode != JSON {
		if raw, err = c.newExport(path.Join(dbDir, out.File+bsonEnding), false); err != nil {
			return err
		}
	}
	err = c.each(ctx, from, src, take, &out, func(doc bson.Raw, line []byte) error {
		if lines != nil {
			if err := lines.write(line); err != nil {
				return err
			}
		}
		if raw != nil {
			return raw.write(doc)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range []*exportFile{lines, raw} {
		if e == nil {
			continue
		}
		sum, err := e.finish(ctx, out.Documents)
		if err != nil {
			return err
		}
		if e == lines {
			out.SHA256 = sum
		}
	}
	c.exported(out)
	return nil
}

// taking gives a record as a snapshot has it.
type taking func(ctx context.Context, src source, doc bson.Raw) (bson.Raw, error)

// each calls fn with each record of a collection and its line, and counts them.
func (c *creation) each(ctx context.Context, from store.Reader, src source, take taking, out *Collection, fn func(doc bson.Raw, line []byte) error) error {
	var line []byte
	return from.Find(ctx, store.Query{Sort: byID}, func(doc bson.Raw) error {
		doc, err := take(ctx, src, doc)
		if err != nil {
			return err
		}
		if c.profile.Mode != DB {
			line = append(document.AppendExtended(line[:0], doc), '\n')
		}
		if err := fn(doc, line); err != nil {
			return err
		}
		out.Documents++
		out.Bytes += int64(len(doc))
		c.tracker.done(1, int64(len(doc)))
		c.pace.step(ctx)
		return nil
	})
}

// likely gives the collection as the snapshot before has it, if an export may be a link to that one's: with as many records of as many bytes.
func (c *creation) likely(src source) *Collection {
	if !c.profile.Dedup || c.before == nil || c.profile.Mode != JSON {
		return nil
	}
	was := c.before.manifest.collection(src.name)
	if was == nil || was.Documents != src.est.Documents || was.Bytes != src.est.Bytes || was.SHA256 == "" || was.Undeclared == src.known {
		return nil
	}
	return was
}

// compare reads the records of a collection, and links to their export in the snapshot before if that has the same.
func (c *creation) compare(ctx context.Context, from store.Reader, src source, take taking, was *Collection) (same bool, err error) {
	f := c.before.manifest.file(path.Join(collectionsDir, was.File+jsonEnding))
	if f == nil {
		return false, nil
	}
	var out Collection
	sum := sha256.New()
	err = c.each(ctx, from, src, take, &out, func(_ bson.Raw, line []byte) error {
		_, _ = sum.Write(line) // a hash takes everything
		return nil
	})
	if err == nil && hex.EncodeToString(sum.Sum(nil)) == was.SHA256 {
		same, err = c.dedup(ctx, *f)
	}
	if err == nil && !same {
		c.tracker.done(-out.Documents, -out.Bytes) // they come again
	}
	return same, err
}

func (c *creation) exported(out Collection) {
	c.manifest.Collections = append(c.manifest.Collections, out)
	c.manifest.Counts.Documents += out.Documents
}

// metadata writes what mongorestore reads beside the records of a collection.
func (c *creation) metadata(ctx context.Context, name string, indexes []indexSpec) error {
	text, err := encodeMetadata(name, indexes)
	if err != nil {
		return errs.Wrap(err, "write the indexes of a collection")
	}
	return c.write(ctx, path.Join(dbDir, fileName(name)+metadataEnding), text, 0)
}
