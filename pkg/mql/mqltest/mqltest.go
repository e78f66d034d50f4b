// Package mqltest generates filters, documents and sorts that hit the corners of the query language, for tests that
// compare two ways of running them: in memory and on a server, with an index and without.
//
// Everything comes from the *rand.Rand that is passed in, so a test that logs its seed can be repeated. The values
// come from a small pool, so that random filters do match random documents. Filters always compile.
package mqltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// Doc makes a document with the fields a, b and c, or some of them, and the given _id.
func Doc(r *rand.Rand, id any) bson.D {
	doc := bson.D{{Key: "_id", Value: id}}
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(5) > 0 {
			doc = append(doc, bson.E{Key: name, Value: Value(r, 3)})
		}
	}
	return doc
}

// OneList removes fields of a document until only one of them has lists in it, at any depth. Every index takes such a
// document; MongoDB refuses sorts and indexes on two lists.
func OneList(doc bson.D) bson.D {
	lists := false
	return slices.DeleteFunc(doc, func(field bson.E) bool {
		if !hasList(field.Value) {
			return false
		}
		also := lists
		lists = true
		return also
	})
}

func hasList(v any) bool {
	switch v := v.(type) {
	case bson.A:
		return true
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return hasList(e.Value) })
	default:
		return false
	}
}

// Value makes a value of at most depth levels of objects and lists.
func Value(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(5) < 2 {
		return Scalar(r)
	}
	if r.IntN(2) == 0 {
		list := make(bson.A, r.IntN(4))
		for i := range list {
			list[i] = Value(r, depth-1)
		}
		return list
	}
	return object(r, depth-1)
}

func object(r *rand.Rand, depth int) bson.D {
	names := []string{"b", "c", "0", "1", "a"}
	object := bson.D{}
	for _, i := range r.Perm(len(names))[:r.IntN(3)] {
		object = append(object, bson.E{Key: names[i], Value: Value(r, depth)})
	}
	return object
}

// Scalar makes a value from the pool: near ones of every type.
func Scalar(r *rand.Rand) any {
	if r.IntN(4) > 0 { // mostly values that meet each other
		return pick(r, []any{nil, int32(0), int32(1), int64(2), 1.0, 1.5, "", "a", "ab", true, false})
	}
	oid, _ := bson.ObjectIDFromHex("0102030405060708090a0b0c")
	return pick(r, []any{
		int64(-5), 5.7, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0.1,
		int64(1<<53 + 1), float64(1 << 53), int64(math.MaxInt64), int64(math.MinInt64), float64(1 << 63),
		decimal("1"), decimal("0.1"), decimal("NaN"), decimal("-Infinity"), decimal("9007199254740993"),
		decimal("1E+400"), decimal("-5.7"), decimal("0E+10"),
		"A", "b", "a\nb", "a\n", "é", "ſK", "\v", "0",
		oid, bson.NilObjectID,
		bson.NewDateTimeFromTime(time.UnixMilli(0)), bson.NewDateTimeFromTime(time.UnixMilli(-1)),
		bson.Binary{Data: []byte("a")},
		bson.Binary{Subtype: 4, Data: []byte("a")},
		bson.Binary{},
		bson.Timestamp{T: 1, I: 1},
		bson.MinKey{},
		bson.MaxKey{},
	})
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

func pick[T any](r *rand.Rand, pool []T) T { return pool[r.IntN(len(pool))] }

// Path makes a path that may lead somewhere in documents from Doc.
func Path(r *rand.Rand) string {
	return pick(r, []string{
		"a", "a", "a", "b", "c", "a.b", "a.b", "a.c", "b.c", "a.0", "a.1", "a.00", "a.b.c", "a.0.b", "a.b.0", "a.0.0", "a.1.c",
		"b.0.1", "a.b.c.a",
	})
}

// Sort makes a sort of up to two fields and then _id, so that it is total. The fields may lead into lists, but never
// both into the same one.
func Sort(r *rand.Rand) mql.Sort {
	var s mql.Sort
	for _, pool := range [][]string{{"a", "a.b", "a.b.c"}, {"b", "b.c"}} {
		if r.IntN(2) == 0 {
			s = append(s, mql.SortField{Path: pick(r, pool), Desc: r.IntN(2) == 0})
		}
	}
	r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return append(s, mql.SortField{Path: "_id", Desc: r.IntN(2) == 0})
}
