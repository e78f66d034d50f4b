package pipeline

import (
	"cmp"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// compileFunction compiles the function of a field. raw is what a server is sent as its operand.
func (f *windowField) compileFunction() (fn windowFunction, raw any, err error) {
	switch f.function {
	case "$rank", "$denseRank", "$documentNumber":
		return f.rank()
	case "$shift":
		return f.shift()
	case "$first", "$last":
		return f.edge()
	case "$derivative", "$integral":
		return f.slope()
	case "$expMovingAvg":
		return f.movingAverage()
	case "$covariancePop", "$covarianceSamp":
		return f.covariance()
	case "$linearFill", "$locf":
		return f.filling()
	case "$mergeObjects":
	default:
		if expr.IsAccumulator(f.function) {
			return f.accumulator()
		}
	}
	return nil, nil, f.refuse("has the function %s, which is not supported in windows", document.Readable(f.function))
}

// sortValue is the value of the one field of the sort.
func (f *windowField) sortValue() (*expr.Expr, error) { return expr.Compile("$" + f.by[0].Path) }

// rangeValue is sortValue where bounds need it; nil for descending values, which are refused when they run, as on servers.
func (f *windowField) rangeValue(b *windowBounds) (*expr.Expr, error) {
	f.descends = b.ranged && f.by[0].Desc
	if !b.ranged || f.descends {
		return nil, nil
	}
	return f.sortValue()
}

// ranking is $rank, $denseRank and $documentNumber.
type ranking struct {
	by     *expr.Expr
	dense  bool
	number bool
}

func (f *windowField) rank() (windowFunction, any, error) {
	d, ok := asObject(f.operand)
	switch {
	case f.hasWindow || f.others:
		return nil, nil, bad(5371601, "%s: %s takes nothing besides", f.name, f.function)
	case len(f.by) != 1:
		return nil, nil, bad(5371602, "%s: %s needs sortBy of one field", f.name, f.function)
	case !ok || len(d) > 0:
		return nil, nil, bad(5371603, "%s: %s takes an empty object", f.name, f.function)
	}
	by, err := f.sortValue()
	return &ranking{by, f.function == "$denseRank", f.function == "$documentNumber"}, bson.D{}, err
}

func (k *ranking) open(p *partition) windowValues { return &ranks{ranking: k, partition: p} }

type ranks struct {
	*ranking
	*partition
	n    int64
	last bson.RawValue
}

func (k *ranks) at(i int) (bson.RawValue, error) {
	if k.number {
		return integer(int64(i) + 1), nil
	}
	v, err := k.eval(k.by, i)
	if err != nil {
		return v, err
	}
	if i > 0 && v.Type == k.last.Type && v.Type == 0 || i > 0 && v.Type != 0 && k.last.Type != 0 && document.Compare(v, k.last) == 0 {
		return integer(k.n), nil
	}
	if k.n++; !k.dense {
		k.n = int64(i) + 1
	}
	k.last = bson.RawValue{Type: v.Type, Value: append(k.last.Value[:0], v.Value...)}
	return integer(k.n), nil
}

// shifting is $shift: the value of a document so many places away.
type shifting struct {
	output *expr.Expr
	by     int64
	other  bson.RawValue
}

func (f *windowField) shift() (windowFunction, any, error) {
	d, ok := asObject(f.operand)
	switch {
	case !ok:
		return nil, nil, f.refuse("needs an object for $shift")
	case f.hasWindow:
		return nil, nil, f.refuse("can't have a window, because of $shift")
	case len(f.by) == 0:
		return nil, nil, f.refuse("needs sortBy, because of $shift")
	}
	s := &shifting{other: null}
	raw := bson.D{}
	moved := false
	for _, e := range d {
		switch e.Key {
		case "output", "default":
			x, err := f.expression(e.Value)
			if err != nil {
				return nil, nil, err
			}
			raw = append(raw, bson.E{Key: e.Key, Value: x.Raw()})
			if e.Key == "output" {
				s.output = x
				continue
			}
			if s.other, ok = x.Constant(); !ok {
				return nil, nil, f.refuse("needs a constant default for $shift")
			}
		case "by":
			if s.by, moved = whole(e.Value); !moved || s.by != int64(int32(s.by)) { //nolint:gosec // the check
				return nil, nil, f.refuse("needs a whole number as by for $shift")
			}
			raw = append(raw, bson.E{Key: e.Key, Value: s.by})
		default:
			return nil, nil, f.refuse("has %s, which $shift does not know", document.Readable(e.Key))
		}
	}
	if s.output == nil || !moved {
		return nil, nil, f.refuse("needs output and by for $shift")
	}
	return s, raw, nil
}

func (s *shifting) open(p *partition) windowValues { return &shifted{s, p} }

type shifted struct {
	*shifting
	*partition
}

func (s *shifted) at(i int) (bson.RawValue, error) {
	j := int64(i) + s.by
	if j < 0 || j >= int64(len(s.docs)) {
		return s.other, nil
	}
	return s.eval(s.output, int(j))
}

// edge is $first and $last: the value of the document at an end of the window, which may be missing.
type edge struct {
	of     *expr.Expr
	last   bool
	bounds windowBounds
	by     *expr.Expr
}

func (f *windowField) edge() (windowFunction, any, error) {
	b, wrong := f.bounds()
	if wrong != nil && f.windowFirst {
		return nil, nil, wrong
	}
	of, err := f.expression(f.operand)
	if err := cmp.Or(err, wrong); err != nil {
		return nil, nil, err
	}
	by, err := f.rangeValue(&b)
	return &edge{of, f.function == "$last", b, by}, of.Raw(), err
}

func (e *edge) open(p *partition) windowValues { return &edges{e, p, e.bounds.frame(p, e.by)} }

type edges struct {
	*edge
	*partition
	frame frame
}

func (e *edges) at(i int) (bson.RawValue, error) {
	lo, hi, err := e.frame.around(i)
	switch {
	case err != nil:
		return null, err
	case lo > hi:
		return null, nil
	case e.last:
		lo = hi
	}
	return e.eval(e.of, lo)
}

// accumulating is an accumulator of the documents in a window.
type accumulating struct {
	of     *expr.Accumulator
	bounds windowBounds
	by     *expr.Expr
}

func (f *windowField) accumulator() (windowFunction, any, error) {
	b, wrong := f.bounds()
	if wrong != nil && f.windowFirst {
		return nil, nil, wrong
	}
	of, err := expr.CompileWindow(f.function, f.operand, b.lower.kind != unbounded, sortKeys, f.vars...)
	if err := cmp.Or(err, wrong); err != nil {
		return nil, nil, err
	}
	f.note(of)
	by, err := f.rangeValue(&b)
	return &accumulating{of, b, by}, of.Raw(), err
}

func (a *accumulating) open(p *partition) windowValues {
	return &accumulated{accumulating: a, partition: p, frame: a.bounds.frame(p, a.by), lo: -1}
}

// accumulated is what is in the window now: the documents from lo up to end.
type accumulated struct {
	*accumulating
	*partition
	frame   frame
	state   expr.State
	lo, end int
	memory  int
}

func (a *accumulated) at(i int) (bson.RawValue, error) {
	lo, hi, err := a.frame.around(i)
	if err != nil {
		return null, err
	}
	hi = max(hi, lo-1)
	if err := a.start(lo); err != nil {
		return null, err
	}
	for ; a.end <= hi; a.end++ { // before what goes, as servers do: it shows in the last digits
		a.env.Reset(a.docs[a.end].doc)
		if err := a.of.Add(&a.state, a.env); err != nil {
			return null, coded(err)
		}
		if a.end%docsPerCheck == 0 {
			if err := a.r.ctx.Err(); err != nil {
				return null, err
			}
		}
	}
	for ; a.lo < lo && a.lo < a.end; a.lo++ {
		a.env.Reset(a.docs[a.lo].doc)
		if err := a.of.Remove(&a.state, a.env); err != nil {
			return null, err
		}
	}
	a.lo, a.end = lo, max(a.end, lo)
	a.env.Forget()
	n := a.state.Memory() - a.memory
	a.memory += n
	if err := a.hold(n); err != nil {
		return null, err
	}
	return a.of.Value(&a.state, a.env)
}

// start begins anew where documents leave that can't be taken away again.
func (a *accumulated) start(lo int) error {
	if a.lo == lo || a.lo >= 0 && (a.of.Slides() || a.bounds.lower.kind == unbounded) {
		return nil
	}
	a.lo, a.end = lo, lo
	a.env.Reset(emptyDoc())
	return a.of.Start(&a.state, a.env)
}
