package wire

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// runExplain tells how a command would find its documents, by having the port find them.
func runExplain(k *call) (bson.D, error) {
	inner := k.args.document("explain")
	if k.args.err != nil {
		return nil, k.args.err
	}
	if told := k.server.opts.Testing.Explain; told != nil {
		return slices.Clone(told), nil
	}
	first, err := inner.IndexErr(0)
	if err != nil {
		return nil, fail(codeFailedToParse, "explain takes a command such as {find: ...}")
	}
	if k.server.commands[first.Key()] == nil {
		return nil, fail(codeCommandNotFound, "Explain failed due to unknown command: %s", clip(first.Key()))
	}
	name, ok := first.Value().StringValueOK()
	if !ok {
		return nil, fail(codeInvalidNamespace, "collection name has invalid type")
	}
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, err
	}
	if err := k.server.checkCollection(name); err != nil {
		return nil, err
	}
	if first.Key() == "aggregate" {
		p, err := k.explainedPipeline(inner)
		if err != nil {
			return nil, err
		}
		reply, err := k.explainPipeline(db, name, p, k.args.text("verbosity"))
		return append(reply, bson.E{Key: "command", Value: inner}), err
	}
	q, err := explainedQuery(first.Key(), &args{body: inner})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	ex, err := k.reader(db, name).Explain(k.ctx, q)
	if err != nil {
		return nil, err
	}
	verbosity := k.args.text("verbosity")
	if k.args.err != nil {
		return nil, k.args.err
	}
	return append(k.explained(name, ex, q, time.Since(start), verbosity), bson.E{Key: "command", Value: inner}), nil
}

// explainPipeline tells how a pipeline finds its documents.
func (k *call) explainPipeline(db store.Database, name string, p *pipeline.Pipeline, verbosity string) (bson.D, error) {
	lead := p.Leading()
	q := store.Query{Filter: lead.Filter, Sort: lead.Sort, Skip: lead.Skip, Limit: lead.Limit}
	if db == nil {
		return k.explained(name, store.Explanation{}, q, 0, verbosity), nil
	}
	start := time.Now()
	ex, err := k.reader(db, name).ExplainAggregate(k.ctx, p, store.AggregateOptions{})
	if err != nil {
		return nil, err
	}
	return k.explained(name, ex.Explanation, q, time.Since(start), verbosity), nil
}

// explainedPipeline reads the stages of an aggregate that is to be explained.
func (k *call) explainedPipeline(inner bson.Raw) (*pipeline.Pipeline, error) {
	a := args{body: inner}
	stages := a.documents("pipeline")
	if a.err != nil {
		return nil, a.err
	}
	stages, _, err := k.splitOutput(stages)
	if err != nil {
		return nil, err
	}
	return k.compilePipeline(stages)
}

// explained is what an explain answers.
func (k *call) explained(name string, ex store.Explanation, q store.Query, lasted time.Duration, verbosity string) bson.D {
	took := number(lasted.Milliseconds())
	plan := planOf(ex, q)
	reply := bson.D{
		{Key: "explainVersion", Value: "1"},
		{Key: "queryPlanner", Value: bson.D{
			{Key: "namespace", Value: k.namespace(name)},
			{Key: "indexFilterSet", Value: false},
			{Key: "parsedQuery", Value: emptyIfNil(q)},
			{Key: "winningPlan", Value: plan},
			{Key: "rejectedPlans", Value: bson.A{}},
		}},
	}
	if verbosity != "queryPlanner" {
		stages := append(bson.D{}, plan...)
		stages = append(stages, bson.E{Key: "nReturned", Value: number(ex.Returned)}, bson.E{Key: "executionTimeMillisEstimate", Value: took},
			bson.E{Key: "docsExamined", Value: number(ex.DocsExamined)}, bson.E{Key: "keysExamined", Value: number(ex.KeysExamined)})
		reply = append(reply, bson.E{Key: "executionStats", Value: bson.D{
			{Key: "executionSuccess", Value: true},
			{Key: "nReturned", Value: number(ex.Returned)},
			{Key: "executionTimeMillis", Value: took},
			{Key: "totalKeysExamined", Value: number(ex.KeysExamined)},
			{Key: "totalDocsExamined", Value: number(ex.DocsExamined)},
			{Key: "executionStages", Value: stages},
		}})
	}
	return append(reply,
		bson.E{Key: "serverInfo", Value: bson.D{{Key: "host", Value: k.conn.nc.LocalAddr().String()}, {Key: "version", Value: serverVersion}}},
	)
}

func emptyIfNil(q store.Query) any {
	if q.Filter == nil {
		return bson.D{}
	}
	return q.Filter.Raw()
}

// explainedQuery is what a command looks for.
func explainedQuery(command string, a *args) (q store.Query, err error) {
	var filter string
	switch command {
	case "find":
		f, err := parseFind(a)
		return f.Query, err
	case "count", "distinct", "findAndModify", "findandmodify":
		filter = "query"
	case "update", "delete":
		list := a.documents(command + "s")
		if a.err != nil || len(list) != 1 {
			return q, fail(codeInvalidLength, "explain takes one statement")
		}
		a, filter = &args{body: list[0]}, "q"
	default:
		return q, notImplemented("explain of " + clip(command))
	}
	raw, sort := a.document(filter), a.document("sort")
	if a.err != nil {
		return q, a.err
	}
	if q.Sort, err = compileSort(sort); err != nil {
		return q, err
	}
	q.Filter, err = compileFilter(raw)
	return q, err
}

// planOf shows how a query ran as the stages that a MongoDB server would name.
func planOf(ex store.Explanation, q store.Query) bson.D {
	var scans bson.A
	for _, index := range ex.Indexes {
		if index == "_id" {
			scans = append(scans, bson.D{{Key: "stage", Value: "IXSCAN"}, {Key: "keyPattern", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "indexName", Value: primaryIndex}})
			continue
		}
		scans = append(scans, bson.D{{Key: "stage", Value: "IXSCAN"}, {Key: "indexName", Value: index}})
	}
	var plan bson.D
	switch len(scans) {
	case 0:
		plan = bson.D{{Key: "stage", Value: "COLLSCAN"}, {Key: "direction", Value: "forward"}}
	case 1:
		plan = bson.D{{Key: "stage", Value: "FETCH"}, {Key: "inputStage", Value: scans[0]}}
	default:
		plan = bson.D{{Key: "stage", Value: "FETCH"}, {Key: "inputStage", Value: bson.D{{Key: "stage", Value: "OR"}, {Key: "inputStages", Value: scans}}}}
	}
	if ex.SortInMemory {
		plan = bson.D{{Key: "stage", Value: "SORT"}, {Key: "inputStage", Value: plan}}
	}
	if q.Skip > 0 {
		plan = bson.D{{Key: "stage", Value: "SKIP"}, {Key: "inputStage", Value: plan}}
	}
	if q.Limit > 0 {
		plan = bson.D{{Key: "stage", Value: "LIMIT"}, {Key: "limitAmount", Value: q.Limit}, {Key: "inputStage", Value: plan}}
	}
	if q.Project != nil {
		plan = bson.D{{Key: "stage", Value: "PROJECTION_DEFAULT"}, {Key: "inputStage", Value: plan}}
	}
	return plan
}
