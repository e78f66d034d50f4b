package pipeline

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// rounder rounds numbers to those of a series of preferred numbers, for $bucketAuto.
type rounder struct{ series []float64 } // of one decade; none: the powers of 2

const powersOfTwo = "POWERSOF2"

func newRounder(stage, name string) (*rounder, error) {
	var series []float64
	switch name {
	case powersOfTwo:
	case "1-2-5":
		series = []float64{10, 20, 50}
	case "R5":
		series = []float64{10, 16, 25, 40, 63}
	case "R10":
		series = []float64{100, 125, 160, 200, 250, 315, 400, 500, 630, 800}
	case "R20":
		series = []float64{100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900}
	case "R40": // without 335, as on servers
		series = []float64{
			100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315, 355, 375, 400, 425, 450, 475,
			500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
		}
	case "R80": // only what R40 does not have, as on servers
		series = []float64{
			103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307, 325, 345, 365, 387, 412, 437, 462,
			487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975,
		}
	case "E6":
		series = []float64{10, 15, 22, 33, 47, 68}
	case "E12":
		series = []float64{10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82}
	case "E24":
		series = []float64{10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91}
	case "E48":
		series = geometric(48)
	case "E96":
		series = geometric(96)
	case "E192":
		series = geometric(192)
	default:
		return nil, bad(40257, "%s: there is no granularity %q: use one of R5, R10, R20, R40, R80, 1-2-5, E6, E12, E24, E48, E96, E192, %s",
			stage, document.Readable(name), powersOfTwo)
	}
	return &rounder{series}, nil
}

// geometric is n numbers with equal ratios, in three digits.
func geometric(n int) []float64 {
	series := make([]float64, n)
	for i := range series {
		series[i] = math.Round(100 * math.Pow(10, float64(i)/float64(n)))
		if series[i] == 919 { // the standard's one exception
			series[i] = 920
		}
	}
	return series
}

// check refuses what can't be rounded.
func (r *rounder) check(v bson.RawValue) error {
	f, ok := rawNumber(v)
	switch {
	case !ok:
		return fail(40258, "$bucketAuto with a granularity takes numbers only")
	case math.IsNaN(f):
		return fail(40259, "$bucketAuto with a granularity can't take NaN")
	case f < 0:
		return fail(40260, "$bucketAuto with a granularity takes no negative numbers")
	}
	return nil
}

// rawNumber gives a number of any type as a double.
func rawNumber(v bson.RawValue) (float64, bool) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return float64(v.AsInt64()), true
	case bson.TypeDouble:
		return v.Double(), true
	case bson.TypeDecimal128:
		d := document.Decimal(v)
		switch d.Form {
		case apd.Finite:
		case apd.Infinite:
			return math.Inf(1 - 2*sign(d.Negative)), true
		default:
			return math.NaN(), true
		}
		f, err := d.Float64()
		if err != nil && d.Sign() != 0 { // out of the range of a double
			return math.Copysign(math.MaxFloat64, float64(d.Sign())), true
		}
		return f, true
	default:
		return 0, false
	}
}

func sign(negative bool) int {
	if negative {
		return 1
	}
	return 0
}

func isZero(v bson.RawValue) bool {
	f, ok := rawNumber(v)
	return ok && f == 0
}

// up gives the least number of the series that is above v, down the greatest below it. Zero and infinity stay.
func (r *rounder) up(v bson.RawValue) bson.RawValue { return r.round(v, true) }

func (r *rounder) down(v bson.RawValue) bson.RawValue { return r.round(v, false) }

func (r *rounder) round(v bson.RawValue, up bool) bson.RawValue {
	f, _ := rawNumber(v)
	switch {
	case math.IsInf(f, 0) && r.series == nil && v.Type == bson.TypeDouble: // an exponent that servers overflow with
		return double(0)
	case f == 0 || math.IsInf(f, 0):
		return v
	case r.series == nil:
		return powerOfTwo(v, f, up)
	case v.Type == bson.TypeDecimal128:
		return r.decimal(document.Decimal(v), up)
	}
	return double(r.double(f, up))
}

// double steps through decades until the neighbor of f is in the next one.
func (r *rounder) double(f float64, up bool) float64 {
	first, last, scale := r.series[0], r.series[len(r.series)-1], 1.0
	if up {
		for last*scale <= f {
			scale *= 10
		}
		for last*(scale/10) > f {
			scale /= 10
		}
		i := slices.IndexFunc(r.series, func(s float64) bool { return s*scale > f })
		return r.series[i] * scale
	}
	for first*scale >= f {
		scale /= 10
	}
	for first*(scale*10) < f {
		scale *= 10
	}
	found := first * scale
	for _, s := range r.series {
		if s*scale < f {
			found = s * scale
		}
	}
	return found
}

// decimal gives 15 digits, as servers do.
func (r *rounder) decimal(d *apd.Decimal, up bool) bson.RawValue {
	const digits = 15
	own := int32(len(strconv.Itoa(int(r.series[0])))) //nolint:gosec // two or three
	pad := digits - own
	at := func(s float64, exponent int32) *apd.Decimal {
		return apd.New(int64(s*math.Pow10(int(pad))), exponent-pad)
	}
	exponent := int32(d.NumDigits()) + d.Exponent - own - 1 //nolint:gosec // a decimal has 34 digits
	var below *apd.Decimal
	for ; ; exponent++ {
		for _, s := range r.series {
			next := at(s, exponent)
			switch c := next.Cmp(d); {
			case c > 0 && up:
				return rawDecimal(next)
			case c >= 0 && !up && below != nil:
				return rawDecimal(below)
			}
			below = next
		}
	}
}

func rawDecimal(d *apd.Decimal) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDecimal128, Value: document.AppendDecimal(nil, d)}
}

func double(f float64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

// powerOfTwo rounds v, whose value is f: to a whole number that fits an integer, even if v is a double.
func powerOfTwo(v bson.RawValue, f float64, up bool) bson.RawValue {
	if v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 {
		n := uint64(v.AsInt64()) //nolint:gosec // it is above 0
		switch length := bits.Len64(n); {
		case up && length < 63:
			return integer(1 << length)
		case !up && n > 1:
			return integer(1 << (bits.Len64(n-1) - 1))
		}
	}
	fraction, exponent := math.Frexp(f)
	if !up {
		if exponent--; fraction == 0.5 {
			exponent--
		}
	}
	switch {
	case v.Type == bson.TypeDecimal128:
	case exponent >= 0 && exponent < 63:
		return integer(1 << exponent)
	default:
		return double(math.Ldexp(1, exponent))
	}
	return decimalPower(document.Decimal(v), up)
}

// decimalPower gives a power of two beside d, in 34 digits.
func decimalPower(d *apd.Decimal, up bool) bson.RawValue {
	const digits = 34
	about := (float64(d.NumDigits()) + float64(d.Exponent)) * math.Log2(10) // above by at most that of a digit
	exponent := int64(about) - 5
	if !up {
		exponent = int64(about) + 2
	}
	c := apd.BaseContext.WithPrecision(digits)
	power := func(n int64) *apd.Decimal {
		p := new(apd.Decimal)
		_, _ = c.Pow(p, apd.New(2, 0), apd.New(n, 0))
		return p
	}
	p := power(exponent)
	for up && p.Cmp(d) <= 0 {
		exponent++
		p = power(exponent)
	}
	for !up && p.Cmp(d) >= 0 {
		exponent--
		p = power(exponent)
	}
	_, _ = c.Quantize(p, p, int32(p.NumDigits())+p.Exponent-digits) //nolint:gosec // it has 34 digits then
	return rawDecimal(p)
}
