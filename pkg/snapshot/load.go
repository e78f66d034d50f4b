package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// A batch of records that are written together has at most that many of them, and not many more bytes.
const (
	batchRecords = 500
	batchBytes   = 2 << 20
)

// load makes the collections that are to take the place of those that there are.
func (r *restore) load(ctx context.Context) error {
	for _, p := range r.parts {
		if p.shadow == "" {
			continue
		}
		if err := r.loadPart(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) loadPart(ctx context.Context, p *part) error {
	saved, err := openExport(ctx, r.from.dir, r.from.m, p.col)
	if err != nil {
		return err
	}
	defer saved.close()
	var was records = noRecords{}
	if r.o.Mode == Merge && p.live {
		was = &storeRecords{ctx: ctx, from: p.through(r.raw, p.stored())}
	}
	r.t.beginAt(Loading, p.name, p.col.Documents, p.col.Bytes)
	into := p.through(r.raw, p.shadow)
	l := &loader{ctx: ctx, into: into, sum: sha256.New()}
	err = together(was, &moved{saved, r.from.m, r.p, p}, func(was, is bson.Raw) error {
		if is == nil {
			return l.add(was)
		}
		p.out.Restored++
		r.t.done(1, int64(len(is)))
		return l.add(is)
	})
	if err == nil {
		err = l.flush()
	}
	if err == nil && l.count == 0 {
		err = l.appear()
	}
	if err != nil {
		return err
	}
	p.out.Records, p.out.Bytes = l.count, l.bytes
	return r.index(ctx, p, into, l)
}

// index makes the indexes of what was loaded, and looks whether it is what was to be loaded.
func (r *restore) index(ctx context.Context, p *part, into store.Collection, l *loader) error {
	r.t.beginAt(Indexing, p.name, int64(len(p.indexes))+1, 0)
	var expiring []store.Index
	for _, x := range p.indexes {
		if x.ExpireAfter > 0 { // its documents may go at once
			expiring = append(expiring, x)
			continue
		}
		if err := into.CreateIndex(ctx, x); err != nil {
			return violation(p.name, err)
		}
		r.t.done(1, 0)
	}
	sum, count, err := sumOfRecords(&storeRecords{ctx: ctx, from: into})
	if err != nil {
		return err
	}
	if count != l.count || sum != hex.EncodeToString(l.sum.Sum(nil)) {
		return errs.New(errDiffers.Kind, errDiffers.Code, "%s: %s", p.name, errDiffers.Message)
	}
	r.t.done(1, 0)
	for _, x := range expiring {
		if err := into.CreateIndex(ctx, x); err != nil {
			return err
		}
		r.t.done(1, 0)
	}
	if keeper, ok := r.raw.Collection(p.shadow).(store.ImageKeeper); ok && p.images {
		if err := keeper.KeepImages(ctx, true); err != nil {
			return err
		}
	}
	r.t.tell()
	return nil
}

var errDiffers = errs.New(errs.Conflict, "restore_differs", "the store gave records back otherwise than they are in the snapshot: nothing was changed; try again, and report it as a bug of the store or of svcd if that stays")

// sumOfRecords is the hash of the lines of an export.
func sumOfRecords(from records) (sum string, count int64, err error) {
	h := sha256.New()
	var line []byte
	err = each(from, func(doc []byte) error {
		line = append(document.AppendExtended(line[:0], doc), '\n')
		_, _ = h.Write(line) // a hash takes everything
		count++
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), count, err
}

// each calls fn for all records.
func each(from records, fn func(doc []byte) error) error {
	for {
		doc, err := from.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(doc); err != nil {
			return err
		}
	}
}

// moved is the records of a snapshot with the addresses of files that they have in the project that they are brought into.
type moved struct {
	from records
	m    *Manifest
	p    *project.Project
	part *part
}

func (m *moved) next() (bson.Raw, error) {
	doc, err := m.from.next()
	if err != nil || m.m.Namespace == m.p.Namespace {
		return doc, err
	}
	v, _ := document.Field(doc, "_id")
	id, ok := v.ObjectIDOK()
	if !ok {
		return doc, nil
	}
	was, is := project.FileRoot(m.m.Namespace, m.part.name, id), project.FileRoot(m.p.Namespace, m.part.name, id)
	return withAddresses(doc, func(src string) string {
		if len(src) >= len(was) && src[:len(was)] == was {
			return is + src[len(was):]
		}
		return src
	}), nil
}

// loader writes records into a collection that nobody else knows.
type loader struct {
	ctx   context.Context //nolint:containedctx // it is the writer of one call
	into  store.Collection
	sum   hash.Hash // of the lines that their export has
	line  []byte
	batch []store.Op
	size  int
	count int64
	bytes int64
}

func (l *loader) add(doc bson.Raw) error {
	l.line = append(document.AppendExtended(l.line[:0], doc), '\n')
	_, _ = l.sum.Write(l.line) // a hash takes everything
	l.count++
	l.bytes += int64(len(doc))
	l.batch = append(l.batch, store.Op{Kind: store.Insert, Doc: slices.Clone(doc)})
	if l.size += len(doc); len(l.batch) < batchRecords && l.size < batchBytes {
		return nil
	}
	return l.flush()
}

func (l *loader) flush() error {
	if len(l.batch) == 0 {
		return l.ctx.Err()
	}
	results, err := l.into.Write(l.ctx, l.batch, false)
	for i := range results {
		if err == nil {
			err = results[i].Err
		}
	}
	l.batch, l.size = l.batch[:0], 0
	return err
}

// appear has a collection without records be there.
func (l *loader) appear() error {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: "empty"}})
	if err != nil {
		return errs.Wrap(err, "make a collection")
	}
	if err := store.WriteAll(l.ctx, l.into, store.Op{Kind: store.Insert, Doc: doc}); err != nil {
		return err
	}
	return store.WriteAll(l.ctx, l.into, store.Op{Kind: store.Delete, ID: store.Name("empty")})
}
