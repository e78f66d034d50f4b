package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Accumulator computes one value of many documents, those of a group or a window. It is immutable and safe for concurrent
// use; what it has seen of one group is in a State:
//
//	var s State
//	err := a.Start(&s, env)  // for each group
//	err = a.Add(&s, env)     // for each document, after env.Reset
//	v, err := a.Value(&s, env)
type Accumulator struct {
	kind    accumulation
	input   node // nil for $count
	n       node // of those with an n; nil: 1
	keys    SortKeys
	sortBy  bson.RawValue // keys as they are written
	operand bson.RawValue

	window, sliding bool
}

// SortKeys orders documents for $top and $bottom; mql.Sort is such.
type SortKeys interface {
	AppendValues(dst []bson.RawValue, doc bson.Raw) ([]bson.RawValue, error)
	CompareKeys(a, b []bson.RawValue) int
}

// accumulation is an accumulator by its name.
type accumulation int

const (
	noAccumulation accumulation = iota
	accSum
	accAvg
	accMin
	accMax
	accFirst
	accLast
	accPush
	accAddToSet
	accStdDevPop
	accStdDevSamp
	accMergeObjects
	accCount
	accFirstN
	accLastN
	accMaxN
	accMinN
	accTop
	accTopN
	accBottom
	accBottomN
)

func accumulationOf(name string) accumulation {
	names := [...]string{
		accSum: "$sum", accAvg: "$avg", accMin: "$min", accMax: "$max", accFirst: "$first", accLast: "$last", accPush: "$push",
		accAddToSet: "$addToSet", accStdDevPop: "$stdDevPop", accStdDevSamp: "$stdDevSamp", accMergeObjects: "$mergeObjects", accCount: "$count",
		accFirstN: "$firstN", accLastN: "$lastN", accMaxN: "$maxN", accMinN: "$minN", accTop: "$top", accTopN: "$topN", accBottom: "$bottom",
		accBottomN: "$bottomN",
	}
	for kind, n := range names {
		if n == name && kind > 0 {
			return accumulation(kind)
		}
	}
	return noAccumulation
}

// many says whether the accumulator gives a list of n values.
func (k accumulation) many() bool {
	return k >= accFirstN && k <= accMinN || k == accTopN || k == accBottomN
}

// IsAccumulator says whether there is an accumulator of that name.
func IsAccumulator(name string) bool { return accumulationOf(name) != noAccumulation }

// CompileAccumulator checks an accumulator by its name and its operand. order makes of a sort what $top and $bottom need;
// vars are as in Compile. Errors are as those of Compile.
func CompileAccumulator(
	name string, operand any, order func(sortBy bson.Raw) (SortKeys, error), vars ...string,
) (*Accumulator, error) {
	return compileAccumulator(&Accumulator{kind: accumulationOf(name)}, name, operand, order, vars)
}

func compileAccumulator(
	a *Accumulator, name string, operand any, order func(sortBy bson.Raw) (SortKeys, error), vars []string,
) (*Accumulator, error) {
	c, raw, err := newCompiler(operand, vars)
	if err != nil {
		return nil, err
	}
	if err := a.parse(c, name, raw, order); err != nil {
		return nil, err
	}
	a.operand = c.forServer(raw)
	err = a.fold()
	return a, err
}

func (a *Accumulator) parse(c *compiler, name string, v bson.RawValue, order func(bson.Raw) (SortKeys, error)) (err error) {
	switch {
	case a.kind == noAccumulation:
		return bad(15952, "there is no accumulator %s", document.Readable(name))
	case a.kind == accCount:
		if v.Type != bson.TypeEmbeddedDocument || count(v) > 0 {
			return bad(codeTypeMismatch, "$count takes an empty object")
		}
		return nil
	case a.kind >= accTop:
		return a.parseTop(c, name, v, order)
	case a.kind.many():
		args, err := c.named(name, v, manyNames())
		if err == nil {
			a.n, a.input = args[0], args[1]
		}
		return err
	case v.Type == bson.TypeArray && !a.window:
		return bad(40237, "%s takes one operand, not a list", name)
	default:
		a.input, err = c.expression(v)
		return err
	}
}

// manyNames are the operands of $firstN and the like.
func manyNames() named {
	return named{
		names: []string{"n", "input"}, required: 2, noObject: 5787900, unknown: 5787901, lacking: []document.ServerCode{5787906, 5787907},
	}
}

func (a *Accumulator) parseTop(c *compiler, name string, v bson.RawValue, order func(bson.Raw) (SortKeys, error)) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return bad(5788001, "%s needs an object, not %s", name, typeName(v.Type))
	}
	var sortBy bson.RawValue
	for it := items(v); it.Next(); {
		var err error
		switch key := string(it.Key()); {
		case key == "n" && a.kind.many():
			a.n, err = c.expression(it.Value())
		case key == "output":
			a.input, err = c.expression(it.Value())
		case key == "sortBy" && it.Value().Type == bson.TypeEmbeddedDocument:
			sortBy = it.Value()
		case key == "sortBy":
			err = bad(10065, "%s needs an object as sortBy", name)
		default:
			err = bad(5788002, "%s does not know %s", name, document.Readable(key))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case a.kind.many() && a.n == nil:
		return bad(5788003, "%s needs n", name)
	case a.input == nil:
		return bad(5788004, "%s needs output", name)
	case sortBy.Type == 0:
		return bad(5788005, "%s needs sortBy", name)
	}
	var err error
	a.sortBy = sortBy
	a.keys, err = order(sortBy.Value)
	return err
}

func (a *Accumulator) fold() (err error) {
	var f folder
	for _, p := range []*node{&a.input, &a.n} {
		if *p != nil && err == nil {
			*p, err = f.fold(*p)
		}
	}
	return err
}

// Raw gives the operand for a MongoDB server.
func (a *Accumulator) Raw() bson.RawValue { return a.operand }

// Paths is as that of Expr.
func (a *Accumulator) Paths(fn func(variable, path string)) {
	for _, n := range []node{a.input, a.n} {
		if n != nil {
			walkPaths(n, fn)
		}
	}
	for it := items(a.sortBy); it.Next(); {
		fn("ROOT", string(it.Key()))
	}
}

// Start begins a group. An n is computed in env, whose Root is the group's key then.
func (a *Accumulator) Start(s *State, env *Env) error {
	*s = State{limit: 1}
	switch {
	case a.Slides():
		s.slide, s.memory = &slide{}, 256
	case a.kind == accSum || a.kind == accAvg:
		total := newSum()
		s.sum, s.memory = &total, 128
	}
	if a.n == nil {
		return nil
	}
	v, err := a.n.eval(env)
	if err != nil {
		return err
	}
	s.limit, err = manyLimit(v)
	return err
}

// fitsLong says whether a decimal, rounded, is an int64.
func fitsLong(v bson.RawValue) bool {
	_, _, ok := decimalLong(decimalOf(v), apd.RoundHalfEven)
	return ok
}

// manyLimit reads the n of $firstN and the like.
func manyLimit(v bson.RawValue) (int, error) {
	if !isNumber(v.Type) {
		return 0, fail(5787902, "n has to be a whole number, not %s", typeName(v.Type))
	}
	n, err := toLong(v)
	f := floatOf(v)
	switch {
	case v.Type == bson.TypeDecimal128 && (f != math.Trunc(f) || !fitsLong(v)): // servers look at the nearest double
		return 0, fail(5787903, "n has to be a whole number")
	case err != nil:
		return 0, err
	case v.Type != bson.TypeDecimal128 && !isLongValue(v):
		return 0, fail(5787903, "n has to be a whole number")
	}
	if n <= 0 {
		err = fail(5787908, "n has to be above 0")
	}
	return int(n), err
}

// Add takes the document that is env's Root.
func (a *Accumulator) Add(s *State, env *Env) error {
	if a.input == nil {
		s.count++
		return nil
	}
	v, err := a.input.eval(env)
	if err != nil {
		return err
	}
	if s.slide != nil {
		if isNumber(v.Type) {
			s.slide.update(a.kind, v, 1)
		}
		return nil
	}
	if a.keys == nil {
		return s.add(a.kind, v)
	}
	key, err := a.keys.AppendValues(nil, env.Root.Value)
	if err != nil {
		return err
	}
	s.addKeyed(a, v, key)
	return nil
}

// Value gives the result for a group. It may alias the State and env's arena.
func (a *Accumulator) Value(s *State, env *Env) (bson.RawValue, error) {
	if s.slide != nil && a.input != nil {
		return s.slide.value(a.kind, env), nil
	}
	return s.value(a.kind, env)
}
