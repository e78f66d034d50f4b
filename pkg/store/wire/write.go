package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"

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

// start reads what the writes have in common.
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

// insertion is a document that is to be inserted, and its place in the command.
type insertion struct {
	index int
	op    store.Op
}

func runInsert(k *call) (bson.D, error) {
	to, w, err := k.startWrite()
	if err != nil {
		return nil, err
	}
	docs, err := k.statements("documents")
	if err != nil {
		return nil, err
	}
	if err := checkText(docs...); err != nil {
		return nil, err
	}
	var chunk []insertion
	size := 0
	for i, doc := range docs {
		if o, known := k.write.known(i); known {
			w.done(i, o)
			continue
		}
		chunk = append(chunk, insertion{i, store.Op{Kind: store.Insert, Doc: withID(doc)}})
		size += len(doc)
		if len(chunk) < chunkOps && size < chunkBytes && i < len(docs)-1 {
			continue
		}
		goOn, err := w.insert(to, chunk)
		if err != nil {
			return nil, err
		}
		if !goOn {
			return w.reply(false), nil
		}
		chunk, size = chunk[:0], 0
	}
	if _, err := w.insert(to, chunk); err != nil {
		return nil, err
	}
	return w.reply(false), nil
}

// insert writes a chunk. In order, nothing behind a document that fails may be written: all of them or none are, and if
// none, those before the first that failed.
func (w *written) insert(to store.Writer, chunk []insertion) (goOn bool, err error) {
	if !w.ordered || w.k.tx != nil {
		return w.insertEach(to, chunk)
	}
	n := len(chunk)
	var failed error
	for n > 0 {
		results, err := to.Write(w.k.ctx, opsOf(chunk[:n]), true)
		if err != nil {
			return false, err
		}
		bad := slices.IndexFunc(results, func(r store.Result) bool { return r.Err != nil && !isAborted(r.Err) })
		if bad < 0 {
			break
		}
		n, failed = bad, results[bad].Err
	}
	for _, in := range chunk[:n] {
		w.inserted(in)
	}
	if failed == nil {
		return true, nil
	}
	return w.failed(chunk[n].index, w.explained(failed, chunk[n].op.Doc))
}

// insertEach writes each document by itself: in a transaction one after the other, since the first that fails ends it.
func (w *written) insertEach(to store.Writer, chunk []insertion) (goOn bool, err error) {
	step := max(len(chunk), 1)
	if w.k.tx != nil {
		step = 1
	}
	for part := range slices.Chunk(chunk, step) {
		results, err := to.Write(w.k.ctx, opsOf(part), false)
		if err != nil {
			return false, err
		}
		for i, r := range results {
			if r.Err == nil {
				w.inserted(part[i])
				continue
			}
			if goOn, err := w.failed(part[i].index, w.explained(r.Err, part[i].op.Doc)); err != nil || !goOn {
				return false, err
			}
		}
	}
	return true, nil
}

func (w *written) inserted(in insertion) {
	w.n++
	w.k.write.keep(in.index, outcome{matched: 1})
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

func opsOf(chunk []insertion) []store.Op {
	ops := make([]store.Op, len(chunk))
	for i := range chunk {
		ops[i] = chunk[i].op
	}
	return ops
}

// withID gives a document as it is stored: with an _id, in front.
func withID(doc bson.Raw) bson.Raw {
	if _, has := document.Field(doc, "_id"); has {
		return document.IDFirst(doc)
	}
	id := bson.NewObjectID()
	return document.WithID(doc, bson.RawValue{Type: bson.TypeObjectID, Value: id[:]})
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
			var err error
			if o, err = w.one(to, statement, parse); err != nil {
				if goOn, fatal := w.failed(i, err); fatal != nil || !goOn {
					return fatal
				}
				continue
			}
			w.k.write.keep(i, o)
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
	results, err := to.Write(w.k.ctx, []store.Op{op}, false)
	if err != nil {
		return outcome{}, err
	}
	r := results[0]
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

// updateOp reads {q, u, multi, upsert, arrayFilters, hint, c}.
func (k *call) updateOp(statement bson.Raw) (store.Op, *computed, error) {
	a := args{body: statement}
	q, multi, upsert := a.document("q"), a.boolean("multi", false), a.boolean("upsert", false)
	filters := a.documents("arrayFilters")
	if a.err != nil {
		return store.Op{}, nil, a.err
	}
	if err := k.checkHintOf(a.value("hint")); err != nil {
		return store.Op{}, nil, err
	}
	op, c, err := k.changeOp(q, a.value("u"), filters, a.document("c"))
	if err != nil {
		return op, nil, err
	}
	if multi && op.Kind == store.Replace {
		return op, nil, fail(codeFailedToParse, "multi update is not supported for replacement-style update")
	}
	if c != nil {
		c.many, c.upsert = multi, upsert
		return op, c, nil
	}
	op.Many, op.Upsert = multi, upsert
	if multi && upsert {
		err = k.upsertMany(&op)
	}
	return op, nil, err
}

// upsertMany lets an upsert of many be one of the port's: those have either. Where something matches, it is an update of all that does; where
// nothing does, an upsert of one.
func (k *call) upsertMany(op *store.Op) error {
	db, name, err := k.collection()
	if err != nil {
		return err
	}
	n, err := k.reader(db, name).Count(k.ctx, op.Filter, 1)
	op.Many, op.Upsert = n > 0, n == 0
	return err
}

// changeOp makes the write of an update or a findAndModify that changes. Where it is a computed one, that is what counts.
func (k *call) changeOp(query bson.Raw, u bson.RawValue, arrayFilters []bson.Raw, constants bson.Raw) (op store.Op, c *computed, err error) {
	if u.Type == bson.TypeArray && len(arrayFilters) > 0 {
		return op, nil, fail(codeFailedToParse, "arrayFilters may not be specified for pipeline-style updates")
	}
	if u.Type != bson.TypeArray && constants != nil {
		return op, nil, fail(codeFailedToParse, "Constant values may only be specified for pipeline updates")
	}
	if u.Type == bson.TypeArray || usesExpr(query) {
		if c, err = k.newComputed(query, constants); err != nil {
			return op, nil, err
		}
	} else if op.Filter, err = filterOf(query); err != nil {
		return op, nil, err
	}
	if u.Type == bson.TypeArray {
		c.change, err = changePipeline(u, c.let)
		return op, c, err
	}
	op, err = changeByDocument(op, u, arrayFilters)
	if c != nil {
		c.op = op
	}
	return op, c, err
}

// newComputed begins a write that needs expressions.
func (k *call) newComputed(query, constants bson.Raw) (*computed, error) {
	let, err := k.variables()
	if err != nil {
		return nil, err
	}
	if constants != nil {
		more, err := document.Unmarshal(constants)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			let = append(let, bson.E{Key: e.Key, Value: bson.D{{Key: "$literal", Value: e.Value}}})
		}
	}
	if query == nil {
		query = bson.Raw{5, 0, 0, 0, 0}
	}
	c := &computed{k: k, filter: query, let: let}
	_, err = c.finding(nil) // tells what is wrong with the filter
	return c, err
}

func changeByDocument(op store.Op, u bson.RawValue, arrayFilters []bson.Raw) (_ store.Op, err error) {
	change, ok := u.DocumentOK()
	if !ok {
		return op, fail(codeFailedToParse, "Update argument must be either an object or an array")
	}
	if it := document.NewIter(change); !it.Next() || !strings.HasPrefix(string(it.Key()), "$") {
		if len(arrayFilters) > 0 {
			return op, fail(codeFailedToParse, "arrayFilters may not be specified for replacement-style updates")
		}
		op.Kind, op.Doc = store.Replace, document.IDFirst(change)
		return op, checkText(change)
	}
	op.Kind = store.Update
	op.Update, err = compileUpdate(change, arrayFilters)
	return op, err
}

func compileUpdate(change bson.Raw, arrayFilters []bson.Raw) (*mql.Update, error) {
	d, err := document.Unmarshal(change)
	if err != nil {
		return nil, err
	}
	filters := make([]bson.D, len(arrayFilters))
	for i, raw := range arrayFilters {
		if filters[i], err = document.Unmarshal(raw); err != nil {
			return nil, err
		}
	}
	return mql.CompileUpdate(d, filters)
}

// filterOf is compileFilter for writes, whose filter says how their document is chosen: it is never nil.
func filterOf(query bson.Raw) (*mql.Filter, error) {
	d := bson.D{}
	if query != nil {
		var err error
		if d, err = document.Unmarshal(query); err != nil {
			return nil, err
		}
	}
	return mql.Compile(d)
}

// deleteOp reads {q, limit, hint}.
func (k *call) deleteOp(statement bson.Raw) (store.Op, *computed, error) {
	a := args{body: statement}
	q, limit := a.document("q"), a.integer("limit", 0)
	switch {
	case a.err != nil:
		return store.Op{}, nil, a.err
	case limit != 0 && limit != 1:
		return store.Op{}, nil, fail(codeFailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit)
	}
	if err := k.checkHintOf(a.value("hint")); err != nil {
		return store.Op{}, nil, err
	}
	if usesExpr(q) {
		c, err := k.newComputed(q, nil)
		if err != nil {
			return store.Op{}, nil, err
		}
		c.op.Kind, c.many = store.Delete, limit == 0
		return store.Op{}, c, nil
	}
	filter, err := filterOf(q)
	return store.Op{Kind: store.Delete, Filter: filter, Many: limit == 0}, nil, err
}

func (k *call) checkHintOf(hint bson.RawValue) error {
	if isNothing(hint) {
		return nil
	}
	db, name, err := k.collection()
	if err != nil {
		return err
	}
	return k.checkHint(db, name, hint)
}

// shaped refuses statements of which one lacks a field, or has one that there is not: then none is done.
func shaped(where string, list []bson.Raw, needs, takes string) error {
	for _, statement := range list {
		if err := onlyFields(where, statement, needs+" "+takes, "collation"); err != nil {
			return err
		}
		for name := range strings.FieldsSeq(needs) {
			if _, has := document.Field(statement, name); !has {
				return fail(codeMissingField, "BSON field '%s.%s' is missing but a required field", where, name)
			}
		}
		a := args{body: statement}
		if a.document("q"); a.err != nil {
			return a.err
		}
		for _, name := range []string{"multi", "upsert"} {
			if v := a.value(name); v.Type != 0 && v.Type != bson.TypeNull && v.Type != bson.TypeBoolean {
				return fail(codeTypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type 'bool'", where, name, v.Type)
			}
		}
	}
	return nil
}

// onlyFields refuses what a statement does not have.
func onlyFields(where string, statement bson.Raw, takes, refuses string) error {
	for it := document.NewIter(statement); it.Next(); {
		name := string(it.Key())
		switch {
		case slices.Contains(strings.Fields(takes), name):
		case slices.Contains(strings.Fields(refuses), name):
			if !isNothing(it.Value()) {
				return notImplemented("'" + where + "." + name + "'")
			}
		default:
			return fail(codeUnknownField, "BSON field '%s.%s' is an unknown field.", where, clip(name))
		}
	}
	return nil
}
