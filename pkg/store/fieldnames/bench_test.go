package fieldnames_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// What names cost a read of 100 documents of 12 fields, one of which was renamed, and a group of 10,000.
func BenchmarkNames(b *testing.B) {
	s := teststore.Memory(b)
	names := map[string]*document.Names{"c": document.NewNames(map[string]string{"heading": "title"}, nil)}
	plain := s.Database("bench").Collection("c")
	var ops []store.Op
	for i := range 10_000 {
		doc := bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "title", Value: fmt.Sprint("title ", i)}, {Key: "kind", Value: int32(i % 10)}}
		for k := range 10 {
			doc = append(doc, bson.E{Key: fmt.Sprint("field", k), Value: "a value of a field"})
		}
		raw, err := bson.Marshal(doc)
		if err != nil {
			b.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
	}
	if _, err := plain.Write(b.Context(), ops, false); err != nil {
		b.Fatal(err)
	}
	count, err := pipeline.Compile(bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$kind"}}}}}, pipeline.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]store.Collection{"plain": plain, "renamed": fieldnames.Wrap(s.Database("bench"), names).Collection("c")} {
		b.Run("find/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := store.Query{Filter: mql.MustCompile(bson.D{{Key: "kind", Value: bson.D{{Key: "$gte", Value: 0}}}}), Limit: 100}
				if err := c.Find(b.Context(), q, func(bson.Raw) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("group/"+name, func(b *testing.B) {
			for b.Loop() {
				if err := c.Aggregate(b.Context(), count, store.AggregateOptions{}, func(bson.Raw) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
