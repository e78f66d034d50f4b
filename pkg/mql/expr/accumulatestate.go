package expr

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// State is what an accumulator has seen of one group. It keeps no memory of the documents.
type State struct {
	count    int64
	limit    int // how many values are kept at most
	sum      *sum
	mean, m2 float64 // of a standard deviation
	best     bson.RawValue
	items    []bson.RawValue
	keys     [][]bson.RawValue
	seen     map[string]struct{}
	members  members
	slide    *slide // of a window that documents leave, too
	memory   int
}

// Memory is about how many bytes the State holds beside itself.
func (s *State) Memory() int { return s.memory }

const itemSize = 48 // of a kept value beside its bytes

// kept copies a value; what is missing becomes null.
func (s *State) kept(v bson.RawValue) bson.RawValue {
	if v.Type == 0 {
		return null
	}
	s.memory += len(v.Value) + itemSize
	return bson.RawValue{Type: v.Type, Value: append(make([]byte, 0, len(v.Value)), v.Value...)}
}

func (s *State) dropped(v bson.RawValue) { s.memory -= len(v.Value) + itemSize }

// hold keeps a value in place of the one before.
func (s *State) hold(v bson.RawValue) {
	if v.Type == 0 {
		v = null
	}
	s.memory += len(v.Value) - len(s.best.Value)
	s.best = bson.RawValue{Type: v.Type, Value: append(s.best.Value[:0], v.Value...)}
}

func (s *State) add(kind accumulation, v bson.RawValue) error {
	switch kind {
	case accSum, accAvg:
		if isNumber(v.Type) {
			s.count++
			s.sum.add(v)
		}
	case accMin, accMax:
		s.addExtreme(kind, v)
	case accFirst:
		if s.count++; s.count == 1 {
			s.hold(v)
		}
	case accLast:
		s.hold(v)
	case accPush:
		if v.Type != 0 {
			s.items = append(s.items, s.kept(v))
		}
	case accAddToSet:
		s.addToSet(v)
	case accStdDevPop, accStdDevSamp:
		if isNumber(v.Type) {
			s.addDeviation(floatOf(v))
		}
	case accMergeObjects:
		return s.addMembers(v)
	case accFirstN:
		if len(s.items) < s.limit {
			s.items = append(s.items, s.kept(v))
		}
	case accLastN:
		if len(s.items) == s.limit {
			s.dropped(s.items[0])
			s.items = slices.Delete(s.items, 0, 1)
		}
		s.items = append(s.items, s.kept(v))
	case accMaxN, accMinN:
		s.addBest(kind, v)
	default: // $count has no values, $top and $bottom have keys
	}
	return nil
}

func (s *State) addExtreme(kind accumulation, v bson.RawValue) {
	if isNull(v.Type) {
		return
	}
	if s.best.Type != 0 {
		c := compare(v, s.best)
		if kind == accMin && c >= 0 || kind == accMax && c <= 0 {
			return
		}
	}
	s.hold(v)
}

func (s *State) addToSet(v bson.RawValue) {
	if v.Type == 0 {
		return
	}
	if s.seen == nil {
		s.seen = map[string]struct{}{}
	}
	var b [64]byte
	key := document.AppendKey(b[:0], v, false)
	if _, ok := s.seen[string(key)]; ok {
		return
	}
	s.seen[string(key)] = struct{}{}
	s.memory += len(key) + itemSize
	s.items = append(s.items, s.kept(v))
}

// addDeviation is Welford's algorithm.
func (s *State) addDeviation(f float64) {
	s.count++
	if delta := f - s.mean; delta != 0 {
		s.mean += delta / float64(s.count)
		s.m2 += delta * (f - s.mean)
	}
}

func (s *State) addMembers(v bson.RawValue) error {
	before := len(s.members.list)
	if v.Type == bson.TypeEmbeddedDocument {
		v = s.kept(v)
	}
	err := s.members.merge(v)
	s.memory += (len(s.members.list) - before) * 2 * itemSize
	return err
}

// addBest keeps the greatest or least values in their order.
func (s *State) addBest(kind accumulation, v bson.RawValue) {
	if isNull(v.Type) {
		return
	}
	at, _ := slices.BinarySearchFunc(s.items, v, func(a, b bson.RawValue) int {
		c := compare(a, b)
		switch {
		case kind == accMaxN:
			return -c // before its equals
		case c == 0:
			return -1 // behind its equals
		default:
			return c
		}
	})
	full := len(s.items) == s.limit
	if at >= s.limit || full && kind == accMaxN && compare(v, s.items[s.limit-1]) == 0 { // what is as good as the worst stays
		return
	}
	s.items = slices.Insert(s.items, at, s.kept(v))
	if len(s.items) > s.limit {
		s.dropped(s.items[s.limit])
		s.items = s.items[:s.limit]
	}
}

// addKeyed keeps what belongs to the first or last keys of a sort.
func (s *State) addKeyed(a *Accumulator, v bson.RawValue, key []bson.RawValue) {
	at, _ := slices.BinarySearchFunc(s.keys, key, func(x, y []bson.RawValue) int {
		if c := a.keys.CompareKeys(x, y); c != 0 {
			return c
		}
		return -1
	})
	top := a.kind == accTop || a.kind == accTopN
	full := len(s.keys) == s.limit
	if full && (top && at == len(s.keys) || !top && at == 0) {
		return
	}
	own := make([]bson.RawValue, len(key))
	for i := range key {
		own[i] = s.kept(key[i])
	}
	s.keys, s.items = slices.Insert(s.keys, at, own), slices.Insert(s.items, at, s.kept(v))
	if !full {
		return
	}
	out := 0
	if top {
		out = s.limit
	}
	s.dropped(s.items[out])
	for _, part := range s.keys[out] {
		s.dropped(part)
	}
	s.keys, s.items = slices.Delete(s.keys, out, out+1), slices.Delete(s.items, out, out+1)
}

func (s *State) value(kind accumulation, env *Env) (bson.RawValue, error) {
	switch kind {
	case accSum:
		return s.sum.value(env), nil
	case accAvg:
		return s.average(env), nil
	case accMin, accMax, accFirst, accLast:
		if s.best.Type == 0 {
			return null, nil
		}
		return s.best, nil
	case accStdDevPop, accStdDevSamp:
		n := s.count
		if kind == accStdDevSamp {
			n--
		}
		if n <= 0 {
			return null, nil
		}
		return env.double(math.Sqrt(s.m2 / float64(n))), nil
	case accMergeObjects:
		return env.object(&s.members)
	case accCount:
		return env.integer(s.count), nil
	case accTop, accBottom:
		if len(s.items) == 0 {
			return null, nil
		}
		return s.items[0], nil
	default:
		return env.list(s.items)
	}
}

func (s *State) average(env *Env) bson.RawValue {
	switch {
	case s.count == 0:
		return null
	case s.sum.kind == bson.TypeDecimal128:
		total := decimalValue(s.sum.appendDecimal(nil))
		var b [8]byte
		return env.decimals(total, int64Value(b[:], s.count), quotient)
	}
	s.sum.settle()
	return env.double(s.sum.double() / float64(s.count))
}

// accumulated is an accumulator as an expression: of its operands, or of the elements of a list that is its only one.
type accumulated struct {
	kind accumulation
	operands
}

func accumulatorOperator(kind accumulation) operator {
	return variadic(func(args operands) node { return &accumulated{kind, args} })
}

func (n *accumulated) eval(env *Env) (bson.RawValue, error) {
	var s State
	if n.kind == accSum || n.kind == accAvg {
		total := newSum()
		s.sum = &total
	}
	for _, a := range n.operands {
		v, err := a.eval(env)
		if err != nil {
			return missing, err
		}
		if v.Type != bson.TypeArray || len(n.operands) > 1 {
			if err := s.add(n.kind, v); err != nil {
				return missing, err
			}
			continue
		}
		for it := items(v); it.Next(); {
			if err := s.add(n.kind, it.Value()); err != nil {
				return missing, err
			}
		}
	}
	return s.value(n.kind, env)
}

// fold does in part what can be done in parts; not where a single list would be taken for its elements.
func (n *accumulated) fold(f *folder) (node, error) {
	inParts := n.kind == accSum || n.kind == accMin || n.kind == accMax
	if len(n.operands) == 1 || !inParts {
		all, err := f.operands(n)
		if err != nil || !all {
			return n, err
		}
		return f.compute(n)
	}
	return merging{
		commutes: true,
		inner: func(o node) (operands, bool) {
			inner, ok := o.(*accumulated)
			if !ok || inner.kind != n.kind || len(inner.operands) == 1 {
				return nil, false
			}
			return inner.operands, true
		},
		again: func(args operands) node { return &accumulated{n.kind, args} },
	}.fold(f, n.operands)
}

// manyOf is $firstN and the like as an expression: n, input.
type manyOf struct {
	name string
	kind accumulation
	operands
}

func manyOperator(kind accumulation) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.named(name, v, manyNames())
		return &manyOf{name, kind, args}, err
	}}
}

func (n *manyOf) eval(env *Env) (bson.RawValue, error) {
	v, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	var s State
	if s.limit, err = manyLimit(v); err != nil {
		return missing, err
	}
	list, err := n.operands[1].eval(env)
	switch {
	case err != nil:
		return missing, err
	case list.Type != bson.TypeArray:
		return missing, fail(5788200, "%s takes a list, not %s", n.name, typeName(list.Type))
	}
	for it := items(list); it.Next(); {
		if err := s.add(n.kind, it.Value()); err != nil {
			return missing, err
		}
	}
	return s.value(n.kind, env)
}

// fold leaves all as it is, as servers do.
func (n *manyOf) fold(*folder) (node, error) { return n, nil }
