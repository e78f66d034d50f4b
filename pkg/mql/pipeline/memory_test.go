package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// endless has documents without end. When no more are wanted it looks at how much memory is in use.
type endless struct {
	heap uint64 // bytes
}

func (e *endless) Find(_ context.Context, _ string, _ pipeline.Query, fn func(bson.Raw) error) error {
	before := inUse()
	for i := int32(0); ; i++ {
		doc, err := document.Marshal(bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i}})
		if err == nil {
			err = fn(doc)
		}
		if err != nil {
			e.heap = inUse() - before
			runtime.KeepAlive(fn)
			return err
		}
	}
}

func (*endless) Indexed(context.Context, string, string) bool { return false }

// inUse is the bytes of what can be reached.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What stages hold when their budget is spent is not much more than the budget: what they count is what they take.
func TestBudgetIsMemory(t *testing.T) {
	const budget = 2 << 20
	for _, text := range []string{
		`[{"$group": {"_id": "$a"}}]`,
		`[{"$group": {"_id": "$a", "n": {"$sum": 1}}}]`,
		`[{"$group": {"_id": "$a", "n": {"$avg": "$a"}, "m": {"$max": "$a"}, "l": {"$push": "$a"}}}]`,
		`[{"$group": {"_id": {"x": "$a", "y": "$_id"}, "n": {"$addToSet": "$a"}}}]`,
		`[{"$group": {"_id": null, "n": {"$push": "$$ROOT"}}}]`,
		`[{"$group": {"_id": null, "n": {"$push": "$a"}}}]`,
		`[{"$group": {"_id": null, "n": {"$addToSet": "$a"}}}]`,
		`[{"$group": {"_id": null, "n": {"$topN": {"n": 1000000, "sortBy": {"a": -1}, "output": "$a"}}}}]`,
		`[{"$group": {"_id": null, "n": {"$firstN": {"n": 1000000, "input": "$a"}}}}]`,
		`[{"$group": {"_id": null, "n": {"$minN": {"n": 1000000, "input": "$a"}}}}]`,
		`[{"$sortByCount": "$a"}]`,
		`[{"$limit": 100000000}, {"$sort": {"a": 1}}]`,
		`[{"$limit": 100000000}, {"$sort": {"a": 1, "b": 1, "c": 1}}]`,
		`[{"$bucketAuto": {"groupBy": "$a", "buckets": 3}}]`,
		`[{"$setWindowFields": {"sortBy": {"a": 1}, "output": {"n": {"$sum": "$a"}}}}]`,
		`[{"$setWindowFields": {"partitionBy": "$a", "sortBy": {"a": 1}, "output": {"n": {"$sum": "$a"}}}}]`,
		`[{"$sample": {"size": 100000000}}]`,
		`[{"$facet": {"x": [{"$match": {"a": {"$gte": 0}}}], "y": [{"$group": {"_id": "$a"}}]}}]`,
		`[{"$facet": {"x": [{"$project": {"a": 1}}]}}]`,
	} {
		src := &endless{}
		p, err := pipeline.Compile(parse(t, text), pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Run(t.Context(), src, pipeline.Budget{Memory: budget}, func(bson.Raw) error { return nil })
		if !errors.Is(err, pipeline.ErrMemory) {
			t.Errorf("%s: %v", text, err)
		}
		if src.heap > budget*3/2 {
			t.Errorf("%s: %.1f times its budget", text, float64(src.heap)/budget)
		}
	}
}
