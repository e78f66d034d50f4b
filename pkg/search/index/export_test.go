package index

import "github.com/cockroachdb/pebble/v2/vfs"

// OpenOn is Open on another file system.
func OpenOn(o Options, fs vfs.FS) (*DB, error) {
	o.fs = fs
	return Open(o)
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
