package wire

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// runAggregate runs a pipeline: over a collection, or over what a stage that comes first tells of the server.
func runAggregate(k *call) (bson.D, error) {
	name, ok := k.msg.body.Lookup(k.name).StringValueOK()
	if n, number := whole(k.msg.body.Lookup(k.name)); !ok && (!number || n != 1) {
		return nil, fail(codeFailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	stages, size, err := k.parsePipeline()
	if err != nil {
		return nil, err
	}
	if len(stages) > 0 {
		if options, watches := stageOf(stages[0], "$changeStream"); watches {
			return k.openStream(name, options, stages[1:], size)
		}
	}
	if !ok {
		return k.aggregateDatabase(stages, size)
	}
	db, name, err := k.readable()
	if err != nil {
		return nil, err
	}
	options, scale, err := collStatsOptions(stages)
	if err != nil {
		return nil, err
	}
	if options != nil && db != nil {
		doc, err := k.collStatsStage(db, name, options, scale)
		if err != nil {
			return nil, err
		}
		return k.aggregateDocuments(k.namespace(name), []bson.D{doc}, stages[1:], size)
	}
	return k.aggregateCollection(db, name, stages, size)
}

// aggregateCollection runs a pipeline over a collection; db is nil where there is none.
func (k *call) aggregateCollection(db store.Database, name string, stages []bson.Raw, size int64) (bson.D, error) {
	stages, out, err := k.splitOutput(stages)
	if err != nil {
		return nil, err
	}
	p, err := k.compilePipeline(stages)
	if err != nil {
		return nil, err
	}
	if k.args.boolean("explain", false) {
		return k.explainPipeline(db, name, p, "queryPlanner")
	}
	if db == nil {
		return k.firstReply(k.namespace(name), &listed{}, -1, true)
	}
	if err := k.checkHint(db, name, k.args.value("hint")); err != nil {
		return nil, err
	}
	read, extra, err := k.snapshotOf(db, name)
	if err != nil {
		return nil, err
	}
	if out != nil {
		if err := out.write(k, db, read, p); err != nil {
			return nil, err
		}
		return k.firstReply(k.namespace(name), &listed{}, size, true)
	}
	src, err := k.aggregated(read, p)
	if err != nil {
		return nil, err
	}
	reply, err := k.firstReply(k.namespace(name), src, size, false)
	return withCursorFields(reply, extra), err
}

// parsePipeline reads what all pipelines have.
func (k *call) parsePipeline() (stages []bson.Raw, size int64, err error) {
	if v := k.args.value("pipeline"); v.Type != bson.TypeArray {
		return nil, 0, fail(codeTypeMismatch, "'pipeline' option must be specified as an array")
	}
	for it := document.NewIter(k.args.value("pipeline").Value); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			return nil, 0, errStageType()
		}
	}
	if v := k.args.value("cursor"); v.Type != 0 && v.Type != bson.TypeEmbeddedDocument {
		return nil, 0, fail(codeTypeMismatch, "cursor field must be missing or an object")
	}
	stages, size = k.args.documents("pipeline"), k.cursorOptions()
	switch {
	case k.args.err != nil:
		return nil, 0, k.args.err
	case size < 0 && !isNothing(k.args.document("cursor").Lookup("batchSize")):
		return nil, 0, fail(codeNegative, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
	case k.args.value("cursor").Type == 0 && !k.args.boolean("explain", false):
		return nil, 0, fail(codeFailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	for _, stage := range stages {
		if elements, err := stage.Elements(); err != nil || len(elements) != 1 {
			return nil, 0, errStageFields()
		}
	}
	return stages, size, nil
}

// isRefusedStage says whether a stage is one that MongoDB has and this endpoint does not.
func isRefusedStage(name string) bool {
	switch name {
	case "$geoNear", "$redact", "$densify", "$planCacheStats", "$indexStats", "$search", "$searchMeta":
		return true
	}
	return false
}

// compilePipeline makes stages runnable. What belongs to the service they can't reach.
func (k *call) compilePipeline(stages []bson.Raw) (*pipeline.Pipeline, error) {
	list := make(bson.A, 0, len(stages))
	for _, stage := range stages {
		d, err := document.Unmarshal(stage)
		if err != nil {
			return nil, err
		}
		if d[0].Key == "$redact" && d[0].Value == "$$KEEP" { // it leaves everything as it is
			continue
		}
		if isRefusedStage(d[0].Key) {
			return nil, notImplemented("the stage " + d[0].Key)
		}
		list = append(list, d)
	}
	let, err := k.variables()
	if err != nil {
		return nil, err
	}
	p, err := compileStages(list, let)
	if err != nil {
		return nil, err
	}
	for _, name := range p.Collections() {
		if err := k.server.checkCollection(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// variables are those that a command binds for its expressions.
func (k *call) variables() (bson.D, error) {
	raw := k.args.document("let")
	if k.args.err != nil || raw == nil {
		return nil, k.args.err
	}
	return document.Unmarshal(raw)
}

// aggregated is the source of what a pipeline gives.
func (k *call) aggregated(read store.Reader, p *pipeline.Pipeline) (source, error) {
	return k.held(0, func(ctx context.Context, o store.AggregateOptions, fn func(bson.Raw) error) error {
		return read.Aggregate(ctx, p, o, fn)
	})
}

// aggregateDocuments runs stages over documents that the server made.
func (k *call) aggregateDocuments(ns string, docs []bson.D, stages []bson.Raw, size int64) (bson.D, error) {
	stages, out, err := k.splitOutput(stages)
	if err != nil {
		return nil, err
	}
	p, err := k.compilePipeline(stages)
	if err != nil {
		return nil, err
	}
	if len(p.Collections()) > 0 {
		return nil, notImplemented("a stage that reads a collection behind one that tells of the server")
	}
	made := make([]bson.Raw, 0, len(docs))
	for _, d := range docs {
		raw, err := bson.Marshal(d)
		if err != nil {
			return nil, err
		}
		made = append(made, raw)
	}
	src, err := buffered(k.ctx, func(_ context.Context, fn func(bson.Raw) error) error {
		return k.runOver(made, p, fn)
	})
	if err != nil {
		return nil, err
	}
	if out != nil {
		db, err := k.server.database(k.db)
		if err == nil {
			err = out.writeAll(k, db, src)
		}
		if err != nil {
			return nil, err
		}
		return k.firstReply(ns, &listed{}, size, true)
	}
	return k.firstReply(ns, src, size, false)
}

// aggregateDatabase runs a pipeline that begins with a stage which is of no collection.
func (k *call) aggregateDatabase(stages []bson.Raw, size int64) (bson.D, error) {
	if !isSystem(k.db) {
		if _, err := k.server.database(k.db); err != nil {
			return nil, err
		}
	}
	ns := k.namespace("$cmd.aggregate")
	if len(stages) == 0 {
		return nil, fail(codeInvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	}
	e, err := stages[0].IndexErr(0)
	if err != nil {
		return nil, errStageFields()
	}
	if e.Key() != "$documents" && k.args.boolean("apiStrict", false) {
		return nil, fail(code(323), "stage %s is not allowed with 'apiStrict: true' in API Version 1", clip(e.Key()))
	}
	switch e.Key() {
	case "$currentOp", "$listSessions":
		return k.aggregateDocuments(ns, nil, stages[1:], size)
	case "$listLocalSessions":
		return k.aggregateDocuments(ns, k.localSessions(), stages[1:], size)
	case "$documents":
		docs, err := k.documentsStage(stages[0])
		if err != nil {
			return nil, err
		}
		return k.aggregateDocuments(ns, docs, stages[1:], size)
	default:
		if stages, _, err = k.splitOutput(stages); err != nil {
			return nil, err
		}
		if _, err := k.compilePipeline(stages); err != nil {
			return nil, err
		}
		return nil, fail(codeInvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", e.Key())
	}
}

// localSessions is the one that asks.
func (k *call) localSessions() []bson.D {
	if k.session == nil {
		return nil
	}
	id := bson.Binary{Subtype: uuidKind, Data: []byte(k.session.id)}
	return []bson.D{{
		{Key: "_id", Value: bson.D{{Key: "id", Value: id}, {Key: "uid", Value: bson.Binary{Data: make([]byte, 32)}}}},
		{Key: "lastUse", Value: k.server.opts.Now()},
	}}
}

// documentsStage makes the documents that an expression gives.
func (k *call) documentsStage(stage bson.Raw) (docs []bson.D, err error) {
	let, err := k.variables()
	if err != nil {
		return nil, err
	}
	spec, err := document.Unmarshal(stage)
	if err != nil {
		return nil, err
	}
	p, err := compileStages(bson.A{bson.D{{Key: "$replaceRoot", Value: bson.D{{Key: "newRoot", Value: bson.D{{Key: "all", Value: spec[0].Value}}}}}}}, let)
	if err != nil {
		return nil, err
	}
	empty, err := bson.Marshal(bson.D{})
	if err != nil {
		return nil, err
	}
	err = k.runOver(documents{empty}, p, func(doc bson.Raw) error {
		all := doc.Lookup("all")
		if all.Type != bson.TypeArray {
			return fail(code(5858203), "an array is expected")
		}
		for it := document.NewIter(all.Value); it.Next(); {
			raw, ok := it.Value().DocumentOK()
			if !ok {
				return fail(code(40228), "$documents needs a list of objects")
			}
			d, err := document.Unmarshal(raw)
			if err != nil {
				return err
			}
			docs = append(docs, d)
		}
		return nil
	})
	return docs, err
}

// documents is a source of pipelines that has no collections.
type documents []bson.Raw

// Find gives the documents that a query wants.
func (d documents) Find(_ context.Context, _ string, q pipeline.Query, fn func(bson.Raw) error) error {
	var found []bson.Raw
	for _, doc := range d {
		if q.Filter.Match(doc) {
			found = append(found, doc)
		}
	}
	slices.SortStableFunc(found, q.Sort.Compare)
	found = found[min(q.Skip, int64(len(found))):]
	if q.Limit > 0 && q.Limit < int64(len(found)) {
		found = found[:q.Limit]
	}
	for _, doc := range found {
		if err := fn(doc); err != nil {
			return err
		}
	}
	return nil
}

// Indexed says no.
func (documents) Indexed(context.Context, string, string) bool { return false }

// stageOf gives what a stage says if it is the one named.
func stageOf(stage bson.Raw, name string) (bson.Raw, bool) {
	e, err := stage.IndexErr(0)
	if err != nil || e.Key() != name {
		return nil, false
	}
	d, ok := e.Value().DocumentOK()
	return d, ok
}
