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

	begun   bool
	indexed bool
	batch   []bson.Raw
	values  []bson.RawValue
	other   *otherSide
	key     []byte
	out     []byte
	list    []byte
	found   []int
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
	if !l.begun {
		l.begun = true
		l.indexed = l.r.src.Indexed(l.r.ctx, l.from, l.foreign)
	}
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
	if l.other != nil {
		l.r.release(l.other.bytes)
	}
	return l.next.end()
}

// flush looks up for the batch and passes it on.
func (l *equalLookup) flush() error {
	batch := l.batch
	if len(batch) == 0 {
		return nil
	}
	l.batch = l.batch[:0]
	if l.other == nil || l.indexed {
		if err := l.fetch(batch); err != nil {
			return err
		}
	}
	for _, doc := range batch {
		l.r.release(len(doc))
		if err := l.join(doc); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads what the batch may need of the other collection.
func (l *equalLookup) fetch(batch []bson.Raw) error {
	if l.other != nil {
		l.r.release(l.other.bytes)
	}
	other := &otherSide{at: map[string][]joined{}}
	l.other = other
	var q Query
	if l.indexed {
		l.values = l.values[:0]
		for _, doc := range batch {
			l.values = l.localValues(l.values, doc)
		}
		slices.SortFunc(l.values, document.Compare)
		l.values = slices.CompactFunc(l.values, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 })
		var err error
		if q.Filter, err = l.filter(l.values); err != nil {
			return err
		}
	}
	names := strings.Split(l.foreign, ".")
	return l.r.src.Find(l.r.ctx, l.from, q, func(doc bson.Raw) error {
		before := other.bytes
		other.add(bytes.Clone(doc), names, &l.key)
		if l.r.docs++; l.r.docs%docsPerCheck == 0 && l.r.ctx.Err() != nil {
			return l.r.ctx.Err()
		}
		return l.r.hold(other.bytes - before)
	})
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

// join gives a document with what was found for it.
func (l *equalLookup) join(doc bson.Raw) error {
	l.values = l.localValues(l.values[:0], doc)
	l.found = l.found[:0]
	var filter *mql.Filter
	for _, v := range l.values {
		l.key = document.AppendKey(l.key[:0], v, false)
		for _, j := range l.other.at[string(l.key)] {
			if !j.exact && filter == nil {
				var err error
				if filter, err = l.filter(l.values); err != nil {
					return err
				}
			}
			if j.exact || filter.Match(l.other.docs[j.doc]) {
				l.found = append(l.found, j.doc)
			}
		}
	}
	if len(l.values) > 1 {
		slices.Sort(l.found)
		l.found = slices.Compact(l.found)
	}
	found := foundList{list: append(reuse(l.list), 0, 0, 0, 0)}
	for _, i := range l.found {
		found.add(l.other.docs[i])
	}
	l.list = closeList(found.list)
	l.out = appendSet(reuse(l.out), doc, l.as, bson.RawValue{Type: bson.TypeArray, Value: l.list})
	return l.r.give(l.next, l.out)
}
