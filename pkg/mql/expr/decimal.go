package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// decimal writes a result.
func (env *Env) decimal(d *apd.Decimal) bson.RawValue {
	start := len(env.arena)
	env.arena = document.AppendDecimal(env.arena, d)
	return env.value(bson.TypeDecimal128, start)
}

// decimalOf reads a number of any type.
func decimalOf(v bson.RawValue) *apd.Decimal { return document.Decimal(v) }

func decimalIsNaN(v bson.RawValue) bool { return v.Value[15]&0x7c == 0x7c }

// exactDecimal is a double with up to 34 digits, where document.Decimal takes 15.
func exactDecimal(f float64) *apd.Decimal {
	d := &apd.Decimal{Negative: math.Signbit(f)}
	switch {
	case math.IsNaN(f):
		d.Form = apd.NaN
	case math.IsInf(f, 0):
		d.Form = apd.Infinite
	case f != 0:
		var b [64]byte
		digits := strconv.AppendFloat(b[:0], math.Abs(f), 'e', 33, 64) // d.ddd…e±xx
		exp, _ := strconv.Atoi(string(digits[36:]))                    // it is one
		n, _ := new(big.Int).SetString(string(digits[:1])+string(digits[2:35]), 10)
		d.Coeff.SetMathBigInt(n)
		d.Exponent = int32(exp - 33) //nolint:gosec // below 400
		if isShort(f) {              // no more digits than needed, but those of an integer
			toExponent(d, 0)
		}
	}
	return d
}

// isShort says whether a double has no more than 34 digits.
func isShort(f float64) bool {
	var b [96]byte
	digits := strconv.AppendFloat(b[:0], math.Abs(f), 'e', 80, 64)
	return len(bytes.Trim(digits[35:82], "0")) == 0
}

func appendExact(dst []byte, f float64) []byte { return document.AppendDecimal(dst, exactDecimal(f)) }

// floatOf reads a number of any type.
func floatOf(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		return doubleOf(v)
	case bson.TypeDecimal128:
		return decimalFloat(decimalOf(v))
	default:
		return float64(integerOf(v))
	}
}

// quietNaN is the NaN that other programs make; Go's has one bit more.
const quietNaN = 0x7ff8000000000000

func decimalFloat(d *apd.Decimal) float64 {
	if d.Form == apd.NaN {
		return math.Float64frombits(quietNaN)
	}
	f, _ := strconv.ParseFloat(d.Text('E'), 64) // out of range is infinity, as it has to be
	return f
}

// decimalLong gives the integer that a decimal rounds to; the least int64 if there is none.
func decimalLong(d *apd.Decimal, rounding apd.Rounder) (n int64, exact, ok bool) {
	if d.Form != apd.Finite || d.NumDigits()+int64(d.Exponent) > 20 {
		return math.MinInt64, false, false
	}
	c := apd.Context{Precision: 60, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: rounding}
	var r apd.Decimal
	cond, _ := c.Quantize(&r, d, 0) // without traps there is no error
	n, err := r.Int64()
	if err != nil {
		return math.MinInt64, false, false
	}
	return n, !cond.Inexact(), true
}

// quantize gives d with an exponent, NaN where that takes more than 34 digits.
func quantize(d *apd.Decimal, exp int32, rounding apd.Rounder) *apd.Decimal {
	c := document.DecimalContext()
	c.Rounding = rounding
	out := new(apd.Decimal)
	_, _ = c.Quantize(out, d, exp) // as above
	return out
}

// withoutSign writes the absolute value of a decimal.
func (env *Env) withoutSign(v bson.RawValue) bson.RawValue {
	start := len(env.arena)
	env.arena = append(env.arena, v.Value...)
	env.arena[start+15] &^= 0x80
	return env.value(bson.TypeDecimal128, start)
}

// bits are the halves of a decimal.
func bits(v bson.RawValue) (high, low uint64) {
	return binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value)
}
