package mql

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Sort is an order of documents: by the first field, where that is equal by the second, and so on. It is not total
// unless a field with unique values, such as _id, is in it.
type Sort []SortField

// SortField is one key of a Sort.
type SortField struct {
	Path string // dotted
	Desc bool
}

// Compare orders two documents: negative if a sorts before b.
func (s Sort) Compare(a, b bson.Raw) int { return s.CompareKeys(s.Key(a), s.Key(b)) }

// CompareKeys orders two results of Key.
func (s Sort) CompareKeys(a, b []bson.RawValue) int {
	for i, f := range s {
		if c := f.compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (f SortField) compare(a, b bson.RawValue) int {
	if f.Desc {
		a, b = b, a
	}
	return document.Compare(a, b)
}

// Key is what doc is ordered by, one value for each field. A missing field gives null. A list stands for the element
// that sorts first (so the smallest, with Desc the greatest), an empty one for undefined, which sorts before null.
// Fields inside the same list are taken from the same element. The values alias doc.
//
// Of different lists, each gives its own element here; AppendValues refuses such documents, as sorting does.
func (s Sort) Key(doc bson.Raw) []bson.RawValue {
	key, _ := s.appendValues(make([]bson.RawValue, 0, len(s)), doc)
	return key
}

// AppendValues appends to dst what Key gives. It fails with errs.Invalid, code "parallel_sort", where two fields of the
// sort lead to or through different lists of doc, which MongoDB refuses to sort. It does not allocate if dst has room,
// but for lists.
func (s Sort) AppendValues(dst []bson.RawValue, doc bson.Raw) ([]bson.RawValue, error) {
	dst, parallel := s.appendValues(dst, doc)
	if parallel {
		return dst, ErrParallelSort
	}
	return dst, nil
}

// ErrParallelSort is for documents with different lists in two fields of a sort.
var ErrParallelSort = errs.New(errs.Invalid, "parallel_sort",
	"can't sort by two fields that hold different lists in one document: sort by one of them")

func (s Sort) appendValues(dst []bson.RawValue, doc bson.Raw) (_ []bson.RawValue, parallel bool) {
	start := len(dst)
	var lists sortLists
	for i := range s {
		c := sortCursor{at: i, value: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, rest: s[i].Path}
		done := c.descend()
		dst = append(dst, c.value)
		lists.add(c, done)
	}
	return dst, s.spread(dst[start:], &lists)
}

// sortLists is which lists the paths of one object lead to or through, each from the outside inward.
type sortLists struct {
	met      [][][]byte
	open     []sortCursor // those that stop at a list
	parallel bool         // two of met part: they lead into different lists beside each other
}

func (l *sortLists) add(c sortCursor, done bool) {
	met := c.through
	if !done {
		l.open = append(l.open, c)
		met = append(met, c.value.Value)
	}
	if met == nil {
		return
	}
	for _, o := range l.met {
		n := min(len(o), len(met))
		l.parallel = l.parallel || leads(o[:n], met) < n
	}
	l.met = append(l.met, met)
}

// beyond gives what is met behind the list that a cursor is at.
func (l *sortLists) beyond(c *sortCursor) [][][]byte {
	var beyond [][][]byte
	for _, met := range l.met {
		n := len(c.through)
		if len(met) > n+1 && leads(c.through, met) == n && &met[n][0] == &c.value.Value[0] {
			beyond = append(beyond, met[n+1:])
		}
	}
	return beyond
}

// leads says how many lists two paths have in common from the outside; a is not the longer one.
func leads(a, b [][]byte) int {
	for i := range a {
		if &a[i][0] != &b[i][0] {
			return i
		}
	}
	return len(a)
}

// sortCursor is how far the path of one sort field has been followed.
type sortCursor struct {
	at    int // which field of the sort
	value bson.RawValue
	rest  string // of the path; "" at its end
	// through is the lists that indexes of the path have led through, from the outside.
	through [][]byte
}

// descend follows the path up to its end or a list. done is false at a list, of which one element has to be chosen.
func (c *sortCursor) descend() (done bool) {
	for c.rest != "" {
		name, rest, _ := strings.Cut(c.rest, ".")
		switch c.value.Type {
		case bson.TypeEmbeddedDocument:
			c.value, _ = document.Field(c.value.Value, name)
			c.rest = rest
		case bson.TypeArray:
			v, ok := document.Element(c.value.Value, document.ListIndex(name))
			if !ok {
				return false
			}
			c.through = append(c.through, c.value.Value)
			c.value, c.rest = v, rest
			if rest == "" { // an element that is a list is not looked into, but counts as empty if it is
				if v.Type == bson.TypeArray {
					c.through = append(c.through, v.Value)
					if isEmpty(v.Value) {
						c.value = bson.RawValue{Type: bson.TypeUndefined}
					}
				}
				return true
			}
		default:
			c.value, c.rest = bson.RawValue{}, ""
		}
	}
	if c.value.Type == 0 {
		c.value.Type = bson.TypeNull
	}
	return c.value.Type != bson.TypeArray
}

func isEmpty(list []byte) bool {
	it := document.NewIter(list)
	return !it.Next()
}

// spread fills in the fields that lead to lists. Those in one list go through its elements together and keep the
// values of the element that sorts first; different lists don't depend on each other. It tells of such in the elements.
func (s Sort) spread(key []bson.RawValue, lists *sortLists) (parallel bool) {
	parallel = lists.parallel
	for cursors := lists.open; len(cursors) > 0; {
		first := cursors[0]
		var same, others []sortCursor
		for _, c := range cursors {
			if &c.value.Value[0] == &first.value.Value[0] {
				same = append(same, c)
				continue
			}
			others = append(others, c)
		}
		parallel = s.choose(key, first.value, same, lists.beyond(&first)) || parallel
		cursors = others
	}
	return parallel
}

func (s Sort) choose(key []bson.RawValue, list bson.RawValue, cursors []sortCursor, beyond [][][]byte) (parallel bool) {
	try := make([]bson.RawValue, len(s))
	first := true
	for it := document.NewIter(list.Value); it.Next(); first = false {
		parallel = s.enter(try, it.Value(), cursors, beyond) || parallel
		if first || s.before(try, key, cursors) {
			for _, c := range cursors {
				key[c.at] = try[c.at]
			}
		}
	}
	if !first {
		return parallel
	}
	for _, c := range cursors { // an empty list
		key[c.at] = bson.RawValue{Type: bson.TypeNull}
		if c.rest == "" {
			key[c.at].Type = bson.TypeUndefined
		}
	}
	return false
}

// enter gives the values of one element. A list in a list is not entered. beyond is what other paths have met in the list.
func (s Sort) enter(key []bson.RawValue, element bson.RawValue, cursors []sortCursor, beyond [][][]byte) (parallel bool) {
	lists := sortLists{met: slices.Clip(beyond)}
	for _, c := range cursors {
		c.value, c.through = element, nil
		switch {
		case c.rest == "":
			key[c.at] = element
		case element.Type != bson.TypeEmbeddedDocument:
			key[c.at] = bson.RawValue{Type: bson.TypeNull}
		default:
			done := c.descend()
			key[c.at] = c.value
			lists.add(c, done)
		}
	}
	return s.spread(key, &lists)
}

func (s Sort) before(a, b []bson.RawValue, cursors []sortCursor) bool {
	for _, c := range cursors {
		if order := s[c.at].compare(a[c.at], b[c.at]); order != 0 {
			return order < 0
		}
	}
	return false
}
