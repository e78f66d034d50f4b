package script_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/script"
)

// everyType is a record with a value of every type.
func everyType(tb testing.TB) bson.D {
	tb.Helper()
	decimal, err := bson.ParseDecimal128("1.50")
	if err != nil {
		tb.Fatal(err)
	}
	return bson.D{
		{Key: "_id", Value: bson.ObjectID{1, 2, 3}},
		{Key: "s", Value: "text ä 𝄞"},
		{Key: "empty", Value: ""},
		{Key: "b", Value: true},
		{Key: "null", Value: nil},
		{Key: "i32", Value: int32(7)},
		{Key: "i64", Value: int64(8)},
		{Key: "big", Value: int64(math.MaxInt64)},
		{Key: "f", Value: 2.0},
		{Key: "g", Value: 2.5},
		{Key: "nan", Value: math.Inf(-1)},
		{Key: "zero", Value: math.Copysign(0, -1)},
		{Key: "date", Value: bson.DateTime(1_700_000_000_123)},
		{Key: "old", Value: bson.DateTime(-1)},
		{Key: "bin", Value: bson.Binary{Subtype: 4, Data: []byte{0, 255}}},
		{Key: "dec", Value: decimal},
		{Key: "re", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "ts", Value: bson.Timestamp{T: 1, I: 2}},
		{Key: "min", Value: bson.MinKey{}},
		{Key: "list", Value: bson.A{int64(1), 2.0, "x", nil, bson.D{{Key: "a", Value: int64(1)}}}},
		{Key: "doc", Value: bson.D{{Key: "k", Value: int64(1)}, {Key: "deep", Value: bson.D{{Key: "id", Value: bson.ObjectID{4}}}}}},
	}
}

// TestTypesAreKept touches every value, in a document that comes as a tree and one that comes as bytes.
func TestTypesAreKept(t *testing.T) {
	t.Parallel()
	doc := everyType(t)
	raw, err := document.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t)
	touch := `const touch = (v) => { if (v && typeof v === 'object') for (const k of Object.keys(v)) touch(v[k]); return v }
		module.exports = (ctx) => { touch(ctx.doc); CHANGE }`
	for _, value := range []any{doc, raw} {
		for change, want := range map[string]bson.D{
			``:                    nil,
			`ctx.doc.added = 1`:   append(append(bson.D{}, doc...), bson.E{Key: "added", Value: int32(1)}),
			`return {...ctx.doc}`: nil,
			`ctx.doc = {...ctx.doc, big: ctx.doc.big + 0n}`: nil,
		} {
			p := compile(t, strings.Replace(touch, "CHANGE", change, 1))
			result, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: value, Out: true}}})
			if err != nil {
				t.Fatal(err)
			}
			if want != nil {
				if diff := cmp.Diff(want, result.Out["doc"], cmp.Comparer(func(a, b bson.Decimal128) bool { return a == b })); diff != "" {
					t.Errorf("%T %s: %s", value, change, diff)
				}
			} else if change == `` && result.Out != nil {
				t.Errorf("%T is said to have changed", value)
			}
		}
	}
}

// TestManyMembers touches members of documents that are too large to be searched.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	var doc, want bson.D
	for i := range 100 {
		e := bson.E{Key: "m" + strconv.Itoa(i), Value: int64(i)}
		doc = append(doc, e)
		if i%2 == 0 {
			e.Value = int64(i + 1000)
		}
		if i != 6 {
			want = append(want, e)
		}
	}
	want = append(want, bson.E{Key: "new", Value: int32(1)}, bson.E{Key: "m6", Value: "again"})
	raw, err := document.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t)
	p := compile(t, `module.exports = ({ doc }) => {
		for (let i = 98; i >= 0; i -= 2) doc['m' + i] += 1000
		delete doc.m6
		doc.new = 1
		doc.m6 = 'again'
		return [doc.m1, doc.m99, doc.none === undefined, 'm50' in doc, Object.keys(doc).length]
	}`)
	for _, value := range []any{doc, raw, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}} {
		result, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: value, Out: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bson.A{int32(1), int32(99), true, true, int32(101)}, result.Value); diff != "" {
			t.Errorf("%T: %s", value, diff)
		}
		if diff := cmp.Diff(want, result.Out["doc"]); diff != "" {
			t.Errorf("%T: %s", value, diff)
		}
	}
}

// TestValuesInScripts is how a script sees each type, and what new values become.
func TestValuesInScripts(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for text, want := range map[string]any{
		`ctx.doc._id.toString() + ctx.doc.id + ctx.doc._id.equals('010203000000000000000000') + JSON.stringify(ctx.doc._id)`: `010203000000000000000000010203000000000000000000true"010203000000000000000000"`,
		`ctx.doc._id`:                          bson.ObjectID{1, 2, 3},
		`ctx.doc.deep`:                         nil,
		`ctx.doc.big === 9223372036854775807n`: true,
		`ctx.doc.i64 + ctx.doc.f`:              int32(10),
		`ctx.doc.date instanceof Date && ctx.doc.date.getTime()`: int64(1_700_000_000_123),
		`new Date(5)`: bson.DateTime(5),
		`ctx.now`:     bson.DateTime(42),
		`ctx.doc.bin instanceof Uint8Array && ctx.doc.bin[1]`: int32(255),
		`new Uint8Array([1])`:      bson.Binary{Data: []byte{1}},
		`String(ctx.doc.dec)`:      "1.50",
		`[ctx.doc.re, ctx.doc.ts]`: bson.A{bson.Regex{Pattern: "a", Options: "i"}, bson.Timestamp{T: 1, I: 2}},
		`5000000000`:               int64(5_000_000_000),
		`1.5`:                      1.5,
		`-0`:                       math.Copysign(0, -1),
		`10n`:                      int64(10),
		`[1, undefined, null]`:     bson.A{int32(1), nil, nil},
		`({a: undefined, b: 1})`:   bson.D{{Key: "b", Value: int32(1)}},
		`new Map([[1, 2]])`:        bson.D{},
		`Array.isArray(ctx.doc.list) && ctx.doc.list.map((x) => typeof x).join()`: "number,number,string,object,object",
		`ctx.doc.list.concat([1]).length`:                                         int32(6),
	} {
		result, err := e.Run(t.Context(), script.Call{Program: compile(t, "module.exports = (ctx) => ("+text+")"), Ctx: []script.Member{{Name: "doc", Value: everyType(t)}, {Name: "now", Value: time.UnixMilli(42)}}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, result.Value); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{`() => {}`, `Symbol('x')`, `Promise`, `10n ** 30n`, `({f() {}})`} {
		if _, err := e.Run(t.Context(), script.Call{Program: compile(t, "module.exports = (ctx) => ("+text+")")}); reason(err) != script.Exception {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// FuzzValues hands documents of all kinds through a script that reads all of them: they come back as they were.
func FuzzValues(f *testing.F) {
	raw, err := document.Marshal(everyType(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(raw))
	f.Add([]byte{5, 0, 0, 0, 0})
	e := engine(f)
	p := compile(f, `const touch = (v) => { if (v && typeof v === 'object') for (const k of Object.keys(v)) touch(v[k]); return v }
		module.exports = (ctx) => { touch(ctx.doc); ctx.doc['added by the script'] = true }`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
		if !document.WellFormed(v) {
			t.Skip()
		}
		result, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: bson.Raw(raw), Out: true}}})
		if reason(err) == script.Exception {
			t.Skip() // nested deeper than a script can give back
		}
		if err != nil {
			t.Fatal(err)
		}
		got, _ := result.Out["doc"].(bson.D)
		want, _ := document.Decode(v).(bson.D)
		if len(got) != len(want)+1 {
			t.Fatalf("%d members, want %d", len(got), len(want)+1)
		}
	})
}
