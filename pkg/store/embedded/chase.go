package embedded

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

const (
	firstCandidates = int64(4) // half of what the first search of a chase looks for
	maxChased       = 100      // documents that a chase reads under the commit mutex
)

// chase is a search for one document that no number of other writers can outrun, and that does not stop them: for as long
// as it searches a snapshot, writers note the documents that they write to. Then, under the commit mutex, only those have
// to be looked at again. If they are too many for that, they are searched on a later snapshot, and so on with those that
// were written to meanwhile, which are ever fewer.
type chase struct {
	c       *Collection
	p       *pending
	st      *state
	changed map[string]struct{} // keys of the _ids of documents written to since st; guarded by the commit mutex
	docs    []bson.Raw          // that matched then and may still, in order
	last    bson.Raw            // of them, if there may be more behind it
}

// errBehind says that a chase has to go on with a later snapshot; it never leaves this package.
var errBehind = errors.New("behind")

// chase carries out an op on the first document that matches its filter. It fails with errAgain where limit documents
// matched and were all written to meanwhile.
func (c *Collection) chase(ctx context.Context, p *pending, limit int64) (b *commit, err error) {
	ch := &chase{c: c, p: p}
	ch.begin()
	defer closeInto(&err, ch.end)
	if ch.docs, err = ch.st.search(ctx, p, limit); err != nil {
		return nil, err
	}
	if int64(len(ch.docs)) == limit {
		ch.last = ch.docs[limit-1]
	}
	for {
		if len(ch.docs) == 0 {
			if ch.last != nil {
				return nil, errAgain
			}
			return c.writeNone(ctx, p, ch.st.indexes)
		}
		p.edit = edit{}
		p.workAhead(ch.docs[0], ch.st.indexes)
		var before *state
		var behind map[string]struct{}
		b, err := c.commit(ctx, false, func(w *writer) (keep bool, err error) {
			if before, behind, err = ch.one(w); errors.Is(err, errBehind) {
				return false, err
			}
			return p.settleUnless(err)
		})
		if !errors.Is(err, errBehind) {
			return b, err
		}
		if err := before.close(); err != nil {
			return nil, internal(err, "close a snapshot")
		}
		if err := ch.catchUp(ctx, behind); err != nil {
			return nil, err
		}
	}
}

// begin takes a snapshot from which on writers note what they write to.
func (ch *chase) begin() {
	ch.c.s.commit.Lock()
	defer ch.c.s.commit.Unlock()
	ch.snapshot()
	if ch.st.coll != nil {
		ch.st.coll.chases = append(ch.st.coll.chases, ch)
	}
}

func (ch *chase) snapshot() {
	s := ch.c.s
	ch.changed = map[string]struct{}{}
	ch.st = &state{s: s, coll: s.cat.get(ch.c.name), indexes: noIndexes}
	if coll := ch.st.coll; coll != nil {
		ch.st.indexes, ch.st.seen, ch.st.snap = coll.indexes.Load(), s.seen(coll), s.db.NewSnapshot()
	}
}

func (ch *chase) end() error {
	if coll := ch.st.coll; coll != nil {
		ch.c.s.commit.Lock()
		coll.chases = slices.DeleteFunc(coll.chases, func(o *chase) bool { return o == ch })
		ch.c.s.commit.Unlock()
	}
	return ch.st.close()
}

// one writes to the first document that matches now. With errBehind, it has taken a new snapshot, and gives the one
// before and what was written to since.
func (ch *chase) one(w *writer) (before *state, behind map[string]struct{}, err error) {
	if w.coll != ch.st.coll { // another one has its name now
		return nil, nil, errAgain
	}
	ch.docs = slices.DeleteFunc(ch.docs, func(doc bson.Raw) bool {
		_, changed := ch.changed[string(idOf(doc))]
		return changed
	})
	sorted := len(ch.p.op.Sort) > 0
	var first bson.Raw
	switch {
	case len(ch.docs) == 0 && ch.last != nil:
		return nil, nil, errAgain
	case len(ch.docs) > 0 && !sorted: // any will do
	case len(ch.changed) > maxChased:
		return ch.later()
	default:
		if first, err = ch.firstChanged(w); errors.Is(err, errSlow) {
			return ch.later()
		} else if err != nil {
			return nil, nil, err
		}
	}
	if len(ch.docs) > 0 && (first == nil || !ch.before(first, ch.docs[0])) {
		first = ch.docs[0]
	}
	switch {
	case first != nil:
		if !bytes.Equal(first, ch.p.edit.old) {
			ch.p.work(first)
		}
		_, err = w.hit(ch.p)
	case ch.p.op.Upsert:
		ch.p.work(nil)
		err = w.insert(ch.p)
	default:
		ch.p.edit = edit{}
	}
	return nil, nil, err
}

// later takes a new snapshot, see one.
func (ch *chase) later() (before *state, behind map[string]struct{}, err error) {
	before, behind = ch.st, ch.changed
	ch.snapshot()
	return before, behind, errBehind
}

// firstChanged gives the first document that matches of those written to; nil if none does.
func (ch *chase) firstChanged(w *writer) (first bson.Raw, err error) {
	for id := range ch.changed {
		doc, err := w.stored([]byte(id))
		if err != nil {
			return nil, err
		}
		if doc == nil {
			continue
		}
		ok, err := w.matches(ch.p, doc)
		if err != nil {
			return nil, err
		}
		if ok && (first == nil || ch.before(doc, first)) {
			first = doc
		}
	}
	return first, nil
}

func (ch *chase) before(a, b bson.Raw) bool {
	by := ch.p.op.Sort
	return len(by) > 0 && by.CompareKeys(by.Key(a), by.Key(b)) < 0
}

// catchUp adds those of some documents that match in the new snapshot. The others are in it as they were.
func (ch *chase) catchUp(ctx context.Context, ids map[string]struct{}) error {
	for id := range ids {
		if ctx.Err() != nil {
			return store.Ended(ctx)
		}
		doc, err := getDoc(ch.st.snap, docKey(ch.st.coll.id, []byte(id)))
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		ok, err := ch.p.op.Filter.MatchUntil(doc, func() error { return store.Ended(ctx) })
		if err != nil {
			return err
		}
		if ok && (ch.last == nil || !ch.before(ch.last, doc)) {
			ch.docs = append(ch.docs, doc)
		}
	}
	ch.p.seen = ch.st.seen
	slices.SortStableFunc(ch.docs, ch.p.op.Sort.Compare)
	return nil
}

// chased notes that a document is written to.
func (c *collection) chased(id []byte) {
	for _, ch := range c.chases {
		ch.changed[string(id)] = struct{}{}
	}
}
