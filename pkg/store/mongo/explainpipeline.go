package mongo

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// ExplainAggregate runs p and tells how, of the documents there are now.
func (c *collection) ExplainAggregate(
	ctx context.Context, p *pipeline.Pipeline, o store.AggregateOptions,
) (ex store.AggregateExplanation, err error) {
	if err := store.CheckPipeline(p); err != nil {
		return ex, err
	}
	command := bson.D{
		{Key: "aggregate", Value: c.name},
		{Key: "pipeline", Value: rawPipeline(p)},
		{Key: "cursor", Value: bson.D{}},
		{Key: "allowDiskUse", Value: false},
	}
	if let := p.Let(); len(let) > 0 {
		command = append(command, bson.E{Key: "let", Value: let})
	}
	reply, err := c.explain(ctx, command)
	if err != nil {
		free := *c
		free.tx = nil // the server was not asked in it
		return ex, free.pipelineError(ctx, p, o, err)
	}
	readPipeline(reply, &ex)
	return ex, nil
}

// readPipeline reads what the server says of a pipeline: a list of stages, or, if all of it is one query, of that.
func readPipeline(reply bson.Raw, ex *store.AggregateExplanation) {
	stages, ok := reply.Lookup("stages").ArrayOK()
	if !ok {
		readExplanation(reply, &ex.Explanation)
		readJoins(reply.Lookup("queryPlanner", "winningPlan"), ex)
		return
	}
	values, _ := stages.Values()
	for _, v := range values {
		stage, _ := v.DocumentOK()
		if cursor, ok := stage.Lookup("$cursor").DocumentOK(); ok {
			readExplanation(cursor, &ex.Explanation)
			readJoins(cursor.Lookup("queryPlanner", "winningPlan"), ex)
		}
		from, isLookup := stage.Lookup("$lookup", "from").StringValueOK()
		if !isLookup {
			continue
		}
		ex.Uses(from)
		names, _ := stage.Lookup("indexesUsed").ArrayOK()
		used, _ := names.Values()
		for _, name := range used {
			ex.Uses(from, indexName(name))
		}
	}
}

// readJoins walks a plan for the $lookup stages that the server has made part of it.
func readJoins(plan bson.RawValue, ex *store.AggregateExplanation) {
	object, isObject := plan.DocumentOK()
	list, isList := plan.ArrayOK()
	if isList {
		object = bson.Raw(list)
	}
	if !isObject && !isList {
		return
	}
	if isJoin(object) {
		foreign, _ := object.Lookup("foreignCollection").StringValueOK()
		_, name, _ := strings.Cut(foreign, ".")
		ex.Uses(name)
		if index := object.Lookup("indexName"); index.Type == bson.TypeString {
			ex.Uses(name, indexName(index))
		}
	}
	elements, _ := object.Elements()
	for _, e := range elements {
		readJoins(e.Value(), ex)
	}
}

// isJoin says whether a stage of a plan is a $lookup.
func isJoin(plan bson.Raw) bool {
	stage, _ := plan.Lookup("stage").StringValueOK()
	return stage == "EQ_LOOKUP"
}

func indexName(v bson.RawValue) string {
	name, _ := v.StringValueOK()
	if name == primaryIndex {
		return "_id"
	}
	return name
}
