package expr

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// concat is $concat.
type concat struct{ operands }

func (n *concat) eval(env *Env) (bson.RawValue, error) {
	mark, size := len(env.stack), 5
	for _, a := range n.operands {
		v, err := a.eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(v.Type):
			env.stack = env.stack[:mark]
			return null, nil
		case v.Type != bson.TypeString:
			return missing, fail(16702, "$concat takes text, not %s", typeName(v.Type))
		}
		size += len(v.Value)
		env.push(v)
	}
	if err := env.room(size); err != nil {
		return missing, err
	}
	start := env.openText()
	for _, v := range env.stack[mark:] {
		env.arena = append(env.arena, bytesOf(v)...)
	}
	env.stack = env.stack[:mark]
	return env.closeText(start), nil
}

func (n *concat) fold(f *folder) (node, error) {
	return merging{
		inner: same[*concat],
		again: func(args operands) node { return &concat{args} },
	}.fold(f, n.operands)
}

// asText is a value as the old text operators take it: numbers and dates, too.
func (env *Env) asText(v bson.RawValue) ([]byte, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return bytesOf(v), nil
	case bson.TypeDouble:
		start := len(env.arena)
		env.arena = appendPlainFloat(env.arena, doubleOf(v))
		return env.arena[start:], nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128, bson.TypeDateTime:
		s, err := env.toText(v)
		if err != nil {
			return nil, err
		}
		return bytesOf(s), nil
	case bson.TypeTimestamp:
		start := len(env.arena)
		at := time.Unix(int64(timestampSeconds(v)), 0).UTC()
		env.arena = append(at.AppendFormat(env.arena, "Jan _2 15:04:05"), ':')
		env.arena = strconv.AppendUint(env.arena, uint64(uint32(int64Of(v))), 10) //nolint:gosec // the low bits
		return env.arena[start:], nil
	case 0, bson.TypeNull, bson.TypeUndefined:
		return nil, nil
	default:
		return nil, fail(16007, "text is needed here, not %s", typeName(v.Type))
	}
}

// appendPlainFloat writes what is no number as C does.
func appendPlainFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	default:
		return appendFloat(dst, f)
	}
}

// changeCase is $toLower and $toUpper, of the letters a to z only.
func changeCase(from, to byte) operator {
	return one(func(env *Env, _ string, v bson.RawValue) (bson.RawValue, error) {
		s, err := env.asText(v)
		if err != nil {
			return missing, err
		}
		out := text(env, s)
		changed := bytesOf(out)
		for i, b := range changed {
			if b >= from && b <= from+25 {
				changed[i] = b - from + to
			}
		}
		return out, nil
	})
}

func strcasecmp(env *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
	x, err := env.asText(a)
	if err != nil {
		return missing, err
	}
	y, err := env.asText(b)
	if err != nil {
		return missing, err
	}
	for i := range min(len(x), len(y)) {
		if c, d := upper(x[i]), upper(y[i]); c != d {
			return env.int32(sign(int(c) - int(d))), nil
		}
	}
	return env.int32(sign(len(x) - len(y))), nil
}

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

func sign(n int) int32 {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	default:
		return 0
	}
}

func lengthBytes(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeString {
		return missing, fail(34473, "%s takes text, not %s", name, typeName(v.Type))
	}
	return env.int32(int32(len(bytesOf(v)))), nil //nolint:gosec // below 2 GB
}

func lengthCP(env *Env, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeString {
		return missing, fail(34471, "%s takes text, not %s", name, typeName(v.Type))
	}
	return env.int32(int32(utf8.RuneCount(bytesOf(v)))), nil //nolint:gosec // below 2 GB
}

func split(env *Env, name string, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case isNull(a.Type) || isNull(b.Type):
		return null, nil
	case a.Type != bson.TypeString:
		return missing, fail(40085, "%s takes text, not %s", name, typeName(a.Type))
	case b.Type != bson.TypeString:
		return missing, fail(40086, "%s needs text as the separator, not %s", name, typeName(b.Type))
	case len(bytesOf(b)) == 0:
		return missing, fail(40087, "%s needs a separator that is not empty", name)
	}
	s, separator := bytesOf(a), bytesOf(b)
	if err := env.room(len(s) + 12*bytes.Count(s, separator)); err != nil {
		return missing, err
	}
	start := env.open()
	for i, more := 0, true; more; i++ {
		var part []byte
		part, s, more = bytes.Cut(s, separator)
		env.item(i, bson.RawValue{Type: bson.TypeString})
		text(env, part)
	}
	return env.close(bson.TypeArray, start), nil
}

// indexOfText is $indexOfBytes and $indexOfCP: text, what is searched, and from where and up to where.
type indexOfText struct {
	name string
	operands
	code  document.ServerCode // of the first operand's error; the second's is the next
	runes bool
}

func (n *indexOfText) eval(env *Env) (bson.RawValue, error) {
	a, err := n.operands[0].eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(a.Type):
		return null, nil
	case a.Type != bson.TypeString:
		return missing, fail(n.code, "%s takes text, not %s", n.name, typeName(a.Type))
	}
	b, err := n.operands[1].eval(env)
	switch {
	case err != nil:
		return missing, err
	case b.Type != bson.TypeString:
		return missing, fail(n.code+1, "%s searches for text, not for %s", n.name, typeName(b.Type))
	}
	from, to, err := env.bounds(n.name, n.operands)
	if err != nil {
		return missing, err
	}
	if n.runes {
		return env.int32(indexRunes(bytesOf(a), bytesOf(b), from, to)), nil
	}
	s, at := bytesOf(a), -1
	if to = min(to, len(s)); from <= to {
		at = bytes.Index(s[from:to], bytesOf(b))
	}
	if at >= 0 {
		at += from
	}
	return env.int32(int32(at)), nil
}

// indexRunes searches and counts characters. What begins behind the last character is not found, unless there is none.
func indexRunes(s, token []byte, from, to int) int32 {
	if len(s) == 0 && len(token) == 0 && from == 0 {
		return 0
	}
	for at := 0; len(s) > 0 && at < to; at++ {
		if at >= from && bytes.HasPrefix(s, token) {
			return int32(at)
		}
		_, size := utf8.DecodeRune(s)
		s = s[size:]
	}
	return -1
}

func substrBytes(env *Env, name string, args []bson.RawValue) (bson.RawValue, error) {
	s, err := env.asText(args[0])
	switch {
	case err != nil:
		return missing, err
	case !isNumber(args[1].Type):
		return missing, fail(16034, "%s needs a number to begin at, not %s", name, typeName(args[1].Type))
	case !isNumber(args[2].Type):
		return missing, fail(16035, "%s needs a number as the length, not %s", name, typeName(args[2].Type))
	}
	from, err := toLong(args[1])
	switch {
	case err != nil:
		return missing, err
	case from < 0:
		return missing, fail(50752, "%s can't begin at the negative number %d", name, from)
	}
	length, err := toLong(args[2])
	switch {
	case err != nil:
		return missing, err
	case from < int64(len(s)) && !utf8.RuneStart(s[from]):
		return missing, fail(28656, "%s can't begin inside a character", name)
	case from >= int64(len(s)):
		return text(env, ""), nil
	}
	end := int64(len(s))
	if length >= 0 && length < end-from {
		end = from + length
		if !utf8.RuneStart(s[end]) {
			return missing, fail(28657, "%s can't end inside a character", name)
		}
	}
	return text(env, s[from:end]), nil
}

func substrCP(env *Env, name string, args []bson.RawValue) (bson.RawValue, error) {
	s, err := env.asText(args[0])
	if err != nil {
		return missing, err
	}
	var n [2]int64
	for i := range n {
		v, code := args[i+1], document.ServerCode(34450+2*i)
		switch {
		case !isNumber(v.Type):
			return missing, fail(code, "%s needs numbers to begin at and as the length, not %s", name, typeName(v.Type))
		case !isIntegral(v):
			return missing, fail(code+1, "%s needs whole numbers of 32 bits", name)
		}
		if n[i], err = toLong(v); err != nil {
			return missing, err
		}
	}
	switch {
	case n[1] < 0:
		return missing, fail(34454, "%s can't have a negative length", name)
	case n[0] < 0:
		return missing, fail(34455, "%s can't begin at the negative number %d", name, n[0])
	}
	s = s[runes(s, n[0]):]
	return text(env, s[:runes(s, n[1])]), nil
}

// runes is how many bytes the first n characters take.
func runes(s []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	return at
}

// trim is $trim, $ltrim and $rtrim.
func trim(left, right bool) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.named(name, v, named{
			names: []string{"input", "chars"}, required: 1, noObject: 50696, unknown: 50694, lacking: []document.ServerCode{50695},
		})
		if err != nil {
			return nil, err
		}
		return &trims{name: name, operands: args, left: left, right: right}, nil
	}}
}

type trims struct {
	name string
	operands
	left, right bool
}

// whitespace is what is cut off where no characters are named.
const whitespace = "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func (n *trims) eval(env *Env) (bson.RawValue, error) {
	v, err := n.operands[0].eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(v.Type):
		return null, nil
	case v.Type != bson.TypeString:
		return missing, fail(50699, "%s takes text, not %s", n.name, typeName(v.Type))
	}
	chars := whitespace
	if n.operands[1] != nil {
		c, err := n.operands[1].eval(env)
		switch {
		case err != nil:
			return missing, err
		case isNull(c.Type):
			return null, nil
		case c.Type != bson.TypeString:
			return missing, fail(50700, "%s needs text as chars, not %s", n.name, typeName(c.Type))
		}
		chars = string(bytesOf(c))
	}
	s := bytesOf(v)
	if n.left {
		s = bytes.TrimLeft(s, chars)
	}
	if n.right {
		s = bytes.TrimRight(s, chars)
	}
	return text(env, s), nil
}

// replace is $replaceOne and $replaceAll.
func replace(times int) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.named(name, v, named{
			names: []string{"input", "find", "replacement"}, required: 3, noObject: 51751, unknown: 51750,
			lacking: []document.ServerCode{51749, 51748, 51747},
		})
		if err != nil {
			return nil, err
		}
		return &several{name: name, operands: args, late: true, apply: func(env *Env, name string, args []bson.RawValue) (bson.RawValue, error) {
			return replaced(env, name, args, times)
		}}, nil
	}}
}

func replaced(env *Env, name string, args []bson.RawValue, times int) (bson.RawValue, error) {
	none := false
	for i, part := range [...]string{"input", "find", "replacement"} {
		if none = none || isNull(args[i].Type); !isNull(args[i].Type) && args[i].Type != bson.TypeString {
			return missing, fail(document.ServerCode(51746-i), "%s needs text as %s, not %s", name, part, typeName(args[i].Type))
		}
	}
	if none {
		return null, nil
	}
	input, find, replacement := bytesOf(args[0]), bytesOf(args[1]), bytesOf(args[2])
	if times < 0 || times > len(input)+1 {
		times = bytes.Count(input, find)
		if len(find) == 0 {
			times = utf8.RuneCount(input) + 1
		}
	}
	if err := env.room(len(input) + times*len(replacement)); err != nil {
		return missing, err
	}
	start := env.openText()
	for range times {
		at := bytes.Index(input, find)
		if at < 0 {
			break
		}
		env.arena = append(append(env.arena, input[:at]...), replacement...)
		input = input[at+len(find):]
		if len(find) == 0 && len(input) > 0 && times > 1 {
			_, size := utf8.DecodeRune(input)
			env.arena, input = append(env.arena, input[:size]...), input[size:]
		}
	}
	env.arena = append(env.arena, input...)
	return env.closeText(start), nil
}
