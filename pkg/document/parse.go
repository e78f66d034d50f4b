package document

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// ParseJSON reads one JSON object (RFC 8259, strictly): objects become bson.D in the order given, lists bson.A, whole
// numbers that fit int64, other numbers float64. Names that begin with "$" pass, since filters have them; CheckNames
// refuses them for records.
//
// Errors are errs.Invalid: code "too_deep" above MaxDepth, "too_complex" above a million values, else "bad_json" with line and column (in characters, from
// 1), for anything that is not JSON, a name given twice in one object, text that is not UTF-8, half of a surrogate
// pair, NUL in a name, and a number too large for a float64.
func ParseJSON(data []byte) (bson.D, error) {
	v, err := parse(data, MaxDepth)
	if err != nil {
		return nil, err
	}
	doc, ok := v.(bson.D)
	if !ok {
		return nil, errs.New(errs.Invalid, "bad_json", "send a JSON object, not %s", jsonKind(v))
	}
	return doc, nil
}

// ParseJSONValue reads any JSON value: nil, bool, int64, float64, string, bson.D or bson.A. See ParseJSON.
func ParseJSONValue(data []byte) (any, error) { return parse(data, MaxDepth) }

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case bson.A:
		return "a list"
	case bson.D:
		return "an object"
	default:
		return "a number"
	}
}

func parse(data []byte, maxDepth int) (any, error) {
	p := parser{data: data, maxDepth: maxDepth}
	v := p.value(0)
	if p.err == nil && p.peek() != 0 {
		p.fail(p.pos, "unexpected %s after the end of the JSON value", p.found(p.pos))
	}
	if p.err != nil {
		return nil, p.err
	}
	return v, nil
}

// parser goes over data once. The first problem is kept in err and moves pos to the end, where everything else stops.
type parser struct {
	data     []byte
	pos      int
	maxDepth int
	values   int
	err      *errs.Error
}

// maxValues bounds the values of one text: a value takes many times the memory of its bytes.
const maxValues = 1_000_000

func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		before := p.data[:at]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		p.err = errs.New(errs.Invalid, "bad_json", "malformed JSON at line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
	}
	p.pos = len(p.data)
}

// found names what stands at a position, for messages.
func (p *parser) found(at int) string {
	if at >= len(p.data) {
		return "end"
	}
	r, size := utf8.DecodeRune(p.data[at:])
	if r == utf8.RuneError && size == 1 {
		return "byte " + fmt.Sprintf("%#x", p.data[at])
	}
	return strconv.QuoteRune(r)
}

// peek skips white space and gives the next byte, or 0 at the end. A NUL in the data is no JSON and is reported.
func (p *parser) peek() byte {
	for ; p.pos < len(p.data); p.pos++ {
		switch c := p.data[p.pos]; c {
		case ' ', '\t', '\n', '\r':
		case 0:
			p.fail(p.pos, "unexpected %s", p.found(p.pos))
			return 0
		default:
			return c
		}
	}
	return 0
}

// value reads one value that is inside of depth containers.
func (p *parser) value(depth int) any {
	if p.values++; p.values > maxValues && p.err == nil {
		p.err = errs.New(errs.Invalid, "too_complex", "the JSON has more than %d values: send it in parts", maxValues)
		p.pos = len(p.data)
	}
	switch c := p.peek(); {
	case c == '"':
		return p.text()
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.list(depth + 1)
	case c == '-' || (c >= '0' && c <= '9'):
		return p.number()
	case c == 't':
		p.word("true")
		return true
	case c == 'f':
		p.word("false")
		return false
	case c == 'n':
		p.word("null")
		return nil
	}
	p.fail(p.pos, "expected a value, found %s", p.found(p.pos))
	return nil
}

func (p *parser) word(w string) {
	if !bytes.HasPrefix(p.data[p.pos:], []byte(w)) {
		p.fail(p.pos, "expected a value; the words of JSON are true, false and null")
		return
	}
	p.pos += len(w)
}

// enter steps over the opening bracket of a container at the given level.
func (p *parser) enter(level int) {
	if level > p.maxDepth {
		if p.err == nil {
			p.err = errs.New(errs.Invalid, "too_deep", "the JSON is nested more than %d levels deep; flatten it", p.maxDepth)
		}
		p.pos = len(p.data)
		return
	}
	p.pos++
}

// next steps over a comma or the closing bracket and says whether another member follows.
func (p *parser) next(closing byte) bool {
	switch p.peek() {
	case closing:
		p.pos++
		return false
	case ',':
		p.pos++
		return true
	}
	p.fail(p.pos, "expected ',' or '%c', found %s", closing, p.found(p.pos))
	return false
}

func (p *parser) object(level int) bson.D {
	p.enter(level)
	doc := bson.D{}
	if p.peek() == '}' {
		p.pos++
		return doc
	}
	names := nameSet{}
	for more := true; more && p.err == nil; more = p.next('}') {
		if p.peek() != '"' {
			p.fail(p.pos, "expected a name in double quotes, found %s", p.found(p.pos))
			return nil
		}
		at := p.pos
		name := p.text()
		if p.err == nil && strings.IndexByte(name, 0) >= 0 {
			p.fail(at, "the name %q contains NUL", name)
		}
		if p.err == nil && !names.add(doc, name) {
			p.fail(at, "duplicate key %q: give each name once", name)
		}
		if p.peek() != ':' {
			p.fail(p.pos, "expected ':' after the name %q, found %s", name, p.found(p.pos))
			return nil
		}
		p.pos++
		doc = append(doc, bson.E{Key: name, Value: p.value(level)})
	}
	return doc
}

// nameSet finds names given twice: by looking through the few fields of a usual object, by a map for a long one.
type nameSet map[string]struct{}

// add says whether name is new beside the fields of doc, which have all been added before.
func (s *nameSet) add(doc bson.D, name string) bool {
	const few = 16
	if len(doc) < few {
		for i := range doc {
			if doc[i].Key == name {
				return false
			}
		}
		return true
	}
	if len(doc) == few {
		*s = make(nameSet, 4*few)
		for i := range doc {
			(*s)[doc[i].Key] = struct{}{}
		}
	}
	if _, ok := (*s)[name]; ok {
		return false
	}
	(*s)[name] = struct{}{}
	return true
}

func (p *parser) list(level int) bson.A {
	p.enter(level)
	list := bson.A{}
	if p.peek() == ']' {
		p.pos++
		return list
	}
	for more := true; more && p.err == nil; more = p.next(']') {
		list = append(list, p.value(level))
	}
	return list
}

// number reads a literal by the grammar of JSON, which is narrower than that of strconv.
func (p *parser) number() any {
	start := p.pos
	if p.data[p.pos] == '-' {
		p.pos++
	}
	if first := p.pos; p.digits() > 1 && p.data[first] == '0' {
		p.fail(first, "a number can't begin with a zero")
		return nil
	}
	whole := true
	if p.at('.') {
		whole = false
		p.pos++
		p.digits()
	}
	if p.at('e') || p.at('E') {
		whole = false
		p.pos++
		if p.at('+') || p.at('-') {
			p.pos++
		}
		p.digits()
	}
	if p.err != nil {
		return nil
	}
	literal := string(p.data[start:p.pos])
	if whole {
		if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return i
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		p.fail(start, "the number %s is too large", shorten(literal))
		return nil
	}
	return f
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func (p *parser) at(c byte) bool { return p.pos < len(p.data) && p.data[p.pos] == c }

// digits steps over one or more digits and counts them.
func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] >= '0' && p.data[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == start {
		p.fail(p.pos, "expected a digit, found %s", p.found(p.pos))
		return 0
	}
	return p.pos - start
}

// text reads a string literal. One without escapes is copied in one go.
func (p *parser) text() string {
	open := p.pos
	p.pos++
	start := p.pos
	ascii := true
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			raw := p.data[start:p.pos]
			if !ascii && !p.checkUTF8(start, raw) {
				return ""
			}
			p.pos++
			return string(raw)
		case c == '\\':
			return p.escapedText(open, start)
		case c < ' ':
			p.fail(p.pos, "control character %#x in a string: write it as an escape", c)
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.pos++
	}
	p.fail(open, "the string that begins here does not end")
	return ""
}

// escapedText goes on at the first escape of the string that begins at open.
func (p *parser) escapedText(open, start int) string {
	var out []byte
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			if !p.checkUTF8(start, p.data[start:p.pos]) {
				return ""
			}
			out = append(out, p.data[start:p.pos]...)
			p.pos++
			return string(out)
		case c == '\\':
			if !p.checkUTF8(start, p.data[start:p.pos]) {
				return ""
			}
			out = append(out, p.data[start:p.pos]...)
			out = p.escape(out)
			start = p.pos
		case c < ' ':
			p.fail(p.pos, "control character %#x in a string: write it as an escape", c)
			return ""
		default:
			p.pos++
		}
	}
	p.fail(open, "the string that begins here does not end")
	return ""
}

func (p *parser) checkUTF8(at int, raw []byte) bool {
	if utf8.Valid(raw) {
		return true
	}
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			p.fail(at+i, "invalid UTF-8 in a string (byte %#x)", raw[i])
			return false
		}
		i += size
	}
	return true
}

// escape reads one escape sequence, surrogate pairs included.
func (p *parser) escape(out []byte) []byte {
	start := p.pos
	p.pos++
	if p.pos >= len(p.data) {
		return out
	}
	c := p.data[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := p.hex4(start)
		if utf16.IsSurrogate(r) {
			var low rune
			if bytes.HasPrefix(p.data[p.pos:], []byte(`\u`)) {
				p.pos += 2
				low = p.hex4(p.pos - 2)
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				p.fail(start, "half of a surrogate pair in a string")
				return out
			}
		}
		return utf8.AppendRune(out, r)
	}
	p.fail(start, `unknown escape in a string: allowed are \" \\ \/ \b \f \n \r \t \uXXXX`)
	return out
}

// hex4 reads the four digits of the \u escape that begins at start.
func (p *parser) hex4(start int) rune {
	if p.pos+4 <= len(p.data) {
		if v, err := strconv.ParseUint(string(p.data[p.pos:p.pos+4]), 16, 16); err == nil {
			p.pos += 4
			return rune(v)
		}
	}
	p.fail(start, `\u needs four hexadecimal digits`)
	return 0
}
