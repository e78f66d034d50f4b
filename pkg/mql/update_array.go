package mql

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// items encodes the values of a list operand.
func (op *updateOp) items(v any, what string) ([]bson.RawValue, error) {
	given, ok := asList(v)
	if !ok {
		code := document.ServerCode(codeBadValue)
		if op.name == "$addToSet" {
			code = codeTypeMismatch
		}
		return nil, coded(code, badUpdate("update: %s %s: %s needs a list", op.name, op.path, what))
	}
	values := make([]bson.RawValue, len(given))
	for i, item := range given {
		var err error
		if values[i], err = op.value(item, 1); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// listed gives the elements of a value that has to be a list; none for a missing one.
func (op *updateOp) listed(old bson.RawValue) ([]bson.RawValue, error) {
	if old.Type == 0 {
		return nil, nil
	}
	if old.Type != bson.TypeArray {
		code := document.ServerCode(codeBadValue)
		if op.name == "$pop" {
			code = codeTypeMismatch
		}
		return nil, coded(code, op.fail("the value is %s, and this needs a list", typeName(old.Type)))
	}
	values := make([]bson.RawValue, 0, countOf(old.Value))
	for it := document.NewIter(old.Value); it.Next(); {
		values = append(values, it.Value())
	}
	return values, nil
}

// writeList appends a list of values.
func (s *updating) writeList(values []bson.RawValue) (bson.Type, verdict, error) {
	start := s.open()
	for i, v := range values {
		s.out = append(strconv.AppendInt(append(s.out, byte(v.Type)), int64(i), 10), 0)
		s.out = append(s.out, v.Value...)
	}
	s.close(start)
	return bson.TypeArray, written, nil
}

// push is $push.
type push struct {
	values   []bson.RawValue
	position *int64 // nil: at the end
	slice    *int64 // nil: no limit
	sort     *pushSort
}

// pushSort is the order of $push: of the elements themselves, or of fields of theirs.
type pushSort struct {
	desc bool // without fields
	by   Sort
}

func compilePush(op *updateOp, v any) (change, bson.RawValue, error) {
	d, ok := v.(bson.D)
	each, hasEach := document.Member(d, "$each")
	if !ok || !hasEach {
		value, err := op.value(v, 1)
		return &push{values: []bson.RawValue{value}}, object([]clause{{"$each", list([]bson.RawValue{value})}}), err
	}
	values, err := op.items(each, "$each")
	if err != nil {
		return nil, bson.RawValue{}, err
	}
	c, sent := &push{values: values}, []clause{{"$each", list(values)}}
	for i, e := range d {
		if slices.ContainsFunc(d[:i], func(o bson.E) bool { return o.Key == e.Key }) {
			return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $push %s: %s is given twice", op.path, e.Key))
		}
		var operand bson.RawValue
		switch e.Key {
		case "$each":
			continue
		case "$position":
			c.position, operand, err = op.wholeNumber(e)
		case "$slice":
			c.slice, operand, err = op.wholeNumber(e)
		case "$sort":
			c.sort, operand, err = compilePushSort(op, e.Value)
		default:
			err = coded(codeBadValue, badUpdate("update: $push %s: %q is none of $each, $position, $slice and $sort", op.path, cut(e.Key)))
		}
		if err != nil {
			return nil, operand, err
		}
		sent = append(sent, clause{e.Key, operand})
	}
	return c, object(sent), nil
}

func (op *updateOp) wholeNumber(e bson.E) (*int64, bson.RawValue, error) {
	v, err := op.value(e.Value, 0)
	if err != nil {
		return nil, v, err
	}
	n, ok := truncated(v)
	whole := int64Value(n)
	if !ok || document.Compare(v, whole) != 0 {
		code := document.ServerCode(codeBadValue)
		if e.Key == "$pop" {
			code = codeFailedToParse
		}
		return nil, v, coded(code, badUpdate("update: %s %s: %s needs a whole number", op.name, op.path, e.Key))
	}
	return &n, whole, nil
}

// maxSortKeys is how many paths a $sort may have: each of them is looked up for every comparison.
const maxSortKeys = 32

func compilePushSort(op *updateOp, v any) (*pushSort, bson.RawValue, error) {
	bad := coded(codeBadValue, badUpdate("update: $push %s: $sort needs 1, -1 or an object of up to %d paths with 1 or -1", op.path, maxSortKeys))
	d, ok := v.(bson.D)
	if !ok {
		desc, ok := op.direction(v)
		if !ok {
			return nil, bson.RawValue{}, bad
		}
		return &pushSort{desc: desc}, directionValue(desc), nil
	}
	order, sent := &pushSort{}, make([]clause, len(d))
	for i, e := range d {
		desc, ok := op.direction(e.Value)
		if !ok || checkPath(e.Key) != nil {
			return nil, bson.RawValue{}, bad
		}
		stored := op.below.Path(e.Key)
		order.by = append(order.by, SortField{Path: stored, Desc: desc})
		sent[i] = clause{stored, directionValue(desc)}
	}
	if len(d) == 0 || len(d) > maxSortKeys || repeats(sent) {
		return nil, bson.RawValue{}, bad
	}
	return order, object(sent), nil
}

func (op *updateOp) direction(v any) (desc, ok bool) {
	n, _, err := op.wholeNumber(bson.E{Key: "$sort", Value: v})
	if err != nil || *n != 1 && *n != -1 {
		return false, false
	}
	return *n == -1, true
}

func directionValue(desc bool) bson.RawValue {
	if desc {
		return int64Value(-1)
	}
	return int64Value(1)
}

func (c *push) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type == bson.TypeArray && c.position == nil && c.slice == nil && c.sort == nil {
		return s.appendList(old.Value, countOf(old.Value), c.values)
	}
	values, err := op.listed(old)
	if err != nil {
		return 0, kept, err
	}
	if old.Type != 0 && len(c.values) == 0 && c.sort == nil && len(values) == c.limit(len(values)) {
		return 0, kept, nil
	}
	at := len(values)
	if c.position != nil {
		at = clamp(*c.position, len(values))
	}
	values = slices.Insert(values, at, c.values...)
	if c.sort != nil {
		slices.SortStableFunc(values, c.sort.compare)
	}
	if n := c.limit(len(values)); c.slice != nil && *c.slice < 0 {
		values = values[len(values)-n:]
	} else {
		values = values[:n]
	}
	return s.writeList(values)
}

func countOf(list []byte) int {
	n := 0
	for it := document.NewIter(list); it.Next(); {
		n++
	}
	return n
}

// appendList writes a list with more values behind.
func (s *updating) appendList(src []byte, count int, values []bson.RawValue) (bson.Type, verdict, error) {
	if len(values) == 0 {
		return 0, kept, nil
	}
	start := len(s.out)
	s.out = append(s.out, src[:len(src)-1]...)
	for i, v := range values {
		s.out = append(strconv.AppendInt(append(s.out, byte(v.Type)), int64(count+i), 10), 0)
		s.out = append(s.out, v.Value...)
	}
	s.close(start)
	return bson.TypeArray, written, nil
}

// limit is how many of n elements $slice leaves.
func (c *push) limit(n int) int {
	switch {
	case c.slice == nil || *c.slice == math.MinInt64:
		return n
	default:
		return int(min(max(*c.slice, -*c.slice), int64(n)))
	}
}

// clamp makes a position in a list of n elements; negative ones count from the end.
func clamp(position int64, n int) int {
	if position < 0 {
		return max(0, n+int(max(position, int64(-n))))
	}
	return int(min(position, int64(n)))
}

func (o *pushSort) compare(a, b bson.RawValue) int {
	if o.by == nil {
		return SortField{Desc: o.desc}.compare(a, b)
	}
	for _, f := range o.by {
		if c := f.compare(valueAt(a, f.Path), valueAt(b, f.Path)); c != 0 {
			return c
		}
	}
	return 0
}

// valueAt follows a path as $sort in a $push does: elements that are no objects have nothing, lists within objects
// have their indexes as names.
func valueAt(v bson.RawValue, path string) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument {
		return bson.RawValue{}
	}
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, ".")
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return bson.RawValue{}
		}
		v, _ = document.Field(v.Value, name)
	}
	return v
}

// addToSet is $addToSet.
type addToSet struct{ values []bson.RawValue } // none twice

func compileAddToSet(op *updateOp, v any) (change, bson.RawValue, error) {
	d, ok := v.(bson.D)
	if !ok || len(d) == 0 || d[0].Key != "$each" {
		value, err := op.value(v, 1)
		if err != nil {
			return nil, value, err
		}
		return &addToSet{[]bson.RawValue{value}}, object([]clause{{"$each", list([]bson.RawValue{value})}}), nil
	}
	if len(d) > 1 {
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $addToSet %s: nothing but $each may stand in it", op.path))
	}
	given, err := op.items(d[0].Value, "$each")
	if err != nil {
		return nil, bson.RawValue{}, err
	}
	c, seen := &addToSet{}, newValueSet(nil, len(given))
	for _, v := range given {
		if seen.add(v) {
			c.values = append(c.values, v)
		}
	}
	return c, object([]clause{{"$each", list(c.values)}}), nil
}

// valueSet is a set of values. Values that compare as equal are one.
type valueSet struct {
	few  []bson.RawValue // compared one by one
	keys map[string]struct{}
	key  []byte
}

// fewValues is how many are compared one by one: beyond, lists and values of thousands would take minutes.
const fewValues = 16

// newValueSet makes a set of values, to be asked for or grown about uses times.
func newValueSet(values []bson.RawValue, uses int) *valueSet {
	s := &valueSet{few: values}
	if len(values) > fewValues || len(values) == 0 && uses > fewValues {
		s.few, s.keys = nil, make(map[string]struct{}, max(len(values), uses))
		for _, v := range values {
			s.add(v)
		}
	}
	return s
}

// has says whether v is in the set.
func (s *valueSet) has(v bson.RawValue) bool {
	if s.keys == nil {
		return slices.ContainsFunc(s.few, func(o bson.RawValue) bool { return document.Compare(o, v) == 0 })
	}
	s.key = document.AppendKey(s.key[:0], v, false)
	_, ok := s.keys[string(s.key)]
	return ok
}

// add puts v in, and says whether it is new.
func (s *valueSet) add(v bson.RawValue) bool {
	if s.has(v) {
		return false
	}
	if s.keys == nil {
		s.few = append(s.few, v)
	} else {
		s.keys[string(s.key)] = struct{}{}
	}
	return true
}

func (c *addToSet) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	if old.Type == 0 {
		return s.writeList(c.values)
	}
	values, err := op.listed(old)
	if err != nil {
		return 0, kept, err
	}
	in := &valueSet{few: values}
	if len(c.values) > fewValues {
		in = newValueSet(values, len(c.values))
	}
	missing := slices.DeleteFunc(slices.Clone(c.values), in.has)
	return s.appendList(old.Value, len(values), missing)
}

// pull is $pull and $pullAll.
type pull struct {
	values []bson.RawValue // $pullAll, and $pull of a value
	node   Node            // $pull of objects that match
	preds  []Pred          // $pull of elements that satisfy all
}

func compilePullAll(op *updateOp, v any) (change, bson.RawValue, error) {
	values, err := op.items(v, "$pullAll")
	return &pull{values: values}, list(values), err
}

func compilePull(op *updateOp, v any) (change, bson.RawValue, error) {
	switch d := v.(type) {
	case bson.D:
		if isOfElements(d) {
			return compilePullPreds(op, d)
		}
		node, err := compileDoc(d, op.path, 0)
		if err != nil {
			return nil, bson.RawValue{}, pullError(op, err)
		}
		node = storedNode(node, op.below)
		return &pull{node: node}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: encodeNode(node)}, nil
	case bson.Regex:
		re, err := compileRegex(d.Pattern, d.Options, op.path)
		if err != nil {
			return nil, bson.RawValue{}, pullError(op, err)
		}
		return &pull{preds: []Pred{re}}, regex(re.raw), nil
	}
	value, err := op.value(v, 1)
	return &pull{values: []bson.RawValue{value}}, value, err
}

func compilePullPreds(op *updateOp, d bson.D) (change, bson.RawValue, error) {
	if d[0].Key == "$not" {
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $pull %s: a condition can't begin with $not: write another operator before it", op.path))
	}
	preds, err := compilePreds(d, op.path, 0)
	if err != nil {
		return nil, bson.RawValue{}, pullError(op, err)
	}
	preds = storedPreds(preds, op.below)
	sent := make([]clause, len(preds))
	for i, p := range preds {
		sent[i] = encodePred(p)
	}
	if repeats(sent) || sent[0].name == "$not" {
		return nil, bson.RawValue{}, coded(codeBadValue, badUpdate("update: $pull %s: two of its conditions are of one kind: join them", op.path))
	}
	return &pull{preds: preds}, object(sent), nil
}

func pullError(op *updateOp, err error) error {
	return coded(codeBadValue, badUpdate("update: $pull %s: %s", op.path, strings.TrimPrefix(errs.From(err).Message, "filter: ")))
}

func (c *pull) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	values, err := op.listed(old)
	if err != nil {
		return 0, kept, err
	}
	listed := &valueSet{few: c.values}
	if len(c.values) > fewValues && len(values) > fewValues {
		listed = newValueSet(c.values, 0)
	}
	left := slices.DeleteFunc(slices.Clone(values), func(v bson.RawValue) bool { return c.pulls(s, v, listed) })
	if len(left) == len(values) {
		return 0, kept, nil
	}
	return s.writeList(left)
}

// pulls decides for one element.
func (c *pull) pulls(s *updating, v bson.RawValue, listed *valueSet) bool {
	switch {
	case c.node != nil:
		return v.Type == bson.TypeEmbeddedDocument && c.node.match(v.Value)
	case c.preds != nil:
		doc := s.wrap("", v) // operators look into an element that is a list, as they do into a field
		for _, p := range c.preds {
			if !p.holds(doc, []segment{{index: -1}}) {
				return false
			}
		}
		return true
	default:
		return listed.has(v)
	}
}

// pop is $pop.
type pop struct{ first bool }

func compilePop(op *updateOp, v any) (change, bson.RawValue, error) {
	n, operand, err := op.wholeNumber(bson.E{Key: "$pop", Value: v})
	if err != nil {
		return nil, operand, err
	}
	if *n != 1 && *n != -1 {
		return nil, operand, badUpdate("update: $pop %s needs 1 for the last element or -1 for the first", op.path)
	}
	return &pop{*n == -1}, operand, nil
}

func (c *pop) apply(s *updating, op *updateOp, old bson.RawValue) (bson.Type, verdict, error) {
	values, err := op.listed(old)
	switch {
	case err != nil || len(values) == 0:
		return 0, kept, err
	case c.first:
		return s.writeList(values[1:])
	default:
		return s.writeList(values[:len(values)-1])
	}
}
