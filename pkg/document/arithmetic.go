package document

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendSum appends the encoded sum of two numbers to dst and gives its type. The type is the wider of the two (int32,
// int64, double, decimal); a sum of integers that overflows int32 is an int64. ok is false, and dst as it was, where
// it overflows int64 and where a or b is no number.
func AppendSum(dst []byte, a, b bson.RawValue) (t bson.Type, out []byte, ok bool) {
	return appendResult(dst, a, b, sum)
}

// AppendProduct is AppendSum for the product.
func AppendProduct(dst []byte, a, b bson.RawValue) (t bson.Type, out []byte, ok bool) {
	return appendResult(dst, a, b, product)
}

// arithmetic is one operation, done for each type of numbers.
type arithmetic struct {
	integers func(a, b int64) (int64, bool)
	doubles  func(a, b float64) float64
	decimals func(c *apd.Context, d, a, b *apd.Decimal) (apd.Condition, error)
}

//nolint:gochecknoglobals // constants
var (
	sum = &arithmetic{
		integers: addIntegers,
		doubles:  func(a, b float64) float64 { return a + b },
		decimals: (*apd.Context).Add,
	}
	product = &arithmetic{
		integers: multiplyIntegers,
		doubles:  func(a, b float64) float64 { return a * b },
		decimals: (*apd.Context).Mul,
	}
)

func appendResult(dst []byte, a, b bson.RawValue, op *arithmetic) (bson.Type, []byte, bool) {
	if TypeOrder(a.Type) != orderNumber || TypeOrder(b.Type) != orderNumber {
		return 0, dst, false
	}
	switch {
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		return bson.TypeDecimal128, appendDecimalResult(dst, a, b, op), true
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		f := op.doubles(floatOf(a), floatOf(b))
		return bson.TypeDouble, binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), true
	}
	x, _ := integerValue(a)
	y, _ := integerValue(b)
	n, ok := op.integers(x, y)
	switch {
	case !ok:
		return 0, dst, false
	case a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 && n == int64(int32(n)): //nolint:gosec // the check
		return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(n)), true //nolint:gosec // the same bits
	default:
		return bson.TypeInt64, appendInt64(dst, n), true
	}
}

func addIntegers(a, b int64) (int64, bool) {
	n := a + b
	return n, (n > a) == (b > 0)
}

func multiplyIntegers(a, b int64) (int64, bool) {
	negative := (a < 0) != (b < 0)
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if negative {
		return -int64(low), high == 0 && low <= 1<<63 //nolint:gosec // -2^63 is its own negative
	}
	return int64(low), high == 0 && low < 1<<63 //nolint:gosec // checked
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n) //nolint:gosec // two's complement
	}
	return uint64(n)
}

// floatOf reads an integer or a double.
func floatOf(v bson.RawValue) float64 {
	if n, ok := integerValue(v); ok {
		return float64(n)
	}
	return doubleOf(v.Value)
}

// decimalContext is the arithmetic of Decimal128. The zero Traps make every result one, infinity and NaN included.
func decimalContext() apd.Context {
	return apd.Context{Precision: 34, MaxExponent: 6144, MinExponent: -6143, Rounding: apd.RoundHalfEven}
}

func appendDecimalResult(dst []byte, a, b bson.RawValue, op *arithmetic) []byte {
	for _, v := range [...]bson.RawValue{a, b} {
		if nan, ok := appendNaN(dst, v); ok {
			return nan
		}
	}
	c, x, y, d := decimalContext(), decimalOf(a), decimalOf(b), new(apd.Decimal)
	_, _ = op.decimals(&c, d, x, y) // without traps there is no error
	return appendDecimal(dst, d)
}

// appendNaN appends v as a decimal if it is a NaN. The bits that say which NaN it is are kept, as on a MongoDB server.
func appendNaN(dst []byte, v bson.RawValue) ([]byte, bool) {
	var high, low uint64
	switch {
	case v.Type == bson.TypeDouble && math.IsNaN(doubleOf(v.Value)):
		b := math.Float64bits(doubleOf(v.Value))
		payload := b & (1<<51 - 1)
		high, low = b&(1<<63)|payload>>5, payload<<59
	case v.Type == bson.TypeDecimal128 && len(v.Value) == 16 && v.Value[15]&0x7c == 0x7c:
		high, low = binary.LittleEndian.Uint64(v.Value[8:])&(1<<63|1<<46-1), binary.LittleEndian.Uint64(v.Value)
	default:
		return dst, false
	}
	const e33, e33Low = 0x314dc6448d93, 0x38c15b0a00000000 // 10^33: no payload is larger
	if p := high & (1<<46 - 1); p > e33 || p == e33 && low >= e33Low {
		high, low = high&(1<<63), 0
	}
	dst = binary.LittleEndian.AppendUint64(dst, low)
	return binary.LittleEndian.AppendUint64(dst, high|0x1f<<58), true
}

// decimalOf reads a number. A double counts with 15 significant digits, as on a MongoDB server.
func decimalOf(v bson.RawValue) *apd.Decimal {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := integerValue(v)
		return apd.New(n, 0)
	case bson.TypeDouble:
		return decimalOfDouble(doubleOf(v.Value))
	default:
		if len(v.Value) < 16 {
			return &apd.Decimal{Form: apd.NaN}
		}
		return decimalOfBits(binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value))
	}
}

func decimalOfDouble(f float64) *apd.Decimal {
	d := &apd.Decimal{Negative: math.Signbit(f)}
	switch {
	case math.IsNaN(f):
		d.Form = apd.NaN
	case math.IsInf(f, 0):
		d.Form = apd.Infinite
	case f != 0:
		var b [32]byte
		digits := strconv.AppendFloat(b[:0], math.Abs(f), 'e', 14, 64) // d.dddddddddddddde±xx
		exp, _ := strconv.Atoi(string(digits[17:]))
		coef, _ := strconv.ParseInt(string(digits[:1])+string(digits[2:16]), 10, 64)
		d.Coeff.SetInt64(coef)
		d.Exponent = int32(exp - 14) //nolint:gosec // below 400
	}
	return d
}

// decimalOfBits reads the halves of a Decimal128. What decimal takes for zero is zero here, too.
func decimalOfBits(high, low uint64) *apd.Decimal {
	d := &apd.Decimal{Negative: high>>63 == 1}
	switch {
	case high>>58&0x1f == 0x1f:
		d.Form = apd.NaN
	case high>>58&0x1f == 0x1e:
		d.Form = apd.Infinite
	case high>>61&3 == 3:
		d.Exponent = int32(high>>47&(1<<14-1)) + bson.MinDecimal128Exp
	default:
		d.Exponent = int32(high>>49&(1<<14-1)) + bson.MinDecimal128Exp
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], high&(1<<49-1))
		binary.BigEndian.PutUint64(b[8:], low)
		if n := decimal(high, low); n.class != classZero {
			d.Coeff.SetBytes(b[:])
		}
	}
	return d
}

// appendDecimal encodes a result of decimalContext.
func appendDecimal(dst []byte, d *apd.Decimal) []byte {
	sign := uint64(0)
	if d.Negative {
		sign = 1 << 63
	}
	high, low := uint64(0x1f)<<58, uint64(0)
	switch d.Form {
	case apd.Infinite:
		high = 0x1e<<58 | sign
	case apd.Finite:
		coef, exp := d.Coeff.MathBigInt(), int(d.Exponent)
		for exp > bson.MaxDecimal128Exp { // a number with a large exponent is written with zeros behind it
			exp--
			coef.Mul(coef, big.NewInt(10))
			if coef.Sign() == 0 {
				exp = bson.MaxDecimal128Exp
			}
		}
		exp = max(exp, bson.MinDecimal128Exp) // only a zero can be below
		var b [16]byte
		coef.FillBytes(b[:])
		high = sign | uint64(exp-bson.MinDecimal128Exp)<<49 | binary.BigEndian.Uint64(b[:])
		low = binary.BigEndian.Uint64(b[8:])
	default: // NaN
	}
	dst = binary.LittleEndian.AppendUint64(dst, low)
	return binary.LittleEndian.AppendUint64(dst, high)
}
