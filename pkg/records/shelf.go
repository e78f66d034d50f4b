package records

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
)

// shelf is what one lookup has found for the records of a page.
type shelf struct {
	lookup  *query.Lookup
	records [][]byte // as they go out, in the order of the lookup

	// links lead from a value (by its document.AppendKey) to the records that it refers to, in their order.
	first map[string]int
	links []link

	key []byte // for one value at a time
}

// link is one record of those that have a value; next is the place of the next one in shelf.links, -1 at the end.
type link struct{ record, next int }

// index notes which records have which values.
func (s *shelf) index(items []Record) error {
	s.first = make(map[string]int, len(items))
	for i, item := range slices.Backward(items) {
		err := mql.EachValue(item.raw, s.lookup.Foreign, func(v bson.RawValue) error {
			if !joins(v) {
				return nil
			}
			s.key = document.AppendKey(s.key[:0], v, false)
			next, ok := s.first[string(s.key)]
			if !ok {
				next = -1
			}
			s.links = append(s.links, link{i, next})
			s.first[string(s.key)] = len(s.links) - 1
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// of gives the link to the first record that has a value, -1 for none.
func (s *shelf) of(v bson.RawValue) int {
	if !joins(v) {
		return -1
	}
	s.key = document.AppendKey(s.key[:0], v, false)
	if at, ok := s.first[string(s.key)]; ok {
		return at
	}
	return -1
}

// appendAll adds the places of the records that have a value.
func (s *shelf) appendAll(dst []int, v bson.RawValue) []int {
	for at := s.of(v); at >= 0; at = s.links[at].next {
		dst = append(dst, s.links[at].record)
	}
	return dst
}

// branch is a step on the paths of values that what was found takes the place of.
type branch struct {
	shelf *shelf // of a path that ends here
	kids  map[string]*branch
}

func (b *branch) add(path string, s *shelf) {
	for name := range strings.SplitSeq(path, ".") {
		if b.kids == nil {
			b.kids = map[string]*branch{}
		}
		kid := b.kids[name]
		if kid == nil {
			kid = &branch{}
			b.kids[name] = kid
		}
		b = kid
	}
	b.shelf = s
}

// joinFound makes each record one that has what was found in it.
func joinFound(items []Record, found []*shelf) error {
	j := joiner{left: maxPageSize}
	var root branch
	var members []*shelf
	for _, s := range found {
		if s.lookup.As != "" {
			members = append(members, s)
		} else {
			root.add(s.lookup.Values, s)
		}
	}
	hidden := showing{}
	for i := range items {
		rec := &items[i]
		out := j.appendRecord(make([]byte, 0, 2*len(rec.raw)), rec, &root, members)
		if j.left < 0 {
			return errJoinedTooLarge
		}
		rec.raw, rec.view, rec.hidden = out, nil, hidden.of(rec.hidden, members)
	}
	return nil
}

// joiner counts what it adds to records. When there is no more left it adds nothing, and what it has made is of no use.
type joiner struct {
	left   int // bytes
	places []int
}

var errJoinedTooLarge = errs.New(errs.Invalid, "query_limit",
	"lookup: what is found makes the page larger than 32 MiB: ask for fewer records, or select less of what is looked up")

func (j *joiner) appendRecord(dst []byte, rec *Record, root *branch, members []*shelf) []byte {
	dst = append(dst, 0, 0, 0, 0)
	for it := document.NewIter(rec.visible()); it.Next(); {
		taken := slices.ContainsFunc(members, func(s *shelf) bool { return s.lookup.As == string(it.Key()) })
		if !taken {
			dst = j.appendMember(dst, it.Key(), it.Value(), root)
		}
	}
	for _, s := range members {
		j.places = j.places[:0]
		_ = mql.EachValue(rec.raw, s.lookup.Values, func(v bson.RawValue) error { // this never fails
			j.places = s.appendAll(j.places, v)
			return nil
		})
		dst = j.appendFound(dst, s.lookup.As, s)
	}
	return document.Close(dst, 0)
}

// appendMember appends a member of an object, with what was found in the place of its values.
func (j *joiner) appendMember(dst, name []byte, v bson.RawValue, b *branch) []byte {
	kid := b.kids[string(name)]
	switch {
	case kid == nil:
		return document.AppendElement(dst, name, v)
	case kid.shelf != nil:
		return j.appendInPlace(dst, name, v, kid.shelf)
	case v.Type == bson.TypeEmbeddedDocument:
		dst = head(dst, name, v.Type)
		start := len(dst) - 4
		for it := document.NewIter(v.Value); it.Next(); {
			dst = j.appendMember(dst, it.Key(), it.Value(), kid)
		}
		return document.Close(dst, start)
	case v.Type == bson.TypeArray:
		dst = head(dst, name, v.Type)
		start := len(dst) - 4
		for it := document.NewIter(v.Value); it.Next(); {
			dst = j.appendElement(dst, it.Key(), it.Value(), kid)
		}
		return document.Close(dst, start)
	default:
		return document.AppendElement(dst, name, v)
	}
}

// appendElement appends an element of a list of objects.
func (j *joiner) appendElement(dst, index []byte, v bson.RawValue, b *branch) []byte {
	if v.Type != bson.TypeEmbeddedDocument {
		return document.AppendElement(dst, index, v)
	}
	dst = head(dst, index, v.Type)
	start := len(dst) - 4
	for it := document.NewIter(v.Value); it.Next(); {
		dst = j.appendMember(dst, it.Key(), it.Value(), b)
	}
	return document.Close(dst, start)
}

// head begins an object or a list; the four bytes at its end are for the length.
func head(dst, name []byte, t bson.Type) []byte {
	dst = append(append(append(dst, byte(t)), name...), 0)
	return append(dst, 0, 0, 0, 0)
}

// appendInPlace appends what was found for a value, or for those of a list, in their order. Of a single value that leads
// nowhere that is null, of a list it is left out. What can't refer to a record stays as it is.
func (j *joiner) appendInPlace(dst, name []byte, v bson.RawValue, s *shelf) []byte {
	if s.lookup.Listed {
		j.places = j.places[:0]
		if v.Type != bson.TypeArray {
			j.places = s.appendAll(j.places, v)
		} else {
			for it := document.NewIter(v.Value); it.Next(); {
				j.places = s.appendAll(j.places, it.Value())
			}
		}
		return j.appendFound(dst, string(name), s)
	}
	switch {
	case v.Type == bson.TypeArray:
		dst = head(dst, name, v.Type)
		start, n := len(dst)-4, 0
		for it := document.NewIter(v.Value); it.Next(); {
			e := it.Value()
			at := s.of(e)
			switch {
			case at >= 0:
				dst = j.appendFoundOne(dst, strconv.AppendInt(nil, int64(n), 10), s, s.links[at].record)
			case joins(e), e.Type == bson.TypeNull:
				continue
			default:
				dst = document.AppendElement(dst, strconv.AppendInt(nil, int64(n), 10), e)
			}
			n++
		}
		return document.Close(dst, start)
	case !joins(v):
		return document.AppendElement(dst, name, v)
	}
	if at := s.of(v); at >= 0 {
		return j.appendFoundOne(dst, name, s, s.links[at].record)
	}
	return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeNull})
}

func (j *joiner) appendFoundOne(dst, name []byte, s *shelf, place int) []byte {
	doc := s.records[place]
	if j.left -= len(doc); j.left < 0 {
		return dst
	}
	return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
}

// appendFound appends a member with the list of the records at j.places, each once and in the order of the lookup.
func (j *joiner) appendFound(dst []byte, name string, s *shelf) []byte {
	slices.Sort(j.places)
	places := slices.Compact(j.places)
	if limit := s.lookup.Limit; limit > 0 && int64(len(places)) > limit {
		places = places[:limit]
	}
	dst = head(dst, []byte(name), bson.TypeArray)
	start := len(dst) - 4
	for i, place := range places {
		dst = j.appendFoundOne(dst, strconv.AppendInt(nil, int64(i), 10), s, place)
	}
	return document.Close(dst, start)
}

// showing gives what is hidden from a caller without the members that lookups have added, where every name that is not
// declared is hidden: a hook may give them back.
type showing map[*document.PathSet]*document.PathSet

func (known showing) of(hidden *document.PathSet, members []*shelf) *document.PathSet {
	if len(members) == 0 || hidden == nil {
		return hidden
	}
	out, ok := known[hidden]
	if !ok {
		names := make([]string, len(members))
		for i, s := range members {
			names[i] = s.lookup.As
		}
		out = hidden.Declared(names...)
		known[hidden] = out
	}
	return out
}
