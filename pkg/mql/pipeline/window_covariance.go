package pipeline

import (
	"cmp"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// covariance is $covariancePop and $covarianceSamp: of the pairs of numbers in a window.
type covariance struct {
	of     *expr.Expr
	sample bool
	bounds windowBounds
	by     *expr.Expr

	sum, mean *expr.Accumulator // of a variable v
	product   *expr.Expr        // (x - mx)(y - my)
	quotient  *expr.Expr        // v / n
}

func (f *windowField) covariance() (windowFunction, any, error) {
	b, wrong := f.bounds()
	if wrong != nil && f.windowFirst {
		return nil, nil, wrong
	}
	c := &covariance{sample: f.function == "$covarianceSamp", bounds: b}
	of, err := f.expression(f.operand)
	if err := cmp.Or(err, wrong); err != nil {
		return nil, nil, err
	}
	c.of = of
	if c.by, err = f.rangeValue(&b); err != nil {
		return nil, nil, err
	}
	if c.sum, err = expr.CompileWindow("$sum", "$$v", true, sortKeys, "v"); err != nil {
		return nil, nil, err
	}
	if c.mean, err = expr.CompileWindow("$avg", "$$v", true, sortKeys, "v"); err != nil {
		return nil, nil, err
	}
	c.product = newFormula(formulaOf("$multiply", formulaOf("$subtract", "$$x", "$$mx"), formulaOf("$subtract", "$$y", "$$my")), "x", "mx", "y", "my")
	c.quotient = newFormula(formulaOf("$divide", "$$v", "$$n"), "v", "n")
	return c, c.of.Raw(), nil
}

func (c *covariance) open(p *partition) windowValues {
	return &covariances{
		covariance: c, frame: c.bounds.frame(p, c.by), values: newColumn(p, c.of), multiply: p.formula(c.product), divide: p.formula(c.quotient),
		env: p.r.newEnv(make([]bson.RawValue, 1)), lo: -1,
	}
}

// covariances is that of the documents from lo up to end.
type covariances struct {
	*covariance
	frame            frame
	values           *column
	multiply, divide *formula
	env              *expr.Env
	lo, end          int
	n, special       int64 // pairs of finite numbers, and others
	x, y, products   expr.State
	specials         expr.State // the sum of the numbers of the others
}

func (c *covariances) at(i int) (bson.RawValue, error) {
	lo, hi, err := c.frame.around(i)
	if err != nil {
		return null, err
	}
	hi = max(hi, lo-1)
	if c.lo < 0 {
		c.lo, c.end = lo, lo
		if err := c.start(); err != nil {
			return null, err
		}
		if err := c.sum.Start(&c.specials, c.env); err != nil {
			return null, err
		}
	}
	for ; c.end <= hi; c.end++ {
		if err := c.add(c.end); err != nil {
			return null, err
		}
	}
	for ; c.lo < lo; c.lo++ {
		if c.lo < c.end {
			if err := c.remove(c.lo); err != nil {
				return null, err
			}
		}
	}
	c.end = max(c.end, c.lo)
	return c.result()
}

func (c *covariances) start() error {
	for _, s := range [...]*expr.State{&c.x, &c.y} {
		if err := c.mean.Start(s, c.env); err != nil {
			return err
		}
	}
	return c.sum.Start(&c.products, c.env)
}

// pair gives the two numbers of a document.
func (c *covariances) pair(i int) (x, y bson.RawValue, ok bool, err error) {
	v, err := c.values.at(i)
	if err != nil || v.Type != bson.TypeArray {
		return x, y, false, err
	}
	n := 0
	for it := document.NewIter(v.Value); it.Next(); n++ {
		x, y = y, it.Value()
	}
	_, isNumber := rawNumber(x)
	_, areNumbers := rawNumber(y)
	return x, y, n == 2 && isNumber && areNumbers, nil
}

func (c *covariances) add(i int) error {
	x, y, ok, err := c.pair(i)
	if !ok || err != nil {
		return err
	}
	if !finitePair(x, y) {
		c.special++
		return c.countSpecial(c.sum.Add, x, y)
	}
	before, err := c.average(&c.x, c.n)
	if err != nil {
		return err
	}
	if err := c.change(c.mean.Add, x, y); err != nil {
		return err
	}
	c.n++
	after, err := c.average(&c.y, c.n)
	if err != nil {
		return err
	}
	if c.n == 1 {
		before = x
	}
	return c.multiplied(c.sum.Add, x, before, y, after)
}

func (c *covariances) remove(i int) error {
	x, y, ok, err := c.pair(i)
	if !ok || err != nil {
		return err
	}
	if !finitePair(x, y) {
		c.special--
		return c.countSpecial(c.sum.Remove, x, y)
	}
	if c.n == 1 {
		c.n = 0
		return c.start()
	}
	after, err := c.average(&c.y, c.n)
	if err != nil {
		return err
	}
	if err := c.change(c.mean.Remove, x, y); err != nil {
		return err
	}
	c.n--
	before, err := c.average(&c.x, c.n)
	if err != nil {
		return err
	}
	return c.multiplied(c.sum.Remove, x, before, y, after)
}

// countSpecial changes the sum of numbers that are not finite, which is what the covariance is then.
func (c *covariances) countSpecial(change func(*expr.State, *expr.Env) error, numbers ...bson.RawValue) error {
	for _, v := range numbers {
		c.env.Vars[0] = v
		c.env.Forget()
		if err := change(&c.specials, c.env); err != nil {
			return err
		}
	}
	return nil
}

func finitePair(values ...bson.RawValue) bool {
	for _, v := range values {
		if f, _ := rawNumber(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}

// average is the mean of what is in a State; of nothing it is 0.
func (c *covariances) average(s *expr.State, n int64) (bson.RawValue, error) {
	if n == 0 {
		return integer(0), nil
	}
	c.env.Forget()
	v, err := c.mean.Value(s, c.env)
	v.Value = append([]byte{}, v.Value...)
	return v, err
}

func (c *covariances) change(change func(*expr.State, *expr.Env) error, x, y bson.RawValue) error {
	c.env.Vars[0] = x
	if err := change(&c.x, c.env); err != nil {
		return err
	}
	c.env.Vars[0] = y
	return change(&c.y, c.env)
}

func (c *covariances) multiplied(change func(*expr.State, *expr.Env) error, x, mx, y, my bson.RawValue) error {
	v, err := c.multiply.value(x, mx, y, my)
	if err != nil {
		return err
	}
	c.env.Vars[0] = v
	return change(&c.products, c.env)
}

func (c *covariances) result() (bson.RawValue, error) {
	n := c.n
	if c.sample {
		n--
	}
	switch {
	case n <= 0:
		return null, nil
	case c.n == 1:
		return double(0), nil
	case c.special > 0:
		c.env.Forget()
		return c.sum.Value(&c.specials, c.env)
	}
	c.env.Forget()
	v, err := c.sum.Value(&c.products, c.env)
	if err != nil {
		return v, err
	}
	return c.divide.value(v, long(n))
}
