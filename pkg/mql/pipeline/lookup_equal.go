package pipeline

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// Documents that are looked up for at once: few at first, as what comes behind may not want more, and more as long as
// they are small.
const (
	firstBatch = 256
	maxBatch   = 4096
	batchBytes = 4 << 20
)

// equalLookup joins by values: for a batch of documents there is one query for all their values, and where no index would
// make that quick, one query for all documents of the other collection. What a pipeline makes of each document that is found
// is made once, when it is first given to one.
type equalLookup struct {
	*lookup
	r    *run
	next sink

	join   joiner
	shape  sink         // makes of a document that was found what is given; nil: it is given itself
	made   bson.Raw     // by shape
	apart  *pipedLookup // looks up for one document after the other; nil, unless all of the other collection are too many
	copies arena
	batch  []waiting
	values []bson.RawValue // of all that wait
	want   int             // how many are looked up for at once
	held   int
	found  []int
	part   []byte
	out    []byte
	list   []byte
}

// waiting is a document of a batch with the values that it is joined by.
type waiting struct {
	doc         bson.Raw
	first, last int // values
}

// joiner finds documents of another collection by values.
type joiner struct {
	r       *run
	from    string
	foreign string
	names   []string                                          // of foreign
	filter  func(values []bson.RawValue) (*mql.Filter, error) // what finds the documents that have one of values
	only    *match                                            // nil: all documents

	begun   bool
	indexed bool
	other   *otherSide
	key     []byte
}

func newJoiner(r *run, from, foreign string, filter func([]bson.RawValue) (*mql.Filter, error), only *match) joiner {
	return joiner{r: r, from: from, foreign: foreign, names: strings.Split(foreign, "."), filter: filter, only: only}
}

// otherSide is documents of the other collection by the values that they may be found by.
type otherSide struct {
	copies arena
	docs   []bson.Raw
	shown  []bson.Raw         // what a pipeline makes of docs; nil: nothing yet
	at     map[string]chained // by value
	all    []joined           // of each value a chain
	bytes  int
}

// chained is the places in otherSide.all where the chain of a value begins and ends.
type chained struct{ first, last int }

// joined is a document with a value. It is exact if equality is all that there is to say: no list, no null.
type joined struct {
	doc   int
	exact bool
	next  int // -1: none
}

func (l *equalLookup) push(doc bson.Raw) error {
	if l.keep != nil {
		l.part = l.keep.part(reuse(l.part), doc, l.replaced)
		doc = l.part
	}
	l.held += len(doc)
	if err := l.r.hold(len(doc)); err != nil {
		return err
	}
	w := waiting{doc: l.copies.copy(doc), first: len(l.values)}
	l.values = l.localValues(l.values, w.doc)
	w.last = len(l.values)
	l.batch = append(l.batch, w)
	if len(l.batch) < l.want && len(l.values) < maxBatch && l.held < batchBytes {
		return nil
	}
	return l.flush()
}

func (l *equalLookup) end() error {
	if err := unlessEnough(l.flush()); err != nil {
		return err
	}
	l.join.end()
	return l.next.end()
}

// flush looks up for those that wait and passes them on.
func (l *equalLookup) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	if err := l.through(l.batch); err != nil {
		return err
	}
	if l.want = min(2*len(l.batch), maxBatch); l.held+l.join.other.bytes > batchBytes {
		l.want = max(len(l.batch)/2, 1)
	}
	l.r.release(l.held)
	l.batch, l.values, l.held = l.batch[:0], l.values[:0], 0
	l.copies.reset()
	return nil
}

// through joins a batch, in parts if all that is found would be too much at once.
func (l *equalLookup) through(batch []waiting) error {
	if l.apart != nil {
		return l.oneByOne(batch)
	}
	err := l.join.fetch(l.values[batch[0].first:batch[len(batch)-1].last])
	if errors.Is(err, ErrMemory) && l.piped && !l.join.indexed {
		l.join.end()
		l.apart = &pipedLookup{lookup: l.lookup, r: l.r, next: l.next}
		return l.oneByOne(batch)
	}
	if errors.Is(err, ErrMemory) && l.join.indexed && len(batch) > 1 {
		half := len(batch) / 2
		if err := l.through(batch[:half]); err != nil {
			return err
		}
		return l.through(batch[half:])
	}
	if err != nil {
		return err
	}
	for _, w := range batch {
		if err := l.pass(w); err != nil {
			return err
		}
	}
	return nil
}

func (l *equalLookup) oneByOne(batch []waiting) error {
	for _, w := range batch {
		if err := l.apart.push(w.doc); err != nil {
			return err
		}
	}
	return nil
}

// take is the end of shape.
func (l *equalLookup) take(doc bson.Raw) error {
	l.made = doc
	return nil
}

// shown gives a document that was found as the pipeline makes it.
func (l *equalLookup) shown(i int) (bson.Raw, error) {
	other := l.join.other
	if l.shape == nil {
		return other.docs[i], nil
	}
	if other.shown == nil {
		other.shown = make([]bson.Raw, len(other.docs))
	}
	if other.shown[i] != nil {
		return other.shown[i], nil
	}
	if err := l.shape.push(other.docs[i]); err != nil {
		return nil, err
	}
	if l.r.hold(len(l.made)) != nil { // what does not fit is made again for the next one
		l.r.release(len(l.made))
		return l.made, nil //nolint:nilerr // see above
	}
	other.bytes += len(l.made)
	other.shown[i] = other.copies.copy(l.made)
	return other.shown[i], nil
}

// pass gives a document with what was found for it.
func (l *equalLookup) pass(w waiting) error {
	var err error
	if l.found, err = l.join.find(l.found[:0], l.values[w.first:w.last]); err != nil {
		return err
	}
	list := newDocList(l.list)
	for _, i := range l.found {
		doc, err := l.shown(i)
		if err != nil {
			return err
		}
		list.add(doc)
	}
	l.list = list.close()
	l.out = appendSet(reuse(l.out), w.doc, l.as, bson.RawValue{Type: bson.TypeArray, Value: l.list})
	return l.r.give(l.next, l.out)
}

// fetch reads what may have one of values. What was found before is no longer there.
func (j *joiner) fetch(values []bson.RawValue) error {
	if !j.begun {
		j.begun = true
		j.indexed = j.r.src.Indexed(j.r.ctx, j.from, j.foreign)
	}
	if j.other != nil && !j.indexed {
		return nil // all of them are there
	}
	j.end()
	if j.other == nil {
		j.other = &otherSide{at: map[string]chained{}}
	}
	other := j.other
	var q Query
	if j.indexed {
		var err error
		if q.Filter, err = j.filter(values); err != nil {
			return err
		}
	}
	if j.only != nil {
		q.Filter = mql.And(q.Filter, j.only.filter)
	}
	return j.r.src.Find(j.r.ctx, j.from, q, func(doc bson.Raw) error {
		if j.r.docs++; j.r.docs%docsPerCheck == 0 && j.r.ctx.Err() != nil {
			return j.r.ctx.Err()
		}
		if j.only != nil {
			if ok, err := j.only.holds(doc, j.r.env); !ok || err != nil {
				return err
			}
		}
		before := other.bytes
		other.add(doc, j.names, &j.key)
		return j.r.hold(other.bytes - before)
	})
}

// end lets go of what was read.
func (j *joiner) end() {
	if o := j.other; o != nil {
		j.r.release(o.bytes)
		o.copies.reset()
		clear(o.at)
		o.docs, o.shown, o.all, o.bytes = o.docs[:0], nil, o.all[:0], 0
	}
}

// find appends the places of the documents that have one of values, in order.
func (j *joiner) find(dst []int, values []bson.RawValue) ([]int, error) {
	start := len(dst)
	var filter *mql.Filter
	for _, v := range values {
		j.key = document.AppendKey(j.key[:0], v, false)
		chain, ok := j.other.at[string(j.key)]
		if !ok {
			continue
		}
		for i := chain.first; i >= 0; i = j.other.all[i].next {
			at := j.other.all[i]
			if !at.exact && filter == nil {
				var err error
				if filter, err = j.filter(values); err != nil {
					return dst, err
				}
			}
			if at.exact || filter.Match(j.other.docs[at.doc]) {
				dst = append(dst, at.doc)
			}
		}
	}
	if len(values) > 1 {
		slices.Sort(dst[start:])
		dst = dst[:start+len(slices.Compact(dst[start:]))]
	}
	return dst, nil
}

// add takes a document under all values that it might be found by.
func (o *otherSide) add(doc bson.Raw, names []string, buffer *[]byte) {
	const entrySize = 64
	i := len(o.docs)
	doc = o.copies.copy(doc)
	o.docs = append(o.docs, doc)
	o.bytes += len(doc) + entrySize
	put := func(v bson.RawValue, exact bool) {
		if isNull(v.Type) {
			v, exact = null, false
		}
		*buffer = document.AppendKey((*buffer)[:0], v, false)
		next := len(o.all)
		chain, ok := o.at[string(*buffer)]
		switch {
		case !ok:
			chain.first = next
		case o.all[chain.last].doc == i:
			o.all[chain.last].exact = o.all[chain.last].exact && exact
			return
		default:
			o.all[chain.last].next = next
		}
		chain.last = next
		o.at[string(*buffer)] = chain
		o.all = append(o.all, joined{i, exact, -1})
		o.bytes += len(*buffer) + entrySize
	}
	eachMatchable(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, names, true, put)
}

// arena keeps copies in large pieces of memory.
type arena struct{ piece []byte }

const pieceSize = 64 << 10

// copy gives a copy of b, which is valid until reset.
func (a *arena) copy(b []byte) []byte {
	if cap(a.piece)-len(a.piece) < len(b) {
		a.piece = make([]byte, 0, max(pieceSize, len(b)))
	}
	start := len(a.piece)
	a.piece = append(a.piece, b...)
	return a.piece[start:len(a.piece):len(a.piece)]
}

// reset lets the memory of the copies be used again.
func (a *arena) reset() { a.piece = reuse(a.piece) }

// eachMatchable calls fn for all values at a path that a filter might compare, and for some more.
func eachMatchable(v bson.RawValue, names []string, exact bool, fn func(v bson.RawValue, exact bool)) {
	if len(names) == 0 {
		if v.Type == bson.TypeArray {
			exact = false
			for it := document.NewIter(v.Value); it.Next(); {
				fn(it.Value(), false)
			}
		}
		fn(v, exact)
		return
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		inner, _ := document.Field(v.Value, names[0])
		eachMatchable(inner, names[1:], exact, fn)
	case bson.TypeArray:
		fn(null, false)
		for it := document.NewIter(v.Value); it.Next(); {
			if it.Value().Type == bson.TypeEmbeddedDocument {
				eachMatchable(it.Value(), names, false, fn)
			}
		}
		if item, ok := document.Element(v.Value, document.ListIndex(names[0])); ok {
			eachMatchable(item, names[1:], false, fn)
		}
	default:
		fn(null, false)
	}
}
