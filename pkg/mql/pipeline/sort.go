package pipeline

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// sorting is $sort.
type sorting struct {
	by   mql.Sort
	most int64 // documents that are needed; 0: all
}

const maxSortKeys = 32

func compileSort(_ *compiler, name string, spec any) (stage, any, error) {
	by, raw, err := parseSort(name, spec)
	return &sorting{by: by}, raw, err
}

func parseSort(name string, spec any) (mql.Sort, bson.D, error) {
	d, ok := asObject(spec)
	switch {
	case !ok:
		return nil, nil, bad(15973, "%s needs an object of fields, each with 1 or -1", name)
	case len(d) == 0:
		return nil, nil, bad(15976, "%s needs a field at least", name)
	case len(d) > maxSortKeys:
		return nil, nil, bad(13103, "%s takes %d fields at most", name, maxSortKeys)
	}
	var by mql.Sort
	var raw bson.D
	for _, e := range d {
		if _, isObject := asObject(e.Value); isObject {
			return nil, nil, bad(17312, "%s: %s has to be 1 or -1", name, document.Readable(e.Key))
		}
		n, ok := truncated(e.Value)
		switch {
		case !ok:
			return nil, nil, bad(15974, "%s: %s has to be 1 or -1", name, document.Readable(e.Key))
		case n != 1 && n != -1:
			return nil, nil, bad(15975, "%s: %s has to be 1 or -1", name, document.Readable(e.Key))
		}
		if err := checkPath(e.Key); err != nil {
			return nil, nil, err
		}
		f := mql.SortField{Path: e.Key, Desc: n < 0}
		by, raw = append(by, f), append(raw, bson.E{Key: e.Key, Value: int32(n)}) //nolint:gosec // 1 or -1
	}
	return by, raw, nil
}

func (s *sorting) lead(q *Query) (stage, bool) { //nolint:unparam // as leading wants it
	if len(q.Sort) > 0 || q.Skip > 0 || q.Limit > 0 || s.twice() {
		return nil, false
	}
	q.Sort = s.by
	return nil, true
}

// twice says whether a path comes twice: a store may not take that.
func (s *sorting) twice() bool {
	for i, f := range s.by {
		if slices.ContainsFunc(s.by[:i], func(o mql.SortField) bool { return o.Path == f.Path }) {
			return true
		}
	}
	return false
}

func (s *sorting) open(r *run, next sink) sink { return &sorted{sorting: s, r: r, next: next} }

// sorted holds what comes until there is no more. With a limit it keeps up to twice as many documents.
type sorted struct {
	*sorting
	r     *run
	next  sink
	docs  []sortEntry
	bytes int
}

type sortEntry struct {
	doc bson.Raw
	key []bson.RawValue
}

func (e sortEntry) size() int { return len(e.doc) + 48 + 40*len(e.key) }

func (s *sorted) push(doc bson.Raw) error {
	e := sortEntry{doc: bytes.Clone(doc)}
	var err error
	if e.key, err = s.by.AppendValues(make([]bson.RawValue, 0, len(s.by)), e.doc); err != nil {
		return coded(err)
	}
	s.docs = append(s.docs, e)
	s.bytes += e.size()
	if s.most > 0 && int64(len(s.docs)) > 2*s.most && 2*s.most > 0 {
		s.cut()
	}
	return s.r.hold(e.size())
}

func (s *sorted) sort() {
	slices.SortStableFunc(s.docs, func(a, b sortEntry) int { return s.by.CompareKeys(a.key, b.key) })
}

// cut lets go of what is not needed.
func (s *sorted) cut() {
	s.sort()
	for i := s.most; i < int64(len(s.docs)); i++ {
		n := s.docs[i].size()
		s.bytes -= n
		s.r.release(n)
		s.docs[i] = sortEntry{}
	}
	s.docs = s.docs[:s.most]
}

func (s *sorted) end() error {
	s.sort()
	if err := giveAll(s.docs, func(e sortEntry) error { return s.r.give(s.next, e.doc) }); err != nil {
		return err
	}
	s.docs = nil
	s.r.release(s.bytes)
	return s.next.end()
}
