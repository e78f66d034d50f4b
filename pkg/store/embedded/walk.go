package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// walk goes through the keys of a scan.
type walk struct {
	*plan.Scan

	it     *pebble.Iterator
	at     int // range, counted in the direction of the walk
	inside bool
	near   luck // the next range is a step away
}

// luck is whether steps are tried before seeks, which cost many times as much: what is looked for often is right behind
// the last. misses is how many steps may fail before they are given up for a while.
type luck struct{ misses, rounds int }

const (
	someLuck  = 8
	retryLuck = 64 // seeks, and then a step is tried again
)

// try says whether to step.
func (l *luck) try() bool {
	if l.misses < someLuck {
		return true
	}
	if l.rounds++; l.rounds%retryLuck != 0 {
		return false
	}
	l.misses = someLuck - 1
	return true
}

// note takes up whether a step has hit.
func (l *luck) note(hit bool) {
	if l.misses++; hit {
		l.misses = 0
	}
}

func (w *walk) open(snap *pebble.Snapshot) (err error) {
	if len(w.Ranges) > 0 {
		w.it, err = iterate(snap, w.Ranges[0].Lo, w.Ranges[len(w.Ranges)-1].Hi)
	}
	return err
}

func iterate(snap *pebble.Snapshot, lower, upper []byte) (*pebble.Iterator, error) {
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	return it, internal(err, "open an iterator")
}

func (w *walk) close() error {
	if w.it == nil {
		return nil
	}
	return internal(w.it.Close(), "close an iterator")
}

// next moves to the next key, which then is it.Key().
func (w *walk) next() (ok bool, err error) {
	switch {
	case w.it == nil || w.at == len(w.Ranges):
		return false, nil
	case !w.inside:
		ok = w.enter()
	case w.single():
		if w.at++; w.at == len(w.Ranges) {
			return false, nil
		}
		ok = w.enterNext()
	default:
		ok = w.step()
	}
	return w.settle(ok)
}

// seek moves to the first key that is not before key. It is for walks that are not backwards.
func (w *walk) seek(key []byte) (ok bool, err error) { return w.settle(w.it.SeekGE(key)) }

// settle sees that the key is in a range, if there is one.
func (w *walk) settle(ok bool) (bool, error) {
	// The iterator itself keeps to the first and the last end.
	for ok && len(w.Ranges) > 1 && w.passed() {
		if w.at++; w.at == len(w.Ranges) {
			return false, nil
		}
		if !w.reached() {
			ok = w.enter()
		}
	}
	w.inside = ok
	if !ok {
		w.at = len(w.Ranges)
		return false, internal(w.it.Error(), "read keys")
	}
	return true, nil
}

// count counts the keys that are left, up to limit (0: all), of a walk that is not backwards.
func (w *walk) count(ctx context.Context, limit int64) (n int64, err error) {
	ok, err := w.next()
	for ok && err == nil {
		if n++; n == limit {
			return n, nil
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return 0, store.Ended(ctx)
		}
		if w.at < len(w.Ranges)-1 {
			ok, err = w.next()
			continue
		}
		if ok = w.it.Next(); !ok { // it keeps to the end of the last range itself
			err = internal(w.it.Error(), "read keys")
		}
	}
	return n, err
}

// single says whether the range is one document's, which has been given: the next key is in another range.
func (w *walk) single() bool {
	r := w.current()
	return w.Index == nil && r.Fixed > len(w.Prefix) && r.Fixed == len(r.Lo)
}

func (w *walk) current() *plan.Range {
	if w.Reverse {
		return &w.Ranges[len(w.Ranges)-1-w.at]
	}
	return &w.Ranges[w.at]
}

func (w *walk) enter() bool {
	if w.Reverse {
		return w.it.SeekLT(w.current().Hi)
	}
	return w.it.SeekGE(w.current().Lo)
}

// enterNext is enter for a range that may begin with the key behind the current one.
func (w *walk) enterNext() bool {
	if !w.near.try() {
		return w.enter()
	}
	ok := w.step()
	if !ok { // nor is there anything behind
		return false
	}
	hit := w.reached()
	w.near.note(hit)
	if !hit {
		return w.enter()
	}
	return true
}

func (w *walk) step() bool {
	if w.Reverse {
		return w.it.Prev()
	}
	return w.it.Next()
}

// passed says whether the key lies behind the current range.
func (w *walk) passed() bool {
	if w.Reverse {
		return bytes.Compare(w.it.Key(), w.current().Lo) < 0
	}
	return bytes.Compare(w.it.Key(), w.current().Hi) >= 0
}

// reached says whether the key lies in or behind the current range.
func (w *walk) reached() bool {
	if w.Reverse {
		return bytes.Compare(w.it.Key(), w.current().Hi) < 0
	}
	return bytes.Compare(w.it.Key(), w.current().Lo) >= 0
}

// id gives the key of the _id that the current key is for.
func (w *walk) id(value []byte) ([]byte, error) {
	if w.Index == nil {
		return w.it.Key()[len(w.Prefix):], nil
	}
	return entryID(w.it.Key(), value)
}

// entryID gives the key of the _id at the end of the key of an index entry.
func entryID(key, value []byte) ([]byte, error) {
	n, size := binary.Uvarint(value)
	if size <= 0 || n > uint64(len(key)) {
		return nil, internal(errors.New("damaged value"), "read an index entry")
	}
	return key[len(key)-int(n):], nil //nolint:gosec // bounded above
}

// fetcher reads documents by the key of their _id. Often they come in the order of their keys, if with gaps: the next
// one is then only a step away.
type fetcher struct {
	it    *pebble.Iterator
	key   []byte // prefix, and the last _id
	coll  uint32
	valid bool
	near  luck
}

// get gives the document, which is valid until the next call. name is of the index that led here.
func (f *fetcher) get(snap *pebble.Snapshot, id []byte, name string) (value []byte, err error) {
	if f.it == nil {
		f.key = docPrefix(f.coll)
		if f.it, err = iterate(snap, f.key, document.KeyAfter(f.key)); err != nil {
			return nil, err
		}
	}
	f.key = append(f.key[:5], id...)
	if !f.step() {
		if f.valid = f.it.SeekGE(f.key); !f.valid || !bytes.Equal(f.it.Key(), f.key) {
			err := errors.Join(f.it.Error(), pebble.ErrNotFound)
			return nil, internal(err, fmt.Sprintf("read the document of an entry of index %s", name))
		}
	}
	value, err = f.it.ValueAndErr()
	return value, internal(err, "read a document")
}

// step tries whether the document is the one behind the last.
func (f *fetcher) step() bool {
	if !f.valid || bytes.Compare(f.key, f.it.Key()) <= 0 {
		return false
	}
	if !f.near.try() {
		return false
	}
	f.valid = f.it.Next()
	hit := f.valid && bytes.Equal(f.it.Key(), f.key)
	f.near.note(hit)
	return hit
}

func (f *fetcher) close() error {
	if f.it == nil {
		return nil
	}
	return internal(f.it.Close(), "close an iterator")
}
