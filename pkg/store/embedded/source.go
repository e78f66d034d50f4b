package embedded

import (
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// source is the keys and values that a read sees: those of a snapshot, or in a transaction those of a snapshot with
// the transaction's own writes over them.
type source interface {
	// get reads one value, which is valid until closer is closed. It fails with pebble.ErrNotFound.
	get(key []byte) (value []byte, closer io.Closer, err error)
	// iterate walks the keys from lower to before upper.
	iterate(lower, upper []byte) (cursor, error)
}

// cursor is what reads need of a *pebble.Iterator, and means the same. What it hands out is valid until it moves.
type cursor interface {
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Key() []byte
	ValueAndErr() ([]byte, error)
	Error() error
	Close() error
}

// engineSource reads from the engine or a snapshot of it.
type engineSource struct{ r pebble.Reader }

func (s engineSource) get(key []byte) ([]byte, io.Closer, error) { return s.r.Get(key) }

func (s engineSource) iterate(lower, upper []byte) (cursor, error) {
	it, err := s.r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	return it, nil
}
