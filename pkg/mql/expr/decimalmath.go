package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// wide is decimal arithmetic with some digits more than a result has.
type wide struct{ apd.Context }

func wideContext(digits int64) *wide {
	return &wide{apd.Context{
		Precision:   uint32(34 + 20 + max(0, min(digits, 7000))),
		MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven,
	}}
}

// magnitude is the number of digits before the point.
func magnitude(d *apd.Decimal) int64 { return d.NumDigits() + int64(d.Exponent) }

// The arithmetic of a wide context without traps gives no errors.

func (w *wide) add(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Add(d, a, b)
	return d
}

func (w *wide) sub(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Sub(d, a, b)
	return d
}

func (w *wide) mul(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Mul(d, a, b)
	return d
}

func (w *wide) quo(a, b *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Quo(d, a, b)
	return d
}

func (w *wide) sqrt(a *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Sqrt(d, a)
	return d
}

func (w *wide) exp(a *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Exp(d, a)
	return d
}

func (w *wide) ln(a *apd.Decimal) *apd.Decimal {
	d := new(apd.Decimal)
	_, _ = w.Ln(d, a)
	return d
}

func zero(negative bool) *apd.Decimal { return &apd.Decimal{Negative: negative} }

func infinity(negative bool) *apd.Decimal {
	return &apd.Decimal{Form: apd.Infinite, Negative: negative}
}

func nan() *apd.Decimal { return &apd.Decimal{Form: apd.NaN} }

// full rounds to a result with all 34 digits.
func full(d *apd.Decimal) *apd.Decimal {
	out := new(apd.Decimal)
	_, _ = document.DecimalContext().Round(out, d)
	if out.Form != apd.Finite || out.IsZero() {
		return out
	}
	return toExponent(out, bson.MinDecimal128Exp)
}

func decimalSqrt(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return &apd.Decimal{Negative: d.Negative, Exponent: floorHalf(d.Exponent)}
	}
	if d.Form == apd.Infinite {
		return d
	}
	out, c := new(apd.Decimal), document.DecimalContext()
	cond, _ := c.Sqrt(out, d)
	if cond.Inexact() {
		return full(out)
	}
	return toExponent(out, floorHalf(d.Exponent))
}

func floorHalf(n int32) int32 { return n >> 1 }

// toExponent brings an exact result as near to an exponent as 34 digits allow, in place, and gives it back.
func toExponent(d *apd.Decimal, exp int32) *apd.Decimal {
	for d.Exponent > exp && d.NumDigits() < 34 {
		d.Coeff.Mul(&d.Coeff, apd.NewBigInt(10))
		d.Exponent--
	}
	for d.Exponent < exp {
		var q, r apd.BigInt
		if q.QuoRem(&d.Coeff, apd.NewBigInt(10), &r); r.Sign() != 0 {
			break
		}
		d.Coeff.Set(&q)
		d.Exponent++
	}
	return d
}

func decimalExp(d *apd.Decimal) *apd.Decimal {
	switch {
	case d.Form == apd.Infinite && d.Negative:
		return zero(false)
	case d.Form == apd.Infinite:
		return d
	case d.IsZero():
		return apd.New(1, 0)
	case magnitude(d) > 5 && d.Negative:
		return &apd.Decimal{Exponent: bson.MinDecimal128Exp}
	case magnitude(d) > 5:
		return infinity(false)
	case magnitude(d) < -40:
		return full(apd.New(1, 0))
	}
	return full(wideContext(magnitude(d)).exp(d))
}

func decimalLn(d *apd.Decimal) *apd.Decimal {
	switch {
	case d.Form == apd.Infinite:
		return d
	case d.Cmp(apd.New(1, 0)) == 0:
		return zero(false)
	}
	return full(wideContext(40).ln(d))
}

func decimalLog10(d *apd.Decimal) *apd.Decimal {
	if d.Form == apd.Infinite {
		return d
	}
	var reduced apd.Decimal
	if reduced.Reduce(d); reduced.Coeff.Cmp(apd.NewBigInt(1)) == 0 {
		return apd.New(int64(reduced.Exponent), 0)
	}
	w := wideContext(40)
	out := new(apd.Decimal)
	_, _ = w.Log10(out, d)
	return full(out)
}

// decimalLog is as MongoDB has it: the bases 2 and 10 are taken for what they are; with any other, the natural logarithm
// is divided by the base itself.
func decimalLog(c *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error) {
	switch {
	case b.Cmp(apd.New(10, 0)) == 0:
		d.Set(decimalLog10(a))
		return 0, nil
	case b.Cmp(apd.New(2, 0)) == 0:
		d.Set(decimalLog2(a))
		return 0, nil
	}
	return c.Quo(d, decimalLn(a), b)
}

func decimalLog2(d *apd.Decimal) *apd.Decimal {
	if d.Form == apd.Infinite {
		return d
	}
	w := wideContext(40)
	out := w.quo(w.ln(d), w.ln(apd.New(2, 0)))
	whole := new(apd.Decimal)
	_, _ = w.Quantize(whole, out, 0)
	back := new(apd.Decimal)
	if _, _ = w.Pow(back, apd.New(2, 0), whole); back.Cmp(d) == 0 {
		return whole
	}
	return full(out)
}

// decimalPow gives all digits, as MongoDB does, even of whole numbers.
func decimalPow(_ *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error) {
	switch {
	case b.IsZero():
		d.Set(full(apd.New(1, 0)))
	case a.IsZero():
		d.Set(zero(a.Negative && isOdd(b)))
	case a.Form == apd.Infinite || b.Form == apd.Infinite:
		f := math.Pow(decimalFloat(a), decimalFloat(b))
		d.Set(exactDecimal(f))
	case a.Negative && !isWhole(b):
		d.Set(nan())
	default:
		x := new(apd.Decimal).Abs(a)
		w := wideContext(40)
		power := w.mul(w.ln(x), b)
		switch {
		case magnitude(power) > 5 && power.Negative && !power.IsZero():
			d.Set(&apd.Decimal{Exponent: bson.MinDecimal128Exp})
		case magnitude(power) > 5 && !power.IsZero():
			d.Set(infinity(false))
		default:
			d.Set(full(w.exp(power)))
		}
		d.Negative = a.Negative && isOdd(b)
	}
	return 0, nil
}

func isWhole(d *apd.Decimal) bool {
	var r apd.Decimal
	r.Reduce(d)
	return r.Exponent >= 0 || d.IsZero()
}

func isOdd(d *apd.Decimal) bool {
	var r apd.Decimal
	r.Reduce(d)
	return r.Exponent == 0 && r.Coeff.Bit(0) == 1
}
