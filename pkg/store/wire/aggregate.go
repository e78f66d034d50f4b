package wire

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// runAggregate runs the pipelines that drivers make of their own methods: those that count, tell the size of a collection,
// or watch.
func runAggregate(k *call) (bson.D, error) {
	stages, size, err := k.parsePipeline()
	if err != nil {
		return nil, err
	}
	name, ok := k.msg.body.Lookup(k.name).StringValueOK()
	if n, number := whole(k.msg.body.Lookup(k.name)); !ok && (!number || n != 1) {
		return nil, fail(codeInvalidNamespace, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
	}
	if len(stages) > 0 {
		if options, watches := stageOf(stages[0], "$changeStream"); watches {
			return k.openStream(name, options, stages[1:], size)
		}
		if _, asked := stageOf(stages[0], "$currentOp"); asked && !ok { // which a shell has for what was a command
			return k.firstReply(k.namespace("$cmd.aggregate"), &listed{}, size, false)
		}
	}
	if !ok {
		return nil, notImplemented("a pipeline of a database")
	}
	db, name, err := k.readable()
	if err != nil {
		return nil, err
	}
	if db == nil {
		return k.firstReply(k.namespace(name), &listed{}, -1, true)
	}
	if len(stages) == 1 {
		if options, asked := stageOf(stages[0], "$collStats"); asked {
			return k.collStatsStage(db, name, options, size)
		}
	}
	return k.countBy(db, name, stages, size)
}

// parsePipeline reads what all pipelines have.
func (k *call) parsePipeline() (stages []bson.Raw, size int64, err error) {
	stages, size = k.args.documents("pipeline"), k.cursorOptions()
	switch {
	case k.args.err != nil:
		return nil, 0, k.args.err
	case k.args.value("pipeline").Type != bson.TypeArray:
		return nil, 0, fail(codeTypeMismatch, "BSON field 'aggregate.pipeline' is the wrong type, expected array")
	case k.args.value("cursor").Type == 0 && !k.args.boolean("explain", false):
		return nil, 0, fail(codeFailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	for _, stage := range stages {
		if elements, err := stage.Elements(); err != nil || len(elements) != 1 {
			return nil, 0, fail(codeStageFields, "A pipeline stage specification object must contain exactly one field.")
		}
	}
	return stages, size, nil
}

// countBy runs a pipeline that counts.
func (k *call) countBy(db store.Database, name string, stages []bson.Raw, size int64) (bson.D, error) {
	count, ok, err := countPipeline(stages)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, notImplemented("this pipeline")
	}
	read, extra, err := k.snapshotOf(db, name)
	if err != nil {
		return nil, err
	}
	n, err := countBetween(k.ctx, read, count.filter, count.skip, count.limit)
	if err != nil {
		return nil, err
	}
	var out []bson.D
	if n > 0 {
		out = []bson.D{{{Key: "_id", Value: count.id}, {Key: "n", Value: number(n)}}}
	}
	reply, err := k.listReply(k.namespace(name), out, size)
	return withCursorFields(reply, extra), err
}

// stageOf gives what a stage says if it is the one named.
func stageOf(stage bson.Raw, name string) (bson.Raw, bool) {
	e, err := stage.IndexErr(0)
	if err != nil || e.Key() != name {
		return nil, false
	}
	d, ok := e.Value().DocumentOK()
	return d, ok
}

// counting is what countDocuments of drivers asks for.
type counting struct {
	filter      *mql.Filter
	skip, limit int64
	id          bson.RawValue
}

// countPipeline knows [{$match}, {$skip}, {$limit}, {$group: {_id: constant, n: {$sum: 1}}}], of which all but the last may
// be missing.
func countPipeline(stages []bson.Raw) (c counting, ok bool, err error) {
	for i, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil {
			return c, false, fail(codeUnknownStage, "A pipeline stage specification object must contain exactly one field.")
		}
		n, isNumber := whole(e.Value())
		switch d, _ := e.Value().DocumentOK(); {
		case e.Key() == "$match" && i == 0:
			if c.filter, err = compileFilter(d); err != nil {
				return c, false, err
			}
		case e.Key() == "$skip" && isNumber && n >= 0 && c.skip == 0 && c.limit == 0:
			c.skip = n
		case e.Key() == "$limit" && isNumber && n > 0 && c.limit == 0:
			c.limit = n
		case e.Key() == "$group" && i == len(stages)-1:
			c.id, _ = document.Field(d, "_id")
			sum, isSum := d.Lookup("n", "$sum").AsInt64OK()
			elements, _ := d.Elements()
			constant := c.id.Type == bson.TypeInt32 || c.id.Type == bson.TypeInt64 || c.id.Type == bson.TypeDouble || c.id.Type == bson.TypeNull
			return c, isSum && sum == 1 && constant && len(elements) == 2, nil
		default:
			return c, false, nil
		}
	}
	return c, false, nil
}

func (k *call) collStatsStage(db store.Database, name string, options bson.Raw, size int64) (bson.D, error) {
	if err := k.mustExist(db, name); err != nil {
		return nil, err
	}
	stats, err := k.storageStats(db, name, 1)
	if err != nil {
		return nil, err
	}
	d := bson.D{
		{Key: "ns", Value: k.namespace(name)}, {Key: "host", Value: k.conn.nc.LocalAddr().String()}, {Key: "localTime", Value: k.server.opts.Now()},
	}
	if _, asked := document.Field(options, "storageStats"); asked {
		d = append(d, bson.E{Key: "storageStats", Value: stats})
	}
	if _, asked := document.Field(options, "count"); asked {
		d = append(d, stats[1])
	}
	return k.listReply(k.namespace(name), []bson.D{d}, size)
}
