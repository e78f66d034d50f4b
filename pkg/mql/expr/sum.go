package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// sum adds numbers as MongoDB does: what is no decimal with twice the precision of a double, decimals apart.
type sum struct {
	total, rest, plain float64   // the sum is total+rest; plain is for infinities and NaN
	decimal            []byte    // nil: none yet
	kind               bson.Type // the widest type so far
	small              int64     // the sum of what came first, as long as it was of type int32
}

func newSum() sum { return sum{kind: bson.TypeInt32} }

// add adds a number.
func (s *sum) add(v bson.RawValue) {
	if v.Type == bson.TypeInt32 && s.kind == bson.TypeInt32 {
		s.small += int64(int32Of(v))
		return
	}
	s.settle()
	switch v.Type {
	case bson.TypeInt32:
		s.addDouble(float64(int32Of(v)))
	case bson.TypeInt64:
		s.addInteger(int64Of(v))
		if s.kind == bson.TypeInt32 {
			s.kind = bson.TypeInt64
		}
	case bson.TypeDouble:
		s.addDouble(doubleOf(v))
		if s.kind != bson.TypeDecimal128 {
			s.kind = bson.TypeDouble
		}
	default:
		s.addDecimal(v)
	}
}

// settle adds what is kept in small.
func (s *sum) settle() {
	if s.small != 0 {
		n := s.small
		s.small = 0
		s.addInteger(n)
	}
}

func (s *sum) addDouble(f float64) {
	s.plain += f
	f, s.rest = twoSum(f, s.rest)
	s.total, f = twoSum(s.total, f)
	s.rest += f
}

// addInteger splits what a double can't hold.
func (s *sum) addInteger(n int64) {
	high := n / (1 << 32) * (1 << 32)
	s.addDouble(float64(n - high))
	s.addDouble(float64(high))
}

func (s *sum) addDecimal(v bson.RawValue) {
	s.kind = bson.TypeDecimal128
	if s.decimal == nil {
		s.decimal = document.AppendDecimal(nil, new(apd.Decimal))
	}
	_, s.decimal, _ = document.AppendSum(nil, decimalValue(s.decimal), v)
}

// twoSum gives a sum and what rounding has cut off.
func twoSum(a, b float64) (total, rest float64) {
	total = a + b
	back := total - a
	rest = (a - (total - back)) + (b - back)
	return total, rest
}

// fitsLong says whether the sum without decimals, rounded to an integer, is an int64.
func (s *sum) fitsLong() bool {
	const limit = float64(1 << 63)
	switch total := s.total + s.rest; {
	case math.IsNaN(s.total):
		return false
	case s.total == limit:
		return s.rest < -0.5
	case s.total == -limit:
		return s.rest > -0.5
	default:
		return total > -limit && total < limit
	}
}

// long is the sum without decimals as an integer, rounded as servers do.
func (s *sum) long() int64 {
	if s.total == 1<<63 { // the rest is negative
		return math.MaxInt64 + int64(math.Round(s.rest)) + 1
	}
	n := int64(math.Round(s.total))
	return n + int64(math.Round((s.total-float64(n))+s.rest))
}

func (s *sum) double() float64 {
	if math.IsNaN(s.total) || math.IsInf(s.total, 0) {
		return s.plain
	}
	return s.total
}

// appendDecimal appends the sum as a decimal.
func (s *sum) appendDecimal(dst []byte) []byte {
	total, rest := s.total, s.rest
	if math.IsNaN(total) || math.IsInf(total, 0) {
		total, rest = s.plain, 0
	}
	first := decimalValue(appendExact(nil, total))
	if math.IsNaN(total) { // whose bits stay
		first = bson.RawValue{Type: bson.TypeDouble, Value: appendDouble(nil, total)}
	}
	_, out, _ := document.AppendSum(nil, first, decimalValue(appendExact(nil, rest)))
	if s.decimal != nil {
		_, out, _ = document.AppendSum(nil, decimalValue(s.decimal), decimalValue(out))
	}
	return append(dst, out...)
}

func decimalValue(b []byte) bson.RawValue { return bson.RawValue{Type: bson.TypeDecimal128, Value: b} }

// value gives the sum in the type of the widest number, or in the next one that it fits.
func (s *sum) value(env *Env) bson.RawValue {
	switch s.kind {
	case bson.TypeDecimal128:
		start := len(env.arena)
		env.arena = s.appendDecimal(env.arena)
		return env.value(bson.TypeDecimal128, start)
	case bson.TypeInt64:
		if s.fitsLong() {
			return env.int64(s.long())
		}
	case bson.TypeInt32:
		return env.integer(s.small)
	default:
	}
	return env.double(s.double())
}
