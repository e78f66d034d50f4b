package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// parse reads stages in extended JSON.
func parse(t *testing.T, text string) bson.A {
	t.Helper()
	var d struct{ P bson.A }
	if err := bson.UnmarshalExtJSON([]byte(`{"P":`+text+`}`), false, &d); err != nil {
		t.Fatal(err)
	}
	return d.P
}

func docs(t *testing.T, n int) memory {
	t.Helper()
	m := memory{}
	for i := range n {
		doc, err := document.Marshal(bson.D{{Key: "_id", Value: int32(i)}, {Key: "text", Value: strings.Repeat("x", 1000)}})
		if err != nil {
			t.Fatal(err)
		}
		m[""] = append(m[""], doc)
	}
	return m
}

func run(ctx context.Context, t *testing.T, src pipeline.Source, text string, b pipeline.Budget) ([]bson.Raw, error) {
	t.Helper()
	p, err := pipeline.Compile(parse(t, text), pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		t.Fatal(err)
	}
	var out []bson.Raw
	err = p.Run(ctx, src, b, func(doc bson.Raw) error {
		out = append(out, bytes.Clone(doc))
		return nil
	})
	return out, err
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[{"$out": "x"}]`:                                         "$out",
		`[{"$merge": "x"}]`:                                       "$merge",
		`[{"$facet": {"a": [{"$out": "x"}]}}]`:                    "$out",
		`[{"$match": {"$where": "1"}}]`:                           "$where",
		`[{"$match": {"$expr": true}}]`:                           "$expr",
		`[{"$match": {"$or": [{"$expr": true}]}}]`:                "$expr",
		`[{"$project": {"a": {"$function": {}}}}]`:                "$function",
		`[{"$limit": 1}, {"$limit": 1}, {"$skip": 1}]`:            "2 stages",
		`[{"$lookup": {"from": "a", "as": "b", "pipeline": []}}]`: "for scripts only",
		`[{"$lookup": {"from": "system.users", "as": "b", "localField": "a", "foreignField": "b"}}]`: "system.users",
		`[{"$unionWith": "system.users"}]`: "system.users",
	} {
		_, err := pipeline.Compile(parse(t, text), pipeline.Options{Stages: pipeline.Callers, MaxStages: 2})
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a refusal that names %s", text, err, want)
		}
	}
}

func TestLeading(t *testing.T) {
	for text, want := range map[string]string{
		`[{"$match": {"a": 1}}, {"$sort": {"a": -1}}, {"$skip": 2}, {"$limit": 3}]`:  `{"a": {"$eq": {"$numberInt":"1"}}} [{a true}] 2 3`,
		`[{"$sort": {"a": 1}}, {"$match": {"a": 1}}, {"$match": {"$expr": "$b"}}]`:   `{"a": {"$eq": {"$numberInt":"1"}}} [] 0 0`,
		`[{"$match": {"a": 1, "$expr": "$b"}}, {"$limit": 3}]`:                       `{"a": {"$eq": {"$numberInt":"1"}}} [] 0 0`,
		`[{"$limit": 3}, {"$match": {"a": 1}}]`:                                      `{} [] 0 3`,
		`[{"$addFields": {"a": 1}}, {"$skip": 3}, {"$unwind": "$a"}, {"$limit": 4}]`: `{} [] 3 0`,
		`[{"$unwind": "$a"}, {"$match": {"a": 1}}]`:                                  `{} [] 0 0`,
	} {
		p, err := pipeline.Compile(parse(t, text), pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(p.Leading()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestCollections(t *testing.T) {
	p, err := pipeline.Compile(parse(t, `[{"$unionWith": "a"}, {"$facet": {"x": [{"$unionWith": {"coll": "b", "pipeline": [{"$unionWith": "a"}]}}]}}]`),
		pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, p.Collections()); diff != "" {
		t.Error(diff)
	}
}

func TestBudget(t *testing.T) {
	src := docs(t, 100)
	src["d"] = src[""]
	for text, want := range map[string]string{
		`[{"$addFields": {"a": 1}}, {"$sort": {"_id": -1}}]`:                                              "aggregation_too_large",
		`[{"$facet": {"a": []}}]`:                                                                         "aggregation_too_large",
		`[{"$group": {"_id": "$_id", "a": {"$push": "$text"}}}]`:                                          "aggregation_too_large",
		`[{"$group": {"_id": null, "a": {"$sum": "$_id"}}}]`:                                              "",
		`[{"$sample": {"size": 90}}]`:                                                                     "aggregation_too_large",
		`[{"$addFields": {"a": 1}}]`:                                                                      "too_many_results",
		`[{"$addFields": {"text": 1}}]`:                                                                   "too_many_results",
		`[{"$addFields": {"a": 1}}, {"$sort": {"_id": -1}}, {"$limit": 3}]`:                               "",
		`[{"$sample": {"size": 3}}]`:                                                                      "",
		`[{"$bucketAuto": {"groupBy": "$_id", "buckets": 2}}]`:                                            "aggregation_too_large",
		`[{"$bucket": {"groupBy": "$_id", "boundaries": [0, 200], "output": {"a": {"$push": "$text"}}}}]`: "aggregation_too_large",
		`[{"$group": {"_id": null, "a": {"$addToSet": {"$concat": ["$text", {"$toString": "$_id"}]}}}}]`:  "aggregation_too_large",
		`[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"a": {"$rank": {}}}}}]`:                  "aggregation_too_large",
		`[{"$limit": 40}, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"a": {"$locf": "$text"}, "b": {"$push": "$text"}}}}]`: "aggregation_too_large",
		`[{"$limit": 20}, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"text": {"$rank": {}}}}}]`:                            "",
		`[{"$lookup": {"from": "d", "as": "a", "pipeline": []}}]`:                                                                      "aggregation_too_large",
		`[{"$lookup": {"from": "d", "as": "a", "localField": "text", "foreignField": "text"}}]`:                                        "aggregation_too_large",
		`[{"$graphLookup": {"from": "d", "as": "a", "startWith": "$text", "connectFromField": "text", "connectToField": "text"}}]`:     "aggregation_too_large",
	} {
		_, err := run(t.Context(), t, src, text, pipeline.Budget{Memory: 50_000, Results: 80, ResultBytes: 60_000})
		var got string
		if err != nil {
			got = errs.From(err).Code
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, err)
		}
	}
}

func TestEndsWithContext(t *testing.T) {
	src := docs(t, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{`[]`, `[{"$unwind": "$text"}]`, `[{"$count": "n"}]`, `[{"$facet": {"a": [{"$count": "n"}]}}]`} {
		if _, err := run(ctx, t, src, text, pipeline.Budget{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestErrorOfCallerEndsRun(t *testing.T) {
	src := docs(t, 10)
	own := errors.New("own")
	for _, text := range []string{`[]`, `[{"$sort": {"text": 1}}]`, `[{"$facet": {"a": []}}]`, `[{"$addFields": {"a": 1}}, {"$sort": {"a": 1}}]`} {
		p, err := pipeline.Compile(parse(t, text), pipeline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = p.Run(t.Context(), src, pipeline.Budget{}, func(bson.Raw) error { calls++; return own })
		if !errors.Is(err, own) || calls != 1 {
			t.Errorf("%s: %v after %d calls", text, err, calls)
		}
	}
}

func TestSampleIsOfTheDocuments(t *testing.T) {
	got, err := run(t.Context(), t, docs(t, 10), `[{"$sample": {"size": 20}}, {"$sort": {"_id": 1}}, {"$project": {"_id": 1}}]`, pipeline.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range got {
		if doc.Lookup("_id").AsInt64() != int64(i) {
			t.Errorf("%v at %d", doc, i)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d documents", len(got))
	}
}

func describe(q pipeline.Query) string {
	return fmt.Sprint(q.Filter.Raw(), " ", q.Sort, " ", q.Skip, " ", q.Limit)
}

// watched is a Source that tells what was asked of a collection.
type watched struct {
	memory
	asked []string
}

func (w *watched) Find(ctx context.Context, collection string, q pipeline.Query, fn func(bson.Raw) error) error {
	if collection != "" {
		w.asked = append(w.asked, q.Filter.Raw().String())
	}
	return w.memory.Find(ctx, collection, q, fn)
}

func TestLookupOfEqualExpressionsFilters(t *testing.T) {
	src := &watched{memory: memory{"": docs(t, 2)[""], "d": docs(t, 9)[""]}}
	for text, want := range map[string][]string{
		`{"$eq": ["$_id", "$$v"]}`: {
			`{"_id": {"$eq": {"$numberInt":"0"}}}`, `{"_id": {"$eq": {"$numberInt":"1"}}}`,
		},
		`{"$and": [{"$eq": [{"$add": ["$$v", 1]}, "$_id"]}, {"$gt": ["$_id", 0]}]}`: {
			`{"_id": {"$eq": {"$numberInt":"1"}}}`, `{"_id": {"$eq": {"$numberInt":"2"}}}`,
		},
		`{"$or": [{"$eq": ["$_id", "$$v"]}]}`: {`{}`, `{}`},
		`{"$eq": ["$_id", "$$n"]}`:            {`{}`, `{}`}, // null is equal to more in a filter
		`{"$eq": ["$_id", "$text"]}`:          {`{}`, `{}`},
		`{"$gt": ["$_id", "$$v"]}`:            {`{}`, `{}`},
		`{"$eq": ["$text", {"$rand": {}}]}`:   {`{}`, `{}`},
	} {
		src.asked = nil
		stages := `[{"$lookup": {"from": "d", "as": "x", "let": {"v": "$_id", "n": "$none"}, "pipeline": [{"$match": {"$expr": ` + text + `}}]}}]`
		if _, err := run(t.Context(), t, src, stages, pipeline.Budget{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, src.asked); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestNeededFields(t *testing.T) {
	for text, want := range map[string]string{
		`[{"$project": {"a.b": 1, "n": {"$add": ["$c", 1]}}}]`:                          "[a n _id c]",
		`[{"$project": {"_id": 0, "a": 1}}]`:                                            "[a]",
		`[{"$match": {"z": 1}}, {"$group": {"_id": "$a.b", "n": {"$max": "$c"}}}]`:      "[a c]",
		`[{"$group": {"_id": "$a", "n": {"$top": {"output": 1, "sortBy": {"t": 1}}}}}]`: "[a t]",
		`[{"$group": {"_id": "$a", "n": {"$first": "$$ROOT"}}}]`:                        "<nil>",
		`[{"$unwind": "$a"}, {"$sortByCount": "$b"}]`:                                   "[a b]",
		`[{"$count": "n"}]`: "[]",
		`[{"$limit": 3}]`:   "<nil>",
		`[{"$unset": "a"}]`: "<nil>",
	} {
		p, err := pipeline.Compile(parse(t, text), pipeline.Options{Stages: pipeline.Scripts})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(p.Leading().Fields)
		if p.Leading().Fields == nil {
			got = "<nil>"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestResultsOfAnyDepthAreRefused(t *testing.T) {
	for n, want := range map[int]string{199: "", 200: "result_too_deep"} {
		text := fmt.Sprintf(`[{"$replaceWith": {"a": {"$reduce": {"input": {"$range": [0, %d]}, "initialValue": [], "in": ["$$value"]}}}}]`, n)
		_, err := run(t.Context(), t, docs(t, 1), text, pipeline.Budget{})
		var got string
		if err != nil {
			got = errs.From(err).Code
		}
		if got != want {
			t.Errorf("%d: %v, want %q", n, err, want)
		}
	}
}

// TestLongestPath has what MongoDB 6.0.5 takes: in an expression, the variable in front of a path counts.
func TestLongestPath(t *testing.T) {
	for stage, most := range map[string]int{
		`{"$unwind": "$%s"}`:                                       200,
		`{"$sort": {"%s": 1}}`:                                     200,
		`{"$project": {"%s": 1}}`:                                  200,
		`{"$match": {"$expr": {"$eq": ["$%s", 1]}}}`:               199,
		`{"$match": {"$expr": {"$eq": ["$$ROOT.%s", 1]}}}`:         199,
		`{"$facet": {"a": [{"$replaceWith": {"a": "$%s"}}]}}`:      199,
		`{"$group": {"_id": null, "a": {"$sum": "$$CURRENT.%s"}}}`: 199,
	} {
		for n, want := range map[int]document.ServerCode{most: 0, most + 1: 15} {
			path := strings.Repeat("a.", n-1) + "a"
			_, err := pipeline.Compile(parse(t, "["+fmt.Sprintf(stage, path)+"]"), pipeline.Options{Stages: pipeline.Scripts})
			if (err != nil) != (want != 0) || document.ServerCodeOf(err) != want {
				t.Errorf("%s with %d names: %v, want the code %d", stage, n, err, want)
			}
		}
	}
}
