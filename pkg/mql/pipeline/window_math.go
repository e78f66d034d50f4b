package pipeline

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// slope is $derivative and $integral: of an input over the values of the sort.
type slope struct {
	input  *expr.Expr
	by     *expr.Expr
	ranged *expr.Expr // by, where bounds are of it
	unit   int64      // in milliseconds; 0: the sort is by numbers
	bounds windowBounds

	rise     *expr.Expr        // $derivative: from one end to the other
	derive   *expr.Expr        // that by the width
	area     *expr.Expr        // $integral: between two points
	inUnit   *expr.Expr        // the sum of areas, in the unit
	total    *expr.Accumulator // of areas
	integral bool
}

const tooLong = -1 // a unit of time without a length of its own

func (f *windowField) slope() (windowFunction, any, error) {
	s := &slope{integral: f.function == "$integral"}
	switch {
	case len(f.by) != 1:
		return nil, nil, f.refuse("needs sortBy of one field, because of %s", f.function)
	case !f.hasWindow && !s.integral:
		return nil, nil, f.refuse("needs a window, because of $derivative")
	}
	raw, err := s.operands(f)
	if err != nil {
		return nil, nil, err
	}
	if s.bounds, err = f.bounds(); err != nil {
		return nil, nil, err
	}
	if s.unit == tooLong {
		return nil, nil, bad(5490710, "%s: %s takes units of time up to a week", f.name, f.function)
	}
	if s.by, err = f.sortValue(); err != nil {
		return nil, nil, err
	}
	if s.ranged, err = f.rangeValue(&s.bounds); err != nil {
		return nil, nil, err
	}
	width := formulaOf("$subtract", "$$x2", "$$x1")
	if !s.integral {
		s.rise = newFormula(formulaOf("$subtract", "$$y2", "$$y1"), "y1", "y2")
		s.derive = newFormula(formulaOf("$divide", "$$rise", width), "rise", "x1", "x2")
		s.inUnit = newFormula(formulaOf("$multiply", "$$v", s.unit), "v")
		return s, raw, nil
	}
	s.area = newFormula(formulaOf("$divide", formulaOf("$multiply", formulaOf("$add", "$$y1", "$$y2"), width), int32(2)), "x1", "y1", "x2", "y2")
	s.inUnit = newFormula(formulaOf("$divide", "$$v", s.unit+1-min(s.unit, 1)), "v")
	s.total, err = expr.CompileWindow("$sum", "$$v", true, sortKeys, "v")
	return s, raw, err
}

func (s *slope) operands(f *windowField) (bson.D, error) {
	d, ok := asObject(f.operand)
	if !ok {
		return nil, f.refuse("needs an object for %s", f.function)
	}
	raw := bson.D{}
	for _, e := range d {
		switch e.Key {
		case "input":
			var err error
			if s.input, err = f.expression(e.Value); err != nil {
				return nil, err
			}
			raw = append(raw, bson.E{Key: e.Key, Value: s.input.Raw()})
		case "unit":
			unit, _ := e.Value.(string)
			if s.unit, ok = expr.UnitMillis(unit); !ok {
				return nil, f.refuse("needs a unit of time as unit of %s", f.function)
			}
			if s.unit == 0 {
				s.unit = tooLong
			}
			raw = append(raw, e)
		default:
			return nil, f.refuse("has %s, which %s does not know", document.Readable(e.Key), f.function)
		}
	}
	if s.input == nil {
		return nil, f.refuse("needs input for %s", f.function)
	}
	return raw, nil
}

func (s *slope) open(p *partition) windowValues {
	points := &points{
		slope: s, frame: s.bounds.frame(p, s.ranged), x: newColumn(p, s.by), y: newColumn(p, s.input), inUnit: p.formula(s.inUnit), lo: -1,
	}
	if !s.integral {
		return &derived{points, p.formula(s.rise), p.formula(s.derive)}
	}
	return &integrated{points: points, area: p.formula(s.area), env: p.r.newEnv(make([]bson.RawValue, 1))}
}

// points are those in a window.
type points struct {
	*slope
	frame  frame
	x, y   *column
	inUnit *formula
	lo     int
}

// derived is $derivative.
type derived struct {
	*points
	rise, derive *formula
}

func (d *derived) at(i int) (bson.RawValue, error) {
	lo, hi, err := d.frame.around(i)
	if err != nil || lo > hi {
		return null, err
	}
	var v [4]bson.RawValue // x1, y1, x2, y2
	for k, at := range [...]int{lo, lo, hi, hi} {
		from := d.x
		if k%2 == 1 {
			from = d.y
		}
		if v[k], err = from.at(at); err != nil {
			return null, err
		}
	}
	if err := d.check(v); err != nil {
		return null, err
	}
	rise, err := d.rise.value(v[1], v[3]) // fails even where it is of no use
	if err != nil || document.Compare(v[0], v[2]) == 0 {
		return null, err
	}
	slope, err := d.derive.value(rise, v[0], v[2])
	if err != nil || d.unit == 0 {
		return slope, err
	}
	return d.inUnit.value(slope)
}

func (d *derived) check(v [4]bson.RawValue) error {
	for _, x := range [...]bson.RawValue{v[0], v[2]} {
		_, isNumber := rawNumber(x)
		switch isDate := x.Type == bson.TypeDateTime; {
		case d.unit > 0 && !isDate:
			return fail(5624900, "$derivative with a unit needs dates to sort by")
		case d.unit == 0 && isDate:
			return fail(5624901, "$derivative of dates needs a unit")
		case d.unit == 0 && !isNumber:
			return fail(5624902, "$derivative needs numbers to sort by, or dates with a unit")
		}
	}
	for _, y := range [...]bson.RawValue{v[1], v[3]} {
		if isNull(y.Type) {
			return fail(5624903, "$derivative can't take null or what is missing")
		}
	}
	return nil
}

// integrated is $integral: the areas between the points from lo up to end.
type integrated struct {
	*points
	area  *formula
	env   *expr.Env
	state expr.State
	end   int
	nans  int // points of which a number is NaN
}

func (g *integrated) at(i int) (bson.RawValue, error) {
	lo, hi, err := g.frame.around(i)
	if err != nil {
		return null, err
	}
	hi = max(hi, lo-1)
	if g.lo < 0 {
		g.lo, g.end = lo, lo
		if err := g.total.Start(&g.state, g.env); err != nil {
			return null, err
		}
	}
	for ; g.end <= hi; g.end++ { // what comes is looked at before what goes
		if err := g.check(g.end); err != nil {
			return null, err
		}
		g.nans += g.nan(g.end)
		if g.end > g.lo {
			if err := g.between(g.end, g.total.Add); err != nil {
				return null, err
			}
		}
	}
	for ; g.lo < lo; g.lo++ {
		if g.lo < g.end {
			g.nans -= g.nan(g.lo)
		}
		if g.lo+1 < g.end {
			if err := g.between(g.lo+1, g.total.Remove); err != nil {
				return null, err
			}
		}
	}
	g.end = max(g.end, g.lo)
	if lo > hi {
		return null, nil
	}
	sum, err := g.total.Value(&g.state, g.env)
	if g.nans > 0 { // of one point, too
		sum = double(math.Float64frombits(0x7ff8000000000000)) // Go's own has one bit more
	}
	if err != nil || g.unit == 0 {
		return sum, err
	}
	return g.inUnit.value(sum)
}

// nan is 1 for a point, checked before, of which a number is NaN.
func (g *integrated) nan(i int) int {
	for _, c := range [...]*column{g.x, g.y} {
		v, _ := c.at(i)
		if f, _ := rawNumber(v); math.IsNaN(f) {
			return 1
		}
	}
	return 0
}

// between adds or removes the area between a point and the one before.
func (g *integrated) between(i int, change func(s *expr.State, env *expr.Env) error) error {
	var v [4]bson.RawValue
	for k := range v {
		from := g.x
		if k%2 == 1 {
			from = g.y
		}
		var err error
		if v[k], err = from.at(i - 1 + k/2); err != nil {
			return err
		}
	}
	area, err := g.area.value(v[:]...)
	if err != nil {
		return err
	}
	g.env.Vars[0] = area
	g.env.Forget()
	return change(&g.state, g.env)
}

func (g *integrated) check(i int) error {
	x, err := g.x.at(i)
	if err != nil {
		return err
	}
	y, err := g.y.at(i)
	if err != nil {
		return err
	}
	_, isNumber := rawNumber(x)
	isDate := x.Type == bson.TypeDateTime
	_, taken := rawNumber(y)
	switch {
	case !taken || !isNumber && !isDate:
		return fail(5423900, "$integral takes numbers, over numbers or dates")
	case g.unit > 0 && !isDate:
		return fail(5423901, "$integral with a unit needs dates to sort by")
	case g.unit == 0 && isDate:
		return fail(5423902, "$integral needs numbers to sort by, or dates with a unit")
	}
	return nil
}

// movingAverage is $expMovingAvg.
type movingAverage struct {
	input        *expr.Expr
	alpha        bson.RawValue // a decimal
	next         *expr.Expr    // of the value and the average before
	first, plain *expr.Expr    // of one value: as a decimal, as a double
}

func (f *windowField) movingAverage() (windowFunction, any, error) {
	d, ok := asObject(f.operand)
	switch {
	case !ok || f.hasWindow:
		return nil, nil, f.refuse("takes $expMovingAvg with an object, and no window")
	case len(f.by) == 0:
		return nil, nil, f.refuse("needs sortBy, because of $expMovingAvg")
	case len(d) != 2:
		return nil, nil, f.refuse("needs input for $expMovingAvg, and N or alpha")
	}
	m := &movingAverage{
		next: newFormula(formulaOf("$add",
			formulaOf("$multiply", "$$v", "$$alpha"), formulaOf("$multiply", "$$last", formulaOf("$subtract", int32(1), "$$alpha"))),
			"v", "alpha", "last"),
		first: newFormula(formulaOf("$toDecimal", "$$v"), "v"), plain: newFormula(formulaOf("$toDouble", "$$v"), "v"),
	}
	raw := bson.D{}
	for _, e := range d {
		var err error
		switch e.Key {
		case "input":
			if m.input, err = f.expression(e.Value); err == nil {
				e.Value = m.input.Raw()
			}
		case "N":
			n, ok := whole(e.Value)
			if !ok || n <= 0 {
				return nil, nil, f.refuse("needs a whole number above 0 as N of $expMovingAvg")
			}
			m.alpha, err = decimalOf(formulaOf("$divide", int32(2), formulaOf("$add", bson.D{{Key: "$toDecimal", Value: n}}, int32(1))))
		case "alpha":
			if n, isNumber := numberOf(e.Value); !isNumber || !(n > 0 && n < 1) {
				return nil, nil, f.refuse("needs an alpha between 0 and 1 for $expMovingAvg")
			}
			m.alpha, err = decimalOf(e.Value)
		default:
			err = f.refuse("has %s, which $expMovingAvg does not know", document.Readable(e.Key))
		}
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, e)
	}
	if m.input == nil || m.alpha.Type == 0 {
		return nil, nil, f.refuse("needs input for $expMovingAvg, and N or alpha")
	}
	return m, raw, nil
}

// decimalOf computes a constant as a decimal.
func decimalOf(v any) (bson.RawValue, error) {
	x, err := expr.Compile(bson.D{{Key: "$toDecimal", Value: v}})
	if err != nil {
		return bson.RawValue{}, err
	}
	c, _ := x.Constant()
	return c, nil
}

func (m *movingAverage) open(p *partition) windowValues {
	return &movingAverages{
		movingAverage: m, partition: p, formula: p.formula(m.next), first: p.formula(m.first), plain: p.formula(m.plain),
	}
}

// movingAverages computes in decimals, and gives doubles as long as no decimal has come.
type movingAverages struct {
	*movingAverage
	*partition
	formula, first, plain *formula
	last                  bson.RawValue
	decimal               bool
}

func (m *movingAverages) at(i int) (bson.RawValue, error) {
	v, err := m.eval(m.input, i)
	if err != nil {
		return v, err
	}
	if _, isNumber := rawNumber(v); isNumber {
		m.decimal = m.decimal || v.Type == bson.TypeDecimal128
		if m.last.Type == 0 {
			v, err = m.first.value(v)
		} else {
			v, err = m.formula.value(v, m.alpha, m.last)
		}
		if err != nil {
			return v, err
		}
		m.last = bson.RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)}
	}
	switch {
	case m.last.Type == 0:
		return null, nil
	case m.decimal:
		return m.last, nil
	default:
		return m.plain.value(m.last)
	}
}
