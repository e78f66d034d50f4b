package expr_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

func BenchmarkEval(b *testing.B) {
	doc, err := document.Marshal(bson.D{
		{Key: "_id", Value: int32(1)},
		{Key: "title", Value: "a title"},
		{Key: "n", Value: int32(5)},
		{Key: "m", Value: int32(7)},
		{Key: "price", Value: 12.5},
		{Key: "tags", Value: bson.A{"a", "b", "c"}},
		{Key: "body", Value: strings.Repeat("text ", 80)},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		e    any
	}{
		{"compare", bson.D{{Key: "$gt", Value: bson.A{"$n", int32(3)}}}},
		{"add", bson.D{{Key: "$add", Value: bson.A{"$n", "$m"}}}},
		{"add doubles", bson.D{{Key: "$add", Value: bson.A{"$price", "$n"}}}},
		{"concat", bson.D{{Key: "$concat", Value: bson.A{"$title", ", and more"}}}},
		{"object", bson.D{{Key: "t", Value: "$title"}, {Key: "n", Value: "$n"}}},
		{"map", bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: "$tags"}, {Key: "in", Value: bson.D{{Key: "$concat", Value: bson.A{"$$this", "!"}}}}}}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := expr.Compile(c.e)
			if err != nil {
				b.Fatal(err)
			}
			var env expr.Env
			b.ReportAllocs()
			for b.Loop() {
				env.Reset(doc)
				if _, err := e.Eval(&env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
