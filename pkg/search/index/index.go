package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Field is the caller's number of a field, or of a form of one.
type Field uint16

// A Token is a term at a place of a field.
type Token struct {
	Term     string // without NUL
	Position uint32 // not below that of the token before
}

// A Change is a record as it is now.
type Change struct {
	ID   []byte
	Gone bool // it is to be forgotten; the rest does not matter
	Rev  int64
	// Fields are the terms of the record, in the order of their positions.
	Fields map[Field][]Token
	// Vectors have length 1, and all of a field have as many dimensions.
	Vectors map[Field][]float32
	// In says whether the record belongs to a set, by its name. It may be nil if the index has no sets.
	In func(set string) bool
}

// Index is the index of one search. Its methods are safe for concurrent use.
type Index struct {
	db     *DB
	name   string
	prefix [4]byte

	write   sync.Mutex    // held while the index changes
	writing chan struct{} // of the segment that is being written; nil: none is

	// What a View takes with it.
	mu      sync.RWMutex
	next    uint32             // number of the next record
	epoch   uint32             // of the last Apply
	died    []uint32           // by number: the epoch in which the version was replaced; 0: it was not. Atomic
	lengths map[Field][]uint16 // by number: how many terms; stored as 65,535 at most
	vectors map[Field]*matrix
	all     totals
	sets    map[string]*Set
	fresh   *segment
	full    *segment // being written; nil: nothing is
}

// read reads an index, which may be empty.
func (d *DB) read(name string, number uint32) (*Index, error) {
	ix := &Index{
		db: d, name: name, epoch: 1, lengths: map[Field][]uint16{}, vectors: map[Field]*matrix{}, sets: map[string]*Set{},
		all: totals{fields: map[Field]fieldTotal{}},
	}
	binary.BigEndian.PutUint32(ix.prefix[:], number)
	var at []byte
	switch v, closer, err := d.kv.Get(ix.key(keyState)); {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return nil, err
	case len(v) < 4:
		return nil, errDamaged
	default:
		ix.next, at = binary.BigEndian.Uint32(v), bytes.Clone(v[4:])
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	ix.fresh = newSegment(ix.next)
	ix.fresh.at = at
	if err := ix.readLengths(); err != nil {
		return nil, err
	}
	if err := ix.readVectors(); err != nil {
		return nil, err
	}
	ix.died = make([]uint32, ix.next)
	for i := range ix.died {
		ix.died[i] = 1
	}
	return ix, d.each(ix.key(keyNumber), func(key, _ []byte) error {
		if len(key) != 4 || binary.BigEndian.Uint32(key) >= ix.next {
			return errDamaged
		}
		number := binary.BigEndian.Uint32(key)
		ix.died[number] = 0
		ix.all.count(ix, number, 1)
		return nil
	})
}

func (ix *Index) readLengths() error {
	var buf []posting
	return ix.db.each(ix.key(keyLengths), func(key, v []byte) (err error) {
		if len(key) != 6 {
			return errDamaged
		}
		f, base := Field(binary.BigEndian.Uint16(key)), binary.BigEndian.Uint32(key[2:])<<chunkBits
		if buf, err = readBlocks(buf[:0], base, v); err != nil {
			return err
		}
		for _, p := range buf {
			ix.setLength(f, p.number, p.count)
		}
		return nil
	})
}

func (ix *Index) setLength(f Field, number, n uint32) {
	l := ix.lengths[f]
	for int(number) >= len(l) {
		l = append(l, 0)
	}
	l[number] = uint16(min(n, 1<<16-1))
	ix.lengths[f] = l
}

// Name is what the index was opened by.
func (ix *Index) Name() string { return ix.name }

// Position is what the last Apply was given, nil if there was none.
func (ix *Index) Position() []byte {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.fresh.at
}

// Len is how many records there are, and how many numbers are used: those of their former versions, too.
func (ix *Index) Len() (records, numbers int) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.all.records, int(ix.next)
}

// Rev gives the revision of a record's version that is known; ok is false when none is.
func (ix *Index) Rev(id []byte) (rev int64, ok bool, err error) {
	ix.write.Lock()
	defer ix.write.Unlock()
	_, rev, ok, err = ix.known(id)
	return rev, ok, err
}

// Apply takes in what has become of records: views that are made later see all of it, others nothing. Position stands for
// all that has been applied; nil leaves it as it is. Of several changes of one record the last counts.
func (ix *Index) Apply(ctx context.Context, changes []Change, position []byte) error {
	ix.write.Lock()
	defer ix.write.Unlock()
	changes = newest(changes)
	if len(changes) > int(removed-ix.next) {
		return errors.New("the index has no numbers left: it has to be made anew")
	}
	was := make([]int64, len(changes)) // the numbers they had; -1: none
	for i := range changes {
		number, _, ok, err := ix.known(changes[i].ID)
		switch {
		case err != nil:
			return err
		case ok:
			was[i] = int64(number)
		default:
			was[i] = -1
		}
	}
	next := ix.next
	for i := range changes {
		switch c := &changes[i]; {
		case !c.Gone:
			ix.fresh.add(next, c)
			next++
		case was[i] >= 0:
			ix.fresh.remove(c.ID)
		}
		if was[i] >= 0 {
			ix.fresh.kill(uint32(was[i]))
		}
	}
	ix.show(changes, was)
	if position != nil {
		ix.fresh.at = position
	}
	if ix.fresh.size > segmentSize {
		return ix.rotate(ctx)
	}
	return nil
}

// newest leaves the last change of each record.
func newest(changes []Change) []Change {
	last := make(map[string]int, len(changes))
	for i := range changes {
		last[string(changes[i].ID)] = i
	}
	if len(last) == len(changes) {
		return changes
	}
	out := make([]Change, 0, len(last))
	for i := range changes {
		if last[string(changes[i].ID)] == i {
			out = append(out, changes[i])
		}
	}
	return out
}

// show lets views see changes.
func (ix *Index) show(changes []Change, was []int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.epoch++
	for i := range changes {
		if n := was[i]; n >= 0 {
			ix.bury(uint32(n))
		}
		c := &changes[i]
		if c.Gone {
			continue
		}
		number := ix.next
		ix.next++
		ix.died = append(ix.died, 0)
		for f, tokens := range c.Fields {
			if len(tokens) > 0 {
				ix.setLength(f, number, uint32(len(tokens)))
			}
		}
		for f, v := range c.Vectors {
			ix.matrix(f).add(number, v)
		}
		ix.all.count(ix, number, 1)
		for name, set := range ix.sets {
			if c.In != nil && c.In(name) {
				set.in.add(number)
				set.totals.count(ix, number, 1)
			}
		}
	}
}

// bury lets views see a version no more. The caller holds ix.mu.
func (ix *Index) bury(number uint32) {
	ix.all.count(ix, number, -1)
	for _, set := range ix.sets {
		if set.in.bits().has(number) {
			set.totals.count(ix, number, -1)
		}
	}
	atomic.StoreUint32(&ix.died[number], ix.epoch)
}

// known gives the version of a record that is seen. The caller holds ix.write.
func (ix *Index) known(id []byte) (number uint32, rev int64, ok bool, err error) {
	for _, s := range []*segment{ix.fresh, ix.full} {
		if s == nil {
			continue
		}
		if n, ok := s.numbers[string(id)]; ok { // nobody writes to it at the same time
			if n == removed {
				return 0, 0, false, nil
			}
			return n, s.records[n-s.first].rev, true, nil
		}
	}
	v, closer, err := ix.db.kv.Get(ix.key(keyRecord, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if len(v) != 12 {
		return 0, 0, false, errDamaged
	}
	return binary.BigEndian.Uint32(v), int64(binary.BigEndian.Uint64(v[4:])), true, nil
}

// Set gives the set of a name. A new one is filled by fill, which calls add with the id and the revision of each record
// that belongs to it, as the records are now; what changes meanwhile is decided by Change.In.
func (ix *Index) Set(ctx context.Context, name string, fill func(ctx context.Context, add func(id []byte, rev int64) error) error) (*Set, error) {
	ix.mu.Lock()
	if set := ix.sets[name]; set != nil {
		ix.mu.Unlock()
		select {
		case <-set.filled:
			return set, set.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	set := &Set{Name: name, totals: totals{fields: map[Field]fieldTotal{}}, filled: make(chan struct{})}
	ix.sets[name] = set
	limit := ix.next // versions from here on are decided by Apply
	ix.mu.Unlock()

	defer close(set.filled)
	set.err = fill(ctx, func(id []byte, rev int64) error {
		ix.write.Lock()
		defer ix.write.Unlock()
		number, known, ok, err := ix.known(id)
		if err != nil || !ok || known != rev || number >= limit {
			return err // another version than the one that was looked at
		}
		ix.mu.Lock()
		defer ix.mu.Unlock()
		if !set.in.bits().has(number) {
			set.in.add(number)
			set.totals.count(ix, number, 1)
		}
		return nil
	})
	if set.err != nil {
		ix.Forget(name)
	}
	return set, set.err
}

// Forget lets go of a set. Views that use it go on.
func (ix *Index) Forget(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	delete(ix.sets, name)
}
