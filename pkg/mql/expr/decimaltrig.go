package expr

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/svcctl/svc/pkg/document"
)

// pi by Machin's formula.
func (w *wide) pi() *apd.Decimal {
	fifth := w.quo(apd.New(1, 0), apd.New(5, 0))
	small := w.quo(apd.New(1, 0), apd.New(239, 0))
	quarter := w.sub(w.mul(apd.New(4, 0), w.atanSeries(fifth)), w.atanSeries(small))
	return w.mul(apd.New(4, 0), quarter)
}

// series sums terms until they are too small to count.
func (w *wide) series(first *apd.Decimal, next func(term *apd.Decimal, n int64) *apd.Decimal) *apd.Decimal {
	sum, term := first, first
	for n := int64(1); ; n++ {
		term = next(term, n)
		if term.IsZero() || magnitude(term) < magnitude(sum)-int64(w.Precision)-2 {
			return sum
		}
		sum = w.add(sum, term)
	}
}

// atanSeries is for |x| below 1/2 or so.
func (w *wide) atanSeries(x *apd.Decimal) *apd.Decimal {
	square := w.mul(x, x)
	square.Negative = !square.Negative
	power := x
	return w.series(x, func(_ *apd.Decimal, n int64) *apd.Decimal {
		power = w.mul(power, square)
		return w.quo(power, apd.New(2*n+1, 0))
	})
}

// atan halves the angle until the series is quick.
func (w *wide) atan(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return x
	}
	one, times := apd.New(1, 0), int64(1)
	for range 4 {
		x = w.quo(x, w.add(one, w.sqrt(w.add(one, w.mul(x, x)))))
		times *= 2
	}
	return w.mul(apd.New(times, 0), w.atanSeries(x))
}

// sinCos gives both for an angle of any size.
func (w *wide) sinCos(x *apd.Decimal) (sin, cos *apd.Decimal) {
	half := w.quo(w.pi(), apd.New(2, 0))
	turns := new(apd.Decimal)
	_, _ = w.Quantize(turns, w.quo(x, half), 0)
	rest := w.sub(x, w.mul(turns, half))
	quarter := new(apd.Decimal)
	_, _ = w.Rem(quarter, turns, apd.New(4, 0))
	q, _ := quarter.Int64()

	minusSquare := w.mul(rest, rest)
	minusSquare.Negative = true
	sin = w.series(rest, func(term *apd.Decimal, n int64) *apd.Decimal {
		return w.quo(w.mul(term, minusSquare), apd.New(2*n*(2*n+1), 0))
	})
	cos = w.series(apd.New(1, 0), func(term *apd.Decimal, n int64) *apd.Decimal {
		return w.quo(w.mul(term, minusSquare), apd.New(2*n*(2*n-1), 0))
	})
	switch (q + 4) % 4 {
	case 1:
		sin, cos = cos, new(apd.Decimal).Neg(sin)
	case 2:
		sin, cos = new(apd.Decimal).Neg(sin), new(apd.Decimal).Neg(cos)
	case 3:
		sin, cos = new(apd.Decimal).Neg(cos), sin
	}
	return sin, cos
}

func decimalSin(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return d
	}
	sin, _ := wideContext(magnitude(d)).sinCos(d)
	return full(sin)
}

func decimalCos(d *apd.Decimal) *apd.Decimal {
	_, cos := wideContext(magnitude(d)).sinCos(d)
	return full(cos)
}

func decimalTan(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return d
	}
	w := wideContext(magnitude(d))
	sin, cos := w.sinCos(d)
	return full(w.quo(sin, cos))
}

func decimalAtan(d *apd.Decimal) *apd.Decimal {
	w := wideContext(magnitude(d))
	switch {
	case d.IsZero():
		return d
	case d.Form == apd.Infinite:
		out := full(w.quo(w.pi(), apd.New(2, 0)))
		out.Negative = d.Negative
		return out
	}
	return full(w.atan(d))
}

func decimalAsin(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return d
	}
	return full(wideContext(40).asin(d))
}

func (w *wide) asin(d *apd.Decimal) *apd.Decimal {
	one := apd.New(1, 0)
	root := w.sqrt(w.mul(w.sub(one, d), w.add(one, d)))
	if root.IsZero() {
		out := w.quo(w.pi(), apd.New(2, 0))
		out.Negative = d.Negative
		return out
	}
	return w.atan(w.quo(d, root))
}

func decimalAcos(d *apd.Decimal) *apd.Decimal {
	if d.Cmp(apd.New(1, 0)) == 0 {
		return zero(false)
	}
	w := wideContext(40)
	return full(w.sub(w.quo(w.pi(), apd.New(2, 0)), w.asin(d)))
}

func decimalAtan2(_ *apd.Context, d, y, x *apd.Decimal) (apd.Condition, error) {
	w := wideContext(40)
	pi := w.pi()
	var out *apd.Decimal
	switch {
	case x.Form == apd.Infinite || y.Form == apd.Infinite:
		d.Set(atan2Infinite(w, y, x))
		return 0, nil
	case y.IsZero() && !x.Negative:
		d.Set(zero(y.Negative))
		return 0, nil
	case y.IsZero():
		out = pi
	case x.IsZero():
		out = w.quo(pi, apd.New(2, 0))
	default:
		out = w.atan(new(apd.Decimal).Abs(w.quo(y, x)))
		if x.Negative {
			out = w.sub(pi, out)
		}
	}
	out.Negative = y.Negative
	d.Set(full(out))
	return 0, nil
}

// atan2Infinite is atan2 where one of the two is infinite.
func atan2Infinite(w *wide, y, x *apd.Decimal) *apd.Decimal {
	eighths := int64(4) // of a half turn
	switch {
	case y.Form != apd.Infinite && x.Negative:
		eighths = 8
	case y.Form != apd.Infinite:
		return zero(y.Negative)
	case x.Form == apd.Infinite && x.Negative:
		eighths = 6
	case x.Form == apd.Infinite:
		eighths = 2
	}
	out := full(w.quo(w.mul(w.pi(), apd.New(eighths, 0)), apd.New(8, 0)))
	out.Negative = y.Negative
	return out
}

// hyperbolic gives e^x and e^-x; nil where they are out of range.
func hyperbolic(d *apd.Decimal) (w *wide, up, down *apd.Decimal) {
	w = wideContext(40)
	if d.Form == apd.Infinite || magnitude(d) > 5 {
		return w, nil, nil
	}
	up = w.exp(d)
	down = w.quo(apd.New(1, 0), up)
	return w, up, down
}

func decimalSinh(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return d
	}
	if magnitude(d) < -20 {
		return full(d)
	}
	w, up, down := hyperbolic(d)
	if up == nil {
		return infinity(d.Negative)
	}
	return full(w.quo(w.sub(up, down), apd.New(2, 0)))
}

func decimalCosh(d *apd.Decimal) *apd.Decimal {
	w, up, down := hyperbolic(d)
	if up == nil {
		return infinity(false)
	}
	return full(w.quo(w.add(up, down), apd.New(2, 0)))
}

func decimalTanh(d *apd.Decimal) *apd.Decimal {
	if d.IsZero() {
		return d
	}
	if magnitude(d) < -20 {
		return full(d)
	}
	one := &apd.Decimal{Negative: d.Negative}
	one.Coeff.SetInt64(1)
	var size apd.Decimal
	if size.Abs(d).Cmp(apd.New(40, 0)) >= 0 { // 34 digits don't tell it from 1
		return one
	}
	w, up, down := hyperbolic(d)
	out := full(w.quo(w.sub(up, down), w.add(up, down)))
	if out.Cmp(one) == 0 {
		return one
	}
	return out
}

func decimalAsinh(d *apd.Decimal) *apd.Decimal {
	switch {
	case d.IsZero() || d.Form == apd.Infinite:
		return d
	case magnitude(d) < -6100: // as servers have it
		return zero(false)
	case magnitude(d) < -20:
		return full(d)
	}
	w, x := wideContext(60), new(apd.Decimal).Abs(d)
	out := full(w.ln(w.add(x, w.sqrt(w.add(w.mul(x, x), apd.New(1, 0))))))
	out.Negative = d.Negative
	return out
}

func decimalAcosh(d *apd.Decimal) *apd.Decimal {
	if d.Form == apd.Infinite {
		return d
	}
	if d.Cmp(apd.New(1, 0)) == 0 {
		return zero(false)
	}
	w := wideContext(60)
	return full(w.ln(w.add(d, w.sqrt(w.sub(w.mul(d, d), apd.New(1, 0))))))
}

func decimalAtanh(d *apd.Decimal) *apd.Decimal {
	one := apd.New(1, 0)
	switch {
	case d.IsZero():
		return d
	case new(apd.Decimal).Abs(d).Cmp(one) == 0:
		return infinity(d.Negative)
	case magnitude(d) < -20:
		return full(d)
	}
	w := wideContext(60)
	return full(w.quo(w.ln(w.quo(w.add(one, d), w.sub(one, d))), apd.New(2, 0)))
}

// turned multiplies by a constant, for degrees and radians.
func turned(factor string) func(*apd.Decimal) *apd.Decimal {
	return func(d *apd.Decimal) *apd.Decimal {
		f, _, _ := apd.NewFromString(factor)
		if d.Form == apd.Infinite {
			return d
		}
		out := wideContext(40).mul(d, f)
		rounded := new(apd.Decimal)
		_, _ = document.DecimalContext().Round(rounded, out)
		return rounded
	}
}
