package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// A View is an Index as it was at one moment, seen by someone. It is not safe for concurrent use, and has to be closed.
type View struct {
	ix       *Index
	it       *pebble.Iterator
	next     uint32 // numbers from here on are not seen
	epoch    uint32
	onDisk   uint32 // numbers below are read from Pebble, those from here on from memory
	died     []uint32
	set      bits
	all      bool // without a set
	totals   totals
	lengths  map[Field][]uint16
	vectors  map[Field]vectors
	segments []*segment
}

// View gives the records of a set as they are now; nil is all records.
func (ix *Index) View(set *Set) (*View, error) {
	v := ix.capture(set)
	it, err := ix.db.kv.NewIter(&pebble.IterOptions{LowerBound: ix.prefix[:], UpperBound: above(ix.prefix[:])})
	if err != nil {
		return nil, err
	}
	v.it = it // which may have what has been written since; that is left out by its numbers
	return v, nil
}

func (ix *Index) capture(set *Set) *View {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	v := &View{
		ix: ix, next: ix.next, epoch: ix.epoch, died: ix.died, all: set == nil, onDisk: ix.fresh.first,
		lengths: make(map[Field][]uint16, len(ix.lengths)), vectors: make(map[Field]vectors, len(ix.vectors)),
	}
	if ix.full != nil {
		v.segments, v.onDisk = append(v.segments, ix.full), ix.full.first
	}
	v.segments = append(v.segments, ix.fresh)
	t := ix.all
	if set != nil {
		v.set, t = set.in.bits(), set.totals
	}
	v.totals = totals{t.records, make(map[Field]fieldTotal, len(t.fields))}
	maps.Copy(v.totals.fields, t.fields)
	maps.Copy(v.lengths, ix.lengths)
	for f, m := range ix.vectors {
		v.vectors[f] = m.vectors
	}
	return v
}

// Close ends the view.
func (v *View) Close() error { return v.it.Close() }

// Len is how many records are seen.
func (v *View) Len() int { return v.totals.records }

// sees says whether a version is seen.
func (v *View) sees(number uint32) bool {
	if number >= v.next || !v.all && !v.set.has(number) {
		return false
	}
	died := atomic.LoadUint32(&v.died[number])
	return died == 0 || died > v.epoch
}

// ID gives the id of a record by its number; nil if the record has a newer version by now.
func (v *View) ID(number uint32) (id []byte, err error) {
	for _, s := range slices.Backward(v.segments) {
		if number >= s.first {
			return s.record(number).id, nil
		}
	}
	value, closer, err := v.ix.db.kv.Get(v.ix.key(keyNumber, binary.BigEndian.AppendUint32(nil, number)))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id = bytes.Clone(value)
	return id, closer.Close()
}

// postings appends who has a term, of those who are seen.
func (v *View) postings(dst []posting, f Field, term string) ([]posting, error) {
	from := len(dst)
	prefix := v.ix.termPrefix(keyPostings, f, term)
	v.it.SetBounds(prefix, above(prefix))
	var err error
	for ok := v.it.First(); ok; ok = v.it.Next() {
		if len(v.it.Key()) != len(prefix)+4 {
			return dst, errDamaged
		}
		base := binary.BigEndian.Uint32(v.it.Key()[len(prefix):]) << chunkBits
		if dst, err = readBlocks(dst, base, v.it.Value()); err != nil {
			return dst, err
		}
	}
	if err := v.it.Error(); err != nil {
		return dst, err
	}
	for len(dst) > from && dst[len(dst)-1].number >= v.onDisk {
		dst = dst[:len(dst)-1]
	}
	for _, s := range v.segments {
		l, _ := s.of(f, term, v.next)
		dst = append(dst, l...)
	}
	out := dst[:from]
	for _, p := range dst[from:] {
		if v.sees(p.number) {
			out = append(out, p)
		}
	}
	return out, nil
}
