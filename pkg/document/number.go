package document

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// numberClass is the first thing that decides between two numbers. The values are part of index keys.
type numberClass byte

const (
	classNaN numberClass = iota + 1 // smallest of all, equal to itself
	classNegInf
	classNegative
	classZero // +0, -0, and every decimal zero
	classPositive
	classPosInf
)

// number is a value of any number type in the form that both Compare and AppendKey use, so that the two can't
// disagree. The magnitude is trunc, the largest float64 not above it, and, where that is not exact, its decimal
// digits: magnitude = 0.d1d2d3… × 10^exp, with d1 ≠ 0 and no trailing zeros.
type number struct {
	class  numberClass
	exact  bool // the magnitude is trunc itself; digits are unset
	trunc  float64
	exp    int
	count  int // of digits
	digits [40]byte
}

func numberOf(v bson.RawValue) number {
	switch v.Type {
	case bson.TypeInt32:
		return integer(int64(int32Of(v.Value)))
	case bson.TypeInt64:
		return integer(int64Of(v.Value))
	case bson.TypeDouble:
		return double(doubleOf(v.Value))
	default:
		if len(v.Value) < 16 {
			return number{class: classNaN}
		}
		return decimal(binary.LittleEndian.Uint64(v.Value[8:]), binary.LittleEndian.Uint64(v.Value))
	}
}

func compareNumbers(a, b *number) int {
	if a.class != b.class {
		return cmp.Compare(a.class, b.class)
	}
	if a.class != classNegative && a.class != classPositive {
		return 0
	}
	c := compareMagnitudes(a, b)
	if a.class == classNegative {
		return -c
	}
	return c
}

func compareMagnitudes(a, b *number) int {
	if c := cmp.Compare(a.trunc, b.trunc); c != 0 {
		return c
	}
	switch {
	case a.exact && b.exact:
		return 0
	case a.exact:
		return -1
	case b.exact:
		return 1
	}
	if c := cmp.Compare(a.exp, b.exp); c != 0 {
		return c
	}
	return bytes.Compare(a.digits[:a.count], b.digits[:b.count])
}

func double(f float64) number {
	switch {
	case math.IsNaN(f):
		return number{class: classNaN}
	case f == 0:
		return number{class: classZero}
	case math.IsInf(f, 1):
		return number{class: classPosInf}
	case math.IsInf(f, -1):
		return number{class: classNegInf}
	}
	return number{class: signClass(f < 0), exact: true, trunc: math.Abs(f)}
}

func integer(i int64) number {
	if i == 0 {
		return number{class: classZero}
	}
	u := uint64(i) //nolint:gosec // negated below
	if i < 0 {
		u = -u
	}
	n := number{class: signClass(i < 0), exact: true}
	low := u
	if extra := bits.Len64(u) - 53; extra > 0 {
		low = u >> extra << extra
	}
	n.trunc = float64(low)
	if low != u {
		n.exact = false
		n.setDigits(strconv.AppendUint(n.digits[:0], u, 10), 0)
	}
	return n
}

func signClass(negative bool) numberClass {
	if negative {
		return classNegative
	}
	return classPositive
}

// setDigits makes the canonical digits of (digits as an integer) × 10^exp10; digits is a prefix of n.digits.
func (n *number) setDigits(digits []byte, exp10 int) {
	n.exp = exp10 + len(digits)
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	n.count = len(digits)
}

// decimal reads the halves of a Decimal128 (IEEE 754-2008, binary integer significand).
func decimal(high, low uint64) number {
	negative := high>>63 == 1
	switch high >> 58 & 0x1f {
	case 0x1f:
		return number{class: classNaN}
	case 0x1e:
		if negative {
			return number{class: classNegInf}
		}
		return number{class: classPosInf}
	}
	if high>>61&3 == 3 {
		return number{class: classZero} // a significand out of range counts as zero
	}
	exp10 := int(high>>49&(1<<14-1)) + bson.MinDecimal128Exp
	high &= 1<<49 - 1

	const e19 = 10_000_000_000_000_000_000
	upper, lower := bits.Div64(high, low, e19)
	if upper >= 1_000_000_000_000_000 || (upper == 0 && lower == 0) { // 10^34 and above are out of range: zero
		return number{class: classZero}
	}
	n := number{class: signClass(negative)}
	digits := n.digits[:0]
	if upper > 0 {
		digits = strconv.AppendUint(digits, upper, 10)
		for pad := uint64(e19 / 10); pad > lower && pad > 1; pad /= 10 {
			digits = append(digits, '0')
		}
	}
	digits = strconv.AppendUint(digits, lower, 10)
	n.setDigits(digits, exp10)
	n.truncate()
	return n
}

// truncate sets trunc and exact from the digits.
func (n *number) truncate() {
	const maxExp, minExp = 309, -324 // magnitudes of float64: 0.17976…e309 down to 0.49…e-323
	switch {
	case n.exp > maxExp:
		n.trunc = math.MaxFloat64
	case n.exp < minExp:
		n.trunc = 0
	case n.count <= 15 && n.exp-n.count >= -22 && n.exp-n.count <= 22:
		n.truncateSmall()
	default:
		n.truncateBig()
	}
}

// truncateSmall is for up to 15 digits and a power of ten up to 22, which are both exact as float64: one rounding
// happens, and the fused multiply-add tells its error exactly.
func (n *number) truncateSmall() {
	var u uint64
	for _, d := range n.digits[:n.count] {
		u = u*10 + uint64(d-'0')
	}
	c, p := float64(u), 1.0
	exp10 := n.exp - n.count
	for range max(exp10, -exp10) {
		p *= 10
	}
	var f, rest float64 // rest has the sign of exact-f
	if exp10 >= 0 {
		f = c * p
		rest = math.FMA(c, p, -f)
	} else {
		f = c / p
		rest = math.FMA(-f, p, c)
	}
	if rest < 0 {
		f = math.Nextafter(f, 0)
	}
	n.trunc, n.exact = f, rest == 0
}

func (n *number) truncateBig() {
	c, _ := new(big.Int).SetString(string(n.digits[:n.count]), 10)
	exp10 := n.exp - n.count
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp10, -exp10))), nil)
	x := new(big.Rat)
	if exp10 >= 0 {
		x.SetInt(c.Mul(c, p))
	} else {
		x.SetFrac(c, p)
	}
	f, exact := x.Float64()
	if math.IsInf(f, 1) {
		f, exact = math.MaxFloat64, false
	} else if !exact && new(big.Rat).SetFloat64(f).Cmp(x) > 0 {
		f = math.Nextafter(f, 0)
	}
	n.trunc, n.exact = f, exact
}

// appendNumberKey writes the order of numbers as bytes: class, then the magnitude (inverted for negatives).
func appendNumberKey(dst []byte, n *number) []byte {
	dst = append(dst, byte(n.class))
	if n.class != classNegative && n.class != classPositive {
		return dst
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(n.trunc))
	if n.exact {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n.exp+1<<14)) //nolint:gosec // |exp| < 6200
		dst = appendDigits(dst, n.digits[:n.count])
	}
	if n.class == classNegative {
		InvertKey(dst[start:])
	}
	return dst
}

// appendDigits packs two digits a byte, each as 1 to 10, with a final 0, so that a longer number sorts behind its own
// beginning.
func appendDigits(dst, digits []byte) []byte {
	for len(digits) >= 2 {
		dst = append(dst, (digits[0]-'0'+1)<<4|(digits[1]-'0'+1))
		digits = digits[2:]
	}
	if len(digits) == 1 {
		return append(dst, (digits[0]-'0'+1)<<4)
	}
	return append(dst, 0)
}

func int32Of(b []byte) int32 {
	if len(b) < 4 {
		return 0
	}
	return int32(binary.LittleEndian.Uint32(b)) //nolint:gosec // the bits of a signed number
}

func int64Of(b []byte) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b)) //nolint:gosec // the bits of a signed number
}

func doubleOf(b []byte) float64 { return math.Float64frombits(uint64(int64Of(b))) } //nolint:gosec // bits
