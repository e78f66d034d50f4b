package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// maxProblems is how many problems of one kind are named one by one; then their number is.
const maxProblems = 20

// Progress is how far a check or repair is: about Done of Total documents and index entries.
type Progress struct{ Done, Total int64 }

// Validate checks all that is stored, in one state of the store and beside writes: that it can be read, that documents
// are BSON under their own _id, that index entries are those of the documents and the other way round, what is known of
// lists in indexes, counters, feeds, that no key belongs to nothing, and the checksums of all tables. It calls report for each
// problem, which has the name of a collection behind that of its database (db/things), and progress, unless it is nil, every
// now and then. The error return is for failures to check.
func (s *Store) Validate(ctx context.Context, report func(store.Problem), progress func(Progress)) error {
	return s.validate(ctx, "", report, progress)
}

// Validate checks what is stored of the database.
func (d database) Validate(ctx context.Context, report func(store.Problem)) error {
	if err := store.CheckDatabaseName(d.name); err != nil {
		return err
	}
	return d.s.validate(ctx, d.name, report, nil)
}

// validate checks one database, or with "" all there is.
func (s *Store) validate(ctx context.Context, database string, report func(store.Problem), progress func(Progress)) (err error) {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	snap := s.db.NewSnapshot()
	defer closeInto(&err, snap.Close)
	v := newValidation(ctx, snap, report, progress)
	if err := v.run(database); err != nil || database != "" {
		return err
	}
	err = guarded("check the levels", func() error { return s.db.CheckLevels(nil) })
	if err != nil && pebble.ExtractDataCorruptionInfo(err) == nil { // of a damaged table checkTables tells
		report(store.Problem{Text: "the tables do not fit together: " + damageText(err)})
	}
	return s.checkTables(ctx, func(file string, err error) {
		// If all that can't be read is entries of indexes, nothing of the file is needed once they are made anew.
		report(store.Problem{Text: "the file " + file + " is damaged" + damagedBlock(err), Repairable: len(v.faults.unreadable) > 0 && !v.lost})
	})
}

// validation is one run over one snapshot. It goes by the catalog of the snapshot, not by the one in memory: so no index
// can come or go under it.
type validation struct {
	ctx      context.Context //nolint:containedctx // lives as long as the call that made it
	snap     *pebble.Snapshot
	tell     func(store.Problem)
	cat      *catalog
	progress func(Progress)
	whole    bool // all databases
	lost     bool // a problem was found that is not repairable
	at       Progress
	faults   faults
}

// faults is what can be made anew.
type faults struct {
	indexes map[uint32]bool // their entries
	// of indexes: those of which entries can't be read
	unreadable map[uint32]bool
	lists      map[uint32]uint32 // of indexes: multikey bits that are missing
	counts     map[uint32]counts // of collections: what they are
	feeds      map[string]uint64 // of databases: the entry to begin with
	strangers  []pebble.KeyRange // of keys that belong to nothing
	nextID     uint32            // if that is too low: what it has to be
}

func newValidation(ctx context.Context, snap *pebble.Snapshot, report func(store.Problem), progress func(Progress)) *validation {
	v := &validation{ctx: ctx, snap: snap, progress: progress, faults: faults{
		indexes: map[uint32]bool{}, unreadable: map[uint32]bool{}, lists: map[uint32]uint32{},
		counts: map[uint32]counts{}, feeds: map[string]uint64{},
	}}
	v.tell = func(p store.Problem) {
		v.lost = v.lost || !p.Repairable
		report(p)
	}
	return v
}

func (v *validation) run(database string) (err error) {
	cat, damage := loadCatalog(v.snap)
	if damage != nil {
		v.tell(store.Problem{Text: "the catalog can't be read: " + damageText(damage)})
		return nil // without it nothing else can be told
	}
	v.cat = cat
	v.whole = database == ""
	colls := v.cat.sorted()
	if !v.whole {
		colls = v.cat.in(database)
	}
	for _, c := range colls {
		v.at.Total += c.counts.docs * int64(1+len(c.indexes.Load().ready))
	}
	for _, c := range colls {
		if err := v.collection(c); err != nil {
			return err
		}
	}
	if err := v.feeds(database); err != nil || database != "" {
		return err
	}
	v.numbers()
	if err := v.strangers(); err != nil || v.progress == nil {
		return err
	}
	v.progress(v.at)
	return nil
}

// name is what problems call a collection: with its database, if all of them are checked.
func (v *validation) name(c *collection) string {
	if v.whole {
		return c.name.database + "/" + c.name.collection
	}
	return c.name.collection
}

// each calls fn for all keys that begin with prefix. What can't be read it gives as damage.
func (v *validation) each(prefix []byte, fn func(key, value []byte) error) (damage, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: document.KeyAfter(prefix)})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, func() error { _ = it.Close(); return nil }) // it repeats what it said before
	for ok := it.First(); ok; ok = it.Next() {
		if err := v.step(); err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err, nil
		}
		if err := fn(it.Key(), value); err != nil {
			return nil, err
		}
	}
	return it.Error(), nil
}

func (v *validation) step() error {
	if v.at.Done++; v.at.Done%checkEvery != 0 {
		return nil
	}
	if v.progress != nil {
		v.progress(v.at)
	}
	if v.ctx.Err() != nil {
		return store.Ended(v.ctx)
	}
	return nil
}

// findings reports the problems of one collection, index or feed. Of one kind it names only some.
type findings struct {
	v    *validation
	what store.Problem
	n    map[string]int
}

func (v *validation) of(collection, index string) *findings {
	return &findings{v: v, what: store.Problem{Collection: collection, Index: index}, n: map[string]int{}}
}

func (f *findings) add(repairable bool, format string, args ...any) {
	if f.n[format]++; f.n[format] > maxProblems {
		return
	}
	f.what.Repairable, f.what.Text = repairable, fmt.Sprintf(format, args...)
	f.v.tell(f.what)
}

// end tells how many there are of those kinds of which not all were named.
func (f *findings) end() {
	for format, n := range f.n {
		if n > maxProblems {
			f.what.Text = fmt.Sprintf("%d more like: "+format, append([]any{n - maxProblems}, omitted(format)...)...)
			f.v.tell(f.what)
		}
	}
}

// omitted stands for the arguments of a format.
func omitted(format string) []any {
	out := make([]any, bytes.Count([]byte(format), []byte{'%'}))
	for i := range out {
		out[i] = omission{}
	}
	return out
}

type omission struct{}

func (omission) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("…")) }

// checkedIndex is an index while the documents of its collection are walked.
type checkedIndex struct {
	*index
	*findings
	prefix []byte
	want   int   // entries that the documents have
	damage error // why some can't be read
}

func (v *validation) collection(c *collection) error {
	var indexes []*checkedIndex
	for _, x := range c.indexes.Load().ready {
		indexes = append(indexes, &checkedIndex{
			index: x, findings: v.of(v.name(c), x.def.Name), prefix: indexPrefix(c.id, x.id),
		})
	}
	found := v.of(v.name(c), "")
	defer found.end()
	var n counts
	prefix := docPrefix(c.id)
	damage, err := v.each(prefix, func(key, value []byte) error {
		n.add(counts{docs: 1, bytes: int64(max(len(value)-1, 0))})
		return v.document(found, indexes, key[len(prefix):], value)
	})
	if err != nil {
		return err
	}
	if damage != nil {
		found.add(false, "the documents can't be read: %s", damageText(damage))
		return nil // nothing else can be told
	}
	if n != c.counts {
		found.add(true, "counted are %d documents with %d bytes, there are %d with %d", c.counts.docs, c.counts.bytes, n.docs, n.bytes)
		v.faults.counts[c.id] = n
	}
	for _, x := range indexes {
		if err := v.index(c, x); err != nil {
			return err
		}
	}
	return nil
}

// document checks one document, and that its index entries are there.
func (v *validation) document(found *findings, indexes []*checkedIndex, id, stored []byte) error {
	doc, err := storedDoc(stored)
	if err == nil {
		err = doc.Validate()
	}
	switch {
	case err != nil:
		found.add(false, "the document with the key %x is damaged: %v", id, err)
		return nil
	case len(doc) > document.MaxSize:
		found.add(false, "the document with the key %x has %d bytes", id, len(doc))
	}
	if own, _ := document.Field(doc, "_id"); !bytes.Equal(idKey(own), id) {
		found.add(false, "the document with the key %x has another _id: %v", id, own)
	}
	for _, x := range indexes {
		if x.damage != nil { // to meet it again for each document takes long
			continue
		}
		e, err := x.entriesOf(doc)
		if err != nil {
			x.add(false, "the document with the key %x can't be in this index: %v", id, err)
			continue
		}
		if flags := x.multikey.Load(); flags|e.multikey != flags {
			x.add(true, "the document with the key %x has lists in fields %b, known are %b", id, e.multikey, flags)
			v.faults.lists[x.id] |= e.multikey
		}
		x.want += len(e.keys)
		for _, key := range e.keys {
			if err := v.entry(x, key, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry checks that an entry is there.
func (v *validation) entry(x *checkedIndex, key, id []byte) error {
	value, closer, err := v.snap.Get(entryKey(x.prefix, key, id))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		x.add(true, "the document with the key %x has no entry %x", id, key)
		v.faults.indexes[x.id] = true
		return nil
	case err != nil:
		x.damage = err
		return nil //nolint:nilerr // it is told with the index
	}
	if n, size := binary.Uvarint(value); size != len(value) || n != uint64(len(id)) {
		x.add(true, "the entry %x of the document with the key %x is damaged", key, id)
		v.faults.indexes[x.id] = true
	}
	return internal(closer.Close(), "close a read")
}

// index checks that there are no entries but those of documents, and that a unique index is.
func (v *validation) index(c *collection, x *checkedIndex) error {
	defer x.end()
	have := 0
	var last, lastID []byte
	damage, err := v.each(x.prefix, func(key, value []byte) error {
		have++
		id, err := entryID(key, value)
		if err != nil || len(id) > len(key)-len(x.prefix) {
			return nil //nolint:nilerr // told already if it is a document's, else one too many
		}
		fields := key[:len(key)-len(id)]
		if x.def.Unique && bytes.Equal(fields, last) && v.has(c, x, fields, id) && v.has(c, x, fields, lastID) {
			x.add(false, "the documents with the keys %x and %x share %x", lastID, id, fields[len(x.prefix):])
		}
		last, lastID = append(last[:0], fields...), append(lastID[:0], id...)
		return nil
	})
	if err != nil {
		return err
	}
	if damage = cmp.Or(x.damage, damage); damage != nil {
		x.add(true, "the entries can't be read: %s", damageText(damage))
		v.faults.indexes[x.id], v.faults.unreadable[x.id] = true, true
		return nil
	}
	if have == x.want && !v.faults.indexes[x.id] {
		return nil
	}
	v.faults.indexes[x.id] = true
	return v.surplus(c, x)
}

// has says whether a document has the entry that begins with fields.
func (v *validation) has(c *collection, x *checkedIndex, fields, id []byte) bool {
	doc, err := getDoc(v.snap, docKey(c.id, id))
	if err != nil || doc == nil {
		return false
	}
	e, err := x.entriesOf(doc)
	return err == nil && e.has(fields[len(x.prefix):])
}

// surplus names the entries that no document has.
func (v *validation) surplus(c *collection, x *checkedIndex) error {
	_, err := v.each(x.prefix, func(key, value []byte) error {
		id, err := entryID(key, value)
		if err != nil || len(id) > len(key)-len(x.prefix) {
			x.add(true, "the entry %x is damaged", key[len(x.prefix):])
			return nil //nolint:nilerr // it is told
		}
		if !v.has(c, x, key[:len(key)-len(id)], id) {
			x.add(true, "the entry %x is of no document", key[len(x.prefix):])
		}
		return nil
	})
	return err
}
