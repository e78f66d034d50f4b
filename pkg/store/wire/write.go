package wire

import (
	"bytes"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxStatements = 100_000 // of one command, as the server says in its hello
	chunkOps      = 500     // inserts that are written together
	chunkBytes    = 4 << 20
)

// written gathers what the statements of a write have done.
type written struct {
	k        *call
	ns       string
	ordered  bool
	n        int64
	modified int64
	upserted bson.A
	failures bson.A
}

// startWrite reads what the writes have in common.
func (k *call) startWrite() (store.Writer, *written, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, nil, err
	}
	w := &written{k: k, ns: k.namespace(name), ordered: k.args.boolean("ordered", true)}
	if k.args.err != nil {
		return nil, nil, k.args.err
	}
	return k.writer(db, name), w, nil
}

// statements reads the list of what is to be done.
func (k *call) statements(name string) ([]bson.Raw, error) {
	list := k.args.documents(name)
	if k.args.err != nil {
		return nil, k.args.err
	}
	if len(list) == 0 || len(list) > maxStatements {
		return nil, fail(codeInvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", maxStatements, len(list))
	}
	return list, nil
}

// done counts what a statement did.
func (w *written) done(i int, o outcome) {
	w.n += o.matched
	w.modified += o.modified
	if o.upserted.Type != 0 {
		w.n++
		w.upserted = append(w.upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: o.upserted}}) //nolint:gosec // at most maxStatements
	}
}

// failed notes that a statement has failed, and says whether those behind it are to be done all the same. A failure that
// is not the statement's own is the command's.
func (w *written) failed(i int, err error) (goOn bool, fatal error) {
	f := failureOf(err)
	switch {
	case w.k.tx != nil && isTransient(f.code):
		return false, f
	case f.code == codeInterrupted, f.code == codeShutdown, f.code == codeMaxTimeExpired, f.code == codeInternal:
		return false, f
	}
	w.failures = append(w.failures, append(bson.D{{Key: "index", Value: int32(i)}}, f.fields()...)) //nolint:gosec // at most maxStatements
	if w.k.tx != nil {
		w.k.tx.cancel() // any error ends a transaction
	}
	return !w.ordered && w.k.tx == nil, nil
}

func (w *written) reply(update bool) bson.D {
	d := bson.D{{Key: "n", Value: number(w.n)}}
	if len(w.upserted) > 0 {
		d = append(d, bson.E{Key: "upserted", Value: w.upserted})
	}
	if len(w.failures) > 0 {
		d = append(d, bson.E{Key: "writeErrors", Value: w.failures})
	}
	if update {
		d = append(d, bson.E{Key: "nModified", Value: number(w.modified)})
	}
	return d
}

// explained says of a key that is taken which one it is.
func (w *written) explained(err error, doc bson.Raw) error {
	switch { // what is told apart by the document
	case errors.Is(err, store.ErrBadID) && document.OperatorName(doc.Lookup("_id")) != nil,
		errors.Is(err, store.ErrBadDocument) && bytes.Contains(doc, []byte("$")):
		return fail(codeDollarPrefixed, "%s", errs.From(err).Message)
	}
	if dup := duplicateOf(err); dup != nil && doc != nil {
		return duplicate(w.ns, dup, doc)
	} else if dup != nil {
		return duplicate(w.ns, dup)
	}
	return err
}

// wanted gives the document that an op would have made, as far as that can be told afterwards; nil if it can't.
func (k *call) wanted(op store.Op) bson.Raw {
	db, name, err := k.collection()
	if op.Update == nil || err != nil || k.tx != nil || op.Many {
		return op.Doc
	}
	base, err := mql.UpsertBase(op.Filter)
	if err != nil {
		return nil
	}
	err = db.Collection(name).Find(k.ctx, store.Query{Filter: op.Filter, Sort: op.Sort, Limit: 1}, func(doc bson.Raw) error {
		base = slices.Clone(doc)
		return nil
	})
	if err != nil {
		return nil
	}
	doc, err := op.Update.Apply(base, mql.Applying{Filter: op.Filter, Now: k.server.opts.Now()})
	if err != nil {
		return nil
	}
	return doc
}

func runUpdate(k *call) (bson.D, error) {
	to, w, err := k.startWrite()
	if err != nil {
		return nil, err
	}
	list, err := k.statements("updates")
	if err != nil {
		return nil, err
	}
	if err := shaped("update.updates", list, "q u", "multi upsert arrayFilters hint c sampleId upsertSupplied"); err != nil {
		return nil, err
	}
	if err := w.each(to, list, k.updateOp); err != nil {
		return nil, err
	}
	return w.reply(true), nil
}

func runDelete(k *call) (bson.D, error) {
	to, w, err := k.startWrite()
	if err != nil {
		return nil, err
	}
	list, err := k.statements("deletes")
	if err != nil {
		return nil, err
	}
	if err := shaped("delete.deletes", list, "q limit", "hint sampleId"); err != nil {
		return nil, err
	}
	if err := w.each(to, list, k.deleteOp); err != nil {
		return nil, err
	}
	return w.reply(false), nil
}

// each does the statements one after the other.
func (w *written) each(to store.Writer, list []bson.Raw, parse func(bson.Raw) (store.Op, *computed, error)) error {
	for i, statement := range list {
		o, known := w.k.write.known(i)
		if !known {
			err := w.k.statement(func() (err error) {
				if o, err = w.one(to, statement, parse); err == nil {
					w.k.write.keep(i, o)
				}
				return err
			})
			if err != nil {
				if goOn, fatal := w.failed(i, err); fatal != nil || !goOn {
					return fatal
				}
				continue
			}
		}
		w.done(i, o)
	}
	return nil
}

func (w *written) one(to store.Writer, statement bson.Raw, parse func(bson.Raw) (store.Op, *computed, error)) (outcome, error) {
	op, computed, err := parse(statement)
	if err != nil {
		return outcome{}, err
	}
	if computed != nil {
		return w.computed(computed)
	}
	r, err := writeOne(w.k.ctx, to, op)
	if err != nil {
		return outcome{}, err
	}
	if r.Err != nil {
		return outcome{}, w.explained(r.Err, w.k.wanted(op))
	}
	return outcome{matched: r.Matched, modified: r.Modified, upserted: r.Upserted}, nil
}

func (w *written) computed(c *computed) (outcome, error) {
	db, name, err := w.k.collection()
	if err != nil {
		return outcome{}, err
	}
	r, err := c.run(db, name)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return outcome{}, w.explained(err, nil)
	}
	return outcome{matched: r.Matched, modified: r.Modified, upserted: r.Upserted}, nil
}
