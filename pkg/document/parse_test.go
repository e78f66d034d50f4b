package document_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func TestParseJSONValue(t *testing.T) {
	tests := []struct {
		give string
		want any
	}{
		{"null", nil},
		{" true\r\n\t", true},
		{"false", false},
		{"0", int64(0)},
		{"-0", int64(0)},
		{"9223372036854775807", int64(9223372036854775807)},
		{"-9223372036854775808", int64(-9223372036854775808)},
		{"9223372036854775808", 9223372036854775808.0},
		{"1.0", 1.0},
		{"1e3", 1000.0},
		{"-1.5E-2", -0.015},
		{"1e-400", 0.0},
		{`""`, ""},
		{`"é\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t\u0000"`, "éé\U0001F600\"\\/\b\f\n\r\t\x00"},
		{`"\ufffd` + "\uFFFD\"", "\uFFFD\uFFFD"},
		{"[]", bson.A{}},
		{"{}", bson.D{}},
		{`[1,"a",[null]]`, bson.A{int64(1), "a", bson.A{nil}}},
		{`{"b":1,"a":{"$gt":2},"B":[]}`, bson.D{{Key: "b", Value: int64(1)}, {Key: "a", Value: bson.D{{Key: "$gt", Value: int64(2)}}}, {Key: "B", Value: bson.A{}}}},
	}
	for _, test := range tests {
		got, err := document.ParseJSONValue([]byte(test.give))
		if err != nil {
			t.Errorf("%s: %v", test.give, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.give, diff)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 32) + "[]" + strings.Repeat("}", 32)
	tests := []struct{ give, code, message string }{
		{"", "bad_json", "malformed JSON at line 1, column 1: expected a value, found end"},
		{"{", "bad_json", "malformed JSON at line 1, column 2: expected a name in double quotes, found end"},
		{"[1]", "bad_json", "send a JSON object, not a list"},
		{"null", "bad_json", "send a JSON object, not null"},
		{"3", "bad_json", "send a JSON object, not a number"},
		{"{} x", "bad_json", "malformed JSON at line 1, column 4: unexpected 'x' after the end of the JSON value"},
		{"{}\x00", "bad_json", `malformed JSON at line 1, column 3: unexpected '\x00'`},
		{"\ufeff{}", "bad_json", `malformed JSON at line 1, column 1: expected a value, found '\ufeff'`},
		{"{\"a\":1,\n \"a\":2}", "bad_json", `malformed JSON at line 2, column 2: duplicate key "a": give each name once`},
		{`{"a":1,"\u0061":2}`, "bad_json", `malformed JSON at line 1, column 8: duplicate key "a": give each name once`},
		{`{"a\u0000":1}`, "bad_json", `malformed JSON at line 1, column 2: the name "a\x00" contains NUL`},
		{`{"a":1,}`, "bad_json", "malformed JSON at line 1, column 8: expected a name in double quotes, found '}'"},
		{`{"a":[1,]}`, "bad_json", "malformed JSON at line 1, column 9: expected a value, found ']'"},
		{`{"a":[1 2]}`, "bad_json", "malformed JSON at line 1, column 9: expected ',' or ']', found '2'"},
		{`{"a" 1}`, "bad_json", `malformed JSON at line 1, column 6: expected ':' after the name "a", found '1'`},
		{`{a:1}`, "bad_json", "malformed JSON at line 1, column 2: expected a name in double quotes, found 'a'"},
		{`{"a":'x'}`, "bad_json", `malformed JSON at line 1, column 6: expected a value, found '\''`},
		{`{"é":tru}`, "bad_json", "malformed JSON at line 1, column 6: expected a value; the words of JSON are true, false and null"},
		{`{"a":NaN}`, "bad_json", "malformed JSON at line 1, column 6: expected a value, found 'N'"},
		{`{"a":1e309}`, "bad_json", "malformed JSON at line 1, column 6: the number 1e309 is too large"},
		{`{"a":-1e309}`, "bad_json", "malformed JSON at line 1, column 6: the number -1e309 is too large"},
		{`{"a":01}`, "bad_json", "malformed JSON at line 1, column 6: a number can't begin with a zero"},
		{`{"a":+1}`, "bad_json", "malformed JSON at line 1, column 6: expected a value, found '+'"},
		{`{"a":1.}`, "bad_json", "malformed JSON at line 1, column 8: expected a digit, found '}'"},
		{`{"a":.5}`, "bad_json", "malformed JSON at line 1, column 6: expected a value, found '.'"},
		{`{"a":-}`, "bad_json", "malformed JSON at line 1, column 7: expected a digit, found '}'"},
		{`{"a":1e}`, "bad_json", "malformed JSON at line 1, column 8: expected a digit, found '}'"},
		{`{"a":0x1}`, "bad_json", "malformed JSON at line 1, column 7: expected ',' or '}', found 'x'"},
		{`{"a":"x`, "bad_json", "malformed JSON at line 1, column 6: the string that begins here does not end"},
		{`{"a":"x\`, "bad_json", "malformed JSON at line 1, column 6: the string that begins here does not end"},
		{"{\"a\":\"x\n\"}", "bad_json", "malformed JSON at line 1, column 8: control character 0xa in a string: write it as an escape"},
		{"{\"a\":\"x\xff\"}", "bad_json", "malformed JSON at line 1, column 8: invalid UTF-8 in a string (byte 0xff)"},
		{"{\"a\":\"\\n\xed\xa0\x80\"}", "bad_json", "malformed JSON at line 1, column 9: invalid UTF-8 in a string (byte 0xed)"},
		{"{\"\xff\":1}", "bad_json", "malformed JSON at line 1, column 3: invalid UTF-8 in a string (byte 0xff)"},
		{`{"a":"\ud800"}`, "bad_json", "malformed JSON at line 1, column 7: half of a surrogate pair in a string"},
		{`{"a":"\udc00\ud800"}`, "bad_json", "malformed JSON at line 1, column 7: half of a surrogate pair in a string"},
		{`{"a":"\ud800\u0041"}`, "bad_json", "malformed JSON at line 1, column 7: half of a surrogate pair in a string"},
		{`{"a":"\u00g0"}`, "bad_json", `malformed JSON at line 1, column 7: \u needs four hexadecimal digits`},
		{`{"a":"\ud800\u"}`, "bad_json", `malformed JSON at line 1, column 13: \u needs four hexadecimal digits`},
		{`{"a":"\x"}`, "bad_json", `malformed JSON at line 1, column 7: unknown escape in a string: allowed are \" \\ \/ \b \f \n \r \t \uXXXX`},
		{deep, "too_deep", "the JSON is nested more than 32 levels deep; flatten it"},
	}
	for _, test := range tests {
		_, err := document.ParseJSON([]byte(test.give))
		var e *errs.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", test.give, err)
			continue
		}
		if e.Kind != errs.Invalid || e.Code != test.code || e.Message != test.message {
			t.Errorf("%s:\ngot  %d %s %s\nwant %d %s %s", test.give, e.Kind, e.Code, e.Message, errs.Invalid, test.code, test.message)
		}
	}
	if _, err := document.ParseJSON([]byte(deep[5 : len(deep)-1])); err != nil {
		t.Errorf("32 levels are allowed: %v", err)
	}
}

func TestParseJSONFindsDuplicatesAmongMany(t *testing.T) {
	for _, n := range []int{15, 16, 17, 18, 100} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		if _, err := document.ParseJSON([]byte("{" + b.String() + `"last":1}`)); err != nil {
			t.Errorf("%d names: %v", n, err)
		}
		for i := range n {
			if _, err := document.ParseJSON([]byte("{" + b.String() + fmt.Sprintf(`"k%d":1}`, i))); err == nil {
				t.Errorf("%d names, the last again k%d: no error", n, i)
			}
		}
	}
}

// FuzzParseJSON holds the parser against encoding/json: it takes exactly what that does, less what we refuse on
// purpose, and reads the same.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,null,"x\u00e9\ud83d\ude00"],"c":{"d":-1.5e3}}`, `{"a":1,"a":2}`, `[1e309]`, `"\ud800"`, `01`, `{"a":}`, "\"\xff\"",
		`9223372036854775808`, "[[[[]]]]", `{"\u0000":1}`, " \t\r\n1", `-0.0`, `"\/"`, `1e-7`, `[1,]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := document.ParseJSONValue(data)
		want, wantErr := reference(data)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%q: not the caller's fault: %v", data, err)
			}
			if wantErr == nil && utf8.Valid(data) && !refusedOnPurpose(err) && !loneSurrogate(data) {
				t.Fatalf("%q: %v, but encoding/json reads %v", data, err, want)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("%q: read as %v, but encoding/json says %v", data, got, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-encoding/json +ours):\n%s", data, diff)
		}
		raw, err := document.MarshalValue(got)
		if err != nil {
			t.Fatalf("%q can't be stored: %v", data, err)
		}
		again, err := document.ParseJSONValue(document.AppendJSONValue(nil, raw, nil))
		if err != nil {
			t.Fatalf("%q does not come back: %v", data, err)
		}
		back, err := document.MarshalValue(again)
		if err != nil || document.Compare(raw, back) != 0 {
			t.Fatalf("%q comes back as %v (%v)", data, again, err)
		}
	})
}

func refusedOnPurpose(err error) bool {
	e := errs.From(err)
	return e.Code == "too_deep" || strings.Contains(e.Message, "duplicate key") || strings.Contains(e.Message, "contains NUL") ||
		strings.Contains(e.Message, "is too large")
}

func loneSurrogate(data []byte) bool {
	return bytes.Contains(bytes.ToLower(data), []byte(`\ud`))
}

// reference reads JSON by encoding/json's tokens into our value model.
func reference(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, errors.New("not valid")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := referenceValue(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return v, nil
}

func referenceValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return i, nil
		}
		return token.Float64()
	case json.Delim:
		list, doc := bson.A{}, bson.D{}
		for dec.More() {
			var name any
			if token == '{' {
				if name, err = dec.Token(); err != nil {
					return nil, err
				}
			}
			v, err := referenceValue(dec)
			if err != nil {
				return nil, err
			}
			if token == '{' {
				doc = append(doc, bson.E{Key: fmt.Sprint(name), Value: v})
			}
			list = append(list, v)
		}
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
		if token == '{' {
			return doc, nil
		}
		return list, nil
	default:
		return token, nil
	}
}

func TestCheckNames(t *testing.T) {
	doc := bson.D{
		{Key: "fine", Value: bson.D{{Key: "a$b", Value: 1}, {Key: "_x", Value: 1}}},
		{Key: "$set", Value: bson.D{{Key: "$inner", Value: 1}}},
		{Key: "", Value: 1},
		{Key: "a.b", Value: 1},
		{Key: "list", Value: bson.A{1, bson.D{{Key: "__proto__", Value: 1}}, []any{bson.D{{Key: "x\x00", Value: 1}}}}},
		{Key: "o", Value: bson.D{{Key: "constructor", Value: 1}, {Key: "prototype", Value: 1}}},
	}
	var got []string
	for _, p := range document.CheckNames(doc) {
		if p.Rule != "name" || p.Message == "" {
			t.Errorf("problem %+v", p)
		}
		got = append(got, p.Path)
	}
	want := []string{"$set", "", "a.b", "list.1.__proto__", "list.2.0.x\x00", "o.constructor", "o.prototype"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseTime(t *testing.T) {
	for give, want := range map[string]time.Time{
		"2026-01-31":                       time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00Z":             time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00.123987+02:00": time.Date(2026, 1, 31, 10, 0, 0, 123e6, time.UTC),
		"1969-12-31T23:59:59.9999Z":        time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC),
		"0000-01-01T00:00:00Z":             time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		got, err := document.ParseTime(give)
		if err != nil || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", give, got, err, want)
		}
	}
	for _, give := range []string{
		"", "now", "2026-02-30", "2026-1-2", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T24:00:00Z", "2026-01-31T12:00:00,5Z",
		"2026-01-31T1:00:00Z", "2026-01-31T01:00:00+24:00", "2026-01-31T01:00:00+01:60", "10000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "1700000000",
	} {
		if got, err := document.ParseTime(give); errs.From(err) == nil || errs.From(err).Code != "bad_time" {
			t.Errorf("ParseTime(%q) = %v, %v; want bad_time", give, got, err)
		}
	}
}

func BenchmarkParseJSON(b *testing.B) {
	data := document.AppendJSON(nil, mustMarshal(b, article(b)), nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := document.ParseJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseJSONBoundsTheNumberOfValues(t *testing.T) {
	t.Parallel()
	bomb := []byte(`{"a":[` + strings.Repeat("[],", 1_000_000) + `[]]}`)
	if _, err := document.ParseJSON(bomb); errs.From(err) == nil || errs.From(err).Code != "too_complex" {
		t.Errorf("got %v, want too_complex", err)
	}
}
