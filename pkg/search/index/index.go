package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// ErrDropped is for who uses an index that was dropped.
var ErrDropped = errors.New("the search index was dropped")

// Field is the caller's number of a field, or of a form of one.
type Field uint16

// A Token is a term at a place of a field.
type Token struct {
	Term     string // without NUL
	Position uint32 // not below that of the token before
	// Count is how often the term is there where places don't matter, such as a weight: see Weights. No phrase may look for it. 0: once, at
	// Position.
	Count uint32
}

// A Change is a record as it is now.
type Change struct {
	ID   []byte // not empty
	Gone bool   // it is to be forgotten; the rest does not matter
	Rev  int64
	// Fields are the terms of the record, in the order of their positions.
	Fields map[Field][]Token
	// Values are numbers of the record, such as dates in milliseconds.
	Values map[Field]int64
	// Vectors have length 1, and all of a field have as many dimensions.
	Vectors map[Field][]float32
	// In says whether the record belongs to a set. It is called once for each set that there is, and may be nil if there are none.
	In func(*Set) bool
}

// Index is the index of one search. Its methods are safe for concurrent use.
type Index struct {
	db     *DB
	disk   *disk
	name   string
	prefix [4]byte

	write   sync.Mutex    // held while the index changes
	writing chan struct{} // of the segment that is being written; nil: none is

	// What a View takes with it.
	mu      sync.RWMutex
	next    uint32             // number of the next record
	epoch   uint32             // of the last Apply
	died    []uint32           // by number: the epoch in which the version was replaced; 0: it was not. Atomic
	ids     ids                // by number
	lengths map[Field][]uint16 // by number: how many terms; stored as 65,535 at most
	values  map[Field][]int64  // by number
	vectors map[Field]*matrix
	all     totals
	sets    map[string]*Set
	fresh   *segment
	full    *segment // being written; nil: nothing is
	ended   error    // ErrDropped or ErrClosed; nil: it can be used
	users   int      // views, and who writes
}

// read reads an index, which may be empty.
func (d *DB) read(name string, number uint32) (*Index, error) {
	ix := &Index{
		db: d, disk: d.disk, name: name, epoch: 1, lengths: map[Field][]uint16{}, values: map[Field][]int64{},
		vectors: map[Field]*matrix{}, sets: map[string]*Set{}, all: totals{fields: map[Field]fieldTotal{}},
	}
	binary.BigEndian.PutUint32(ix.prefix[:], number)
	var at []byte
	switch v, closer, err := ix.disk.kv.Get(ix.key(keyState)); {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		if len(v) >= 4 {
			ix.next, at = binary.BigEndian.Uint32(v), bytes.Clone(v[4:])
		}
		if err := closer.Close(); err != nil {
			return nil, err
		}
		if len(v) < 4 {
			return nil, errDamaged
		}
	}
	if len(at) == 0 {
		at = nil
	}
	ix.fresh = newSegment(ix.next)
	ix.fresh.at = at
	if err := errors.Join(ix.readLengths(), ix.readValues()); err != nil {
		return nil, err
	}
	if err := ix.readNumbers(); err != nil {
		return nil, err
	}
	if err := ix.readVectors(); err != nil {
		return nil, err
	}
	return ix, nil
}

func (ix *Index) readNumbers() error {
	ix.died = make([]uint32, 0, ix.next)
	gone := func(until uint32) {
		for uint32(len(ix.died)) < until {
			ix.died = append(ix.died, 1)
			ix.ids.add(nil)
		}
	}
	err := ix.disk.each(ix.key(keyNumber), func(key, id []byte) error {
		if len(key) != 4 || len(id) == 0 {
			return errDamaged
		}
		number := binary.BigEndian.Uint32(key)
		if number < uint32(len(ix.died)) || number >= ix.next {
			return errDamaged
		}
		gone(number)
		ix.died = append(ix.died, 0)
		ix.ids.add(id)
		ix.all.count(ix, number, 1)
		return nil
	})
	gone(ix.next)
	return err
}

// Position is what Apply was last given, nil if nothing was.
func (ix *Index) Position() []byte {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.fresh.at
}

// Apply takes in what has become of records: views that are made later see all of it, others nothing. Position stands for
// all that has been applied; nil leaves it as it is. Of several changes of one record the last counts. If Apply fails nothing of
// it has been done; it fails when what came before can't be written to the disk, and works again when that can be.
func (ix *Index) Apply(ctx context.Context, changes []Change, position []byte) (err error) {
	if err := ix.acquire(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ix.release()) }()
	ix.write.Lock()
	defer ix.write.Unlock()
	changes = newest(changes)
	if err := ix.check(changes); err != nil {
		return err
	}
	if ix.fresh.size > ix.db.o.memory {
		if err := ix.rotate(ctx); err != nil {
			return ix.disk.fail(err)
		}
	}
	was := make([]int64, len(changes)) // the numbers they had; -1: none
	for i := range changes {
		number, _, ok, err := ix.known(changes[i].ID)
		switch {
		case err != nil:
			return ix.disk.fail(err)
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
	ix.show(changes, was, position)
	return nil
}

// check says whether changes can be taken in. The caller holds ix.write.
func (ix *Index) check(changes []Change) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if err := ix.disk.lostBy(); err != nil {
		return err
	}
	if len(changes) > int(removed-ix.next) {
		return errors.New("the index has no numbers left: it has to be made anew")
	}
	dimensions := map[Field]int{}
	for f, m := range ix.vectors {
		dimensions[f] = m.dimensions
	}
	for i := range changes {
		if len(changes[i].ID) == 0 {
			return errors.New("a record without an id can't be indexed")
		}
		for f, v := range changes[i].Vectors {
			if had, ok := dimensions[f]; ok && had != len(v) || len(v) == 0 {
				return fmt.Errorf("a vector has %d dimensions, others have %d: the index has to be made anew for another model", len(v), had)
			}
			dimensions[f] = len(v)
		}
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
func (ix *Index) show(changes []Change, was []int64, position []byte) {
	joins := ix.joins(changes)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if position != nil {
		ix.fresh.at = position
	}
	ix.fresh.changed = ix.fresh.changed || position != nil || len(changes) > 0
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
		ix.ids.add(c.ID)
		for f, tokens := range c.Fields {
			if len(tokens) > 0 {
				ix.setLength(f, number, uint32(len(tokens)))
			}
		}
		for f, value := range c.Values {
			ix.setValue(f, number, value)
		}
		ix.setVectors(number, c.Vectors)
		ix.all.count(ix, number, 1)
		for _, set := range ix.sets {
			in, decided := joins[set]
			if decided && in[i] || !decided && c.In != nil && c.In(set) { // it has come since
				set.add(ix, number)
			}
		}
	}
}

// joins says which of the changes belong to which sets: it takes time, in which readers are not to wait.
func (ix *Index) joins(changes []Change) map[*Set][]bool {
	ix.mu.RLock()
	out := make(map[*Set][]bool, len(ix.sets))
	for _, set := range ix.sets {
		out[set] = nil
	}
	ix.mu.RUnlock()
	for set := range out {
		in := make([]bool, len(changes))
		for i := range changes {
			c := &changes[i]
			in[i] = !c.Gone && c.In != nil && c.In(set)
		}
		out[set] = in
	}
	return out
}

// bury lets views see a version no more. The caller holds ix.mu.
func (ix *Index) bury(number uint32) {
	ix.all.count(ix, number, -1)
	for _, set := range ix.sets {
		if set.in.now().has(number) {
			set.totals.count(ix, number, -1)
		}
	}
	atomic.StoreUint32(&ix.died[number], ix.epoch)
}

// known gives the version of a record that is seen. The caller holds ix.write.
func (ix *Index) known(id []byte) (number uint32, rev int64, ok bool, err error) {
	ix.mu.RLock()
	segments := [2]*segment{ix.fresh, ix.full}
	ix.mu.RUnlock()
	for _, s := range segments {
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
	v, closer, err := ix.disk.kv.Get(ix.key(keyRecord, id))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if len(v) != 12 || binary.BigEndian.Uint32(v) >= ix.next {
		return 0, 0, false, errDamaged
	}
	return binary.BigEndian.Uint32(v), int64(binary.BigEndian.Uint64(v[4:])), true, nil
}

// acquire has the index keep what it has on disk until release is called.
func (ix *Index) acquire() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.ended != nil {
		return ix.ended
	}
	ix.users++
	ix.disk.use()
	return nil
}

// end has nobody begin to use the index any more, and says whether nobody does.
func (ix *Index) end(why error) (idle bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.ended = why
	return ix.users == 0
}

func (ix *Index) release() (err error) {
	defer func() { err = errors.Join(err, ix.disk.drop()) }()
	ix.mu.Lock()
	ix.users--
	last := errors.Is(ix.ended, ErrDropped) && ix.users == 0
	ix.mu.Unlock()
	if last {
		return ix.erase()
	}
	return nil
}

// erase removes what an index that was dropped has on disk. Nobody uses it.
func (ix *Index) erase() error {
	if ix.disk.lostBy() != nil {
		return nil //nolint:nilerr // all of the disk goes
	}
	b := ix.disk.kv.NewBatch()
	err := b.DeleteRange(ix.prefix[:], above(ix.prefix[:]), nil)
	if err == nil {
		err = ix.disk.commit(b)
	}
	return errors.Join(err, b.Close())
}

// Wear says how many versions of records there are that were replaced, and still take room and time, beside how many records.
func (ix *Index) Wear() (dead, records int) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return int(ix.next) - ix.all.records, ix.all.records
}

// Stats are what an index has.
type Stats struct {
	Records int // that are found
	Dead    int // versions that were replaced, and still take room and time: see Wear
	Sets    int
	Memory  int64  // bytes, about
	Disk    uint64 // bytes, about, without what is in memory alone
}

// Stats says what the index has.
func (ix *Index) Stats() (Stats, error) {
	if err := ix.acquire(); err != nil {
		return Stats{}, err
	}
	ix.mu.RLock()
	s := Stats{Records: ix.all.records, Dead: int(ix.next) - ix.all.records, Sets: len(ix.sets)}
	memory := len(ix.ids.bytes) + 4*len(ix.ids.ends) + 4*len(ix.died) + ix.fresh.bytes()
	if ix.full != nil {
		memory += ix.full.bytes()
	}
	for _, l := range ix.lengths {
		memory += 2 * len(l)
	}
	for _, l := range ix.values {
		memory += 8 * len(l)
	}
	for _, m := range ix.vectors {
		memory += m.bytes()
	}
	for _, set := range ix.sets {
		memory += set.bytes()
	}
	ix.mu.RUnlock()
	s.Memory = int64(memory)
	var err error
	s.Disk, err = ix.disk.kv.EstimateDiskUsage(ix.prefix[:], above(ix.prefix[:]))
	return s, ix.disk.fail(errors.Join(err, ix.release()))
}
