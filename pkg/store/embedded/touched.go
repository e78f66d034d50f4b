package embedded

import "hash/maphash"

// touched tells of most documents that nobody has written to them since they were read, so that they need not be read
// again under the commit mutex. It keeps the number of the last commit for each of many groups of documents. The commit
// mutex guards it.
type touched struct {
	seed maphash.Seed
	last [touchedGroups]uint64
}

const touchedGroups = 1 << 13

func (t *touched) group(coll uint32, id []byte) *uint64 {
	return &t.last[(maphash.Bytes(t.seed, id)^uint64(coll))%touchedGroups]
}

// seen is when a document was read: in which collection, and after which commit at least. The zero value is for one that
// was not read, or not from what is committed.
type seen struct {
	coll   uint32
	commit uint64
}

// seen is for documents that are read from now on.
func (s *Store) seen(coll *collection) seen {
	if coll == nil {
		return seen{}
	}
	return seen{coll: coll.id, commit: s.applied.Load()}
}

// touch notes that the commit to come writes to a document. If it is given up, that does no harm.
func (w *writer) touch(id []byte) {
	*w.s.touched.group(w.coll.id, id) = w.s.applied.Load() + 1
}

// untouched says for certain that nobody has written to a document since it was seen; false may be wrong.
func (w *writer) untouched(id []byte, since seen) bool {
	return w.coll != nil && since.coll == w.coll.id && *w.s.touched.group(since.coll, id) <= since.commit
}
