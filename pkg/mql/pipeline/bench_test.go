package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// plain is a Source of documents that are read one after the other, and looked up by _id.
type plain struct {
	docs []bson.Raw
	byID map[int64]bson.Raw
}

func (p *plain) Find(_ context.Context, _ string, q pipeline.Query, fn func(bson.Raw) error) error {
	docs := p.docs
	if ids, ok := q.Filter.Raw().Lookup("_id", "$in").ArrayOK(); ok {
		values, err := ids.Values()
		if err != nil {
			return err
		}
		docs = nil
		for _, v := range values {
			docs = append(docs, p.byID[v.AsInt64()])
		}
	}
	for _, doc := range docs {
		if q.Filter.Match(doc) {
			if err := fn(doc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plain) Indexed(_ context.Context, _, path string) bool { return path == "_id" }

// records makes n documents of half a kilobyte.
func records(tb testing.TB, n int) *plain {
	tb.Helper()
	p := &plain{byID: map[int64]bson.Raw{}}
	for i := range n {
		doc, err := document.Marshal(bson.D{
			{Key: "_id", Value: int64(i)},
			{Key: "title", Value: fmt.Sprint("record ", i)},
			{Key: "status", Value: fmt.Sprint("state ", i%7)},
			{Key: "category", Value: fmt.Sprint("category ", i%50)},
			{Key: "price", Value: float64(i%1000) / 10},
			{Key: "author", Value: int64(i * 7919 % n)},
			{Key: "tags", Value: bson.A{fmt.Sprint("tag ", i%20), fmt.Sprint("tag ", i%30)}},
			{Key: "text", Value: strings.Repeat("x", 280)},
		})
		if err != nil {
			tb.Fatal(err)
		}
		p.docs = append(p.docs, doc)
		p.byID[int64(i)] = doc
	}
	return p
}

// BenchmarkRun runs pipelines over 10,000 documents of half a kilobyte.
func BenchmarkRun(b *testing.B) {
	src := records(b, 10_000)
	for _, c := range []struct{ name, stages string }{
		{"group", `[{"$group": {"_id": "$category", "n": {"$sum": 1}, "total": {"$sum": "$price"}}}]`},
		{"facet", `[{"$facet": {"status": [{"$sortByCount": "$status"}], "category": [{"$sortByCount": "$category"}],
			"tags": [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}]}}]`},
		{"lookup", `[{"$lookup": {"from": "other", "localField": "author", "foreignField": "_id", "as": "who"}}]`},
		{"project", `[{"$project": {"title": 1, "status": 1, "cents": {"$multiply": ["$price", 100]}}}]`},
		{"sort", `[{"$addFields": {"x": 1}}, {"$sort": {"price": -1, "_id": 1}}, {"$limit": 10}]`},
		{"sort all", `[{"$addFields": {"x": 1}}, {"$sort": {"price": -1, "_id": 1}}]`},
		{"window", `[{"$setWindowFields": {"partitionBy": "$status", "sortBy": {"price": 1}, "output": {
			"mean": {"$avg": "$price", "window": {"documents": [-10, 0]}}, "rank": {"$rank": {}}}}}]`},
		{"bucketAuto", `[{"$bucketAuto": {"groupBy": "$price", "buckets": 10}}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var d struct{ P bson.A }
			if err := bson.UnmarshalExtJSON([]byte(`{"P":`+c.stages+`}`), false, &d); err != nil {
				b.Fatal(err)
			}
			p, err := pipeline.Compile(d.P, pipeline.Options{Stages: pipeline.Scripts})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(b.Context(), src, pipeline.Budget{}, func(bson.Raw) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src.docs)), "ns/doc")
		})
	}
}
