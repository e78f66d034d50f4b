package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// ofNumber is an operator of one number; null gives null.
func ofNumber(apply unaryFunc) operator {
	return one(func(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
		switch {
		case isNull(v.Type):
			return null, nil
		case !isNumber(v.Type):
			return missing, fail(28765, "%s takes numbers, not %s", name, typeName(v.Type))
		}
		return apply(env, name, v)
	})
}

func abs(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDecimal128:
		return env.withoutSign(v), nil
	case bson.TypeDouble:
		return env.double(math.Abs(doubleOf(v))), nil
	default:
	}
	n := integerOf(v)
	switch {
	case n == math.MinInt64:
		return missing, fail(28680, "%s can't take the least long, whose opposite is none", name)
	case n >= 0:
		return v, nil
	case v.Type == bson.TypeInt64:
		return env.int64(-n), nil
	default:
		return env.integer(-n), nil
	}
}

// toWhole is $ceil and $floor.
func toWhole(double func(float64) float64, rounding apd.Rounder) operator {
	return ofNumber(func(env *Env, _ string, v bson.RawValue) (bson.RawValue, error) {
		switch v.Type {
		case bson.TypeDouble:
			return env.double(double(doubleOf(v))), nil
		case bson.TypeDecimal128:
			return env.decimal(whole(decimalOf(v), rounding)), nil
		default:
			return v, nil
		}
	})
}

// whole rounds to an integer.
func whole(d *apd.Decimal, rounding apd.Rounder) *apd.Decimal {
	out := quantize(d, 0, rounding)
	away := rounding == apd.RoundCeiling && !d.Negative || rounding == apd.RoundFloor && d.Negative
	if out.IsZero() && !d.IsZero() && away { // d is too small for the library
		out.Coeff.SetInt64(1)
	}
	return out
}

// rounded is a decimal with a number of digits behind the point.
func (env *Env) rounded(v bson.RawValue, places int32, rounding apd.Rounder) bson.RawValue {
	d := decimalOf(v)
	if d.Form != apd.Finite {
		return v
	}
	q := quantize(d, -places, rounding)
	if q.Form != apd.Finite { // all its digits are before that place
		q = full(d)
	}
	return env.decimal(q)
}

// rounding is $round and $trunc.
func rounding(mode apd.Rounder) operator {
	return operator{min: 1, max: 2, make: func(name string, args []node) node {
		return &rounds{name, args, mode}
	}}
}

type rounds struct {
	name string
	operands
	mode apd.Rounder
}

func (n *rounds) eval(env *Env) (bson.RawValue, error) {
	v, err := n.operands[0].eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type):
		return null, nil
	case !isNumber(v.Type):
		return missing, fail(51081, "%s takes numbers, not %s", n.name, typeName(v.Type))
	}
	places := int64(0)
	if len(n.operands) > 1 {
		p, err := n.operands[1].eval(env)
		if err != nil {
			return missing, err
		}
		if isNull(p.Type) {
			return null, nil
		}
		if places, err = n.places(p); err != nil {
			return missing, err
		}
	}
	return n.round(env, v, places)
}

func (n *rounds) places(p bson.RawValue) (int64, error) {
	places, err := toLong(p)
	switch {
	case p.Type == bson.TypeDecimal128 && !isIntegral(p), err == nil && !isIntegral(p):
		return 0, fail(51082, "%s needs a whole number of places", n.name)
	case err != nil:
		return 0, err
	case places < -20 || places > 100:
		return 0, fail(51083, "%s takes -20 to 100 places, not %d", n.name, places)
	}
	return places, nil
}

func (n *rounds) round(env *Env, v bson.RawValue, places int64) (bson.RawValue, error) {
	exp := int32(-places) //nolint:gosec // small
	switch v.Type {
	case bson.TypeDecimal128:
		return env.rounded(v, -exp, n.mode), nil
	case bson.TypeDouble:
		f := doubleOf(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return v, nil
		}
		d := quantize(exactDecimal(f), exp, n.mode)
		if d.Form != apd.Finite { // it has no digits there
			return v, nil
		}
		return env.double(decimalFloat(d)), nil
	default:
	}
	if places >= 0 {
		return v, nil
	}
	i, _, ok := decimalLong(quantize(decimalOf(v), exp, n.mode), apd.RoundHalfEven)
	switch {
	case !ok:
		return missing, fail(51080, "%s makes a number out of range", n.name)
	case v.Type == bson.TypeInt64:
		return env.int64(i), nil
	default:
		return env.integer(i), nil
	}
}

// isIntegral says whether a number is an int32 in value.
func isIntegral(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt32:
		return true
	case bson.TypeInt64:
		n := int64Of(v)
		return n == int64(int32(n)) //nolint:gosec // the check
	case bson.TypeDouble:
		return isInt32(doubleOf(v))
	case bson.TypeDecimal128:
		n, exact, ok := decimalLong(decimalOf(v), apd.RoundHalfEven)
		return ok && exact && n == int64(int32(n)) //nolint:gosec // the check
	default:
		return false
	}
}

// toLong turns a number into an integer where an operator needs one.
func toLong(v bson.RawValue) (int64, error) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return integerOf(v), nil
	case bson.TypeDouble:
		f := doubleOf(v)
		if !(f >= -1<<63 && f < 1<<63) {
			return 0, fail(31109, "%v is out of the range of whole numbers", f)
		}
		return int64(f), nil
	case bson.TypeDecimal128:
		n, _, _ := decimalLong(decimalOf(v), apd.RoundHalfEven) // the least integer where there is none, as servers have it
		return n, nil
	default:
		return 0, fail(16004, "a number is needed here, not %s", typeName(v.Type))
	}
}

func pow(env *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case !isNumber(a.Type):
		return missing, fail(28762, "%s needs a number as its base, not %s", name, typeName(a.Type))
	case !isNumber(b.Type):
		return missing, fail(28763, "%s needs a number as its exponent, not %s", name, typeName(b.Type))
	case !Truth(a) && (isNegative(b) || isDecimalMinusZero(a, b)):
		return missing, fail(28764, "%s can't raise 0 to a negative power", name)
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		if !Truth(b) || isOne(a) { // even with NaN
			return env.decimal(full(apd.New(1, 0))), nil
		}
		return env.decimals(a, b, decimalPow), nil
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return env.double(math.Pow(floatOf(a), floatOf(b))), nil
	}
	n, ok := integerPow(integerOf(a), integerOf(b))
	switch {
	case !ok:
		return env.double(math.Pow(floatOf(a), floatOf(b))), nil
	case a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64:
		return env.int64(n), nil
	default:
		return env.integer(n), nil
	}
}

func isOne(v bson.RawValue) bool {
	return document.Compare(v, bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}) == 0
}

// isDecimalMinusZero says whether b is -0 where it counts as a decimal, whose sign servers look at.
func isDecimalMinusZero(a, b bson.RawValue) bool {
	switch {
	case Truth(b):
		return false
	case b.Type == bson.TypeDecimal128:
		return b.Value[15]&0x80 != 0
	default:
		return a.Type == bson.TypeDecimal128 && b.Type == bson.TypeDouble && math.Signbit(doubleOf(b))
	}
}

func integerPow(base, exp int64) (int64, bool) {
	switch {
	case base == 1 || exp == 0:
		return 1, true
	case base == 0:
		return 0, exp > 0
	case base == -1:
		return 1 - 2*(exp&1), true
	case exp < 0 || exp > 63:
		return 0, false
	}
	n := int64(1)
	for range exp {
		next := n * base
		if next/base != n {
			return 0, false
		}
		n = next
	}
	return n, true
}

func isNegative(v bson.RawValue) bool {
	return compare(v, bson.RawValue{Type: bson.TypeInt32, Value: []byte{0, 0, 0, 0}}) < 0 && !isNaN(v)
}

func isNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		return math.IsNaN(doubleOf(v))
	case bson.TypeDecimal128:
		return decimalIsNaN(v)
	default:
		return false
	}
}

// Codes of numbers out of an operator's range.
//
//nolint:errname // they are numbers
const (
	codeSqrt  document.ServerCode = 28714
	codeLn    document.ServerCode = 28766
	codeLog10 document.ServerCode = 28761
	codeTrig  document.ServerCode = 50989
)

// within is the range of an operator of one number.
type within struct {
	low, high float64
	open      bool // the bounds are out
	code      document.ServerCode
}

func (w within) holds(v bson.RawValue) bool {
	f := floatOf(v)
	if v.Type == bson.TypeDecimal128 && w.code == codeTrig && w.open {
		return decimalOf(v).Form != apd.Infinite
	}
	switch {
	case isNaN(v):
		return true
	case w.open:
		if f == 0 && v.Type == bson.TypeDecimal128 { // too small for a double
			return w.low < 0 || Truth(v) && !isNegative(v)
		}
		return f > w.low && f < w.high || (f == w.high && w.code != codeTrig)
	default:
		if v.Type == bson.TypeDecimal128 && (f == w.low || f == w.high) {
			return compareDecimal(v, w.low) >= 0 && compareDecimal(v, w.high) <= 0
		}
		return f >= w.low && f <= w.high
	}
}

func compareDecimal(v bson.RawValue, f float64) int {
	return document.Compare(v, bson.RawValue{Type: bson.TypeDouble, Value: appendDouble(nil, f)})
}

// function is an operator that is a function of one number in a range.
func function(w within, double func(float64) float64, decimal func(*apd.Decimal) *apd.Decimal) operator {
	return ofNumber(func(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
		if !w.holds(v) {
			return missing, fail(w.code, "the number is out of the range of %s", name)
		}
		if v.Type != bson.TypeDecimal128 {
			return env.double(double(floatOf(v))), nil
		}
		switch {
		case decimalIsNaN(v) && (w.code == codeLn || w.code == codeLog10):
			return env.double(math.Float64frombits(quietNaN)), nil
		case decimalIsNaN(v):
			return env.decimals(v, v, (*apd.Context).Add), nil
		}
		return env.decimal(decimal(decimalOf(v))), nil
	})
}

//nolint:gochecknoglobals // constants
var (
	anyNumber = within{low: math.Inf(-1), high: math.Inf(1)}
	finite    = within{low: math.Inf(-1), high: math.Inf(1), open: true, code: codeTrig}
	toOne     = within{low: -1, high: 1, code: codeTrig}
)

// naturalLog is math.Log, which is wrong for numbers below 2^-1022 on some machines.
func naturalLog(f float64) float64 {
	if f < 0x1p-1022 && f > 0 {
		return math.Log(f*0x1p54) - 54*math.Ln2
	}
	return math.Log(f)
}

// decadicLog is math.Log10, with the same care.
func decadicLog(f float64) float64 {
	if f < 0x1p-1022 && f > 0 {
		return math.Log10(f*0x1p54) - 54*(math.Ln2/math.Ln10)
	}
	return math.Log10(f)
}

func log(env *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case !isNumber(a.Type):
		return missing, fail(28756, "%s takes numbers, not %s", name, typeName(a.Type))
	case !isNumber(b.Type):
		return missing, fail(28757, "%s needs a number as its base, not %s", name, typeName(b.Type))
	}
	positive := within{low: 0, high: math.Inf(1), open: true}
	valid := positive.holds(a) && positive.holds(b) && !isOne(b)
	switch { // with one that is none, the nearest doubles count
	case isNaN(a):
		valid = isNaN(b) || floatOf(b) > 0 && floatOf(b) != 1
	case isNaN(b):
		valid = floatOf(a) > 0
	}
	switch {
	case floatOf(a) <= 0 && !valid: // servers look at the nearest doubles to tell what is wrong
		return missing, fail(28758, "%s takes positive numbers only", name)
	case !valid:
		return missing, fail(28759, "%s needs a positive base other than 1", name)
	case isNaN(a) || isNaN(b):
		return env.double(math.Float64frombits(quietNaN)), nil
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		return env.decimals(a, b, decimalLog), nil
	default:
		return env.double(naturalLog(floatOf(a)) / naturalLog(floatOf(b))), nil
	}
}

// atan2 is $atan2. Its second operand is computed only if the first is not null.
type atan2 struct{ operands }

func (n *atan2) eval(env *Env) (bson.RawValue, error) {
	var v [2]bson.RawValue
	for i, a := range n.operands {
		var err error
		v[i], err = a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(v[i].Type):
			return null, nil
		case !isNumber(v[i].Type):
			return missing, fail([...]document.ServerCode{51044, 51045}[i], "$atan2 takes numbers, not %s", typeName(v[i].Type))
		}
	}
	if v[0].Type == bson.TypeDecimal128 || v[1].Type == bson.TypeDecimal128 {
		return env.decimals(v[0], v[1], decimalAtan2), nil
	}
	return env.double(math.Atan2(floatOf(v[0]), floatOf(v[1]))), nil
}
