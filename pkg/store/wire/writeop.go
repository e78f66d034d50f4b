package wire

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

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
