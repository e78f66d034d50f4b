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
	op, err := k.findAndModifyOp()
	if err != nil {
		return nil, err
	}
	if err := k.checkHint(db, name, k.args.value("hint")); err != nil {
		return nil, err
	}
	results, err := k.writer(db, name).Write(k.ctx, []store.Op{op}, false)
	if err != nil {
		return nil, err
	}
	r := results[0]
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

func (k *call) findAndModifyOp() (op store.Op, err error) {
	a := &k.args
	query, sort, fields := a.document("query"), a.document("sort"), a.document("fields")
	remove, after, upsert := a.boolean("remove", false), a.boolean("new", false), a.boolean("upsert", false)
	change, filters := a.value("update"), a.documents("arrayFilters")
	switch {
	case a.err != nil:
		return op, a.err
	case remove == (change.Type != 0):
		return op, fail(codeFailedToParse, "Either an update or remove=true must be specified, and not both")
	case remove && upsert, remove && after:
		return op, fail(codeFailedToParse, "Cannot specify both upsert=true or new=true and remove=true ")
	case remove:
		op.Kind = store.Delete
		op.Filter, err = filterOf(query)
	default:
		op, err = changeOp(query, change, filters)
		op.Upsert = upsert
	}
	if err != nil {
		return op, err
	}
	op.Return = store.ReturnBefore
	if after {
		op.Return = store.ReturnAfter
	}
	if op.Sort, err = compileSort(sort); err != nil {
		return op, err
	}
	op.Project, err = compileProjection(fields)
	return op, err
}
