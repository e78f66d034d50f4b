package embedded

import (
	"bytes"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// pending is an op that is being carried out.
type pending struct {
	op     *store.Op
	result *store.Result
	now    time.Time
	doc    bson.Raw // Insert and Replace: what is to be stored, but for the _id that a Replace with Filter may lack
	id     []byte   // key of the _id; nil with Filter
	bad    error    // why the op can't be carried out at all

	// edit is worked out before the commit mutex is taken, for the document as it is then, and err is why it can't be.
	edit edit
	err  error
	done bool // they are worked out
	seen seen // that document

	// What the filter says of a document for which there was no time under the commit mutex, see findOut.
	asked   bson.Raw
	known   bson.Raw
	matched bool
}

// edit is what an op makes of one document.
type edit struct {
	id      []byte       // key of the _id
	old     bson.Raw     // nil: there is none
	before  int          // length of old
	new     bson.Raw     // nil: it goes
	same    bool         // nothing changes
	update  *mql.Update  // what made new of old, if anything did
	patched bool         // operators made new of old
	changes bson.Raw     // what they changed, see describe; nil: it is not worked out, or can't be told
	result  store.Result // of the op, if the edit is made

	indexes *indexSet // those that moves are for; nil: they are not worked out
	moves   []move
}

// move is what changes in one index.
type move struct {
	at          int // place in indexSet.all
	index       *index
	add, remove [][]byte // sorted
	multikey    uint32
}

// pend checks ops and does what can be done without looking at documents.
func (s *Store) pend(ops []store.Op, results []store.Result) []pending {
	work := make([]pending, len(ops))
	now := s.opts.Now()
	for i := range ops {
		work[i] = pending{op: &ops[i], result: &results[i], now: now}
		work[i].bad = work[i].prepare(s)
	}
	return work
}

func (p *pending) prepare(s *Store) error {
	if err := p.op.Check(); err != nil {
		return err
	}
	if p.op.Kind == store.Insert || p.op.Kind == store.Replace {
		p.doc = s.stored(p.op.Doc)
	}
	if p.op.Filter == nil {
		p.id = idKey(p.op.TargetID())
	}
	return nil
}

// work works out the edit for old, the document that the op has chosen (nil: there is none).
func (p *pending) work(old bson.Raw) {
	p.edit = edit{id: p.id, old: old, before: len(old), moves: p.edit.moves[:0]}
	p.err = p.apply(&p.edit)
	p.done = true
}

func (p *pending) apply(e *edit) error {
	var err error
	switch {
	case p.op.Kind == store.Insert && e.old != nil:
		return &store.DuplicateKeyError{Index: "_id", Paths: []string{"_id"}}
	case p.op.Kind == store.Insert:
		e.new = p.doc
	case e.old == nil && !p.op.Upsert:
		return errs.ErrNotFound
	case e.old == nil:
		err = p.upsert(e)
	case !p.op.If.Match(e.old):
		return store.ErrStale
	default:
		err = p.change(e)
	}
	if err != nil {
		return err
	}
	if len(e.new) > document.MaxSize {
		return store.ErrDocumentSize
	}
	return p.answer(e)
}

// change edits a document that exists.
func (p *pending) change(e *edit) (err error) {
	switch p.op.Kind {
	case store.Replace:
		e.new, err = p.replacement(e.old)
	case store.Update:
		e.update, e.patched = p.op.Update, true
		e.new, err = p.op.Update.Apply(e.old, mql.Applying{Filter: p.chosenBy(), Now: p.now})
	case store.Delete, store.Insert: // nothing is left
	}
	if err != nil {
		return err
	}
	e.same = bytes.Equal(e.old, e.new)
	e.result.Matched = 1
	if !e.same {
		e.result.Modified = 1
		if e.patched { // here, since the commit mutex is not held
			e.changes = describe(e.old, e.new)
		}
	}
	if e.id == nil {
		id, _ := document.Field(e.old, "_id")
		e.id = idKey(id)
	}
	return nil
}

// chosenBy is the filter that chose the document, with which $ means an element.
func (p *pending) chosenBy() *mql.Filter {
	if p.op.Filter != nil {
		return p.op.Filter
	}
	return p.op.If
}

func (p *pending) replacement(old bson.Raw) (bson.Raw, error) {
	if p.op.Filter == nil {
		return p.doc, nil
	}
	oldID, _ := document.Field(old, "_id")
	id, given := document.Field(p.doc, "_id")
	if !given {
		return document.WithID(p.doc, oldID), nil
	}
	if document.Compare(id, oldID) != 0 {
		return nil, store.ErrOtherID
	}
	return p.doc, nil
}

// upsert makes the document to insert where there was none.
func (p *pending) upsert(e *edit) (err error) {
	if p.op.Kind == store.Replace {
		if e.new, err = p.replacementOfNothing(); err != nil {
			return err
		}
	} else if e.new, err = p.updated(); err != nil {
		return err
	}
	id, _ := document.Field(e.new, "_id")
	if err := store.CheckID(id); err != nil {
		return err
	}
	e.id = idKey(id)
	e.result.Upserted = bson.RawValue{Type: id.Type, Value: bytes.Clone(id.Value)}
	return nil
}

// replacementOfNothing gives the document of a Replace with the _id that it or its filter has, or a new one.
func (p *pending) replacementOfNothing() (bson.Raw, error) {
	id, given := document.Field(p.doc, "_id")
	var asked bson.RawValue
	if p.op.Filter != nil {
		var err error
		if asked, err = mql.UpsertID(p.op.Filter); err != nil {
			return nil, err
		}
	}
	switch {
	case given && asked.Type != 0 && document.Compare(id, asked) != 0:
		return nil, store.ErrOtherID
	case given:
		return p.doc, nil
	case asked.Type != 0:
		return document.WithID(p.doc, asked), nil
	default:
		return document.WithID(p.doc, newID()), nil
	}
}

// updated gives what an update makes of the equalities of its filter.
func (p *pending) updated() (bson.Raw, error) {
	var base bson.Raw
	if p.op.Filter == nil {
		base = document.WithID(emptyDoc, p.op.ID)
	} else {
		var err error
		if base, err = mql.UpsertBase(p.op.Filter); err != nil {
			return nil, err
		}
	}
	doc, err := p.op.Update.Apply(base, mql.Applying{Filter: p.op.Filter, Now: p.now, Insert: true})
	if err != nil {
		return nil, err
	}
	if _, found := document.Field(doc, "_id"); !found {
		return document.WithID(doc, newID()), nil
	}
	return document.IDFirst(doc), nil
}

// answer fills in Result.Doc.
func (p *pending) answer(e *edit) (err error) {
	var doc bson.Raw
	switch p.op.Return {
	case store.ReturnBefore:
		doc = e.old
	case store.ReturnAfter:
		doc = e.new
	case store.ReturnNone:
	}
	switch {
	case doc == nil:
	case p.op.Project != nil:
		e.result.Doc, err = p.op.Project.Apply(nil, doc, p.chosenBy())
	default:
		e.result.Doc = bytes.Clone(doc)
	}
	return err
}

// plan works out what the edit changes in the indexes of set.
func (e *edit) plan(set *indexSet) error {
	e.indexes, e.moves = nil, e.moves[:0]
	size := 0
	for i, x := range set.all {
		if e.update != nil && !x.touchedBy(e.update) {
			continue
		}
		var before, after entries
		var err error
		if e.old != nil {
			if before, err = x.entriesOf(e.old); err != nil {
				return internal(err, "index a stored document")
			}
		}
		if e.new != nil {
			if after, err = x.entriesOf(e.new); err != nil {
				return err
			}
			if size += after.size; size > maxEntries {
				return errEntries
			}
		}
		m := move{at: i, index: x, multikey: after.multikey}
		m.remove, m.add = difference(before.keys, after.keys)
		if len(m.remove) > 0 || len(m.add) > 0 || m.multikey != 0 {
			e.moves = append(e.moves, m)
		}
	}
	e.indexes = set
	return nil
}

// touchedBy says whether u may change the entries of a document.
func (x *index) touchedBy(u *mql.Update) bool {
	if x.def.Partial != nil {
		return true
	}
	for _, k := range x.def.Keys {
		if u.Touches(k.Path) {
			return true
		}
	}
	return false
}

// difference gives what is only in a and what is only in b; both are sorted, and the results may share their memory.
func difference(a, b [][]byte) (onlyA, onlyB [][]byte) {
	switch {
	case len(a) == 0 || len(b) == 0:
		return a, b
	case len(a) == 1 && len(b) == 1:
		if bytes.Equal(a[0], b[0]) {
			return nil, nil
		}
		return a, b
	}
	for len(a) > 0 && len(b) > 0 {
		switch c := bytes.Compare(a[0], b[0]); {
		case c < 0:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case c > 0:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(onlyA, a...), append(onlyB, b...)
}
