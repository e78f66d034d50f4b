package document_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func mustMarshal(tb testing.TB, doc bson.D) bson.Raw {
	tb.Helper()
	raw, err := document.Marshal(doc)
	if err != nil {
		tb.Fatalf("marshal %v: %v", doc, err)
	}
	return raw
}

// everything has one field of each type that Unmarshal gives back as it was.
func everything(tb testing.TB) bson.D {
	tb.Helper()
	return bson.D{
		{Key: "_id", Value: bson.ObjectID{1, 2, 3}},
		{Key: "null", Value: nil},
		{Key: "yes", Value: true},
		{Key: "no", Value: false},
		{Key: "int32", Value: int32(-7)},
		{Key: "int64", Value: int64(math.MinInt64)},
		{Key: "double", Value: 1.5},
		{Key: "text", Value: "a\x00é\U0001F600"},
		{Key: "empty", Value: ""},
		{Key: "object", Value: bson.D{{Key: "a", Value: bson.D{}}}},
		{Key: "list", Value: bson.A{int64(1), "x", bson.A{}, bson.D{{Key: "b", Value: nil}}}},
		{Key: "date", Value: bson.DateTime(-1)},
		{Key: "decimal", Value: decimalOf(tb, "-12.50")},
		{Key: "binary", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}},
		{Key: "oldBinary", Value: bson.Binary{Subtype: 2, Data: []byte("xy")}},
		{Key: "regex", Value: bson.Regex{Pattern: "^a/", Options: "i"}},
		{Key: "timestamp", Value: bson.Timestamp{T: 5, I: 6}},
		{Key: "undefined", Value: bson.Undefined{}},
		{Key: "min", Value: bson.MinKey{}},
		{Key: "max", Value: bson.MaxKey{}},
		{Key: "symbol", Value: bson.Symbol("s")},
		{Key: "code", Value: bson.JavaScript("f()")},
	}
}

func TestMarshalIsWhatTheDriverWrites(t *testing.T) {
	doc := everything(t)
	want, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	got := mustMarshal(t, doc)
	if diff := cmp.Diff(want, []byte(got)); diff != "" {
		t.Errorf("Marshal (-driver +ours):\n%s", diff)
	}
	back, err := document.Unmarshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(doc, back, cmp.AllowUnexported(bson.Decimal128{})); diff != "" {
		t.Errorf("Unmarshal (-want +got):\n%s", diff)
	}
}

func TestMarshalRoundTripsRandomDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		doc := bson.D{{Key: "a", Value: randomValue(r, 4)}, {Key: "b", Value: randomValue(r, 4)}}
		raw := mustMarshal(t, doc)
		back, err := document.Unmarshal(raw)
		if err != nil {
			t.Fatalf("unmarshal %x: %v", raw, err)
		}
		if again := mustMarshal(t, back); string(again) != string(raw) {
			t.Fatalf("%v does not round-trip:\n%x\n%x", doc, raw, again)
		}
		if err := raw.Validate(); err != nil {
			t.Fatalf("the driver refuses %x: %v", raw, err)
		}
	}
}

func TestMarshalOtherGoTypes(t *testing.T) {
	when := time.Date(2026, 1, 31, 12, 0, 0, 987_654_321, time.FixedZone("", 3600))
	inner := mustMarshal(t, bson.D{{Key: "x", Value: int64(1)}})
	tests := map[string]struct{ give, want any }{
		"int":         {5, int64(5)},
		"int8":        {int8(-5), int64(-5)},
		"int16":       {int16(-5), int64(-5)},
		"uint":        {uint(5), int64(5)},
		"uint8":       {uint8(255), int64(255)},
		"uint16":      {uint16(5), int64(5)},
		"uint32":      {uint32(math.MaxUint32), int64(math.MaxUint32)},
		"uint64":      {uint64(math.MaxInt64), int64(math.MaxInt64)},
		"float32":     {float32(0.5), 0.5},
		"time":        {when, bson.DateTime(when.UnixMilli())},
		"[]any":       {[]any{1, "a"}, bson.A{int64(1), "a"}},
		"[]string":    {[]string{"a", "b"}, bson.A{"a", "b"}},
		"[]bson.D":    {[]bson.D{{{Key: "a", Value: 1}}}, bson.A{bson.D{{Key: "a", Value: int64(1)}}}},
		"[]byte":      {[]byte("ab"), bson.Binary{Data: []byte("ab")}},
		"bson.Null":   {bson.Null{}, nil},
		"raw":         {inner, bson.D{{Key: "x", Value: int64(1)}}},
		"raw value":   {rawOf(t, "text"), "text"},
		"raw array":   {bson.RawArray(rawOf(t, bson.A{"x"}).Value), bson.A{"x"}},
		"nil object":  {bson.D(nil), bson.D{}},
		"nil list":    {bson.A(nil), bson.A{}},
		"nil []byte":  {[]byte(nil), bson.Binary{Data: []byte{}}},
		"nil strings": {[]string(nil), bson.A{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := document.Marshal(bson.D{{Key: "v", Value: test.give}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := document.Unmarshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got[0].Value); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func nested(levels int) bson.D {
	doc := bson.D{}
	for range levels - 1 {
		doc = bson.D{{Key: "a", Value: doc}}
	}
	return doc
}

func TestMarshalRefuses(t *testing.T) {
	tests := map[string]struct {
		value any
		kind  errs.Kind
	}{
		"struct":               {struct{ A int }{1}, errs.Internal},
		"map":                  {map[string]any{"a": 1}, errs.Internal},
		"pointer":              {new(int), errs.Internal},
		"function":             {func() {}, errs.Internal},
		"missing":              {bson.RawValue{}, errs.Internal},
		"short raw value":      {bson.RawValue{Type: bson.TypeInt64, Value: []byte{1}}, errs.Internal},
		"long raw value":       {bson.RawValue{Type: bson.TypeInt32, Value: make([]byte, 5)}, errs.Internal},
		"damaged raw document": {bson.Raw{9, 0, 0, 0, 2, 'a', 0, 1, 0}, errs.Internal},
		"empty raw":            {bson.Raw{}, errs.Internal},
		"NUL in a name":        {bson.D{{Key: "a\x00", Value: 1}}, errs.Invalid},
		"name not UTF-8":       {bson.D{{Key: "\xff", Value: 1}}, errs.Invalid},
		"text not UTF-8":       {"\xff", errs.Invalid},
		"NUL in a regex":       {bson.Regex{Pattern: "\x00"}, errs.Invalid},
		"uint64 too large":     {uint64(math.MaxInt64) + 1, errs.Invalid},
		"too deep":             {nested(100), errs.Invalid},
		"raw too deep":         {bson.D{{Key: "a", Value: mustMarshal(t, nested(100))}}, errs.Internal},
		"too large":            {strings.Repeat("x", document.MaxSize), errs.TooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := document.Marshal(bson.D{{Key: "list", Value: bson.A{test.value}}})
			if err == nil || errs.KindOf(err) != test.kind {
				t.Errorf("error %v, want kind %d", err, test.kind)
			}
		})
	}
	if _, err := document.MarshalValue(strings.Repeat("x", document.MaxSize)); errs.KindOf(err) != errs.TooLarge {
		t.Errorf("MarshalValue of a text above the limit: error %v", err)
	}
	if _, err := document.Marshal(nested(100)); err != nil {
		t.Errorf("100 levels are allowed: %v", err)
	}
}

func TestUnmarshalOwnsItsBytes(t *testing.T) {
	raw := mustMarshal(t, everything(t))
	got, err := document.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if diff := cmp.Diff(everything(t), got, cmp.AllowUnexported(bson.Decimal128{})); diff != "" {
		t.Errorf("the tree changed with the bytes (-want +got):\n%s", diff)
	}
}

func TestUnmarshalRefusesDamage(t *testing.T) {
	raw := mustMarshal(t, everything(t))
	for cut := range len(raw) {
		if _, err := document.Unmarshal(raw[:cut]); errs.KindOf(err) != errs.Internal || err == nil {
			t.Fatalf("the first %d bytes: error %v", cut, err)
		}
	}
	if _, err := document.Unmarshal(append(raw, 0)); err == nil {
		t.Error("a byte behind the document: no error")
	}
}

func TestLookup(t *testing.T) {
	doc := mustMarshal(t, bson.D{
		{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{"zero", bson.D{{Key: "c", Value: "deep"}}, bson.A{"in"}}}, {Key: "0", Value: "name"}}},
		{Key: "text", Value: "t"},
		{Key: "null", Value: nil},
		{Key: "", Value: "empty"},
	})
	tests := []struct {
		path string
		want any
		ok   bool
	}{
		{"text", "t", true},
		{"null", nil, true},
		{"", "empty", true},
		{"a.0", "name", true},
		{"a.b.0", "zero", true},
		{"a.b.1.c", "deep", true},
		{"a.b.2.0", "in", true},
		{"a.b.c", nil, false},
		{"a.b.01", nil, false},
		{"a.b.3", nil, false},
		{"a.b.-1", nil, false},
		{"a.b.99999999999999999999", nil, false},
		{"a.b.", nil, false},
		{"text.x", nil, false},
		{"null.x", nil, false},
		{"missing", nil, false},
		{"a.", nil, false},
	}
	for _, test := range tests {
		v, ok := document.Lookup(doc, test.path)
		if ok != test.ok || (!ok && !v.IsZero()) {
			t.Errorf("Lookup(%q) = %s, %v; want found %v", test.path, show(v), ok, test.ok)
			continue
		}
		if ok && document.Compare(v, rawOf(t, test.want)) != 0 {
			t.Errorf("Lookup(%q) = %s, want %v", test.path, show(v), test.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { document.Lookup(doc, "a.b.1.c") }); n != 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

func BenchmarkMarshal(b *testing.B) {
	doc := article(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := document.Marshal(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	raw := mustMarshal(b, article(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := document.Unmarshal(raw); err != nil {
			b.Fatal(err)
		}
	}
}
