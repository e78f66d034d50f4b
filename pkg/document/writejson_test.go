package document_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// article is a usual record: 12 fields, about 2 KB.
func article(tb testing.TB) bson.D {
	tb.Helper()
	when := bson.DateTime(time.Date(2026, 1, 31, 12, 30, 15, 5e6, time.UTC).UnixMilli())
	return bson.D{
		{Key: "_id", Value: bson.ObjectID{0x65, 0xaa, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{Key: "title", Value: "How a control plane keeps many small sites in step"},
		{Key: "slug", Value: "how-a-control-plane-keeps-many-small-sites-in-step"},
		{Key: "status", Value: "published"},
		{Key: "body", Value: strings.Repeat("A paragraph of plain prose, with a \"quote\" now and then.\n", 26)},
		{Key: "tags", Value: bson.A{"cms", "operations", "go"}},
		{Key: "author", Value: bson.ObjectID{0x65, 0xbb}},
		{Key: "views", Value: int64(123456)},
		{Key: "rating", Value: 4.5},
		{Key: "seo", Value: bson.D{{Key: "title", Value: "Control planes"}, {Key: "noIndex", Value: false}}},
		{Key: "publishedAt", Value: when},
		{Key: "updatedAt", Value: when},
	}
}

func TestAppendJSON(t *testing.T) {
	date := func(y int, m time.Month, d, h, mi, s, ms int) bson.DateTime {
		return bson.DateTime(time.Date(y, m, d, h, mi, s, ms*1e6, time.UTC).UnixMilli())
	}
	tests := map[string]struct {
		doc  bson.D
		want string
	}{
		"empty":               {bson.D{}, `{}`},
		"id first":            {bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: bson.ObjectID{0xab}}}, `{"id":"ab0000000000000000000000","a":1}`},
		"stored id is hidden": {bson.D{{Key: "_id", Value: 1}, {Key: "id", Value: 2}}, `{"id":1}`},
		"id without _id":      {bson.D{{Key: "id", Value: 2}}, `{"id":2}`},
		"nested _id":          {bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}, {Key: "_id", Value: 2}}}}, `{"a":{"b":1,"_id":2}}`},
		"id in a list":        {bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "_id", Value: 2}, {Key: "id", Value: 3}}}}}, `{"a":[{"_id":2,"id":3}]}`},
		"numbers": {
			bson.D{{Key: "a", Value: bson.A{int32(-1), int64(math.MaxInt64), 1.5, 3.0, 1e21, 1e-7, 1e-10, math.Copysign(0, -1), 1e20}}},
			`{"a":[-1,9223372036854775807,1.5,3,1e+21,1e-7,1e-10,-0,100000000000000000000]}`,
		},
		"no numbers": {
			bson.D{{Key: "a", Value: bson.A{math.NaN(), math.Inf(1), math.Inf(-1), decimalOf(t, "NaN"), decimalOf(t, "-Inf")}}},
			`{"a":[null,null,null,null,null]}`,
		},
		"decimals": {bson.D{{Key: "a", Value: bson.A{decimalOf(t, "12.50"), decimalOf(t, "1E+40"), decimalOf(t, "-0")}}}, `{"a":[12.50,1E+40,-0]}`},
		"dates": {
			bson.D{{Key: "a", Value: bson.A{bson.DateTime(0), date(2026, 12, 31, 23, 59, 58, 7), date(1, 2, 3, 4, 5, 6, 789), bson.DateTime(-1), date(9999, 12, 31, 23, 59, 59, 999)}}},
			`{"a":["1970-01-01T00:00:00.000Z","2026-12-31T23:59:58.007Z","0001-02-03T04:05:06.789Z","1969-12-31T23:59:59.999Z","9999-12-31T23:59:59.999Z"]}`,
		},
		"text": {
			bson.D{{Key: "a\"", Value: "<b>&\u2028 \" \\ / \b\f\n\r\t\x00\x1f\x7f é \U0001F600"}},
			`{"a\"":"<b>&` + "\u2028" + ` \" \\ / \b\f\n\r\t\u0000\u001f` + "\x7f é \U0001F600" + `"}`,
		},
		"others": {bson.D{{Key: "a", Value: bson.A{
			nil,
			bson.Undefined{},
			bson.MinKey{},
			bson.MaxKey{},
			bson.Binary{Data: []byte("hello")},
			bson.Binary{Subtype: 2, Data: []byte("hello")},
			bson.Regex{Pattern: `a"`, Options: "i"},
			bson.Timestamp{T: 5, I: 6},
			bson.Symbol("s"), bson.JavaScript("f()"), true,
			rawOf(t, bson.DBPointer{DB: "x", Pointer: bson.ObjectID{0xcd}}), rawOf(t, bson.CodeWithScope{Code: "g()", Scope: bson.D{}}),
		}}}, `{"a":[null,null,null,null,"aGVsbG8=","aGVsbG8=","/a\"/i",{"t":5,"i":6},"s","f()",true,"cd0000000000000000000000","g()"]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := mustMarshal(t, test.doc)
			got := string(document.AppendJSON([]byte("before "), raw, nil))
			if diff := cmp.Diff("before "+test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Text of any bytes, at any alignment to the eight-byte steps, must come back through encoding/json.
func TestAppendJSONText(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20_000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = byte('a' + r.IntN(26))
			if r.IntN(12) == 0 {
				text[i] = byte(r.IntN(256))
			}
		}
		out := document.AppendJSONValue(nil, rawOf(t, string(text)), nil)
		var got string
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q gives %s: %v", text, out, err)
		}
		if want := strings.ToValidUTF8(string(text), "\uFFFD"); !sameReplaced(want, got) {
			t.Fatalf("%q comes back as %q", text, got)
		}
	}
}

// sameReplaced compares texts in which a run of bad bytes may be one or more replacement characters.
func sameReplaced(a, b string) bool {
	squash := func(s string) string {
		for strings.Contains(s, "\uFFFD\uFFFD") {
			s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
		}
		return s
	}
	return squash(a) == squash(b)
}

func TestJSONComesBack(t *testing.T) {
	raw := mustMarshal(t, article(t)[1:10]) // without ids and dates, which come back as text
	doc, err := document.ParseJSON(document.AppendJSON(nil, raw, nil))
	if err != nil {
		t.Fatal(err)
	}
	doc = document.Set(doc, "author", bson.ObjectID{0x65, 0xbb})
	if diff := cmp.Diff([]byte(raw), []byte(mustMarshal(t, doc))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAppendJSONOfDamagedBytesIsJSON(t *testing.T) {
	raw := mustMarshal(t, everything(t))
	for i := range raw {
		damaged := append(bson.Raw{}, raw...)
		damaged[i] ^= 0x55
		if out := document.AppendJSON(nil, damaged, nil); !json.Valid(out) {
			t.Fatalf("byte %d changed: %s", i, out)
		}
	}
}

func TestAppendJSONDoesNotAllocate(t *testing.T) {
	raw := mustMarshal(t, article(t))
	view, err := document.NewView(nil, []string{"body"}, document.NewPathSet("seo.noIndex", "tags.x"))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 8<<10)
	for name, v := range map[string]*document.View{"whole": nil, "view": view} {
		if n := testing.AllocsPerRun(100, func() { buf = document.AppendJSON(buf[:0], raw, v) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	raw := mustMarshal(b, article(b))
	view, err := document.NewView(nil, nil, document.NewPathSet("seo.noIndex", "author"))
	if err != nil {
		b.Fatal(err)
	}
	list, err := document.NewView([]string{"title", "slug", "publishedAt"}, nil, document.NewPathSet("seo.noIndex"))
	if err != nil {
		b.Fatal(err)
	}
	declared := map[string]*document.PathSet{}
	for it := document.NewIter(raw); it.Next(); {
		declared[string(it.Key())] = nil
	}
	for name, v := range map[string]*document.View{
		"whole": nil, "hidden": view, "select": list, "declared": document.Without(document.NewPathTree(declared, true)),
	} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 8<<10)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				buf = document.AppendJSON(buf[:0], raw, v)
			}
		})
	}
}
