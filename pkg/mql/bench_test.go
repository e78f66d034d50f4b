package mql_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// article has about 500 bytes.
func article(tb testing.TB) bson.Raw {
	tb.Helper()
	return raw(tb, bson.D{
		{Key: "_id", Value: bson.NilObjectID},
		{Key: "title", Value: "A title of some length, as titles are"},
		{Key: "slug", Value: "a-title-of-some-length"},
		{Key: "status", Value: "published"},
		{Key: "body", Value: strings.Repeat("text ", 40)},
		{Key: "author", Value: bson.D{{Key: "name", Value: "Ann"}, {Key: "age", Value: int64(40)}}},
		{Key: "tags", Value: bson.A{"one", "two", "three"}},
		{Key: "views", Value: int64(1234)},
		{Key: "rating", Value: 4.5},
		{Key: "createdAt", Value: bson.DateTime(1)},
	})
}

func BenchmarkMatch(b *testing.B) {
	doc := article(b)
	for name, filter := range map[string]string{
		"two":   `{"status":"published","views":{"$gte":{"$numberLong":"1000"}}}`,
		"deep":  `{"author.age":{"$gt":30},"tags":"three"}`,
		"or":    `{"$or":[{"status":"draft"},{"rating":{"$in":[1.0,2.0,4.5]}}]}`,
		"regex": `{"title":{"$regex":"length"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			f := compile(b, filter)
			b.ReportAllocs()
			for b.Loop() {
				if !f.Match(doc) {
					b.Fatal("no match")
				}
			}
		})
	}
}

func BenchmarkSortKey(b *testing.B) {
	doc, s := article(b), mql.Sort{{Path: "views", Desc: true}, {Path: "_id"}}
	b.ReportAllocs()
	for b.Loop() {
		s.Key(doc)
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	doc := article(t)
	for _, filter := range []string{
		`{"status":"published","views":{"$gte":1000}}`,
		`{"author.age":{"$gt":30.5},"tags":{"$in":["x","three"]}}`,
		`{"tags":{"$elemMatch":{"$gte":"t","$lt":"u"}},"rating":{"$not":{"$lt":4}}}`,
		`{"$or":[{"a":null},{"tags":{"$size":3}}],"$nor":[{"views":{"$exists":false}}]}`,
		`{"tags":{"$all":["one","two"]},"views":{"$type":"number","$mod":[2,0]}}`,
	} {
		f := compile(t, filter)
		if n := testing.AllocsPerRun(100, func() {
			if !f.Match(doc) {
				t.Fatal("no match")
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", filter, n)
		}
	}
}
