package index

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Flush writes what is in memory, so that it outlasts a crash.
func (ix *Index) Flush(ctx context.Context) error {
	if err := ix.acquire(); err != nil {
		return err
	}
	err := ix.settle(ctx)
	if err == nil {
		err = ix.disk.fail(ix.disk.sync(ctx))
	}
	return errors.Join(err, ix.release())
}

// settle hands what is in memory to Pebble.
func (ix *Index) settle(ctx context.Context) error {
	ix.write.Lock()
	defer ix.write.Unlock()
	err := ix.rotate(ctx)
	if err == nil {
		err = ix.written(ctx)
	}
	return ix.disk.fail(err)
}

// rotate begins a new segment, and has the old one written behind it. The caller holds ix.write.
func (ix *Index) rotate(ctx context.Context) error {
	if err := ix.written(ctx); err != nil {
		return err
	}
	if !ix.fresh.changed {
		return nil
	}
	ix.mu.Lock()
	s := ix.fresh
	ix.full, ix.fresh = s, newSegment(ix.next)
	ix.fresh.at = s.at
	ix.mu.Unlock()
	done := make(chan struct{})
	ix.writing = done
	ix.db.writers.Go(func() {
		defer close(done)
		if err := ix.flush(s); err != nil && !errors.Is(err, ErrDropped) {
			ix.db.o.Logger.WarnContext(ctx, "the search index could not be written; it is tried again", "index", ix.name, "error", err)
		}
	})
	return nil
}

// written waits until the segment that was full is written, and tries again what has failed. The caller holds ix.write.
func (ix *Index) written(ctx context.Context) error {
	if ix.writing != nil {
		select {
		case <-ix.writing: // if it has failed, ix.full is still there
			ix.writing = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ix.mu.RLock()
	s := ix.full
	ix.mu.RUnlock()
	if s == nil {
		return nil
	}
	return ix.flush(s)
}

// flush writes a segment in one batch.
func (ix *Index) flush(s *segment) (err error) {
	if err := ix.acquire(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ix.release()) }()
	w := batch{ix: ix, b: ix.disk.kv.NewBatch()}
	w.terms(s)
	w.records(s)
	w.set(ix.key(keyState), append(binary.BigEndian.AppendUint32(nil, s.first+uint32(len(s.records))), s.at...))
	if w.err == nil {
		w.err = ix.disk.commit(w.b)
	}
	if w.err = errors.Join(w.err, w.b.Close()); w.err != nil {
		return w.err
	}
	ix.mu.Lock()
	ix.full = nil
	ix.mu.Unlock()
	return nil
}

// batch collects writes, up to the first error.
type batch struct {
	ix  *Index
	b   *pebble.Batch
	buf []byte
	err error
}

func (w *batch) set(key, value []byte) {
	if w.err == nil {
		w.err = w.b.Set(key, value, nil)
	}
}

func (w *batch) merge(key, value []byte) {
	if w.err == nil {
		w.err = w.b.Merge(key, value, nil)
	}
}

func (w *batch) delete(key []byte) {
	if w.err == nil {
		w.err = w.b.Delete(key, nil)
	}
}

func (w *batch) terms(s *segment) {
	for _, f := range slices.Sorted(maps.Keys(s.terms)) {
		for _, term := range slices.Sorted(maps.Keys(s.terms[f])) {
			w.list(f, term, s.terms[f][term])
		}
	}
}

// list writes who has a term, and where.
func (w *batch) list(f Field, term string, l *list) {
	w.set(append(w.ix.fieldKey(keyTerm, f), term...), nil)
	positions := l.positions
	for rest := l.postings; len(rest) > 0; {
		chunk, n, places := rest[0].number>>chunkBits, 0, uint32(0)
		for n < len(rest) && rest[n].number>>chunkBits == chunk {
			places += rest[n].count
			n++
		}
		w.buf = appendBlock(w.buf[:0], chunk<<chunkBits, rest[:n])
		w.merge(w.ix.termKey(keyPostings, f, term, chunk), w.buf)
		size := sizeOf(positions, places)
		w.merge(w.ix.termKey(keyPositions, f, term, chunk), positions[:size])
		rest, positions = rest[n:], positions[size:]
	}
}

// sizeOf is how many bytes the first n uvarints take.
func sizeOf(b []byte, n uint32) int {
	size := 0
	for ; n > 0 && size < len(b); size++ {
		if b[size] < 0x80 {
			n--
		}
	}
	return size
}

func (w *batch) records(s *segment) {
	columns := columns{lengths: map[chunkKey][]posting{}, values: map[chunkKey][]byte{}}
	for i, r := range s.records {
		number := s.first + uint32(i)
		columns.add(number, r)
		for f, v := range r.vectors {
			w.set(w.ix.vectorKey(f, number), appendVector(w.buf[:0], v))
		}
		if s.numbers[string(r.id)] == number { // else it has been replaced since
			w.set(w.ix.key(keyNumber, binary.BigEndian.AppendUint32(nil, number)), r.id)
		}
	}
	for id, number := range s.numbers {
		if number == removed {
			w.delete(w.ix.key(keyRecord, []byte(id)))
			continue
		}
		value := binary.BigEndian.AppendUint32(make([]byte, 0, 12), number)
		w.set(w.ix.key(keyRecord, []byte(id)), binary.BigEndian.AppendUint64(value, uint64(s.records[number-s.first].rev)))
	}
	for _, number := range s.dead {
		for _, f := range w.ix.vectorFields() {
			w.delete(w.ix.vectorKey(f, number))
		}
		w.delete(w.ix.key(keyNumber, binary.BigEndian.AppendUint32(nil, number)))
	}
	for k, l := range columns.lengths {
		w.merge(w.ix.chunkKey(keyLengths, k.field, k.chunk), appendBlock(nil, k.chunk<<chunkBits, l))
	}
	for k, block := range columns.values {
		w.merge(w.ix.chunkKey(keyValues, k.field, k.chunk), block)
	}
}

// columns are what a segment adds to those of the index.
type columns struct {
	lengths map[chunkKey][]posting
	values  map[chunkKey][]byte
}

type chunkKey struct {
	field Field
	chunk uint32
}

func (c *columns) add(number uint32, r record) {
	for _, l := range r.lengths {
		k := chunkKey{l.field, number >> chunkBits}
		c.lengths[k] = append(c.lengths[k], posting{number, l.terms})
	}
	for f, value := range r.values {
		k := chunkKey{f, number >> chunkBits}
		c.values[k] = appendValue(c.values[k], number, value)
	}
}

func (ix *Index) key(kind byte, rest ...[]byte) []byte {
	key := append(append(make([]byte, 0, 64), ix.prefix[:]...), kind)
	for _, r := range rest {
		key = append(key, r...)
	}
	return key
}

func (ix *Index) fieldKey(kind byte, f Field) []byte {
	return binary.BigEndian.AppendUint16(ix.key(kind), uint16(f))
}

func (ix *Index) termPrefix(kind byte, f Field, term string) []byte {
	return append(append(ix.fieldKey(kind, f), term...), 0)
}

func (ix *Index) termKey(kind byte, f Field, term string, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(ix.termPrefix(kind, f, term), chunk)
}

func (ix *Index) vectorKey(f Field, number uint32) []byte {
	return binary.BigEndian.AppendUint32(ix.fieldKey(keyVector, f), number)
}

func appendVector(dst []byte, v []float32) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}
