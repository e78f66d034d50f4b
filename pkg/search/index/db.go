package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// chunkBits says how many records a stored list is about: 2 to the power of it at most.
const chunkBits = 16

// The kinds of keys of an index, each behind the index's number.
const (
	keyState     = 's' // -> next number, position
	keyRecord    = 'r' // id -> number, revision
	keyNumber    = 'n' // number -> id
	keyLengths   = 'l' // field, chunk -> how many terms of which records
	keyPostings  = 'p' // field, term, 0, chunk -> which records how often
	keyPositions = 'x' // likewise -> where in them
	keyVector    = 'v' // field, number -> vector
)

// keyCatalog begins the keys that give the numbers of indexes; those begin above it.
var keyCatalog = []byte{0, 0, 0, 0} //nolint:gochecknoglobals // a constant

// cacheSize is how many bytes of what is on disk are kept in memory.
const cacheSize = 64 << 20

// Options of a DB.
type Options struct {
	Dir    string
	Logger *slog.Logger
}

// DB holds the indexes of an instance.
type DB struct {
	kv     *pebble.DB
	logger *slog.Logger

	writers sync.WaitGroup // of segments

	mu   sync.Mutex
	open map[string]*Index
	last uint32
}

// Open opens a directory, which comes into being. One that is damaged is begun anew.
func Open(o Options) (*DB, error) {
	kv, err := openPebble(o)
	if err != nil && pebble.IsCorruptionError(err) {
		o.Logger.Warn("the search index is damaged; it is made anew", "error", err)
		if err := os.RemoveAll(o.Dir); err != nil {
			return nil, fmt.Errorf("removing a damaged search index: %w", err)
		}
		kv, err = openPebble(o)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the search index: %w", err)
	}
	d := &DB{kv: kv, logger: o.Logger, open: map[string]*Index{}}
	err = d.each(keyCatalog, func(_, v []byte) error {
		if len(v) != 4 {
			return errDamaged
		}
		d.last = max(d.last, binary.BigEndian.Uint32(v))
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}
	return d, nil
}

func openPebble(o Options) (*pebble.DB, error) {
	return pebble.Open(o.Dir, &pebble.Options{
		DisableWAL: true, MemTableSize: 16 << 20, FormatMajorVersion: pebble.FormatNewest,
		Logger: pebbleLog{o.Logger}, CacheSize: cacheSize,
	})
}

// Close writes what is in memory, and closes all.
func (d *DB) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, ix := range d.open {
		errs = append(errs, ix.Flush(ctx))
	}
	d.writers.Wait()
	return errors.Join(append(errs, d.kv.Flush(), d.kv.Close())...)
}

// Index opens an index by its name. A new one is empty.
func (d *DB) Index(name string) (*Index, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ix := d.open[name]; ix != nil {
		return ix, nil
	}
	number, err := d.number(name)
	if err != nil {
		return nil, err
	}
	ix, err := d.read(name, number)
	if err != nil {
		return nil, fmt.Errorf("opening the search index %s: %w", name, err)
	}
	d.open[name] = ix
	return ix, nil
}

// number gives the number of an index, which a new one gets.
func (d *DB) number(name string) (uint32, error) {
	key := append(bytes.Clone(keyCatalog), name...)
	v, closer, err := d.kv.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		d.last++
		return d.last, d.kv.Set(key, binary.BigEndian.AppendUint32(nil, d.last), pebble.NoSync)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if len(v) != 4 {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint32(v), nil
}

// Names lists the indexes that there are.
func (d *DB) Names() (names []string, err error) {
	err = d.each(keyCatalog, func(key, _ []byte) error {
		names = append(names, string(key))
		return nil
	})
	return names, err
}

// Drop removes an index with all that it has. Nobody may use it any more.
func (d *DB) Drop(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, err := d.number(name)
	if err != nil {
		return err
	}
	prefix := binary.BigEndian.AppendUint32(nil, number)
	b := d.kv.NewBatch()
	err = errors.Join(
		b.DeleteRange(prefix, above(prefix), nil),
		b.Delete(append(bytes.Clone(keyCatalog), name...), nil),
	)
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	delete(d.open, name)
	return errors.Join(err, b.Close())
}

// each calls f for what begins with a prefix, with the rest of its key.
func (d *DB) each(prefix []byte, f func(key, value []byte) error) error {
	it, err := d.kv.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: above(prefix)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key()[len(prefix):], it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
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

// pebbleLog passes on what Pebble fails with. What it does otherwise is its own matter.
type pebbleLog struct{ to *slog.Logger }

func (pebbleLog) Infof(string, ...any) {}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.to.Error("the search index", "error", fmt.Sprintf(format, args...))
}

func (l pebbleLog) Fatalf(format string, args ...any) {
	panic("the search index: " + fmt.Sprintf(format, args...))
}
