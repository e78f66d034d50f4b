package embedded

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// checkEvery is how many keys are passed between two looks at ctx where nothing is done with each.
const checkEvery = 128

// paceEvery is how many keys of a read are passed between two looks at its pace.
const paceEvery = 32

// next gives the next document that matches, in the plan's order. It is valid until the call after.
func (r *read) next() (doc bson.Raw, ok bool, err error) {
	if r.plan.Order == plan.ByValue {
		return r.nextByValue()
	}
	for {
		w, err := r.nextKey()
		if err != nil || w == nil {
			return nil, false, err
		}
		if doc, ok, err = r.load(w, r.seen); ok || err != nil {
			return doc, ok, err
		}
	}
}

// nextKey moves to the next key of the plan and gives the walk that is on it; nil at the end.
func (r *read) nextKey() (*walk, error) {
	if r.plan.Order == plan.ByKey {
		return r.nextByKey()
	}
	for r.turn < len(r.walks) {
		w := &r.walks[r.turn]
		if ok, err := r.advance(w); ok || err != nil || r.cut {
			if !ok {
				w = nil
			}
			return w, err
		}
		r.turn++
	}
	return nil, nil
}

// advance moves w to its next key, within the limits of the read.
func (r *read) advance(w *walk) (ok bool, err error) {
	if r.maxKeys > 0 && r.keysRead >= r.maxKeys {
		r.cut = true
		return false, nil
	}
	if ok, err = w.next(); !ok {
		return false, err
	}
	r.keysRead++
	if r.ctx.Err() != nil { // an atomic load: cheap beside a document, which may take long to match
		return false, store.Ended(r.ctx)
	}
	if r.pace != nil && r.keysRead%paceEvery == 0 {
		if err := r.pace.Step(r.ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// load gives the document that w is on; ok is false if it does not match, or is in seen.
func (r *read) load(w *walk, seen *keySet) (doc bson.Raw, ok bool, err error) {
	value, err := w.it.ValueAndErr()
	if err != nil {
		return nil, false, internal(err, "read a key")
	}
	var id []byte
	if seen != nil || w.Index != nil {
		if id, err = w.id(value); err != nil {
			return nil, false, err
		}
	}
	if seen != nil {
		if added, err := seen.add(id); !added || err != nil {
			return nil, false, err
		}
	}
	if w.Index != nil {
		if r.skipKey() {
			return nil, false, nil
		}
		if value, err = r.docs.get(r.snap, id, w.Index.Def.Name); err != nil {
			return nil, false, err
		}
	}
	r.docsRead++
	if doc, err = storedDoc(value); err != nil {
		return nil, false, err
	}
	if r.plan.Exact {
		return doc, true, nil
	}
	ok, err = r.filter.MatchUntil(doc, r.ended)
	return doc, ok, err
}

// skipKey counts off Query.Skip without reading documents, where every key is a match.
func (r *read) skipKey() bool {
	if r.skip == 0 || !r.plan.Exact || r.needsSort() || (len(r.query.After) > 0 && !r.plan.Seeked) {
		return false
	}
	r.skip--
	return true
}

// startByKey puts each walk on its first key.
func (r *read) startByKey() error {
	r.byKey.less = func(a, b *walk) bool {
		x, y := a.it.Key()[a.Ranges[0].Fixed:], b.it.Key()[b.Ranges[0].Fixed:]
		if a.Reverse {
			x, y = y, x
		}
		return bytes.Compare(x, y) < 0
	}
	for i := range r.walks {
		ok, err := r.advance(&r.walks[i])
		if err != nil {
			return err
		}
		if ok {
			r.byKey.push(&r.walks[i])
		}
	}
	return nil
}

// nextByKey gives the walk whose key is first, and moves the one it gave before.
func (r *read) nextByKey() (*walk, error) {
	if r.turn > 0 && r.byKey.len() > 0 { // the top has been given
		ok, err := r.advance(r.byKey.top())
		if err != nil || r.cut {
			return nil, err
		}
		if ok {
			r.byKey.fix()
		} else {
			r.byKey.pop()
		}
	}
	r.turn = 1
	if r.byKey.len() == 0 {
		return nil, nil
	}
	return r.byKey.top(), nil
}

// head is the next document of one walk, with what it is ordered by. It is a copy, as the fetcher moves on.
type head struct {
	walk    *walk
	key     []byte
	id, doc []byte
}

func (r *read) startByValue() error {
	r.heads.less = func(a, b *head) bool { return bytes.Compare(a.key, b.key) < 0 }
	for i := range r.walks {
		h := &head{walk: &r.walks[i]}
		ok, err := r.fill(h)
		if err != nil {
			return err
		}
		if ok {
			r.heads.push(h)
		}
	}
	return nil
}

// fill takes the next match of a walk into its head.
func (r *read) fill(h *head) (bool, error) {
	for {
		if ok, err := r.advance(h.walk); !ok || err != nil {
			return false, err
		}
		doc, ok, err := r.load(h.walk, nil)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if h.key, err = r.sortKey(h.key[:0], doc); err != nil {
			return false, err
		}
		value, err := h.walk.it.ValueAndErr()
		if err != nil {
			return false, internal(err, "read a key")
		}
		id, err := h.walk.id(value)
		if err != nil {
			return false, err
		}
		h.id, h.doc = append(h.id[:0], id...), append(h.doc[:0], doc...)
		return true, nil
	}
}

// nextByValue gives the first of the heads, if it has not been given before.
func (r *read) nextByValue() (bson.Raw, bool, error) {
	for {
		if r.turn > 0 && r.heads.len() > 0 { // the top has been given
			ok, err := r.fill(r.heads.top())
			if err != nil || r.cut {
				return nil, false, err
			}
			if ok {
				r.heads.fix()
			} else {
				r.heads.pop()
			}
		}
		r.turn = 1
		if r.heads.len() == 0 {
			return nil, false, nil
		}
		h := r.heads.top()
		if added, err := r.seen.add(h.id); err != nil {
			return nil, false, err
		} else if added {
			return h.doc, true, nil
		}
	}
}
