package document_test

import (
	"bytes"
	"cmp"
	"math/big"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

func TestCompareOrdersAllTypes(t *testing.T) {
	values := pool(t)
	for _, a := range values {
		for _, b := range values {
			want := cmp.Compare(a.group, b.group)
			if got := document.Compare(a.raw, b.raw); got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", show(a.raw), show(b.raw), got, want)
			}
		}
	}
}

func TestKeysOrderAsCompare(t *testing.T) {
	values := pool(t)
	for _, a := range values {
		for _, b := range values {
			checkKeys(t, a.raw, b.raw)
		}
	}
}

// checkKeys compares the keys of two values, ascending and descending, with Compare, and that neither begins the other.
func checkKeys(t *testing.T, a, b bson.RawValue) {
	t.Helper()
	want := document.Compare(a, b)
	for _, desc := range []bool{false, true} {
		x, y := document.AppendKey(nil, a, desc), document.AppendKey(nil, b, desc)
		got := sign(bytes.Compare(x, y))
		if desc {
			got = -got
		}
		if got != want {
			t.Errorf("keys of %s and %s (desc %v) compare %d, want %d\n%x\n%x", show(a), show(b), desc, got, want, x, y)
		}
		if want != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Errorf("one key of %s and %s (desc %v) begins the other: %x %x", show(a), show(b), desc, x, y)
		}
		if x[0] == 0 || x[0] == 0xff {
			t.Errorf("key of %s (desc %v) begins with %#x", show(a), desc, x[0])
		}
	}
}

func TestKeysOfRandomValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]bson.RawValue, 400)
	for i := range values {
		values[i] = rawOf(t, randomValue(r, 2))
	}
	for _, a := range values {
		for _, b := range values {
			checkKeys(t, a, b)
			if document.Compare(a, b) != -document.Compare(b, a) {
				t.Errorf("Compare(%s, %s) is not the opposite of the reverse", show(a), show(b))
			}
		}
		if t.Failed() {
			return
		}
	}
}

// Tuples of joined keys, each field with its own direction, order as comparing field by field does.
func TestKeysJoinToTuples(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := pool(t)
	directions := [][]bool{{false, false}, {false, true}, {true, false}, {true, true}}
	for range 60_000 {
		desc := directions[r.IntN(len(directions))]
		var keys [2][]byte
		var tuples [2][2]bson.RawValue
		for i := range tuples {
			for j := range tuples[i] {
				tuples[i][j] = values[r.IntN(len(values))].raw
				keys[i] = document.AppendKey(keys[i], tuples[i][j], desc[j])
			}
			if i == 1 && r.IntN(2) == 0 { // often equal in the first field
				tuples[1][0] = tuples[0][0]
				keys[1] = document.AppendKey(nil, tuples[1][0], desc[0])
				keys[1] = document.AppendKey(keys[1], tuples[1][1], desc[1])
			}
		}
		want := 0
		for j := 0; j < 2 && want == 0; j++ {
			want = document.Compare(tuples[0][j], tuples[1][j])
			if desc[j] {
				want = -want
			}
		}
		if got := sign(bytes.Compare(keys[0], keys[1])); got != want {
			t.Fatalf("tuples %s,%s and %s,%s (desc %v): keys compare %d, want %d", show(tuples[0][0]), show(tuples[0][1]),
				show(tuples[1][0]), show(tuples[1][1]), desc, got, want)
		}
	}
}

func TestUndefinedKeyIsJustBelowNull(t *testing.T) {
	for _, desc := range []bool{false, true} {
		empty := document.AppendUndefinedKey(nil, desc)
		null := document.AppendKey(nil, bson.RawValue{}, desc)
		minKey := document.AppendKey(nil, rawOf(t, bson.MinKey{}), desc)
		want := -1
		if desc {
			want = 1
		}
		if got := bytes.Compare(empty, null); got != want {
			t.Errorf("desc %v: empty list against null: %d, want %d", desc, got, want)
		}
		if got := bytes.Compare(minKey, empty); got != want {
			t.Errorf("desc %v: MinKey against empty list: %d, want %d", desc, got, want)
		}
	}
}

// Decimals against doubles and integers, checked by rational arithmetic.
func TestNumbersCompareExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	rational := func(v any) (*big.Rat, bool) {
		switch v := v.(type) {
		case int64:
			return new(big.Rat).SetInt64(v), true
		case float64:
			x := new(big.Rat).SetFloat64(v)
			return x, x != nil
		case bson.Decimal128:
			return new(big.Rat).SetString(v.String())
		}
		return nil, false
	}
	number := func() any {
		f := float64(r.Int64N(1<<54)) * []float64{1, 1e-3, 1e-20, 1e15, 1e-310}[r.IntN(5)]
		switch r.IntN(4) {
		case 0:
			return int64(f)
		case 1:
			return f
		case 2: // the decimal nearest to a double with 17 digits
			d, err := bson.ParseDecimal128(new(big.Float).SetFloat64(f).Text('e', 16))
			if err != nil {
				t.Fatal(err)
			}
			return d
		default: // its exact digits, or as many as fit
			d, err := bson.ParseDecimal128(new(big.Float).SetFloat64(f).Text('e', 33))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	last := number()
	for range 10_000 {
		a, b := number(), last
		last = a
		if f, ok := a.(float64); ok { // and against its own neighborhood
			if d, err := bson.ParseDecimal128(new(big.Float).SetFloat64(f).Text('e', r.IntN(34))); err == nil {
				b = d
			}
		}
		x, ok := rational(a)
		y, ok2 := rational(b)
		if !ok || !ok2 {
			continue
		}
		ra, rb := rawOf(t, a), rawOf(t, b)
		if got, want := document.Compare(ra, rb), x.Cmp(y); got != want {
			t.Fatalf("Compare(%s, %s) = %d, want %d", show(ra), show(rb), got, want)
		}
		checkKeys(t, ra, rb)
	}
}

func TestCompareDoesNotAllocate(t *testing.T) {
	doc := bson.D{{Key: "a", Value: int64(1)}, {Key: "b", Value: "text"}}
	pairs := [][2]any{
		{int32(1), int64(2)},
		{int64(1) << 60, 1e18},
		{1.5, int32(1)},
		{"a", "b"},
		{true, false},
		{nil, "a"},
		{bson.ObjectID{1}, bson.ObjectID{2}},
		{bson.DateTime(1), bson.DateTime(2)},
		{doc, doc},
		{decimalOf(t, "9.99"), 9.99},
		{decimalOf(t, "9.99"), decimalOf(t, "10")},
	}
	for _, pair := range pairs {
		a, b := rawOf(t, pair[0]), rawOf(t, pair[1])
		if n := testing.AllocsPerRun(100, func() { document.Compare(a, b) }); n != 0 {
			t.Errorf("Compare(%s, %s) allocates %v times", show(a), show(b), n)
		}
	}
}

func TestDamagedValuesDoNotPanic(t *testing.T) {
	for _, v := range pool(t) {
		for cut := range len(v.raw.Value) {
			damaged := bson.RawValue{Type: v.raw.Type, Value: v.raw.Value[:cut]}
			document.Compare(damaged, v.raw)
			document.AppendKey(nil, damaged, false)
			document.AppendJSONValue(nil, damaged, nil)
			if document.WellFormed(damaged) {
				t.Errorf("the first %d bytes of %s count as a value", cut, show(v.raw))
			}
		}
	}
}

func FuzzAppendKey(f *testing.F) {
	for _, v := range pool(f) {
		doc, err := document.Marshal(bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: "x"}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(v.raw.Type), v.raw.Value, byte(bson.TypeEmbeddedDocument), []byte(doc))
	}
	f.Fuzz(func(t *testing.T, aType byte, a []byte, bType byte, b []byte) {
		x := bson.RawValue{Type: bson.Type(aType), Value: a}
		y := bson.RawValue{Type: bson.Type(bType), Value: b}
		for _, v := range []bson.RawValue{x, y} {
			if !document.WellFormed(v) {
				document.AppendKey(nil, v, true)
				return
			}
		}
		checkKeys(t, x, y)
	})
}

func BenchmarkCompare(b *testing.B) {
	pairs := map[string][2]any{
		"int32": {int32(1), int32(2)}, "int64-double": {int64(1), 2.5}, "string": {"published", "draft"},
		"objectid": {bson.ObjectID{1}, bson.ObjectID{2}}, "decimal": {decimalOf(b, "9.99"), decimalOf(b, "10.01")},
	}
	for name, pair := range pairs {
		x, y := rawOf(b, pair[0]), rawOf(b, pair[1])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				document.Compare(x, y)
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	for name, v := range map[string]any{"int64": int64(42), "string": "a-usual-slug", "date": bson.DateTime(1), "decimal": decimalOf(b, "9.99")} {
		raw := rawOf(b, v)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 64)
			for b.Loop() {
				buf = document.AppendKey(buf[:0], raw, false)
			}
		})
	}
}
