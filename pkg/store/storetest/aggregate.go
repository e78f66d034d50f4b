package storetest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// stages compiles a pipeline, as for scripts.
func stages(json string) *pipeline.Pipeline {
	list, ok := parse(`{"p":` + json + `}`)[0].Value.(bson.A)
	if !ok {
		panic(json + " is no list")
	}
	p, err := pipeline.Compile(list, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		panic(fmt.Sprintf("%s: %v", json, err))
	}
	return p
}

// aggregate gives the results of a pipeline, one a line.
func aggregate(ctx context.Context, r store.Reader, p *pipeline.Pipeline, o store.AggregateOptions) (string, error) {
	var lines []string
	err := r.Aggregate(ctx, p, o, func(d bson.Raw) error {
		lines = append(lines, plainNumbers(d.String()))
		return nil
	})
	return strings.Join(lines, "\n"), err
}

var numbers = regexp.MustCompile(`\{"\$number(?:Int|Long|Double|Decimal)":"([^"]*)"\}`)

// plainNumbers writes numbers as people do.
func plainNumbers(json string) string {
	json = numbers.ReplaceAllString(json, "$1")
	return strings.ReplaceAll(strings.ReplaceAll(json, `": `, `":`), `, "`, `,"`)
}

// joining is a pipeline that reads another collection.
func joining() *pipeline.Pipeline {
	return stages(`[{"$lookup":{"from":"others","localField":"k","foreignField":"k","as":"o"}}]`)
}

// joinData puts the documents in place that the cases below are about.
func joinData(f *fixture) {
	f.t.Helper()
	f.given(
		`{"_id":1,"a":1,"b":{"c":1},"n":10,"tags":["x","y"],"k":1}`,
		`{"_id":2,"a":2,"b":{"c":"s"},"n":20,"tags":[],"k":[1,2]}`,
		`{"_id":3,"a":2.0,"b":[{"c":1},{"c":2}],"n":5,"tags":["x"],"k":null}`,
		`{"_id":4,"a":null,"n":{"$numberLong":"7"},"tags":"z"}`,
		`{"_id":5,"a":[1,2],"b":{"c":null},"n":"t","k":"nope"}`,
	)
	f.collection("others").given(
		`{"_id":1,"k":1,"v":"one","up":3}`, `{"_id":2,"k":[2,1],"v":"two","up":1}`, `{"_id":3,"k":null,"up":2}`, `{"_id":4,"v":"none"}`,
		`{"_id":5,"k":[null],"up":4}`, `{"_id":6,"k":{"x":1}}`, `{"_id":7,"k":[]}`,
	)
}

// aggregations are pipelines on joinData, whose results depend on no order that is not said, and these results.
var aggregations = []struct{ stages, want string }{ //nolint:gochecknoglobals // a table
	{
		`[]`,
		`{"_id":1,"a":1,"b":{"c":1},"n":10,"tags":["x","y"],"k":1}
{"_id":2,"a":2,"b":{"c":"s"},"n":20,"tags":[],"k":[1,2]}
{"_id":3,"a":2.0,"b":[{"c":1},{"c":2}],"n":5,"tags":["x"],"k":null}
{"_id":4,"a":null,"n":7,"tags":"z"}
{"_id":5,"a":[1,2],"b":{"c":null},"n":"t","k":"nope"}`,
	},
	{
		`[{"$match":{"a":2}},{"$sort":{"_id":1}},{"$project":{"a":1}}]`,
		`{"_id":2,"a":2}
{"_id":3,"a":2.0}
{"_id":5,"a":[1,2]}`,
	},
	{
		`[{"$match":{"a":null}},{"$project":{"_id":1}}]`,
		`{"_id":4}`,
	},
	{
		`[{"$match":{"a":{"$gte":null}}},{"$sort":{"_id":1}},{"$project":{"_id":1}}]`,
		`{"_id":4}`,
	},
	{
		`[{"$match":{"$expr":{"$eq":["$a",null]}}},{"$project":{"_id":1}}]`,
		`{"_id":4}`,
	},
	{
		`[{"$match":{"$expr":{"$eq":["$a",[1,2]]}}},{"$project":{"_id":1}}]`,
		`{"_id":5}`,
	},
	{
		`[{"$match":{"$expr":{"$gte":["$a",2]}}},{"$sort":{"_id":1}},{"$project":{"_id":1}}]`,
		`{"_id":2}
{"_id":3}
{"_id":5}`,
	},
	{
		`[{"$match":{"$expr":{"$lte":["$a",2]}}},{"$sort":{"_id":1}},{"$project":{"_id":1}}]`,
		`{"_id":1}
{"_id":2}
{"_id":3}
{"_id":4}`,
	},
	{
		`[{"$match":{"b.c":{"$gt":0},"$expr":{"$ne":["$_id",1]}}},{"$project":{"_id":1}}]`,
		`{"_id":3}`,
	},
	{
		`[{"$sort":{"a":1,"_id":1}},{"$project":{"a":1}}]`,
		`{"_id":4,"a":null}
{"_id":1,"a":1}
{"_id":5,"a":[1,2]}
{"_id":2,"a":2}
{"_id":3,"a":2.0}`,
	},
	{
		`[{"$sort":{"a":-1,"_id":1}},{"$skip":1},{"$limit":2},{"$project":{"a":1}}]`,
		`{"_id":3,"a":2.0}
{"_id":5,"a":[1,2]}`,
	},
	{
		`[{"$sort":{"b.c":1,"_id":-1}},{"$limit":3},{"$project":{"b":1}}]`,
		`{"_id":5,"b":{"c":null}}
{"_id":4}
{"_id":3,"b":[{"c":1},{"c":2}]}`,
	},
	{
		`[{"$match":{"_id":{"$gt":1}}},{"$sort":{"a":1,"_id":1}},{"$match":{"a":2}},{"$project":{"_id":1}}]`,
		`{"_id":5}
{"_id":2}
{"_id":3}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$limit":3},{"$match":{"a":2}},{"$project":{"_id":1}}]`,
		`{"_id":2}
{"_id":3}`,
	},
	{
		`[{"$limit":100},{"$count":"n"}]`,
		`{"n":5}`,
	},
	{`[{"$match":{"a":99}},{"$count":"n"}]`, ``},
	{
		`[{"$count":"n"}]`,
		`{"n":5}`,
	},
	{
		`[{"$match":{"b.c":1}},{"$count":"n"}]`,
		`{"n":2}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$project":{"_id":0,"c":"$b.c","s":{"$size":{"$ifNull":[{"$cond":[{"$isArray":"$tags"},"$tags",null]},[]]}}}}]`,
		`{"c":1,"s":2}
{"c":"s","s":0}
{"c":[1,2],"s":1}
{"s":0}
{"c":null,"s":0}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$addFields":{"b.c":"set","twice":{"$cond":[{"$isNumber":"$n"},{"$multiply":["$n",2]},"$$REMOVE"]}}},{"$unset":["tags","k"]}]`,
		`{"_id":1,"a":1,"b":{"c":"set"},"n":10,"twice":20}
{"_id":2,"a":2,"b":{"c":"set"},"n":20,"twice":40}
{"_id":3,"a":2.0,"b":[{"c":"set"},{"c":"set"}],"n":5,"twice":10}
{"_id":4,"a":null,"n":7,"b":{"c":"set"},"twice":14}
{"_id":5,"a":[1,2],"b":{"c":"set"},"n":"t"}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$unwind":{"path":"$tags","includeArrayIndex":"at","preserveNullAndEmptyArrays":true}},{"$project":{"tags":1,"at":1}}]`,
		`{"_id":1,"tags":"x","at":0}
{"_id":1,"tags":"y","at":1}
{"_id":2,"at":null}
{"_id":3,"tags":"x","at":0}
{"_id":4,"tags":"z","at":null}
{"_id":5,"at":null}`,
	},
	{
		`[{"$unwind":"$b"},{"$match":{"b.c":{"$gte":1}}},{"$sort":{"_id":1,"b.c":1}},{"$project":{"b":1}}]`,
		`{"_id":1,"b":{"c":1}}
{"_id":3,"b":{"c":1}}
{"_id":3,"b":{"c":2}}`,
	},
	{
		`[{"$match":{"_id":{"$lt":4}}},{"$sort":{"_id":1}},{"$replaceRoot":{"newRoot":{"n":"$n","of":"$$ROOT._id"}}}]`,
		`{"n":10,"of":1}
{"n":20,"of":2}
{"n":5,"of":3}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$limit":1},{"$replaceWith":"$b"}]`,
		`{"c":1}`,
	},
	{
		`[{"$sample":{"size":3}},{"$count":"n"}]`,
		`{"n":3}`,
	},
	{
		`[{"$match":{"_id":{"$lt":5}}},{"$group":{"_id":"$a","n":{"$sum":1}}},{"$sort":{"_id":1}}]`,
		`{"_id":null,"n":1}
{"_id":1,"n":1}
{"_id":2,"n":2}`,
	},
	{
		`[{"$sort":{"a":1,"_id":1}},{"$match":{"_id":{"$lt":5}}},{"$group":{"_id":"$a","first":{"$first":"$_id"},"last":{"$last":"$_id"}}},{"$sort":{"_id":1}}]`,
		`{"_id":null,"first":4,"last":4}
{"_id":1,"first":1,"last":1}
{"_id":2,"first":2,"last":3}`,
	},
	{
		`[{"$sort":{"a":-1,"_id":-1}},{"$match":{"_id":{"$lt":5}}},{"$group":{"_id":"$a","first":{"$first":"$$ROOT"}}},{"$project":{"first":"$first._id"}},{"$sort":{"_id":1}}]`,
		`{"_id":null,"first":4}
{"_id":1,"first":1}
{"_id":2.0,"first":3}`,
	},
	{
		`[{"$match":{"_id":{"$ne":3}}},{"$group":{"_id":"$b.c"}},{"$sort":{"_id":1}}]`,
		`{"_id":null}
{"_id":1}
{"_id":"s"}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$group":{"_id":null,"sum":{"$sum":"$n"},"avg":{"$avg":"$n"},"min":{"$min":"$n"},"max":{"$max":"$n"},"all":{"$push":"$k"}}}]`,
		`{"_id":null,"sum":42,"avg":10.5,"min":5,"max":"t","all":[1,[1,2],null,"nope"]}`,
	},
	{
		`[{"$unwind":"$tags"},{"$sortByCount":"$tags"},{"$sort":{"count":-1,"_id":1}}]`,
		`{"_id":"x","count":2}
{"_id":"y","count":1}
{"_id":"z","count":1}`,
	},
	{`[{"$match":{"_id":99}},{"$group":{"_id":null,"n":{"$sum":1}}}]`, ``},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"k","foreignField":"k","as":"o"}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]`,
		`{"_id":1,"o":[1,2]}
{"_id":2,"o":[1,2]}
{"_id":3,"o":[3,4,5]}
{"_id":4,"o":[3,4,5]}
{"_id":5,"o":[]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"a","foreignField":"_id","as":"o"}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]`,
		`{"_id":1,"o":[1]}
{"_id":2,"o":[2]}
{"_id":3,"o":[2]}
{"_id":4,"o":[]}
{"_id":5,"o":[1,2]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"b.c","foreignField":"k","as":"o"}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]`,
		`{"_id":1,"o":[1,2]}
{"_id":2,"o":[]}
{"_id":3,"o":[1,2]}
{"_id":4,"o":[3,4,5]}
{"_id":5,"o":[3,4,5]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"none","localField":"a","foreignField":"_id","as":"o"}},{"$project":{"o":1}}]`,
		`{"_id":1,"o":[]}
{"_id":2,"o":[]}
{"_id":3,"o":[]}
{"_id":4,"o":[]}
{"_id":5,"o":[]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"k","foreignField":"k","as":"o"}},{"$unwind":"$o"},{"$group":{"_id":"$_id","n":{"$sum":1}}},{"$sort":{"_id":1}}]`,
		`{"_id":1,"n":2}
{"_id":2,"n":2}
{"_id":3,"n":3}
{"_id":4,"n":3}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","let":{"k":"$k"},"pipeline":[{"$match":{"$expr":{"$eq":["$k","$$k"]}}},{"$project":{"_id":1}}],"as":"o"}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]`,
		`{"_id":1,"o":[1]}
{"_id":2,"o":[]}
{"_id":3,"o":[3]}
{"_id":4,"o":[4]}
{"_id":5,"o":[]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","let":{"n":"$n"},"pipeline":[{"$match":{"k":{"$gte":null}}},{"$match":{"$expr":{"$lt":["$up","$$n"]}}},{"$sort":{"up":1}},{"$limit":2},{"$project":{"_id":1}}],"as":"o"}},{"$project":{"o":1}}]`,
		`{"_id":1,"o":[{"_id":4},{"_id":3}]}
{"_id":2,"o":[{"_id":4},{"_id":3}]}
{"_id":3,"o":[{"_id":4},{"_id":3}]}
{"_id":4,"o":[{"_id":4},{"_id":3}]}
{"_id":5,"o":[{"_id":4},{"_id":3}]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$lookup":{"from":"others","localField":"k","foreignField":"k","pipeline":[{"$match":{"v":{"$exists":true}}},{"$sort":{"_id":-1}},{"$project":{"v":1}}],"as":"o"}},{"$project":{"o":1}}]`,
		`{"_id":1,"o":[{"_id":2,"v":"two"},{"_id":1,"v":"one"}]}
{"_id":2,"o":[{"_id":2,"v":"two"},{"_id":1,"v":"one"}]}
{"_id":3,"o":[{"_id":4,"v":"none"}]}
{"_id":4,"o":[{"_id":4,"v":"none"}]}
{"_id":5,"o":[]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$limit":2},{"$lookup":{"from":"others","pipeline":[{"$match":{"k":1}},{"$count":"n"}],"as":"o"}},{"$project":{"o":1}}]`,
		`{"_id":1,"o":[{"n":2}]}
{"_id":2,"o":[{"n":2}]}`,
	},
	{
		`[{"$match":{"a":2}},{"$unionWith":{"coll":"others","pipeline":[{"$match":{"k":{"$lte":null}}}]}},{"$group":{"_id":"$_id","n":{"$sum":1}}},{"$sort":{"_id":1}}]`,
		`{"_id":2,"n":1}
{"_id":3,"n":2}
{"_id":4,"n":1}
{"_id":5,"n":2}`,
	},
	{
		`[{"$unionWith":"none"},{"$count":"n"}]`,
		`{"n":5}`,
	},
	{
		`[{"$match":{"a":{"$exists":true},"_id":{"$in":[1,2,4]}}},{"$facet":{"a":[{"$sortByCount":"$a"},{"$sort":{"count":-1,"_id":1}}],"n":[{"$match":{"n":{"$gt":6}}},{"$count":"n"}],"none":[{"$match":{"_id":0}}]}}]`,
		`{"a":[{"_id":null,"count":1},{"_id":1,"count":1},{"_id":2,"count":1}],"n":[{"n":3}],"none":[]}`,
	},
	{
		`[{"$match":{"_id":0}},{"$facet":{"x":[{"$count":"n"}],"y":[]}}]`,
		`{"x":[],"y":[]}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$limit":2},{"$facet":{"o":[{"$lookup":{"from":"others","localField":"k","foreignField":"k","as":"o"}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]}}]`,
		`{"o":[{"_id":1,"o":[1,2]},{"_id":2,"o":[1,2]}]}`,
	},
	{
		`[{"$unwind":{"path":"$tags","includeArrayIndex":"b.at"}},{"$group":{"_id":"$b.at","n":{"$sum":"$n"},"most":{"$max":"$tags"}}},{"$sort":{"_id":1}}]`,
		`{"_id":null,"n":7,"most":"z"}
{"_id":0,"n":15,"most":"x"}
{"_id":1,"n":10,"most":"y"}`,
	},
	{
		`[{"$bucket":{"groupBy":{"$ifNull":["$b.c",0]},"boundaries":[0,2,10],"default":"other","output":{"n":{"$sum":1},"ids":{"$min":"$_id"}}}}]`,
		`{"_id":0,"n":3,"ids":1}
{"_id":"other","n":2,"ids":2}`,
	},
	{
		`[{"$bucketAuto":{"groupBy":"$_id","buckets":2,"output":{"n":{"$sum":1}}}}]`,
		`{"_id":{"min":1,"max":4},"n":3}
{"_id":{"min":4,"max":5},"n":2}`,
	},
	{
		`[{"$sort":{"_id":1}},{"$graphLookup":{"from":"others","startWith":"$_id","connectFromField":"up","connectToField":"_id","as":"o","depthField":"d"}},{"$project":{"o":{"$setUnion":[{"$map":{"input":"$o","in":{"$add":["$$this._id",{"$multiply":["$$this.d",10]}]}}},[]]}}}]`,
		`{"_id":1,"o":[1,13,22]}
{"_id":2,"o":[2,11,23]}
{"_id":3,"o":[3,12,21]}
{"_id":4,"o":[4]}
{"_id":5,"o":[5,14]}`,
	},
	{
		`[{"$match":{"_id":{"$lt":3}}},{"$sort":{"_id":1}},{"$graphLookup":{"from":"others","startWith":"$k","connectFromField":"up","connectToField":"k","as":"o","maxDepth":1,"restrictSearchWithMatch":{"up":{"$gte":null}}}},{"$project":{"o":{"$setUnion":["$o._id",[]]}}}]`,
		`{"_id":1,"o":[]}
{"_id":2,"o":[]}`,
	},
	{
		`[{"$setWindowFields":{"partitionBy":{"$type":"$n"},"sortBy":{"_id":1},"output":{"at":{"$documentNumber":{}},"sum":{"$sum":"$_id","window":{"documents":["unbounded","current"]}}}}},{"$sort":{"_id":1}},{"$project":{"of":["$at","$sum"]}}]`,
		`{"_id":1,"of":[1,1]}
{"_id":2,"of":[2,3]}
{"_id":3,"of":[3,6]}
{"_id":4,"of":[1,4]}
{"_id":5,"of":[1,5]}`,
	},
	{
		`[{"$match":{"_id":{"$lt":5}}},{"$fill":{"sortBy":{"_id":1},"output":{"k":{"method":"locf"},"b":{"value":"none"}}}},{"$sort":{"_id":1}},{"$project":{"k":1,"b":1}}]`,
		`{"_id":1,"b":{"c":1},"k":1}
{"_id":2,"b":{"c":"s"},"k":[1,2]}
{"_id":3,"b":[{"c":1},{"c":2}],"k":[1,2]}
{"_id":4,"k":[1,2],"b":"none"}`,
	},
}

func testAggregate(t *testing.T, s store.Store) {
	for _, section := range []section{
		{"stages", testStages},
		{"failures", testAggregateFailures},
		{"budgets", testAggregateBudgets},
		{"ends", testAggregateEnds},
		{"views", testAggregateViews},
		{"transactions", testAggregateInTransactions},
		{"snapshot", testAggregateSnapshot},
		{"missing", testAggregateMissing},
		{"explain", testExplainAggregate},
		{"facets", testFacets},
	} {
		t.Run(section.name, func(t *testing.T) { section.run(t, s) })
	}
}

func testStages(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	joinData(f)
	f.underIndexes(t, admitting(permutations("a", "b.c")), (*fixture).wantAggregations)
	f.collection("others").underIndexes(t, admitting(permutations("k")), func(others *fixture) {
		f.in(others.t).wantAggregations()
	})
}

func (f *fixture) wantAggregations() {
	f.t.Helper()
	for _, c := range aggregations {
		got, err := aggregate(f.t.Context(), f, stages(c.stages), store.AggregateOptions{})
		if err != nil || got != c.want {
			f.t.Errorf("%s\ngave %v\n%s\nwant\n%s", c.stages, err, got, c.want)
		}
	}
}
