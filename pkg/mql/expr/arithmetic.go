package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// add is $add: numbers, and at most one date.
type add struct{ operands }

func (n *add) eval(env *Env) (bson.RawValue, error) {
	s, date := newSum(), false
	for _, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNumber(v.Type):
			s.add(v)
		case v.Type == bson.TypeDateTime:
			if date {
				return missing, fail(16612, "$add takes only one date")
			}
			date = true
			s.settle()
			if s.kind == bson.TypeInt32 {
				s.kind = bson.TypeInt64
			}
			s.addInteger(int64Of(v))
		case isNull(v.Type):
			return null, nil
		default:
			return missing, fail(16554, "$add takes numbers and a date, not %s", typeName(v.Type))
		}
	}
	if date {
		return s.date(env)
	}
	return s.value(env), nil
}

// date is the sum of a date and numbers.
func (s *sum) date(env *Env) (bson.RawValue, error) {
	if s.kind == bson.TypeDecimal128 {
		total := document.Decimal(decimalValue(s.appendDecimal(nil)))
		n, _, _ := decimalLong(total, apd.RoundHalfEven)
		return env.date(n), nil
	}
	if !s.fitsLong() {
		return missing, fail(codeOverflow, "$add makes a date out of range")
	}
	return env.date(s.long()), nil
}

func (n *add) fold(f *folder) (node, error) {
	return merging{
		commutes: true,
		inner:    same[*add],
		again:    func(args operands) node { return &add{args} },
	}.fold(f, n.operands)
}

// multiply is $multiply.
type multiply struct{ operands }

func (n *multiply) eval(env *Env) (bson.RawValue, error) {
	p := product{kind: bson.TypeInt32, integer: 1, double: 1}
	for _, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNumber(v.Type):
			p.multiply(v)
		case isNull(v.Type):
			return null, nil
		default:
			return missing, fail(codeTypeMismatch, "$multiply takes numbers, not %s", typeName(v.Type))
		}
	}
	return p.value(env), nil
}

func (n *multiply) fold(f *folder) (node, error) {
	return merging{
		commutes: true,
		inner:    same[*multiply],
		again:    func(args operands) node { return &multiply{args} },
	}.fold(f, n.operands)
}

// product is kept in all types at once, because a later operand may decide which of them counts.
type product struct {
	kind    bson.Type
	integer int64
	over    bool // integer has overflowed
	double  float64
	decimal []byte
}

func (p *product) multiply(v bson.RawValue) {
	if p.kind == bson.TypeDecimal128 || v.Type == bson.TypeDecimal128 {
		if p.kind != bson.TypeDecimal128 {
			p.decimal = p.asDecimal()
			p.kind = bson.TypeDecimal128
		}
		_, p.decimal, _ = document.AppendProduct(nil, decimalValue(p.decimal), v)
		return
	}
	p.double *= floatOf(v)
	switch {
	case v.Type == bson.TypeDouble:
		p.kind = bson.TypeDouble
	case p.kind != bson.TypeDouble:
		if v.Type == bson.TypeInt64 {
			p.kind = bson.TypeInt64
		}
		p.timesInteger(integerOf(v))
	}
}

func (p *product) timesInteger(n int64) {
	var a, b [8]byte
	_, out, ok := document.AppendProduct(nil, int64Value(a[:], p.integer), int64Value(b[:], n))
	p.over = p.over || !ok
	if ok {
		p.integer = int64Of(bson.RawValue{Value: out})
	}
	if p.over {
		p.kind = bson.TypeDouble
	}
}

// asDecimal is what came before the first decimal.
func (p *product) asDecimal() []byte {
	v := bson.RawValue{Type: bson.TypeDouble}
	var b [8]byte
	if p.kind == bson.TypeDouble {
		v.Value = appendDouble(nil, p.double)
	} else {
		v = int64Value(b[:], p.integer)
	}
	return document.AppendDecimal(nil, decimalOf(v))
}

func (p *product) value(env *Env) bson.RawValue {
	switch p.kind {
	case bson.TypeDecimal128:
		start := len(env.arena)
		env.arena = append(env.arena, p.decimal...)
		return env.value(bson.TypeDecimal128, start)
	case bson.TypeDouble:
		return env.double(p.double)
	case bson.TypeInt64:
		return env.int64(p.integer)
	default:
		return env.integer(p.integer)
	}
}

func subtract(env *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNumber(a.Type) && isNumber(b.Type):
		return difference(env, a, b), nil
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case a.Type == bson.TypeDateTime && b.Type == bson.TypeDateTime:
		return env.int64(int64Of(a) - int64Of(b)), nil
	case a.Type == bson.TypeDateTime && isNumber(b.Type):
		ms, err := toLong(b)
		if err != nil {
			return missing, err
		}
		n, ok := minus(int64Of(a), ms)
		if !ok || ms == math.MinInt64 {
			return missing, fail(codeDuration, "$subtract makes a date out of range")
		}
		return env.date(n), nil
	default:
		return missing, fail(codeTypeMismatch, "$subtract can't take %s from %s", typeName(b.Type), typeName(a.Type))
	}
}

func minus(a, b int64) (int64, bool) {
	n := a - b
	return n, (n < a) == (b > 0)
}

func difference(env *Env, a, b bson.RawValue) bson.RawValue {
	switch {
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		return env.decimals(a, b, (*apd.Context).Sub)
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return env.double(floatOf(a) - floatOf(b))
	}
	x, y := integerOf(a), integerOf(b)
	n, ok := minus(x, y)
	switch {
	case !ok:
		return env.double(float64(x) - float64(y))
	case a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64:
		return env.int64(n)
	default:
		return env.integer(n)
	}
}

// decimals does decimal arithmetic with two numbers.
func (env *Env) decimals(
	a, b bson.RawValue, op func(c *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error),
) bson.RawValue {
	x, y := decimalOf(a), decimalOf(b)
	if x.Form == apd.NaN || y.Form == apd.NaN { // AppendSum knows what becomes of the bits of a NaN
		start := len(env.arena)
		_, env.arena, _ = document.AppendSum(env.arena, a, b)
		return env.value(bson.TypeDecimal128, start)
	}
	d := new(apd.Decimal)
	_, _ = op(document.DecimalContext(), d, x, y) // without traps there is no error
	return env.decimal(d)
}

func divide(env *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNumber(a.Type) && isNumber(b.Type):
		if !Truth(b) {
			return missing, fail(codeBadValue, "$divide can't divide by zero")
		}
		if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
			return env.decimals(a, b, quotient), nil
		}
		return env.double(floatOf(a) / floatOf(b)), nil
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	default:
		return missing, fail(codeTypeMismatch, "$divide takes numbers, not %s and %s", typeName(a.Type), typeName(b.Type))
	}
}

// exactly says whether d is a/b, for what the condition of subnormal numbers does not tell.
func exactly(d, a, b *apd.Decimal) bool {
	var product apd.Decimal
	product.Coeff.Mul(&d.Coeff, &b.Coeff)
	product.Exponent, product.Negative = d.Exponent+b.Exponent, d.Negative != b.Negative
	return product.Cmp(a) == 0
}

// quotient gives an exact result as few digits as the difference of the exponents asks for.
func quotient(c *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error) {
	if a.Form == apd.Finite && b.Form == apd.Infinite {
		d.Set(&apd.Decimal{Negative: a.Negative != b.Negative, Exponent: bson.MinDecimal128Exp})
		return 0, nil
	}
	cond, err := c.Quo(d, a, b)
	if err != nil || d.Form != apd.Finite || cond.Inexact() || !exactly(d, a, b) {
		return cond, err
	}
	toExponent(d, a.Exponent-b.Exponent)
	return cond, nil
}

func mod(env *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNumber(a.Type) && isNumber(b.Type):
		return remainder(env, a, b)
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	default:
		return missing, fail(16611, "$mod takes numbers, not %s and %s", typeName(a.Type), typeName(b.Type))
	}
}

func remainder(env *Env, a, b bson.RawValue) (bson.RawValue, error) {
	decimal := a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128
	switch {
	case decimal && !Truth(b):
		return missing, fail(5733415, "$mod can't divide by zero")
	case decimal:
		return env.decimals(a, b, modulo), nil
	case !Truth(b):
		return missing, fail(16610, "$mod can't divide by zero")
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble && !isInt32(doubleOf(b)):
		return env.double(math.Mod(floatOf(a), floatOf(b))), nil
	}
	x, y := integerOf(a), int64(floatOf(b))
	if b.Type != bson.TypeDouble {
		y = integerOf(b)
	}
	n := int64(0)
	if y != -1 {
		n = x % y
	}
	if a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64 {
		return env.int64(n), nil
	}
	return env.int32(int32(n)), nil
}

func isInt32(f float64) bool { return f == math.Trunc(f) && f >= math.MinInt32 && f <= math.MaxInt32 }

// modulo is Rem with as many digits on the way as it takes.
func modulo(_ *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error) {
	c := apd.Context{Precision: 13000, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}
	if a.Form == apd.Infinite {
		d.Form = apd.NaN
		return 0, nil
	}
	if b.Form == apd.Infinite {
		d.Set(a)
		return 0, nil
	}
	return c.Rem(d, a, b)
}
