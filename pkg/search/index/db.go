package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// chunkBits says how many records a stored list is about: 2 to the power of it at most.
const chunkBits = 16

// format is that of what is on disk: another one is begun anew.
const format = 2

// The kinds of keys of an index, each behind the index's number.
const (
	keyState     = 's' // -> next number, position
	keyRecord    = 'r' // id -> number, revision
	keyNumber    = 'n' // number -> id
	keyLengths   = 'l' // field, chunk -> how many terms of which records
	keyValues    = 'c' // field, chunk -> values of which records
	keyTerm      = 't' // field, term -> nothing; for what looks through many
	keyPostings  = 'p' // field, term, 0, chunk -> which records how often
	keyPositions = 'x' // likewise -> where in them
	keyVector    = 'v' // field, number -> vector
)

// keyCatalog begins the keys that give the numbers of indexes; those begin above it.
var keyCatalog = []byte{0, 0, 0, 0} //nolint:gochecknoglobals // a constant

// What is kept in memory.
const (
	cacheSize   = 64 << 20 // of what is on disk
	segmentSize = 24 << 20 // of what is new in an index
	segments    = 4        // that Pebble takes before writes wait for its own
	// A segment is one batch, which Pebble takes as it is if it is large beside its tables; it makes a table anew behind each of these. A table is
	// a small part of a segment, for it is empty but for what is written between them.
	tableShare = 4
)

// retry is how long Pebble waits before it tries again to write what it could not.
const retry = 50 * time.Millisecond

// Defaults of Options.
const (
	DefaultSets     = 64
	DefaultSetBytes = 64 << 20
)

// Options of a DB.
type Options struct {
	Dir    string
	Logger *slog.Logger
	// Sets is how many sets an index keeps, SetBytes how many bytes those of all indexes have; those that were not asked for the
	// longest go first, and those that views use stay. 0 is the default.
	Sets     int
	SetBytes int
	// SmallVectors keeps vectors in memory with a byte for each dimension, a quarter of what they take else. What is nearest by
	// these is compared by what is on disk.
	SmallVectors bool

	fs     vfs.FS // nil: the system's
	memory int    // bytes of a segment; 0: segmentSize
	retry  time.Duration
}

// DB holds the indexes of an instance.
type DB struct {
	o       Options
	writers sync.WaitGroup // of segments

	uses atomic.Int64 // of sets, to tell which was used last

	closing chan struct{}

	mu     sync.Mutex
	disk   *disk
	folder int // number of the disk's
	open   map[string]*Index
	last   uint32
	closed bool
	lock   io.Closer // keeps others out of the directory
}

// ErrInUse is for a directory that another process, or another DB, has open.
var ErrInUse = errors.New("the search index is in use by another process")

// Open opens a directory, which comes into being. What is damaged in it is begun anew. One that is in use is ErrInUse.
func Open(o Options) (*DB, error) {
	if o.fs == nil {
		o.fs = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Sets <= 0 {
		o.Sets = DefaultSets
	}
	if o.SetBytes <= 0 {
		o.SetBytes = DefaultSetBytes
	}
	if o.memory == 0 {
		o.memory, o.retry = segmentSize, retry
	}
	d := &DB{o: o, closing: make(chan struct{})}
	if err := o.fs.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the search index: %w", err)
	}
	lock, err := o.fs.Lock(o.fs.PathJoin(o.Dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err := d.find(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	d.lock = lock
	return d, nil
}

// lockName is the file that says that a directory is in use.
const lockName = "LOCK"

// find opens what there is in the directory, or begins.
func (d *DB) find() error {
	folders, err := d.folders()
	if err != nil {
		return fmt.Errorf("opening the search index: %w", err)
	}
	if len(folders) > 0 {
		d.folder = folders[len(folders)-1]
		err := d.load()
		if err != nil && !isDamage(err) {
			return fmt.Errorf("opening the search index: %w", err)
		}
		if err != nil {
			d.o.Logger.Warn("the search index is damaged; it is made anew", "error", err)
		}
	}
	if d.disk == nil {
		if err := d.begin(); err != nil {
			return err
		}
	}
	if err := d.tidy(); err != nil {
		d.o.Logger.Warn("what a search index has left could not be removed", "error", err)
	}
	return nil
}

func (d *DB) path(folder int) string {
	return d.o.fs.PathJoin(d.o.Dir, fmt.Sprintf("v%d-%06d", format, folder))
}

// folders gives the numbers of those of this format, sorted.
func (d *DB) folders() (out []int, err error) {
	names, err := d.o.fs.List(d.o.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var v, n int
		if _, err := fmt.Sscanf(name, "v%d-%d", &v, &n); err == nil && v == format {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// begin opens the next folder, in which nothing is.
func (d *DB) begin() error {
	path := d.path(d.folder + 1)
	if err := d.o.fs.RemoveAll(path); err != nil {
		return fmt.Errorf("making a search index anew: %w", err)
	}
	k, err := openDisk(d.o, path)
	if err != nil {
		return fmt.Errorf("making a search index: %w", err)
	}
	d.folder++
	d.disk, d.open, d.last = k, map[string]*Index{}, 0
	return nil
}

// tidy removes what is in the directory and not in use.
func (d *DB) tidy() error {
	names, err := d.o.fs.List(d.o.Dir)
	for _, name := range names {
		if path := d.o.fs.PathJoin(d.o.Dir, name); path != d.path(d.folder) && name != lockName {
			err = errors.Join(err, d.o.fs.RemoveAll(path))
		}
	}
	return err
}

// load opens the folder with all indexes in it, so that what is damaged shows now.
func (d *DB) load() (err error) {
	path := d.path(d.folder)
	if _, err := d.o.fs.Stat(d.o.fs.PathJoin(path, markerFile)); err == nil {
		return fmt.Errorf("%w: it was found so before", ErrDamaged)
	}
	k, err := openDisk(d.o, path)
	if err != nil {
		return err
	}
	d.disk, d.open, d.last = k, map[string]*Index{}, 0
	numbers := map[string]uint32{}
	err = k.each(keyCatalog, func(key, v []byte) error {
		if len(v) != 4 {
			return errDamaged
		}
		numbers[string(key)] = binary.BigEndian.Uint32(v)
		d.last = max(d.last, numbers[string(key)])
		return nil
	})
	if err == nil {
		err = d.sweep(numbers)
	}
	for name, number := range numbers {
		if err != nil {
			break
		}
		d.open[name], err = d.read(name, number)
	}
	if err == nil {
		err = k.lostBy()
	}
	if err != nil {
		d.disk = nil
		return errors.Join(err, k.kv.Close())
	}
	return nil
}

// sweep removes what indexes have left that were dropped while views used them.
func (d *DB) sweep(numbers map[string]uint32) error {
	used := []uint32{0}
	for _, n := range numbers {
		used = append(used, n)
	}
	slices.Sort(used)
	b := d.disk.kv.NewBatch()
	for i, n := range used {
		from, to := binary.BigEndian.AppendUint32(nil, n+1), []byte{0xff, 0xff, 0xff, 0xff}
		if i+1 < len(used) {
			to = binary.BigEndian.AppendUint32(nil, used[i+1])
		}
		it, err := d.disk.kv.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			return errors.Join(err, b.Close())
		}
		if it.First() {
			err = b.DeleteRange(from, to, nil)
		}
		if err = errors.Join(err, it.Close()); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(d.disk.commit(b), b.Close())
}

// Flush writes what is in memory, of all indexes, so that it outlasts a crash.
func (d *DB) Flush(ctx context.Context) (err error) {
	var errs []error
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	k, all := d.disk, make([]*Index, 0, len(d.open))
	for _, ix := range d.open {
		all = append(all, ix)
	}
	k.use()
	defer func() { err = errors.Join(err, k.drop()) }()
	d.mu.Unlock()
	for _, ix := range all {
		if err := ix.settle(ctx); err != nil && !errors.Is(err, ErrDropped) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, k.sync(ctx))...)
}

// ErrClosed is for who uses a DB that was closed, or an index of one.
var ErrClosed = errors.New("the search index is closed")

// Close writes what is in memory, and closes all when the last view is closed, for which it waits as long as ctx does.
func (d *DB) Close(ctx context.Context) error {
	err := d.Flush(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.closed = true
	for _, ix := range d.open {
		ix.end(ErrClosed)
	}
	close(d.closing)
	d.writers.Wait()
	return errors.Join(err, d.disk.retire(ctx), d.lock.Close())
}

// Renew begins anew, as Open does when it finds damage: Index gives empty indexes from then on. Those of before, and their views, are
// like ones that have been dropped.
func (d *DB) Renew(ctx context.Context) error {
	d.mu.Lock()
	before, open, err := d.disk, d.open, ErrClosed
	if !d.closed {
		err = d.begin()
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	before.lose(errors.New("it was made anew"))
	for _, ix := range open {
		ix.end(ErrDropped)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.writers.Go(func() {
		defer cancel()
		err := before.retire(ctx)
		if err == nil {
			err = d.o.fs.RemoveAll(before.path)
		}
		if err != nil {
			d.o.Logger.WarnContext(ctx, "a damaged search index could not be removed; it will be the next time that it is opened", "error", err)
		}
	})
	go func() { // views that are left open don't hold up Close
		select {
		case <-d.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return nil
}

// Index opens an index by its name. A new one is empty.
func (d *DB) Index(name string) (*Index, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if ix := d.open[name]; ix != nil {
		return ix, nil
	}
	number := d.last + 1
	b := d.disk.kv.NewBatch()
	err := b.Set(append(bytes.Clone(keyCatalog), name...), binary.BigEndian.AppendUint32(nil, number), nil)
	if err == nil {
		err = d.disk.commit(b)
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, fmt.Errorf("making the search index %s: %w", name, err)
	}
	d.last = number
	ix, err := d.read(name, number)
	if err != nil {
		return nil, fmt.Errorf("opening the search index %s: %w", name, err)
	}
	d.open[name] = ix
	return ix, nil
}

// Names lists the indexes that there are, sorted.
func (d *DB) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]string, 0, len(d.open))
	for name := range d.open {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Drop removes an index; one that is not there is no error. Its name is free at once, and it takes no more changes (ErrDropped); views of
// it go on, and what it has on disk goes when the last of them is closed.
func (d *DB) Drop(name string) error {
	ix, err := d.forget(name)
	if ix == nil || err != nil {
		return err
	}
	if ix.end(ErrDropped) {
		return ix.erase()
	}
	return nil
}

// forget takes an index out of the catalog; nil if it is not in there.
func (d *DB) forget(name string) (*Index, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ix := d.open[name]
	if d.closed {
		return nil, ErrClosed
	}
	if ix == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	b := d.disk.kv.NewBatch()
	err := b.Delete(append(bytes.Clone(keyCatalog), name...), nil)
	if err == nil {
		err = d.disk.commit(b)
	}
	if err := errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	delete(d.open, name)
	return ix, nil
}

// each calls f for what begins with a prefix, with the rest of its key.
func (k *disk) each(prefix []byte, f func(key, value []byte) error) error {
	it, err := k.kv.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: above(prefix)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key()[len(prefix):], it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// above is the least key behind all those with a prefix, which is not all 0xff.
func above(prefix []byte) []byte {
	out := bytes.Clone(prefix)
	for i := len(out) - 1; ; i-- {
		if out[i]++; out[i] != 0 {
			return out
		}
	}
}
