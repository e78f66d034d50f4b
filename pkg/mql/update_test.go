package mql_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

func update(tb testing.TB, text string, filters ...string) *mql.Update {
	tb.Helper()
	var arrayFilters []bson.D
	for _, f := range filters {
		arrayFilters = append(arrayFilters, parse(tb, f))
	}
	u, err := mql.CompileUpdate(parse(tb, text), arrayFilters)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return u
}

func BenchmarkUpdate(b *testing.B) {
	doc := article(b)
	for name, text := range map[string]string{
		"set":  `{"$set":{"status":"draft"}}`,
		"inc":  `{"$inc":{"views":1}}`,
		"deep": `{"$set":{"author.name":"Bob","x":1},"$inc":{"views":{"$numberLong":"1"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			u := update(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := u.Apply(doc, mql.Applying{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
