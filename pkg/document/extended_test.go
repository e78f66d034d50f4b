package document_test

import (
	"bytes"
	"encoding/base64"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func encoded(tb testing.TB, d bson.D) bson.Raw {
	tb.Helper()
	raw, err := bson.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// wantRoundTrip says that a document's text gives its bytes back.
func wantRoundTrip(tb testing.TB, doc bson.Raw) string {
	tb.Helper()
	text := string(document.AppendExtended(nil, doc))
	back, err := document.ParseExtended([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	if !bytes.Equal(back, doc) {
		tb.Fatalf("%s\ngives %x\nwant  %x", text, []byte(back), []byte(doc))
	}
	return text
}

func TestExtendedText(t *testing.T) {
	t.Parallel()
	id := bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	d := encoded(t, bson.D{
		{Key: "_id", Value: id},
		{Key: "text", Value: "a \"b\" \\ <c> \n\x01 ü \u2028"},
		{Key: "int", Value: int32(-5)},
		{Key: "long", Value: int64(5)},
		{Key: "whole", Value: 1.0},
		{Key: "zero", Value: math.Copysign(0, -1)},
		{Key: "large", Value: 1e300},
		{Key: "inf", Value: math.Inf(-1)},
		{Key: "nan", Value: math.Float64frombits(0x7ff8000000000000)},
		{Key: "decimal", Value: decimalOf(t, "1.50")},
		{Key: "yes", Value: true},
		{Key: "none", Value: nil},
		{Key: "at", Value: bson.DateTime(-1)},
		{Key: "data", Value: bson.Binary{Subtype: 4, Data: []byte{0, 255}}},
		{Key: "list", Value: bson.A{int32(1), bson.A{}, bson.D{}}},
		{Key: "", Value: bson.D{{Key: "a.b", Value: bson.Timestamp{T: 1, I: 2}}}},
		{Key: "re", Value: bson.Regex{Pattern: `a"b`, Options: "i"}},
		{Key: "min", Value: bson.MinKey{}},
		{Key: "max", Value: bson.MaxKey{}},
		{Key: "gone", Value: bson.Undefined{}},
		{Key: "code", Value: bson.JavaScript("f()")},
		{Key: "symbol", Value: bson.Symbol("s")},
	})
	want := `{"_id":{"$oid":"0102030405060708090a0b0c"},"text":"a \"b\" \\ <c> \n\u0001 ü ` + "\u2028" + `",` +
		`"int":{"$numberInt":"-5"},"long":{"$numberLong":"5"},"whole":{"$numberDouble":"1.0"},"zero":{"$numberDouble":"-0.0"},` +
		`"large":{"$numberDouble":"1E+300"},"inf":{"$numberDouble":"-Infinity"},"nan":{"$numberDouble":"NaN"},` +
		`"decimal":{"$numberDecimal":"1.50"},"yes":true,"none":null,"at":{"$date":{"$numberLong":"-1"}},` +
		`"data":{"$binary":{"base64":"AP8=","subType":"04"}},"list":[{"$numberInt":"1"},[],{}],"":{"a.b":{"$timestamp":{"t":1,"i":2}}},` +
		`"re":{"$regularExpression":{"pattern":"a\"b","options":"i"}},"min":{"$minKey":1},"max":{"$maxKey":1},` +
		`"gone":{"$undefined":true},"code":{"$code":"f()"},"symbol":{"$symbol":"s"}}`
	text := wantRoundTrip(t, d)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	var theirs bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), true, &theirs); err != nil {
		t.Fatalf("the driver does not read it: %v", err)
	}
	if again := encoded(t, theirs); !bytes.Equal(clearNaN(again), clearNaN(d)) {
		t.Errorf("the driver reads\n%v\nwant\n%v", again, d)
	}
}

// clearNaN replaces the NaN of Go by that of everybody else.
func clearNaN(doc bson.Raw) []byte {
	return bytes.ReplaceAll(doc, []byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f}, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f})
}

// TestExtendedWhole: what there are no words for comes back to the bit all the same.
func TestExtendedWhole(t *testing.T) {
	t.Parallel()
	raw := func(kind bson.Type, value ...byte) bson.Raw {
		return document.Close(document.AppendElement(make([]byte, 4), "a", bson.RawValue{Type: kind, Value: value}), 0)
	}
	list := document.Close(document.AppendElement(make([]byte, 4), "7", bson.RawValue{Type: bson.TypeNull}), 0)
	for name, doc := range map[string]bson.Raw{
		"looks like a type":    encoded(t, bson.D{{Key: "a", Value: bson.D{{Key: "$oid", Value: "0102030405060708090a0b0c"}}}}),
		"looks like the whole": encoded(t, bson.D{{Key: "$bson", Value: "AAAA"}}),
		"$ behind another":     encoded(t, bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: 1}, {Key: "$c", Value: 1}}}}}),
		"positions of a list":  raw(bson.TypeArray, list...),
		"Go's NaN":             encoded(t, bson.D{{Key: "a", Value: math.NaN()}}),
		"text":                 raw(bson.TypeString, 2, 0, 0, 0, 0xff, 0),
		"name":                 document.Close(document.AppendElement(make([]byte, 4), "\xff", bson.RawValue{Type: bson.TypeNull}), 0),
		"old binary":           raw(bson.TypeBinary, 5, 0, 0, 0, 2, 1, 0, 0, 0, 9),
		"a decimal NaN":        raw(bson.TypeDecimal128, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7c),
		"a pointer":            raw(bson.TypeDBPointer, 2, 0, 0, 0, 'c', 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
		"code with scope":      raw(bson.TypeCodeWithScope, 15, 0, 0, 0, 2, 0, 0, 0, 'f', 0, 5, 0, 0, 0, 0),
	} {
		if text := wantRoundTrip(t, doc); !strings.HasPrefix(text, `{"$bson":"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestParseExtendedRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 101) + "null" + strings.Repeat("}", 101)
	if _, err := document.ParseExtended([]byte(strings.Repeat(`{"a":`, 99) + "{}" + strings.Repeat("}", 99))); err != nil {
		t.Errorf("100 levels: %v", err)
	}
	for _, text := range []string{
		``, `1`, `null`, `[]`, `{`, `{"a"}`, `{"a":}`, `{"a":1}`, `{"a":"x}`, `{"a":"x"`, `{"a":null,}`, `{"a":[null,]}`, `{"a":null} x`,
		`{"a":"` + "\n" + `"}`, `{"a":"` + "\xff" + `"}`, `{"a\u0000":null}`, `{"a":"\ud800"}`, `{"a":"\ud800\u0041"}`, `{"a":"\x"}`, `{"a":"\u00"}`,
		`{"a":{"$numberInt":"2147483648"}}`, `{"a":{"$numberInt":5}}`, `{"a":{"$numberLong":"x"}}`, `{"a":{"$numberDouble":"0x1p-2"}}`,
		`{"a":{"$numberDouble":""}}`, `{"a":{"$numberDecimal":"x"}}`, `{"a":{"$oid":"01"}}`, `{"a":{"$oid":"0102030405060708090a0b0c","b":null}}`,
		`{"a":{"b":null,"$c":null}}`, `{"a":{"$what":null}}`, `{"a":{"$date":"2020-01-01T00:00:00Z"}}`, `{"a":{"$date":{"$numberLong":"1"}`,
		`{"a":{"$binary":{"base64":"?","subType":"00"}}}`, `{"a":{"$binary":{"base64":"","subType":"2"}}}`, `{"a":{"$binary":{"base64":"","subType":"02"}}}`,
		`{"a":{"$binary":{"subType":"00","base64":""}}}`, `{"a":{"$timestamp":{"t":-1,"i":1}}}`, `{"a":{"$timestamp":{"t":1}}}`,
		`{"a":{"$regularExpression":{"pattern":"\u0000","options":""}}}`, `{"a":{"$minKey":2}}`, `{"a":{"$undefined":false}}`,
		`{"$oid":"0102030405060708090a0b0c"}`, `{"$bson":"AAAA"}`, `{"$bson":"` + base64.StdEncoding.EncodeToString([]byte{5, 0, 0, 0, 0, 0}) + `"}`,
		`{"a":{"$bson":"BQAAAAA="}}`, deep,
	} {
		if doc, err := document.ParseExtended([]byte(text)); errs.From(err) == nil || errs.From(err).Code != "bad_extended_json" {
			t.Errorf("%.80s gives %v, %v", text, doc, err)
		}
	}
	if doc, err := document.ParseExtended([]byte(` { "$bson" : "BQAAAAA=" } `)); err != nil || len(doc) != 5 {
		t.Errorf("spaces: %v, %v", doc, err)
	}
}

// TestExtendedRandom: random documents of every type come back.
func TestExtendedRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, group := range ascending(t) {
		for _, v := range group {
			if raw, missing := v.(bson.RawValue); missing && raw.Type == 0 {
				continue
			}
			wantRoundTrip(t, encoded(t, bson.D{{Key: "v", Value: v}, {Key: "l", Value: bson.A{v, bson.D{{Key: "n", Value: v}}}}}))
		}
	}
	for range 5000 {
		bits := r.Uint64()
		wantRoundTrip(t, encoded(t, bson.D{{Key: "f", Value: math.Float64frombits(bits)}, {Key: "d", Value: bson.NewDecimal128(r.Uint64(), bits)}}))
	}
}

func FuzzParseExtended(f *testing.F) {
	f.Add([]byte(`{"_id":{"$oid":"0102030405060708090a0b0c"},"a":[1,{"$numberDouble":"1.0"},"x\u0041"],"b":{"c":null}}`))
	f.Add([]byte(`{"$bson":"BQAAAAA="}`))
	f.Add([]byte(`{"a":{"$binary":{"base64":"AP8=","subType":"04"}},"t":{"$timestamp":{"t":1,"i":2}},"r":{"$regularExpression":{"pattern":"a","options":"i"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := document.ParseExtended(text)
		if err != nil {
			return
		}
		if !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
			t.Fatalf("%q gives what is no document", text)
		}
		wantRoundTrip(t, doc)
	})
}

func BenchmarkExtended(b *testing.B) {
	doc := bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "_rev", Value: int64(3)}}
	for i := range 20 {
		doc = append(doc, bson.E{Key: strings.Repeat("f", 8) + string(rune('a'+i)), Value: "a text of some length, as records have"})
	}
	raw := encoded(b, doc)
	text := document.AppendExtended(nil, raw)
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = document.AppendExtended(buf[:0], raw)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := document.ParseExtended(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
