package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// ParseExtended reads a document that AppendExtended has written, and gives the bytes that it had. Spaces between the parts
// don't matter; what is not canonical, such as a number that does not say its type, is refused.
//
// Errors are errs.Invalid with code "bad_extended_json" and the byte, from 0, at which the reading ended.
func ParseExtended(text []byte) (bson.Raw, error) {
	p := &extendedParser{text: text}
	t, out, err := p.object(make([]byte, 0, len(text)), 0)
	if err == nil && t != bson.TypeEmbeddedDocument {
		err = p.bad("a document is an object without a type")
	}
	if p.space(); err == nil && p.at < len(p.text) {
		err = p.bad("there is more behind the document")
	}
	if err != nil {
		return nil, err
	}
	if len(out) > MaxSize {
		return nil, p.bad("the document is larger than 16 MiB")
	}
	return out, nil
}

// extendedParser appends what it reads to BSON.
type extendedParser struct {
	text  []byte
	at    int
	words []byte // of a value, for as long as that is read
}

// said reads a text that is soon taken apart.
func (p *extendedParser) said() (string, error) {
	var err error
	p.words, err = p.textOf(p.words[:0])
	return string(p.words), err
}

func (p *extendedParser) bad(what string) error {
	return errs.New(errs.Invalid, "bad_extended_json", "Extended JSON: %s, at byte %d", what, p.at)
}

func (p *extendedParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// peek is the next character that is no space, 0 at the end.
func (p *extendedParser) peek() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// take reads one character.
func (p *extendedParser) take(c byte) error {
	if p.peek() != c {
		return p.bad("expected " + strconv.QuoteRune(rune(c)))
	}
	p.at++
	return nil
}

// word reads letters that have to be there.
func (p *extendedParser) word(w string) error {
	if p.space(); string(p.text[p.at:min(p.at+len(w), len(p.text))]) != w {
		return p.bad("expected " + w)
	}
	p.at += len(w)
	return nil
}

// value appends the bytes of a value.
func (p *extendedParser) value(dst []byte, depth int) (bson.Type, []byte, error) {
	switch p.peek() {
	case '"':
		dst, err := p.bsonText(dst)
		return bson.TypeString, dst, err
	case '{':
		return p.object(dst, depth)
	case '[':
		dst, err := p.list(dst, depth)
		return bson.TypeArray, dst, err
	case 't':
		return bson.TypeBoolean, append(dst, 1), p.word("true")
	case 'f':
		return bson.TypeBoolean, append(dst, 0), p.word("false")
	case 'n':
		return bson.TypeNull, dst, p.word("null")
	default:
		return 0, dst, p.bad("expected a value; a number has to say its type")
	}
}

// object reads a document, or another value in the words of Extended JSON.
func (p *extendedParser) object(dst []byte, depth int) (bson.Type, []byte, error) {
	if depth >= maxNesting {
		return 0, dst, p.bad("it is nested more than 100 levels deep")
	}
	if err := p.take('{'); err != nil {
		return 0, dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for first := true; ; first = false {
		if first && p.peek() == '}' {
			break
		}
		name := len(dst) + 1
		var err error
		if dst, err = p.name(append(dst, 0)); err != nil {
			return 0, dst, err
		}
		if len(dst) > name && dst[name] == '$' {
			if !first {
				return 0, dst, p.bad("a name begins with $ behind others")
			}
			what := string(dst[name:])
			return p.wrapped(dst[:start], what)
		}
		dst = append(dst, 0)
		var t bson.Type
		if t, dst, err = p.value(dst, depth+1); err != nil {
			return 0, dst, err
		}
		dst[name-1] = byte(t)
		if p.peek() != ',' {
			break
		}
		p.at++
	}
	return bson.TypeEmbeddedDocument, Close(dst, start), p.take('}')
}

func (p *extendedParser) list(dst []byte, depth int) ([]byte, error) {
	if depth >= maxNesting {
		return dst, p.bad("it is nested more than 100 levels deep")
	}
	p.at++
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for n := int64(0); ; n++ {
		if n == 0 && p.peek() == ']' {
			break
		}
		at := len(dst)
		dst = append(strconv.AppendInt(append(dst, 0), n, 10), 0)
		var t bson.Type
		var err error
		if t, dst, err = p.value(dst, depth+1); err != nil {
			return dst, err
		}
		dst[at] = byte(t)
		if p.peek() != ',' {
			break
		}
		p.at++
	}
	return Close(dst, start), p.take(']')
}

// name appends the name of a member, and reads the colon behind it.
func (p *extendedParser) name(dst []byte) ([]byte, error) {
	start := len(dst)
	dst, err := p.textOf(dst)
	if err == nil && bytes.IndexByte(dst[start:], 0) >= 0 {
		err = p.bad("a name has NUL in it")
	}
	if err == nil {
		err = p.take(':')
	}
	return dst, err
}

// bsonText appends a text with its length and NUL.
func (p *extendedParser) bsonText(dst []byte) ([]byte, error) {
	start := len(dst)
	dst, err := p.textOf(append(dst, 0, 0, 0, 0))
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4)) //nolint:gosec // a line is far below 4 GB
	return dst, err
}

// textOf appends the characters of a text.
func (p *extendedParser) textOf(dst []byte) ([]byte, error) {
	if err := p.take('"'); err != nil {
		return dst, err
	}
	for p.at < len(p.text) {
		n := plainPrefix(p.text[p.at:])
		if !utf8.Valid(p.text[p.at : p.at+n]) {
			return dst, p.bad("text is not UTF-8")
		}
		dst = append(dst, p.text[p.at:p.at+n]...)
		p.at += n
		switch {
		case p.at == len(p.text):
		case p.text[p.at] == '"':
			p.at++
			return dst, nil
		case p.text[p.at] != '\\':
			return dst, p.bad("text has a control character in it")
		default:
			var err error
			if dst, err = p.escape(dst); err != nil {
				return dst, err
			}
		}
	}
	return dst, p.bad("a text has no end")
}

func (p *extendedParser) escape(dst []byte) ([]byte, error) {
	const names, characters = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	p.at++
	if p.at == len(p.text) {
		return dst, p.bad("a text has no end")
	}
	if i := strings.IndexByte(names, p.text[p.at]); i >= 0 {
		p.at++
		return append(dst, characters[i]), nil
	}
	r, ok := p.unicode()
	if ok && utf16.IsSurrogate(r) {
		low, second := rune(0), false
		if p.at < len(p.text) && p.text[p.at] == '\\' {
			p.at++
			low, second = p.unicode()
		}
		r = utf16.DecodeRune(r, low)
		ok = second && r != utf8.RuneError
	}
	if !ok {
		return dst, p.bad("an escape in a text is not valid")
	}
	return utf8.AppendRune(dst, r), nil
}

// unicode reads u and four digits.
func (p *extendedParser) unicode() (rune, bool) {
	if p.at+5 > len(p.text) || p.text[p.at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.text[p.at+1:p.at+5]), 16, 16)
	p.at += 5
	return rune(n), err == nil //nolint:gosec // 16 bits
}

// wrapped appends the value of an object whose first name begins with $.
func (p *extendedParser) wrapped(dst []byte, name string) (t bson.Type, out []byte, err error) {
	switch name {
	case "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$oid", extendedWhole:
		var text string
		if text, err = p.said(); err == nil {
			t, dst, err = p.read(dst, name, text)
		}
	case "$code", "$symbol":
		t = bson.TypeSymbol
		if name == "$code" {
			t = bson.TypeJavaScript
		}
		dst, err = p.bsonText(dst)
	case "$date":
		t = bson.TypeDateTime
		dst, err = p.date(dst)
	case "$binary":
		t = bson.TypeBinary
		dst, err = p.binary(dst)
	case "$timestamp":
		t = bson.TypeTimestamp
		dst, err = p.timestamp(dst)
	case "$regularExpression":
		t = bson.TypeRegex
		dst, err = p.regex(dst)
	case "$minKey", "$maxKey":
		t = bson.TypeMinKey
		if name == "$maxKey" {
			t = bson.TypeMaxKey
		}
		err = p.word("1")
	case "$undefined":
		t, err = bson.TypeUndefined, p.word("true")
	default:
		err = p.bad("there is no type " + Readable(name))
	}
	if err == nil {
		err = p.take('}')
	}
	return t, dst, err
}

// read appends a value that is one text.
func (p *extendedParser) read(dst []byte, name, text string) (bson.Type, []byte, error) {
	switch name {
	case "$numberInt":
		n, err := strconv.ParseInt(text, 10, 32)
		if err == nil {
			return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(n)), nil //nolint:gosec // its bits
		}
	case "$numberLong":
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			return bson.TypeInt64, binary.LittleEndian.AppendUint64(dst, uint64(n)), nil //nolint:gosec // its bits
		}
	case "$numberDouble":
		if bits, ok := extendedDouble(text); ok {
			return bson.TypeDouble, binary.LittleEndian.AppendUint64(dst, bits), nil
		}
	case "$numberDecimal":
		d, err := bson.ParseDecimal128(text)
		if err == nil {
			high, low := d.GetBytes()
			return bson.TypeDecimal128, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, low), high), nil
		}
	case "$oid":
		id, err := bson.ObjectIDFromHex(text)
		if err == nil {
			return bson.TypeObjectID, append(dst, id[:]...), nil
		}
	case extendedWhole:
		doc, err := base64.StdEncoding.Strict().DecodeString(text)
		if err == nil && len(dst) == 0 && WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
			return bson.TypeEmbeddedDocument, doc, nil
		}
	}
	return 0, dst, p.bad("the value of " + name + " is not valid")
}

func extendedDouble(text string) (bits uint64, ok bool) {
	switch text {
	case "NaN":
		return bitsOfNaN, true
	case "Infinity":
		return math.Float64bits(math.Inf(1)), true
	case "-Infinity":
		return math.Float64bits(math.Inf(-1)), true
	}
	if text == "" || strings.Trim(text, "+-0123456789.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return math.Float64bits(f), err == nil
}

// member reads the beginning of a member whose name has to be that.
func (p *extendedParser) member(opening byte, name string) error {
	if err := p.take(opening); err != nil {
		return err
	}
	var err error
	p.words, err = p.name(p.words[:0])
	if err == nil && string(p.words) != name {
		err = p.bad("expected " + name)
	}
	return err
}

func (p *extendedParser) date(dst []byte) ([]byte, error) {
	if err := p.member('{', "$numberLong"); err != nil {
		return dst, err
	}
	text, err := p.said()
	if err == nil {
		_, dst, err = p.read(dst, "$numberLong", text)
	}
	if err == nil {
		err = p.take('}')
	}
	return dst, err
}

func (p *extendedParser) binary(dst []byte) ([]byte, error) {
	if err := p.member('{', "base64"); err != nil {
		return dst, err
	}
	text, err := p.said()
	if err != nil {
		return dst, err
	}
	if err := p.member(',', "subType"); err != nil {
		return dst, err
	}
	kind, err := p.said()
	if err != nil {
		return dst, err
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	subtype, bad := hex.DecodeString(kind)
	if err != nil || bad != nil || len(subtype) != 1 || subtype[0] == bson.TypeBinaryBinaryOld {
		return dst, p.bad("the value of $binary is not valid")
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data))) //nolint:gosec // a line is far below 4 GB
	return append(append(dst, subtype[0]), data...), p.take('}')
}

func (p *extendedParser) timestamp(dst []byte) ([]byte, error) {
	if err := p.member('{', "t"); err != nil {
		return dst, err
	}
	t, err := p.number()
	if err != nil {
		return dst, err
	}
	if err := p.member(',', "i"); err != nil {
		return dst, err
	}
	i, err := p.number()
	if err != nil {
		return dst, err
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, i), t), p.take('}')
}

func (p *extendedParser) number() (uint32, error) {
	p.space()
	end := p.at
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(string(p.text[p.at:end]), 10, 32)
	if err != nil {
		return 0, p.bad("the value of $timestamp is not valid")
	}
	p.at = end
	return uint32(n), nil
}

func (p *extendedParser) regex(dst []byte) ([]byte, error) {
	for i, name := range []string{"pattern", "options"} {
		if err := p.member("{,"[i], name); err != nil {
			return dst, err
		}
		start := len(dst)
		var err error
		if dst, err = p.textOf(dst); err != nil {
			return dst, err
		}
		if bytes.IndexByte(dst[start:], 0) >= 0 {
			return dst, p.bad("a regular expression has NUL in it")
		}
		dst = append(dst, 0)
	}
	return dst, p.take('}')
}
