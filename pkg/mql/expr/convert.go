package expr

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// convert is $convert, and what $toInt and the like stand for: input, to, onError, onNull.
type convert struct{ operands }

func parseConvert(c *compiler, name string, v bson.RawValue) (node, error) {
	args, err := c.named(name, v, named{
		names: []string{"input", "to", "onError", "onNull"}, required: 2,
		noObject: codeFailedToParse, unknown: codeFailedToParse, lacking: []document.ServerCode{codeFailedToParse, codeFailedToParse},
	})
	return &convert{args}, err
}

// to makes the operator that converts to one type.
func to(t bson.Type) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.operands(v)
		if err != nil {
			return nil, err
		}
		if len(args) != 1 {
			return nil, bad(50723, "%s takes one operand, not %d", name, len(args))
		}
		kind := bson.RawValue{Type: bson.TypeInt32, Value: []byte{byte(t), 0, 0, 0}}
		return &convert{operands{args[0], &constant{v: kind}, nil, nil}}, nil
	}}
}

func (n *convert) eval(env *Env) (bson.RawValue, error) {
	kind, err := n.operands[1].eval(env)
	if err != nil {
		return missing, err
	}
	v, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	var target bson.Type
	if !isNull(kind.Type) {
		if target, err = targetType(kind); err != nil {
			return missing, err
		}
	}
	switch {
	case isNull(v.Type) && n.operands[3] != nil:
		return n.operands[3].eval(env)
	case isNull(v.Type) || isNull(kind.Type):
		return null, nil
	}
	out, err := env.convert(v, target)
	if err != nil && n.operands[2] != nil && document.ServerCodeOf(err) == codeConversion {
		return n.operands[2].eval(env)
	}
	return out, err
}

// targetType reads the type that $convert is told.
func targetType(v bson.RawValue) (bson.Type, error) {
	switch {
	case v.Type == bson.TypeString:
		name := string(bytesOf(v))
		for t := range bson.Type(255) {
			if t > 0 && (t < 20 || t == bson.TypeMaxKey) && typeName(t) == name {
				return t, nil
			}
		}
		switch name {
		case "minKey":
			return bson.TypeMinKey, nil
		case "missing":
			return 0, nil
		}
		return 0, fail(codeBadValue, "there is no type %q", document.Readable(name))
	case !isNumber(v.Type):
		return 0, fail(codeFailedToParse, "$convert needs text or a number as the type, not %s", typeName(v.Type))
	case !isIntegral(v):
		return 0, fail(codeFailedToParse, "$convert needs a whole number as the type")
	}
	n, err := toLong(v)
	switch {
	case err != nil:
		return 0, err
	case n == -1:
		return bson.TypeMinKey, nil
	case n >= 0 && n < 20 || n == 127:
		return bson.Type(n), nil //nolint:gosec // checked
	default:
		return 0, fail(codeFailedToParse, "there is no type with the number %d", n)
	}
}

// convert gives a value in another type.
func (env *Env) convert(v bson.RawValue, target bson.Type) (bson.RawValue, error) {
	switch target {
	case bson.TypeBoolean:
		return boolean(Truth(v)), nil
	case bson.TypeString:
		return env.toText(v)
	case bson.TypeInt32, bson.TypeInt64:
		n, err := toInteger(v, target)
		switch {
		case err != nil:
			return missing, err
		case target == bson.TypeInt64:
			return env.int64(n), nil
		case n != int64(int32(n)): //nolint:gosec // the check
			return missing, outOfRange(target)
		default:
			return env.int32(int32(n)), nil //nolint:gosec // checked
		}
	case bson.TypeDouble:
		return env.toDouble(v)
	case bson.TypeDecimal128:
		return env.toDecimal(v)
	case bson.TypeDateTime:
		return env.toDate(v)
	case bson.TypeObjectID:
		return env.toObjectID(v)
	default:
		return missing, unsupported(v.Type, target)
	}
}

func unsupported(from, to bson.Type) error {
	return fail(codeConversion, "there is no conversion from %s to %s", typeName(from), typeName(to))
}

func outOfRange(to bson.Type) error {
	return fail(codeConversion, "the number is out of the range of %s", typeName(to))
}

func notNumber(s []byte, to bson.Type) error {
	return fail(codeConversion, "%q is no number of type %s", document.Readable(s), typeName(to))
}

// toInteger cuts numbers.
func toInteger(v bson.RawValue, target bson.Type) (int64, error) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return integerOf(v), nil
	case bson.TypeBoolean:
		return int64(v.Value[0]), nil
	case bson.TypeDouble:
		f := doubleOf(v)
		if !(f >= -1<<63 && f < 1<<63) {
			return 0, outOfRange(target)
		}
		if target == bson.TypeInt32 && (f < math.MinInt32 || f > math.MaxInt32) {
			return 0, outOfRange(target)
		}
		return int64(f), nil
	case bson.TypeDecimal128:
		n, _, ok := decimalLong(decimalOf(v), apd.RoundDown)
		if !ok {
			return 0, outOfRange(target)
		}
		return n, nil
	case bson.TypeString:
		n, err := strconv.ParseInt(string(bytesOf(v)), 10, 64)
		if err != nil {
			return 0, notNumber(bytesOf(v), target)
		}
		return n, nil
	case bson.TypeDateTime:
		if target == bson.TypeInt64 {
			return int64Of(v), nil
		}
	default:
	}
	return 0, unsupported(v.Type, target)
}

func (env *Env) toDouble(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDouble:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		return env.double(float64(integerOf(v))), nil
	case bson.TypeBoolean:
		return env.double(float64(v.Value[0])), nil
	case bson.TypeDateTime:
		return env.double(float64(int64Of(v))), nil
	case bson.TypeDecimal128:
		d := decimalOf(v)
		f := decimalFloat(d)
		if d.Form == apd.Finite && (math.IsInf(f, 0) || isTiny(f) || f == 0 && !d.IsZero()) {
			return missing, outOfRange(bson.TypeDouble)
		}
		return env.double(f), nil
	case bson.TypeString:
		f, ok := parseDouble(string(bytesOf(v)))
		if !ok {
			return missing, notNumber(bytesOf(v), bson.TypeDouble)
		}
		return env.double(f), nil
	default:
		return missing, unsupported(v.Type, bson.TypeDouble)
	}
}

// isTiny says whether a number has lost digits because it is so small.
func isTiny(f float64) bool { return f != 0 && math.Abs(f) < 0x1p-1022 }

// parseDouble reads what strtod does and a server takes: also hexadecimal numbers, but for those that begin with 0x. What is
// too large, or loses digits because it is so small, is none.
func parseDouble(s string) (f float64, ok bool) {
	if strings.Contains(s, "_") || strings.HasPrefix(s, "0x") {
		return 0, false
	}
	exponent, digits := "eE", "123456789"
	if body := strings.ToLower(strings.TrimLeft(s, "+-")); strings.HasPrefix(body, "0x") {
		exponent, digits = "pP", "123456789abcdefABCDEF"
		if !strings.ContainsAny(s, exponent) {
			s += "p0"
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || isTiny(f) {
		return 0, false
	}
	mantissa := s
	if i := strings.IndexAny(s, exponent); i >= 0 {
		mantissa = s[:i]
	}
	return f, f != 0 || !strings.ContainsAny(mantissa, digits)
}

func (env *Env) toDecimal(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDecimal128:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		return env.decimal(decimalOf(v)), nil
	case bson.TypeDouble:
		if isNaN(v) {
			return env.decimals(v, decimalValue(make([]byte, 16)), nil), nil
		}
		return env.decimal(decimalOf(v)), nil
	case bson.TypeBoolean:
		return env.decimal(apd.New(int64(v.Value[0]), 0)), nil
	case bson.TypeDateTime:
		return env.decimal(apd.New(int64Of(v), 0)), nil
	case bson.TypeString:
		d, ok := parseDecimal(string(bytesOf(v)))
		if !ok {
			return missing, notNumber(bytesOf(v), bson.TypeDecimal128)
		}
		return env.decimal(d), nil
	default:
		return missing, unsupported(v.Type, bson.TypeDecimal128)
	}
}

// parseDecimal rounds to 34 digits; a number that is too large or too small is none.
func parseDecimal(s string) (*apd.Decimal, bool) {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity":
		return infinity(strings.HasPrefix(s, "-")), len(s) <= len("-infinity")
	case "nan":
		return nan(), len(s) <= len("-nan")
	}
	if strings.Trim(s, "+-0123456789.eE") != "" {
		return nil, false
	}
	d, _, err := apd.NewFromString(s)
	if err != nil {
		return nil, false
	}
	out := new(apd.Decimal)
	cond, _ := document.DecimalContext().Round(out, d)
	return out, !cond.Overflow() && !cond.Underflow() && out.Form == apd.Finite
}

func (env *Env) toDate(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return v, nil
	case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n, err := toInteger(v, bson.TypeInt64)
		if err != nil {
			return missing, err
		}
		return env.date(n), nil
	case bson.TypeTimestamp:
		return env.date(int64(timestampSeconds(v)) * 1000), nil
	case bson.TypeObjectID:
		return env.date(objectIDMillis(v)), nil
	case bson.TypeString:
		ms, err := parseDate(string(bytesOf(v)))
		if err != nil {
			return missing, err
		}
		return env.date(ms), nil
	default:
		return missing, unsupported(v.Type, bson.TypeDateTime)
	}
}

func timestampSeconds(v bson.RawValue) uint32 { return uint32(uint64(int64Of(v)) >> 32) } //nolint:gosec // bits

// objectIDMillis is when an ObjectID was made; its seconds are signed.
func objectIDMillis(v bson.RawValue) int64 {
	b := v.Value
	return int64(int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8|uint32(b[3]))) * 1000 //nolint:gosec // bits
}

func (env *Env) toObjectID(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeObjectID:
		return v, nil
	case bson.TypeString:
		start := len(env.arena)
		s := bytesOf(v)
		if len(s) == 24 {
			var err error
			if env.arena, err = hex.AppendDecode(env.arena, s); err == nil {
				return env.value(bson.TypeObjectID, start), nil
			}
			env.arena = env.arena[:start]
		}
		return missing, fail(codeConversion, "%q is no ObjectID: it has 24 hexadecimal digits", document.Readable(s))
	default:
		return missing, unsupported(v.Type, bson.TypeObjectID)
	}
}

func (env *Env) toText(v bson.RawValue) (bson.RawValue, error) {
	start := env.openText()
	switch v.Type {
	case bson.TypeString:
		env.arena = env.arena[:start]
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		env.arena = strconv.AppendInt(env.arena, integerOf(v), 10)
	case bson.TypeBoolean:
		env.arena = strconv.AppendBool(env.arena, v.Value[0] != 0)
	case bson.TypeDouble:
		env.arena = appendFloat(env.arena, doubleOf(v))
	case bson.TypeDecimal128:
		env.arena = append(env.arena, decimalText(v)...)
	case bson.TypeObjectID:
		env.arena = hex.AppendEncode(env.arena, v.Value)
	case bson.TypeDateTime:
		if err := env.appendISO(int64Of(v)); err != nil {
			env.arena = env.arena[:start]
			return missing, err
		}
	default:
		env.arena = env.arena[:start]
		return missing, unsupported(v.Type, bson.TypeString)
	}
	return env.closeText(start), nil
}

// decimalText is the text of a decimal; every NaN is the same.
func decimalText(v bson.RawValue) string {
	if decimalIsNaN(v) {
		return "NaN"
	}
	high, low := bits(v)
	return bson.NewDecimal128(high, low).String()
}

// appendFloat writes six digits, as servers do.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	default:
		return strconv.AppendFloat(dst, f, 'g', 6, 64)
	}
}

func typeOperator(env *Env, _ string, v bson.RawValue) (bson.RawValue, error) {
	return text(env, typeName(v.Type)), nil
}

func isNumberOperator(_ *Env, _ string, v bson.RawValue) (bson.RawValue, error) {
	return boolean(isNumber(v.Type)), nil
}
