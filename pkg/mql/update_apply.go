package mql

import (
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// maxPadding is how many nulls an update may put into a list to reach an index: a MongoDB server's limit.
const maxPadding = 1_500_000

// updateOp is one operator at the end of one path.
type updateOp struct {
	name    string          // "$set"
	path    string          // as given, with its positions
	segs    []string        // of what it is stored as
	below   *document.Names // what fields in its values are stored as
	operand bson.RawValue   // as a server is sent it
	change  change
}

// change is what an operator does to one value.
type change interface {
	// apply appends what becomes of old to s.out. old.Type is 0 where there is no value. It must leave s.out alone
	// unless it gives written.
	apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error)
}

// verdict is what came of a change.
type verdict uint8

const (
	kept    verdict = iota // the value stays, or stays missing
	written                // there is a new one in s.out
	removed                // the value goes
)

func (op *updateOp) fail(format string, args ...any) error {
	return failed("update: %s %s: %s", op.name, op.path, fmt.Sprintf(format, args...))
}

// updating is one run of Apply.
type updating struct {
	Applying
	doc       bson.Raw
	out       []byte
	changed   bool
	changedID bool
	located   bool   // at is known
	at        string // name of the element that $ stands for; "" if there is none
	scratch   []byte // the document that an array filter looks at
	renames   [][]string
	found     *found // for those of many
}

// object writes what n makes of an object. Fields that n does not name are copied, in runs.
func (s *updating) object(n *updateNode, src []byte) error {
	kids, err := s.kidsOf(n)
	if err != nil {
		return err
	}
	start := s.open()
	var few [64]bool
	seen := few[:]
	if len(kids) > len(few) {
		seen = make([]bool, len(kids))
	}
	left, copied, pos := len(kids), 4, 4
	for it := document.NewIter(src); left > 0 && it.Next(); {
		at := pos
		pos += 2 + len(it.Key()) + len(it.Value().Value)
		i := indexOfKid(kids, it.Key(), n.at == nil)
		if i < 0 || seen[i] {
			continue
		}
		seen[i] = true
		left--
		s.out = append(s.out, src[copied:at]...)
		copied = pos
		if err := s.element(kids[i].node, it.Key(), it.Value(), false); err != nil {
			return err
		}
	}
	s.out = append(s.out, src[copied:len(src)-1]...)
	for i := 0; left > 0 && i < len(kids); i++ {
		if seen[i] {
			continue
		}
		left--
		if err := s.create(kids[i].node, kids[i].name); err != nil {
			return err
		}
	}
	s.close(start)
	return nil
}

// indexOfKid finds a name among kids. Those with what $ stands for are not sorted as the others are.
func indexOfKid(kids []updateKid, name []byte, sorted bool) int {
	if sorted && len(kids) > 8 {
		low, high := 0, len(kids)
		for low < high {
			mid := (low + high) / 2
			switch c := before(kids[mid].name, string(name)); {
			case c == 0:
				return mid
			case c < 0:
				low = mid + 1
			default:
				high = mid
			}
		}
		return -1
	}
	for i := range kids {
		if kids[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (s *updating) open() int {
	s.out = append(s.out, 0, 0, 0, 0)
	return len(s.out) - 4
}

func (s *updating) close(start int) {
	s.out = document.Close(s.out, start)
}

// header begins an element whose type is not known yet.
func (s *updating) header(name []byte) int {
	at := len(s.out)
	s.out = append(append(append(s.out, 0), name...), 0)
	return at
}

// element writes what n makes of an existing value. In a list, null takes the place of one that is removed.
func (s *updating) element(n *updateNode, name []byte, v bson.RawValue, inList bool) error {
	at := s.header(name)
	s.out[at] = byte(v.Type)
	switch {
	case n.op != nil:
		return s.changeElement(n.op, at, v, inList)
	case len(n.each) > 0 && v.Type == bson.TypeArray:
		return s.eachElement(n, v.Value)
	case len(n.each) > 0:
		return failed("update: %s: %s only goes through lists, and here is %s", n.path(), n.step(), typeName(v.Type))
	case v.Type == bson.TypeEmbeddedDocument:
		return s.object(n, v.Value)
	case v.Type == bson.TypeArray:
		return s.list(n, v.Value)
	default:
		s.out = append(s.out, v.Value...)
		return s.blocked(n, typeName(v.Type))
	}
}

func (s *updating) changeElement(op *updateOp, at int, v bson.RawValue, inList bool) error {
	t, verdict, err := op.change.apply(s, op, v)
	if err != nil {
		return err
	}
	switch {
	case verdict == kept:
		s.out = append(s.out, v.Value...)
		return nil
	case verdict == removed && inList:
		s.out[at] = byte(bson.TypeNull)
	case verdict == removed:
		s.out = s.out[:at]
	default:
		s.out[at] = byte(t)
	}
	return s.note(op)
}

// note remembers that op has changed something.
func (s *updating) note(op *updateOp) error {
	s.changed = true
	s.changedID = s.changedID || op.segs[0] == "_id"
	if len(s.out) > document.MaxSize+document.MaxSize/2 { // it may still shrink; what is far beyond ends here
		return tooLarge(len(s.out))
	}
	return nil
}

// create writes what n makes where nothing is: an element, or nothing.
func (s *updating) create(n *updateNode, name string) error {
	at := len(s.out)
	s.out = append(append(append(s.out, byte(bson.TypeEmbeddedDocument)), name...), 0)
	switch {
	case n.op != nil:
		t, verdict, err := n.op.change.apply(s, n.op, bson.RawValue{})
		if err != nil {
			return err
		}
		if verdict != written {
			s.out = s.out[:at]
			return nil
		}
		s.out[at] = byte(t)
		return s.note(n.op)
	case len(n.each) > 0:
		return failed("update: %s: there is no list to go through with %s: set it first", n.path(), n.step())
	}
	start := s.open()
	kids, err := s.kidsOf(n)
	if err != nil {
		return err
	}
	for _, kid := range kids {
		if err := s.create(kid.node, kid.name); err != nil {
			return err
		}
	}
	if len(s.out) == start+4 {
		s.out = s.out[:at]
		return nil
	}
	s.close(start)
	return nil
}

// blocked is for paths that go on where they can't: through a value that is no object, or through a list by name.
func (s *updating) blocked(n *updateNode, what string) error {
	if n.op != nil {
		at := len(s.out)
		_, verdict, err := n.op.change.apply(s, n.op, bson.RawValue{})
		s.out = s.out[:at]
		if err != nil {
			return err
		}
		if verdict == kept && passes(n.op.change) {
			return nil
		}
		return coded(codePathNotViable, n.op.fail("the path leads through %s, which has no such field", what))
	}
	if len(n.each) > 0 {
		return failed("update: %s: there is no list to go through with %s", n.path(), n.step())
	}
	kids, err := s.kidsOf(n)
	if err != nil {
		return err
	}
	for _, kid := range kids {
		if err := s.blocked(kid.node, what); err != nil {
			return err
		}
	}
	return nil
}

// passes says whether a change may have a path that can't be.
func passes(c change) bool {
	switch c.(type) {
	case unset, *setOnInsert, *rename, renamed:
		return true
	default:
		return false
	}
}

// list writes what n makes of a list whose elements it names by index.
func (s *updating) list(n *updateNode, src []byte) error {
	kids, err := s.kidsOf(n)
	if err != nil {
		return err
	}
	for _, kid := range kids {
		if kid.index < 0 {
			if err := s.blocked(kid.node, "a list"); err != nil {
				return err
			}
		}
	}
	places, twice := byIndex(kids)
	start := s.open()
	count := 0
	for it := document.NewIter(src); it.Next(); count++ {
		kid := places[count]
		if kid == nil {
			s.copyElement(&it)
			continue
		}
		if twice[count] {
			return failed("update: %s: element %d of the list is named in two ways", n.path(), count)
		}
		if err := s.element(kid.node, it.Key(), it.Value(), true); err != nil {
			return err
		}
	}
	existing := count
	for _, kid := range kids {
		if kid.index < existing {
			continue
		}
		if kid.index < count {
			return failed("update: %s: a new element %d of the list is named in two ways, or behind a later one", n.path(), kid.index)
		}
		if count, err = s.createElement(kid, count); err != nil {
			return err
		}
	}
	s.close(start)
	return nil
}

// byIndex gives the kid of each index, and the indexes that more than one has.
func byIndex(kids []updateKid) (places map[int]*updateKid, twice map[int]bool) {
	places = make(map[int]*updateKid, len(kids))
	for i := range kids {
		index := kids[i].index
		if places[index] != nil {
			if twice == nil {
				twice = map[int]bool{}
			}
			twice[index] = true
		}
		places[index] = &kids[i]
	}
	return places, twice
}

func (s *updating) copyElement(it *document.Iter) {
	s.out = document.AppendElement(s.out, it.Key(), it.Value())
}

// createElement pads a list of count elements with nulls and writes the element behind. It gives the new count.
func (s *updating) createElement(kid updateKid, count int) (int, error) {
	start := len(s.out)
	if kid.index-count > maxPadding {
		return 0, coded(codeCannotBackfill, failed("update: %s: the list has %d elements; no more than %d nulls are put before a new one",
			kid.node.path(), count, maxPadding))
	}
	for i := count; i < kid.index; i++ {
		s.out = append(s.out, byte(bson.TypeNull))
		s.out = append(strconv.AppendInt(s.out, int64(i), 10), 0)
	}
	padded := len(s.out)
	if err := s.create(kid.node, strconv.Itoa(kid.index)); err != nil {
		return 0, err
	}
	if len(s.out) == padded {
		s.out = s.out[:start]
		return count, nil
	}
	return kid.index + 1, nil
}

// eachElement writes what n makes of the elements of a list that its filters choose.
func (s *updating) eachElement(n *updateNode, src []byte) error {
	start := s.open()
	for it := document.NewIter(src); it.Next(); {
		node, err := s.chosen(n, it.Value())
		if err != nil {
			return err
		}
		if node == nil {
			s.copyElement(&it)
			continue
		}
		if err := s.element(node, it.Key(), it.Value(), true); err != nil {
			return err
		}
	}
	s.close(start)
	return nil
}

// chosen gives what n does with one element; nil for nothing.
func (s *updating) chosen(n *updateNode, v bson.RawValue) (*updateNode, error) {
	var node *updateNode
	for _, e := range n.each {
		if e.filter != nil && !e.filter.Match(s.wrap(e.name, v)) {
			continue
		}
		if node == nil {
			node = e.node
			continue
		}
		var ok bool
		if node, ok = merged(node, e.node); !ok {
			return nil, failed("update: %s: an element is chosen by %s and by $[%s], which change the same of it: narrow the array filters",
				n.path(), n.step(), e.name)
		}
	}
	return node, nil
}

// wrap makes a document with v as its only field.
func (s *updating) wrap(name string, v bson.RawValue) bson.Raw {
	s.scratch = append(s.scratch[:0], 0, 0, 0, 0)
	s.scratch = document.Close(document.AppendElement(s.scratch, name, v), 0)
	return s.scratch
}

// kidsOf gives the kids of n, with what $ stands for among them.
func (s *updating) kidsOf(n *updateNode) ([]updateKid, error) {
	if n.at == nil {
		return n.kids, nil
	}
	if !s.located {
		s.located = true
		if !s.Insert {
			s.at = s.Filter.position(s.doc)
		}
	}
	if s.at == "" {
		return nil, failed("update: %s: $ has no element: no condition of the filter holds for an element of a list", n.at.path())
	}
	at := updateKid{s.at, updateIndex(s.at), n.at}
	kids := make([]updateKid, 0, len(n.kids)+1)
	placed := false
	for _, kid := range n.kids {
		switch {
		case kid.name == at.name:
			var ok bool
			if kid.node, ok = merged(kid.node, at.node); !ok {
				return nil, failed("update: %s: $ stands for element %s, which the update changes by its index, too", n.at.path(), s.at)
			}
			placed = true
		case !placed && at.name < kid.name:
			kids = append(kids, at)
			placed = true
		}
		kids = append(kids, kid)
	}
	if !placed {
		kids = append(kids, at)
	}
	return kids, nil
}

// path is that of the first operator in n, for messages.
func (n *updateNode) path() string {
	for n.op == nil {
		switch {
		case n.at != nil:
			n = n.at
		case len(n.kids) > 0:
			n = n.kids[0].node
		default:
			n = n.each[0].node
		}
	}
	return n.op.name + " " + n.op.path
}

// step is how paths spell the first of the elements that n is for.
func (n *updateNode) step() string { return "$[" + n.each[0].name + "]" }

func typeName(t bson.Type) string {
	switch t {
	case 0:
		return "nothing"
	case bson.TypeEmbeddedDocument:
		return "an object"
	case bson.TypeArray:
		return "a list"
	case bson.TypeNull:
		return "null"
	default:
		return "a " + t.String()
	}
}
