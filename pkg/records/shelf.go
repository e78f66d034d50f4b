package records

import (
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
)

// shelf is what one lookup has found for the records of a page. It is the document.Inlay that shows it in them.
type shelf struct {
	lookup *query.Lookup
	values int      // how many values of the page refer to records, equal ones counted, too
	items  []Record // in the order of the lookup
	json   [][]byte // as they go out

	// known numbers the different values of the page, by their document.AppendKey. first leads from such a number to the
	// place in links of the first record that the value refers to (-1: none), and links from there to the others, in their order.
	known  map[string]int
	first  []int
	links  []link
	shared bool // several records have one value

	key    []byte // for one value at a time
	places []int
}

// link is one record of those that have a value; next is the place of the next one in shelf.links, -1 at the end.
type link struct{ record, next int }

// index notes which records have which values of the page.
func (s *shelf) index(items []Record) {
	s.first = make([]int, len(s.known))
	for i := range s.first {
		s.first[i] = -1
	}
	s.links = make([]link, 0, len(items))
	for i, item := range slices.Backward(items) {
		eachValue(item.raw, s.lookup.Foreign, func(v bson.RawValue) {
			if n, ok := s.number(v); ok {
				s.shared = s.shared || s.first[n] >= 0
				s.links = append(s.links, link{i, s.first[n]})
				s.first[n] = len(s.links) - 1
			}
		})
	}
}

// number gives the number of a value of the page.
func (s *shelf) number(v bson.RawValue) (n int, ok bool) {
	s.key = document.AppendKey(s.key[:0], v, false)
	n, ok = s.known[string(s.key)]
	return n, ok
}

// gather numbers the different values that the lookup's path has in records, and gives them in that order.
func (s *shelf) gather(items []Record) (values []bson.RawValue, err error) {
	s.known = make(map[string]int, len(items))
	for i := range items {
		eachValue(items[i].raw, s.lookup.Values, func(v bson.RawValue) {
			s.values++
			if _, ok := s.number(v); !ok && len(values) <= maxNear {
				s.known[string(s.key)] = len(values)
				values = append(values, v)
			}
		})
	}
	if len(values) > maxNear {
		return nil, errs.New(errs.Invalid, "query_limit",
			"lookup: the records have more than %d different values of %s: ask for fewer records", maxNear, s.lookup.Values)
	}
	return values, nil
}

// eachValue calls fn for the values of a path that can refer to a record.
func eachValue(doc bson.Raw, path string, fn func(v bson.RawValue)) {
	_ = mql.EachValue(doc, path, func(v bson.RawValue) error { // which fails only if fn does
		if joins(v) {
			fn(v)
		}
		return nil
	})
}

// fill takes the records, which are as they go out.
func (s *shelf) fill(items []Record) {
	size := 0
	for i := range items {
		size += len(items[i].raw)
	}
	s.items, s.json = items, make([][]byte, len(items))
	all := make([]byte, 0, size+size/4)
	for i := range items {
		start := len(all)
		all = items[i].AppendJSON(all)
		s.json[i] = all[start:len(all):len(all)]
	}
}

// of gives the place in links of the first record that has a value, -1 for none.
func (s *shelf) of(v bson.RawValue) int {
	if !joins(v) {
		return -1
	}
	if n, ok := s.number(v); ok {
		return s.first[n]
	}
	return -1
}

// found gives the records that stand for a value, or with as a member for a record. A single value that leads nowhere has
// none; one that can't refer to a record stays. The result is good until the next call.
func (s *shelf) found(v bson.RawValue) (places []int, list, stays bool) {
	s.places = s.places[:0]
	switch {
	case s.lookup.As != "":
		eachValue(v.Value, s.lookup.Values, s.addAll)
		return s.listed(), true, false
	case v.Type == bson.TypeArray:
		for it := document.NewIter(v.Value); it.Next(); {
			if s.lookup.Listed {
				s.addAll(it.Value())
			} else if at := s.of(it.Value()); at >= 0 {
				s.places = append(s.places, s.links[at].record)
			}
		}
	case s.lookup.Listed:
		s.addAll(v)
	case !joins(v):
		return nil, false, true
	default:
		if at := s.of(v); at >= 0 {
			s.places = append(s.places, s.links[at].record)
		}
		return s.places, false, false
	}
	if s.lookup.Listed {
		return s.listed(), true, false
	}
	return s.places, true, false
}

func (s *shelf) addAll(v bson.RawValue) {
	for at := s.of(v); at >= 0; at = s.links[at].next {
		s.places = append(s.places, s.links[at].record)
	}
}

// listed gives the records that were added, each once and in the order of the lookup.
func (s *shelf) listed() []int {
	slices.Sort(s.places)
	s.places = slices.Compact(s.places)
	if limit := s.lookup.Limit; limit > 0 && int64(len(s.places)) > limit {
		s.places = s.places[:limit]
	}
	return s.places
}

// AppendJSON appends what was found for a value.
func (s *shelf) AppendJSON(dst []byte, v bson.RawValue) []byte {
	places, list, stays := s.found(v)
	switch {
	case stays:
		return document.AppendJSONValue(dst, v, nil)
	case list:
		dst = append(dst, '[')
		for i, place := range places {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, s.json[place]...)
		}
		return append(dst, ']')
	case len(places) == 0:
		return append(dst, "null"...)
	}
	return append(dst, s.json[places[0]]...)
}

// AppendElement appends what was found for a value, for scripts.
func (s *shelf) AppendElement(dst []byte, name string, v bson.RawValue) []byte {
	places, list, stays := s.found(v)
	switch {
	case stays:
		return document.AppendElement(dst, name, v)
	case list:
		value := []byte{0, 0, 0, 0}
		for i, place := range places {
			value = s.appendRecord(value, strconv.Itoa(i), place)
		}
		return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeArray, Value: document.Close(value, 0)})
	case len(places) == 0:
		return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeNull})
	}
	return s.appendRecord(dst, name, places[0])
}

func (s *shelf) appendRecord(dst []byte, name string, place int) []byte {
	doc := withPublicID(s.items[place].visible())
	return document.AppendElement(dst, name, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
}

// most is how many bytes what was found adds to records at most, by the number of values that they have.
func (s *shelf) most(values int) int {
	longest, chain := 0, 1
	for _, text := range s.json {
		longest = max(longest, len(text))
	}
	if s.shared {
		chain = len(s.json)
	}
	return values * longest * chain
}

// size is how many bytes what was found adds to a record.
func (s *shelf) size(doc bson.Raw) int {
	n := 0
	add := func(v bson.RawValue) {
		places, _, _ := s.found(v)
		for _, place := range places {
			n += len(s.json[place])
		}
	}
	if s.lookup.As != "" {
		add(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
	} else {
		eachValue(doc, s.lookup.Values, add)
	}
	return n
}

var errJoinedTooLarge = errs.New(errs.Invalid, "query_limit",
	"lookup: what is found makes the page larger than 32 MiB: ask for fewer records, or select less of what is looked up")

// inlay has records go out with what was found in them.
func inlay(items []Record, found []*shelf) error {
	left := maxPageSize
	places := make(map[string]document.Inlay, len(found))
	var members []document.Extra
	for _, s := range found {
		if s.lookup.As != "" {
			members = append(members, document.Extra{Name: s.lookup.As, With: s})
		} else {
			places[s.lookup.Values] = s
		}
		if most := s.most(s.values); most <= left { // as good as always
			left -= most
			continue
		}
		for i := range items {
			if left -= s.size(items[i].raw); left < 0 {
				return errJoinedTooLarge
			}
		}
	}
	views := map[*document.View]*document.View{} // few are different
	hidden := map[*document.PathSet]*document.PathSet{}
	for i := range items {
		rec := &items[i]
		if views[rec.view] == nil {
			views[rec.view] = rec.view.With(places, members)
		}
		rec.view = views[rec.view]
		if rec.hidden == nil || len(members) == 0 {
			continue
		}
		if hidden[rec.hidden] == nil {
			hidden[rec.hidden] = declared(rec.hidden, members)
		}
		rec.hidden = hidden[rec.hidden]
	}
	return nil
}

// declared is what is hidden from a caller without the members that lookups add, where every name that is not declared is
// hidden: a hook may give them back.
func declared(hidden *document.PathSet, members []document.Extra) *document.PathSet {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	return hidden.Declared(names...)
}
