package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// failing are pipelines that can't be computed for a document of joinData.
var failing = []struct { //nolint:gochecknoglobals // a table
	stages, code, text string
	number             document.ServerCode
}{
	{`[{"$project":{"x":{"$divide":["$n","$k"]}}}]`, "expression_failed", "$divide takes numbers, not int and array", 14},
	{`[{"$match":{"_id":{"$gte":5}}},{"$project":{"x":{"$add":["$n",1]}}}]`, "expression_failed", "$add takes numbers and a date, not string", 16554},
	{`[{"$match":{"$expr":{"$gt":[{"$size":"$tags"},0]}}},{"$count":"n"}]`, "expression_failed", "$size takes a list, not string", 17124},
	{`[{"$sort":{"_id":1}},{"$group":{"_id":{"$toInt":"$k"}}}]`, "expression_failed", "there is no conversion from array to int", 241},
	{`[{"$replaceRoot":{"newRoot":"$n"}}]`, "pipeline_failed", "the new root of a document has to be an object", 40228},
	{
		`[{"$match":{"_id":1}},{"$lookup":{"from":"others","let":{"n":"$n"},"pipeline":[{"$project":{"x":{"$mod":["$$n","$k"]}}}],"as":"o"}}]`,
		"expression_failed", "$mod takes numbers, not int and array", 16611,
	},
	{
		`[{"$match":{"_id":{"$lt":3}}},{"$facet":{"a":[{"$count":"n"}],"b":[{"$project":{"x":{"$split":["$n","x"]}}}]}}]`,
		"expression_failed", "$split takes text, not int", 40085,
	},
}

func testAggregateFailures(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	joinData(f)
	for _, c := range failing {
		for name, r := range map[string]store.Reader{"collection": f, "view": f.view().Collection("things")} {
			got, err := aggregate(t.Context(), r, stages(c.stages), store.AggregateOptions{})
			e := errs.From(err)
			if e == nil || e.Kind != errs.Invalid || e.Code != c.code || e.Message != c.text || document.ServerCodeOf(err) != c.number {
				t.Errorf("%s of a %s: %+v, server's code %d, %s; want %s %q %d",
					c.stages, name, err, document.ServerCodeOf(err), got, c.code, c.text, c.number)
			}
		}
	}
	f.given(`{"_id":10,"x":[1],"y":[2]}`)
	if _, err := aggregate(t.Context(), f, stages(`[{"$sort":{"x":1,"y":1}}]`), store.AggregateOptions{}); errs.From(err).Code != "parallel_sort" {
		t.Errorf("a sort by two lists: %v", err)
	}
	bad := stages(`[{"$lookup":{"from":"a b","localField":"k","foreignField":"k","as":"o"}}]`)
	if _, err := aggregate(t.Context(), f, bad, store.AggregateOptions{}); !errors.Is(err, store.ErrBadName) {
		t.Errorf("a lookup in a collection that can't be: %v", err)
	}
}

func testAggregateBudgets(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for i := range 9 {
		f.mustWrite(large(i, i, 2<<20))
	}
	// Of 9 documents of 2 MiB these make 63.
	const many = `{"$unionWith":"things"},{"$unionWith":"things"},{"$unionWith":"things"},{"$unionWith":"things"},{"$unionWith":"things"},{"$unionWith":"things"}`
	for _, c := range []struct {
		name, stages string
		options      store.AggregateOptions
		results      int
		code         string
	}{
		{"nothing too much", `[` + many + `,{"$count":"n"}]`, store.AggregateOptions{}, 1, ""},
		{"memory of a group", `[` + many + `,{"$group":{"_id":{"$rand":{}},"pad":{"$first":"$pad"}}},{"$count":"n"}]`, store.AggregateOptions{}, 0, "aggregation_too_large"},
		{"memory of a list", `[` + many + `,{"$group":{"_id":null,"all":{"$push":"$pad"}}},{"$project":{"n":{"$size":"$all"}}}]`, store.AggregateOptions{}, 0, "aggregation_too_large"},
		{"memory of a sort", `[` + many + `,{"$sort":{"pad":1}},{"$project":{"n":1}}]`, store.AggregateOptions{}, 0, "aggregation_too_large"},
		{"the first of a sort", `[` + many + `,{"$sort":{"n":1}},{"$limit":2},{"$project":{"n":1}}]`, store.AggregateOptions{}, 2, ""},
		{"a result", `[{"$group":{"_id":null,"all":{"$push":"$pad"}}}]`, store.AggregateOptions{}, 0, "result_too_large"},
		{"a facet", `[{"$facet":{"a":[{"$project":{"pad":1}}]}}]`, store.AggregateOptions{}, 0, "result_too_large"},
		{"a lookup", `[{"$match":{"_id":1}},{"$lookup":{"from":"things","pipeline":[],"as":"all"}}]`, store.AggregateOptions{}, 0, "result_too_large"},
		{
			"a lookup that is unwound", `[{"$match":{"_id":1}},{"$lookup":{"from":"things","localField":"none","foreignField":"none","as":"all"}},{"$unwind":"$all"},{"$count":"n"}]`,
			store.AggregateOptions{},
			1, "",
		},
		{"as many as allowed", `[{"$project":{"n":1}}]`, store.AggregateOptions{Results: 9}, 9, ""},
		{"results", `[{"$project":{"n":1}}]`, store.AggregateOptions{Results: 8}, 8, "too_many_results"},
		{"bytes", `[{"$project":{"pad":1}}]`, store.AggregateOptions{ResultBytes: 5 << 20}, 2, "too_many_results"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			err := f.Aggregate(t.Context(), stages(c.stages), c.options, func(bson.Raw) error {
				n++
				return nil
			})
			code := ""
			if err != nil {
				code = errs.From(err).Code
			}
			if code != c.code || n != c.results || err != nil && errs.KindOf(err) != errs.Limit {
				t.Errorf("%s: %d results, %v; want %d and %q", c.stages, n, err, c.results, c.code)
			}
		})
	}
}

// endless takes hours on 1000 documents. (A server does not end the computation of one expression, however long.)
const endless = `[{"$lookup":{"from":"things","let":{"n":"$n"},"pipeline":[
	{"$lookup":{"from":"things","let":{"m":"$n"},"pipeline":[{"$match":{"$expr":{"$gt":["$n",{"$add":["$$n","$$m"]}]}}}],"as":"y"}},{"$count":"n"}],"as":"x"}},
	{"$count":"n"}]`

func testAggregateEnds(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.manyDocuments(1000)
	for _, stages := range []*pipeline.Pipeline{stages(`[]`), stages(`[{"$sort":{"n":-1}}]`), stages(`[{"$addFields":{"x":"$n"}}]`)} {
		for _, canceled := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := f.Aggregate(ctx, stages, store.AggregateOptions{}, func(bson.Raw) error {
				if calls++; calls < 10 {
					return nil
				}
				if cancel(); canceled {
					return nil
				}
				return errStop
			})
			if canceled && (!errors.Is(err, context.Canceled) || calls > 500) || !canceled && (!errors.Is(err, errStop) || calls != 10) {
				t.Errorf("%v, canceled %v: ended with %v after %d documents", stages.Raw(), canceled, err, calls)
			}
			cancel()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(20*time.Millisecond, cancel)
	defer timer.Stop()
	if _, err := aggregate(ctx, f, stages(endless), store.AggregateOptions{}); !errors.Is(err, store.ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("a long pipeline, canceled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := aggregate(ctx, f, stages(endless), store.AggregateOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a long pipeline, out of time: %v", err)
	}
	f.given(`{"_id":"after"}`) // a run that ended early holds nothing up
}
