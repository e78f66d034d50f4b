package pipeline

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// numberOf gives a number of the value model as a double.
func numberOf(v any) (f float64, ok bool) {
	switch v := v.(type) {
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, true
	case bson.Decimal128:
		raw, err := document.MarshalValue(v)
		if err != nil {
			return 0, false
		}
		f, err := document.Decimal(raw).Float64()
		if err != nil {
			f = math.NaN()
		}
		return f, true
	default:
		return 0, false
	}
}

// truncated gives the integer part of a number.
func truncated(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	f, ok := numberOf(v)
	switch {
	case !ok || math.IsNaN(f):
		return 0, ok
	case f >= 1<<63:
		return math.MaxInt64, true
	case f < -(1 << 63):
		return math.MinInt64, true
	}
	return int64(f), true
}

// whole gives a number that is an integer and fits.
func whole(v any) (n int64, ok bool) {
	n, ok = truncated(v)
	if !ok {
		return 0, false
	}
	switch v.(type) {
	case int32, int64, int:
		return n, true
	}
	f, _ := numberOf(v)
	return n, f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63
}
