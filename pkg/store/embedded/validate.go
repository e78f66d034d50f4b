package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// maxFindings is how many problems Validate names.
const maxFindings = 20

// Validate compares every index entry with the documents it should come from, in one state of the store, and looks
// for keys that belong to nothing. It reads everything. The error names what it found, for the log.
func (s *Store) Validate(ctx context.Context) (err error) {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	// No index may come, change or go between looking at the catalog and at the data.
	s.commit.Lock()
	v := validation{ctx: ctx, snap: s.db.NewSnapshot(), known: map[string]bool{}}
	colls := s.cat.sorted()
	sets := make([]*indexSet, len(colls))
	for i, c := range colls {
		sets[i] = c.indexes.Load()
	}
	s.commit.Unlock()
	defer closeInto(&err, v.snap.Close)

	for i, c := range colls {
		if err := v.collection(c, sets[i]); err != nil {
			return err
		}
	}
	if err := v.strangers(); err != nil {
		return err
	}
	err = s.checkTables(ctx, func(file string, err error) { v.report("%s: %w", file, err) })
	return errors.Join(err, internal(errors.Join(v.findings...), "validate the store"))
}

type validation struct {
	ctx      context.Context //nolint:containedctx // lives as long as the call that made it
	snap     *pebble.Snapshot
	known    map[string]bool // prefixes of documents and entries
	findings []error
}

func (v *validation) report(format string, args ...any) {
	if len(v.findings) < maxFindings {
		v.findings = append(v.findings, fmt.Errorf(format, args...))
	}
}

// each calls fn for all keys that begin with prefix.
func (v *validation) each(prefix []byte, fn func(key, value []byte) error) (err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: keyAfter(prefix)})
	if err != nil {
		return internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 && v.ctx.Err() != nil {
			return contextError(v.ctx)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return internal(err, "read a value")
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
	}
	return internal(it.Error(), "read keys")
}

func (v *validation) collection(c *collection, set *indexSet) error {
	prefix := docPrefix(c.id)
	v.known[string(prefix)] = true
	want := make([]int, len(set.all))
	err := v.each(prefix, func(key, value []byte) error {
		return v.document(c, set, key[len(prefix):], value, want)
	})
	if err != nil {
		return err
	}
	for i, x := range set.all {
		prefix := indexPrefix(c.id, x.id)
		v.known[string(prefix)] = true
		have := 0
		if err := v.each(prefix, func(_, _ []byte) error { have++; return nil }); err != nil {
			return err
		}
		if slices.Contains(set.ready, x) && have != want[i] {
			v.report("%v index %s: %d entries for documents that give %d", c.name, x.def.Name, have, want[i])
		}
	}
	return nil
}

// document checks one document and that its entries are there, and counts them.
func (v *validation) document(c *collection, set *indexSet, id, stored []byte, want []int) error {
	doc, err := storedDoc(stored)
	if err == nil {
		err = doc.Validate()
	}
	if err != nil {
		v.report("%v document %x: %w", c.name, id, err)
		return nil
	}
	if own, _ := lookup(doc, "_id"); !bytes.Equal(idKey(own), id) {
		v.report("%v document %x: stored under another _id", c.name, id)
	}
	for i, x := range set.all {
		if !slices.Contains(set.ready, x) {
			continue
		}
		e, err := x.entriesOf(doc)
		if err != nil {
			v.report("%v document %x index %s: %w", c.name, id, x.def.Name, err)
			continue
		}
		if flags := x.multikey.Load(); flags|e.multikey != flags {
			v.report("%v document %x index %s: lists in %b, known are %b", c.name, id, x.def.Name, e.multikey, flags)
		}
		want[i] += len(e.keys)
		for _, key := range e.keys {
			if err := v.entry(c, x, key, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *validation) entry(c *collection, x *index, key, id []byte) error {
	full := entryKey(indexPrefix(c.id, x.id), key, id)
	value, closer, err := v.snap.Get(full)
	if errors.Is(err, pebble.ErrNotFound) {
		v.report("%v document %x index %s: entry %x is missing", c.name, id, x.def.Name, key)
		return nil
	}
	if err != nil {
		return internal(err, "read an entry")
	}
	if n, _ := binary.Uvarint(value); n != uint64(len(id)) {
		v.report("%v document %x index %s: entry %x is damaged", c.name, id, x.def.Name, key)
	}
	if err := closer.Close(); err != nil {
		return internal(err, "read an entry")
	}
	if !x.def.Unique {
		return nil
	}
	holder, err := holderOf(v.snap, c, x, key, id)
	if holder != nil {
		v.report("%v unique index %s: documents %x and %x share %x", c.name, x.def.Name, id, holder, key)
	}
	return err
}

// strangers looks for documents and entries of collections and indexes that don't exist.
func (v *validation) strangers() error {
	for space, length := range map[byte]int{spaceDocs: len(docPrefix(0)), spaceIndexes: len(indexPrefix(0, 0))} {
		err := v.each([]byte{space}, func(key, _ []byte) error {
			if len(key) < length || !v.known[string(key[:length])] {
				v.report("key %x belongs to nothing", key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
