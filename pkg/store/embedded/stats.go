package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// counts is how much a collection holds. It is stored with each write that changes it, as it is then: so what a
// snapshot has of it belongs to the documents that the snapshot has.
type counts struct{ docs, bytes int64 }

func (c *counts) add(o counts) {
	c.docs += o.docs
	c.bytes += o.bytes
}

func (c *counts) encode() []byte {
	out := binary.AppendVarint(make([]byte, 0, 12), c.docs)
	return binary.AppendVarint(out, c.bytes)
}

func decodeCounts(value []byte) (c counts, err error) {
	var n, m int
	c.docs, n = binary.Varint(value)
	if n > 0 {
		c.bytes, m = binary.Varint(value[n:])
	}
	if n <= 0 || m <= 0 || n+m != len(value) {
		return counts{}, errors.New("damaged counters")
	}
	return c, nil
}

// readCounts gives the counters that r has of a collection; one without documents may have none.
func readCounts(r pebble.Reader, coll uint32) (c counts, err error) {
	value, closer, err := r.Get(countsKey(coll))
	if errors.Is(err, pebble.ErrNotFound) {
		return counts{}, nil
	}
	if err != nil {
		return counts{}, internal(err, "read counters")
	}
	defer closeInto(&err, closer.Close)
	c, err = decodeCounts(value)
	return c, internal(err, fmt.Sprintf("read the counters of collection %d", coll))
}

// Stats tells how large the collection is.
func (c *Collection) Stats(ctx context.Context) (_ store.Stats, err error) {
	done, err := c.begin(ctx)
	if err != nil {
		return store.Stats{}, err
	}
	defer done()
	out := store.Stats{IndexBytes: map[string]int64{}}
	st, err := c.state()
	if err != nil {
		return out, err
	}
	defer closeInto(&err, st.close)
	if st.coll == nil {
		return out, nil
	}
	n, err := readCounts(st.snap, st.coll.id)
	if err != nil {
		return out, err
	}
	out.Documents, out.Bytes = n.docs, n.bytes
	if out.DiskBytes, err = c.s.diskBytes(docPrefix(st.coll.id)); err != nil {
		return out, err
	}
	for _, x := range st.indexes.ready {
		if out.IndexBytes[x.def.Name], err = c.s.diskBytes(indexPrefix(st.coll.id, x.id)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// diskBytes estimates the size of the keys that begin with prefix. What has not left memory yet is not in it.
func (s *Store) diskBytes(prefix []byte) (int64, error) {
	n, err := s.db.EstimateDiskUsage(prefix, document.KeyAfter(prefix))
	return int64(n), internal(err, "estimate the size on disk") //nolint:gosec // less than a disk
}

// Contents tells what there is: the names of the databases, sorted, and the number of collections in all of them, those for
// bookkeeping left out.
func (s *Store) Contents() (databases []string, collections int) {
	for _, c := range s.cat.sorted() { // by database
		if store.IsBookkeeping(c.name.collection) {
			continue
		}
		if n := len(databases); n == 0 || databases[n-1] != c.name.database {
			databases = append(databases, c.name.database)
		}
		collections++
	}
	return databases, collections
}
