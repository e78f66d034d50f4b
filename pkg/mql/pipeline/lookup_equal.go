package pipeline

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

const lookupBatch = 256 // documents that are looked up for at once

// equalLookup joins by values: for a batch of documents there is one query for all their values, and where no index would
// make that quick, one query for all documents of the other collection.
type equalLookup struct {
	*lookup
	r    *run
	next sink

	join   joiner
	batch  []bson.Raw
	values []bson.RawValue
	found  []int
	out    []byte
	list   []byte
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
	values  []bson.RawValue
	key     []byte
}

func newJoiner(r *run, from, foreign string, filter func([]bson.RawValue) (*mql.Filter, error), only *match) joiner {
	return joiner{r: r, from: from, foreign: foreign, names: strings.Split(foreign, "."), filter: filter, only: only}
}

// otherSide is documents of the other collection by the values that they may be found by.
type otherSide struct {
	docs  []bson.Raw
	at    map[string][]joined
	bytes int
}

// joined is a document with a value. It is exact if equality is all that there is to say: no list, no null.
type joined struct {
	doc   int
	exact bool
}

func (l *equalLookup) push(doc bson.Raw) error {
	if err := l.r.hold(len(doc)); err != nil {
		return err
	}
	l.batch = append(l.batch, bytes.Clone(doc))
	if len(l.batch) < lookupBatch {
		return nil
	}
	return l.flush()
}

func (l *equalLookup) end() error {
	if err := l.flush(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	l.join.end()
	return l.next.end()
}

// flush looks up for the batch and passes it on.
func (l *equalLookup) flush() error {
	batch := l.batch
	if len(batch) == 0 {
		return nil
	}
	l.batch = l.batch[:0]
	l.values = l.values[:0]
	for _, doc := range batch {
		l.values = l.localValues(l.values, doc)
	}
	if err := l.join.fetch(l.values); err != nil {
		return err
	}
	for _, doc := range batch {
		l.r.release(len(doc))
		if err := l.pass(doc); err != nil {
			return err
		}
	}
	return nil
}

// pass gives a document with what was found for it.
func (l *equalLookup) pass(doc bson.Raw) error {
	l.values = l.localValues(l.values[:0], doc)
	var err error
	if l.found, err = l.join.find(l.found[:0], l.values); err != nil {
		return err
	}
	found := foundList{list: append(reuse(l.list), 0, 0, 0, 0)}
	for _, i := range l.found {
		found.add(l.join.other.docs[i])
	}
	l.list = closeList(found.list)
	l.out = appendSet(reuse(l.out), doc, l.as, bson.RawValue{Type: bson.TypeArray, Value: l.list})
	return l.r.give(l.next, l.out)
}

// fetch reads what may have one of values. What was found before is no longer there.
func (j *joiner) fetch(values []bson.RawValue) error {
	if !j.begun {
		j.begun = true
		j.indexed = j.r.src.Indexed(j.r.ctx, j.from, j.foreign)
	}
	if j.other != nil && !j.indexed {
		return nil
	}
	j.end()
	other := &otherSide{at: map[string][]joined{}}
	j.other = other
	var q Query
	if j.indexed {
		j.values = append(j.values[:0], values...)
		slices.SortFunc(j.values, document.Compare)
		j.values = slices.CompactFunc(j.values, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 })
		var err error
		if q.Filter, err = j.filter(j.values); err != nil {
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
		other.add(bytes.Clone(doc), j.names, &j.key)
		return j.r.hold(other.bytes - before)
	})
}

// end lets go of what was read.
func (j *joiner) end() {
	if j.other != nil {
		j.r.release(j.other.bytes)
		j.other = nil
	}
}

// find appends the places of the documents that have one of values, in order.
func (j *joiner) find(dst []int, values []bson.RawValue) ([]int, error) {
	start := len(dst)
	var filter *mql.Filter
	for _, v := range values {
		j.key = document.AppendKey(j.key[:0], v, false)
		for _, at := range j.other.at[string(j.key)] {
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
	o.docs = append(o.docs, doc)
	o.bytes += len(doc) + entrySize
	put := func(v bson.RawValue, exact bool) {
		if isNull(v.Type) {
			v, exact = null, false
		}
		*buffer = document.AppendKey((*buffer)[:0], v, false)
		list := o.at[string(*buffer)]
		if len(list) > 0 && list[len(list)-1].doc == i {
			list[len(list)-1].exact = list[len(list)-1].exact && exact
			return
		}
		o.at[string(*buffer)] = append(list, joined{i, exact})
		o.bytes += len(*buffer) + entrySize
	}
	eachMatchable(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, names, true, put)
}

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
