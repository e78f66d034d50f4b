package fieldtype

import (
	"cmp"
	"math"
	"regexp"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// numberType holds a number. Integers that fit are kept as int64, exactly; all others as they came.
type numberType struct{}

func (numberType) Name() string { return "number" }

func (numberType) Parse(_ *Field, v any, c *Check) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case int64, bson.Decimal128:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.Fail("type", "must be a finite number")
		}
		return v
	}
	c.wrongType("a number", v)
	return v
}

func (numberType) Cast(_ *Field, v any) (any, error) {
	text, untyped := v.(Untyped)
	if !untyped {
		return v, nil
	}
	if text == "null" {
		return nil, nil
	}
	if n, ok := readNumber(string(text)); ok {
		return n, nil
	}
	return nil, untypedError("a number", text)
}

// numberText is JSON's form of a number.
var numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// readNumber reads a number in JSON's form: an int64 if it is an integer that fits, else a float64.
func readNumber(s string) (any, bool) {
	if !numberText.MatchString(s) {
		return nil, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// compareNumbers orders two numbers exactly; ok is false if one of them is no number.
func compareNumbers(a, b any) (order int, ok bool) {
	x, xok := exact(a)
	y, yok := exact(b)
	if !xok || !yok {
		return 0, false
	}
	return x.compare(y), true
}

// exactNumber is an int64, or a float64 when isFloat.
type exactNumber struct {
	i       int64
	f       float64
	isFloat bool
}

func exact(v any) (exactNumber, bool) {
	switch v := v.(type) {
	case int32:
		return exactNumber{i: int64(v)}, true
	case int64:
		return exactNumber{i: v}, true
	case float64:
		return exactNumber{f: v, isFloat: true}, !math.IsNaN(v)
	case bson.Decimal128: // rules are written in JSON numbers: the nearest float64 is exact enough
		f, err := strconv.ParseFloat(v.String(), 64)
		return exactNumber{f: f, isFloat: true}, err == nil && !math.IsNaN(f)
	}
	return exactNumber{}, false
}

func (x exactNumber) compare(y exactNumber) int {
	switch {
	case x.isFloat && y.isFloat:
		return cmp.Compare(x.f, y.f)
	case x.isFloat:
		return -compareIntFloat(y.i, x.f)
	case y.isFloat:
		return compareIntFloat(x.i, y.f)
	}
	return cmp.Compare(x.i, y.i)
}

// compareIntFloat orders without rounding i to a float64, which would make 2^53 and 2^53+1 equal.
func compareIntFloat(i int64, f float64) int {
	if f >= 1<<63 {
		return -1
	}
	if f < -1<<63 {
		return 1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(whole, f)
}
