package index

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenOn is Open on another file system.
func OpenOn(o Options, fs vfs.FS) (*DB, error) {
	o.fs = fs
	return Open(o)
}

// OpenSmall is OpenOn with so little memory that all is written soon.
func OpenSmall(o Options, fs vfs.FS) (*DB, error) {
	o.memory, o.retry = 64<<10, time.Millisecond
	return OpenOn(o, fs)
}

// Keys is how many keys are on disk, but for the catalog.
func (d *DB) Keys() (n int, err error) {
	for prefix := range 4 {
		err = d.disk.each([]byte{0, 0, 0, byte(prefix + 1)}, func(_, _ []byte) error {
			n++
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Products gives what the products of vectors are by the processor's own instructions, if it has them, and without.
func Products(a, b []float32, c []int16, d []int8) (floats [2]float32, small [2]int32) {
	return [2]float32{dot(a, b), dotGo(a, b)}, [2]int32{dotSmall(c, d), dotSmallGo(c, d)}
}

// Rows is how many vectors of a field are in memory.
func Rows(ix *Index, f Field) int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return len(ix.vectors[f].numbers)
}

// Value gives a value of a record.
func (v *View) Value(f Field, number uint32) (value int64, ok bool) {
	return valueOf(v.values[f], number)
}

// Forget lets go of a set. Views that use it go on.
func (ix *Index) Forget(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if set := ix.sets[name]; set != nil {
		ix.forget(set)
	}
}

// Nearest gives the records whose vectors of a field are nearest to one of length 1.
func (v *View) Nearest(ctx context.Context, f Field, to []float32, limit int) ([]Hit, error) {
	m, err := v.Near(ctx, Near{Fields: []Field{f}, To: to})
	if err != nil {
		return nil, err
	}
	defer m.Release()
	return m.Top(limit), nil
}
