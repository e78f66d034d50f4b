package wire

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

func runFindAndModify(k *call) (bson.D, error) {
	if o, known := k.write.known(0); known {
		if o.reply == nil {
			return nil, fail(code(217), "the result of this write was too large to be kept for when it is sent again") // IncompleteTransactionHistory
		}
		var reply bson.D
		err := bson.Unmarshal(o.reply, &reply)
		return reply, err
	}
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	op, c, err := k.findAndModifyOp()
	if err != nil {
		return nil, err
	}
	if err := k.checkHint(db, name, k.args.value("hint")); err != nil {
		return nil, err
	}
	var reply bson.D
	err = k.statement(func() (err error) {
		reply, err = k.findAndModify(db, name, op, c)
		return err
	})
	return reply, err
}

// findAndModify does the write and keeps its reply, for when it is sent again.
func (k *call) findAndModify(db store.Database, name string, op store.Op, c *computed) (bson.D, error) {
	var r store.Result
	var err error
	if c != nil {
		r, err = c.run(db, name)
	} else {
		r, err = writeOne(k.ctx, k.writer(db, name), op)
	}
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, (&written{k: k, ns: k.namespace(name)}).explained(r.Err, k.wanted(op))
	}
	reply := modifiedReply(op, r)
	if k.write != nil {
		raw, err := bson.Marshal(reply)
		if err != nil {
			return nil, err
		}
		if len(raw) > maxKept {
			raw = nil
		}
		k.write.keep(0, outcome{reply: raw})
	}
	return reply, nil
}

func modifiedReply(op store.Op, r store.Result) bson.D {
	last := bson.D{{Key: "n", Value: int32(min(r.Matched, 1))}} //nolint:gosec // 0 or 1
	if r.Upserted.Type != 0 {
		last[0].Value = int32(1)
	}
	if op.Kind != store.Delete {
		last = append(last, bson.E{Key: "updatedExisting", Value: r.Matched > 0})
	}
	if r.Upserted.Type != 0 {
		last = append(last, bson.E{Key: "upserted", Value: r.Upserted})
	}
	var value any
	if r.Doc != nil {
		value = r.Doc
	}
	return bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: value}}
}

// findAndModifyOp reads the command. Where it is a computed write, that is what counts.
func (k *call) findAndModifyOp() (op store.Op, c *computed, err error) {
	a := &k.args
	query, sort, fields := a.document("query"), a.document("sort"), a.document("fields")
	remove, after, upsert := a.boolean("remove", false), a.boolean("new", false), a.boolean("upsert", false)
	change, filters := a.value("update"), a.documents("arrayFilters")
	switch {
	case a.err != nil:
		return op, nil, a.err
	case remove == (change.Type != 0):
		return op, nil, fail(codeFailedToParse, "Either an update or remove=true must be specified, and not both")
	case remove && upsert, remove && after:
		return op, nil, fail(codeFailedToParse, "Cannot specify both upsert=true or new=true and remove=true ")
	case remove && usesExpr(query):
		c, err = k.newComputed(query, nil)
		op.Kind = store.Delete
	case remove:
		op.Kind = store.Delete
		op.Filter, err = filterOf(query)
	default:
		op, c, err = k.changeOp(query, change, filters, nil)
		op.Upsert = upsert
	}
	if err != nil {
		return op, nil, err
	}
	op.Return = store.ReturnBefore
	if after {
		op.Return = store.ReturnAfter
	}
	if op.Sort, err = compileSort(sort); err != nil {
		return op, nil, err
	}
	if op.Project, err = compileProjection(fields); err != nil || c == nil {
		return op, nil, err
	}
	c.sort, c.upsert, c.op = op.Sort, op.Upsert, op
	c.op.Sort, c.op.Upsert = nil, false
	return op, c, nil
}
