package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

func testDocuments(t *testing.T, s store.Store) {
	t.Run("every type keeps its bytes", func(t *testing.T) {
		f := newFixture(t, s)
		for _, want := range everyType(t) {
			f.mustWrite(store.Op{Kind: store.Insert, Doc: want})
			got, err := f.Get(t.Context(), want.Lookup("_id"))
			if err != nil {
				t.Errorf("Get(%v): %v", want.Lookup("_id"), err)
			} else if !bytes.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		}
	})

	t.Run("get a missing document", func(t *testing.T) {
		f := newFixture(t, s)
		for _, when := range []string{"no collection", "collection"} {
			if _, err := f.Get(t.Context(), value(`7`)); !errors.Is(err, errs.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", when, err)
			}
			f.given(`{"_id":1}`)
			f.mustWrite(remove(`1`))
		}
	})

	t.Run("an id is found by its value, not its type", func(t *testing.T) {
		f := newFixture(t, s)
		f.given(`{"_id":1,"is":"number"}`, `{"_id":"1","is":"string"}`, `{"_id":true,"is":"bool"}`)
		for id, want := range map[string]string{
			`1.0`: "number", `{"$numberLong":"1"}`: "number", `{"$numberDecimal":"1.00"}`: "number", `"1"`: "string", `true`: "bool",
		} {
			got, err := f.Get(t.Context(), value(id))
			if err != nil || got.Lookup("is").StringValue() != want {
				t.Errorf("Get(%s) = %v, %v, want the %s", id, got, err, want)
			}
		}
	})

	t.Run("the caller keeps what it passed and owns what it got", func(t *testing.T) {
		f := newFixture(t, s)
		passed := bytes.Clone(doc(`{"_id":1,"a":"before"}`))
		f.mustWrite(store.Op{Kind: store.Insert, Doc: passed})
		overwrite(passed, "before", "passed")
		got, err := f.Get(t.Context(), value(`1`))
		if err != nil {
			t.Fatal(err)
		}
		overwrite(got, "before", "gotten")
		if got, want := f.contents(), doc(`{"_id":1,"a":"before"}`).String(); got != want {
			t.Errorf("stored %s, want %s", got, want)
		}
	})

	t.Run("a large document", func(t *testing.T) {
		f := newFixture(t, s)
		for id, size := range []int{1 << 20, 8 << 20, 15 << 20} {
			want, err := bson.Marshal(bson.D{{Key: "_id", Value: id}, {Key: "s", Value: strings.Repeat("x", size)}})
			if err != nil {
				t.Fatal(err)
			}
			f.mustWrite(store.Op{Kind: store.Insert, Doc: want})
			if got, err := f.Get(t.Context(), value(strconv.Itoa(id))); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: came back as %d bytes, %v", len(want), len(got), err)
			}
		}
	})
}

// overwrite replaces text within doc by text of the same length, in place.
func overwrite(doc []byte, old, text string) {
	at := bytes.Index(doc, []byte(old))
	copy(doc[at:], text)
}

// everyType gives one document for each value that records can hold, and the corners of each type.
func everyType(t *testing.T) []bson.Raw {
	t.Helper()
	decimal := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	values := []any{
		nil, true, false, "", "text", "with\x00nul", "Füße 漢字 👩‍👧", strings.Repeat("long ", 1000),
		int32(0), int32(math.MaxInt32), int32(math.MinInt32), int64(0), int64(1), int64(math.MaxInt64), int64(math.MinInt64),
		0.0, math.Copysign(0, -1), 0.1, 1.0, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
		decimal("1"), decimal("1.00"), decimal("-0"), decimal("NaN"), decimal("9.999999999999999999999999999999999E+6144"),
		bson.NewObjectID(), bson.NewDateTimeFromTime(time.UnixMilli(0)), bson.DateTime(-1), bson.DateTime(math.MaxInt64),
		bson.Binary{Subtype: 0, Data: []byte{0, 1, 2}},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)},
		bson.Regex{Pattern: "^a", Options: "i"},
		bson.Timestamp{T: 7, I: 1},
		bson.MinKey{},
		bson.MaxKey{},
		bson.D{},
		bson.A{},
		bson.A{nil, bson.A{}, bson.D{}, int32(1), "x"},
		bson.D{{Key: "z", Value: int32(1)}, {Key: "a", Value: bson.D{{Key: "", Value: nil}}}},
	}
	var docs []bson.Raw
	for i, v := range values {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: v}, {Key: "after", Value: bson.A{v}}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, raw)
	}
	ids := []any{
		nil, false, "", "a", "a\x00b", int64(1 << 40), -0.5, math.NaN(), decimal("1E+100"), bson.NewObjectID(), bson.DateTime(5),
		bson.Binary{Data: []byte("id")},
		bson.D{},
		bson.D{{Key: "a", Value: int32(1)}},
	}
	for _, id := range ids {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, raw)
	}
	return docs
}

// numbered makes the document {_id: i, n: n, text: …}.
func numbered(i, n int) bson.Raw {
	return marshal(bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(n)}, {Key: "text", Value: fmt.Sprintf("document number %d", i)}})
}
