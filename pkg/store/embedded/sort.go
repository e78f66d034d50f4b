package embedded

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxSortMemory = 100 << 20 // bounds the documents held to sort them, as MongoDB does
	sortBlock     = 256 << 10 // bytes that are asked for at once to hold them
)

// sortItem is a document with what it is ordered by, as bytes.
type sortItem struct{ key, doc []byte }

// sortAll holds the matches, or with a limit only the first of them, and passes them on in order.
func (r *read) sortAll(fn func(doc bson.Raw) error) error {
	s := sorter{read: r}
	if r.query.Limit > 0 {
		s.keep = int(min(atMost(r.skip, r.query.Limit), 1<<40))
	}
	if err := s.collect(); err != nil {
		return err
	}
	if err := s.sort(); err != nil {
		return err
	}
	for _, item := range s.items[min(int(r.skip), len(s.items)):] {
		if r.ctx.Err() != nil {
			return store.Ended(r.ctx)
		}
		if err := r.pass(item.doc, fn); err != nil {
			return err
		}
	}
	return nil
}

// sorter holds documents to sort them.
type sorter struct {
	*read
	keep  int // the first of all; 0: all
	items []sortItem
	last  heap[int] // of items, the last in order on top
	size  int
	block []byte // what is left of it
}

// collect takes up the matches, or the first of them, in no order.
func (s *sorter) collect() error {
	s.last.less = func(a, b int) bool { return bytes.Compare(s.items[a].key, s.items[b].key) > 0 }
	position := s.appendKey(nil, s.query.After)
	for {
		doc, ok, err := s.next()
		if err != nil || !ok {
			return err
		}
		if s.key, err = s.sortKey(s.key[:0], doc); err != nil {
			return err
		}
		if len(s.query.After) > 0 && bytes.Compare(s.key, position) <= 0 {
			continue
		}
		if s.keep == 0 {
			s.hold(doc)
		} else {
			s.holdFirst(doc)
		}
		if int64(s.size) > s.sortMemory {
			return errSortMemory
		}
	}
}

func (s *sorter) hold(doc bson.Raw) {
	s.size += len(s.key) + len(doc) + 48 // what an item takes itself
	s.items = append(s.items, sortItem{key: s.copy(s.key), doc: s.copy(doc)})
}

// copy copies b into a block.
func (s *sorter) copy(b []byte) []byte {
	if len(b) > len(s.block) {
		if len(b) > sortBlock/4 {
			return bytes.Clone(b)
		}
		s.block = make([]byte, sortBlock)
	}
	n := copy(s.block, b)
	out := s.block[:n:n]
	s.block = s.block[n:]
	return out
}

// holdFirst holds a document in place of the last one held, if it is before that.
func (s *sorter) holdFirst(doc bson.Raw) {
	if len(s.items) < s.keep {
		s.size += len(s.key) + len(doc)
		s.items = append(s.items, sortItem{key: bytes.Clone(s.key), doc: bytes.Clone(doc)})
		s.last.push(len(s.items) - 1)
		return
	}
	item := &s.items[s.last.top()]
	if bytes.Compare(s.key, item.key) >= 0 {
		return
	}
	s.size += len(s.key) + len(doc) - len(item.key) - len(item.doc)
	item.key, item.doc = append(item.key[:0], s.key...), append(item.doc[:0], doc...)
	if cap(item.doc) > 2*len(doc)+1024 { // what is held is counted by its length
		item.doc = bytes.Clone(doc)
	}
	if cap(item.key) > 2*len(s.key)+1024 {
		item.key = bytes.Clone(s.key)
	}
	s.last.fix()
}

// sort sorts what is held. It ends early, with nothing in order, when ctx does.
func (s *sorter) sort() error {
	compared, ended := 0, false
	slices.SortFunc(s.items, func(a, b sortItem) int {
		if compared++; compared%(32*checkEvery) == 0 && s.ctx.Err() != nil {
			ended = true
		}
		if ended {
			return 0
		}
		return bytes.Compare(a.key, b.key)
	})
	if ended {
		return store.Ended(s.ctx)
	}
	return nil
}

// sortKey appends the values that a document is sorted by, as bytes of the same order.
func (r *read) sortKey(dst []byte, doc bson.Raw) (_ []byte, err error) {
	r.values, err = r.query.Sort.AppendValues(r.values[:0], doc)
	return r.appendKey(dst, r.values), err
}

func (r *read) appendKey(dst []byte, values []bson.RawValue) []byte {
	for i, v := range values {
		dst = document.AppendKey(dst, v, r.query.Sort[i].Desc)
	}
	return dst
}
