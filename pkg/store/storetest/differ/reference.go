package differ

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// reference answers finds and counts with package mql alone: every document is looked at.
type reference struct{ docs []bson.Raw }

func (m *reference) load(_ context.Context, c *Case) error {
	m.docs = m.docs[:0]
	for _, d := range c.Docs {
		if at := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == "_id" }); at > 0 { // stores put it first
			d = slices.Concat(d[at:at+1], d[:at], d[at+1:])
		}
		raw, err := document.Marshal(d)
		if err != nil {
			return err
		}
		m.docs = append(m.docs, raw)
	}
	return nil
}

func (m *reference) dump(context.Context) ([]bson.Raw, error) {
	docs := slices.Clone(m.docs)
	slices.SortFunc(docs, mql.Sort{{Path: "_id"}}.Compare)
	return docs, nil
}

func (m *reference) run(_ context.Context, op *Op) (a *Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = &Answer{Refused: broken, Detail: fmt.Sprint("panic: ", p)}
		}
	}()
	a, err := m.answer(op)
	if err != nil {
		return refusal(err)
	}
	return a
}

func (m *reference) answer(op *Op) (*Answer, error) {
	filter, err := mql.Compile(op.Filter)
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	for _, d := range m.docs {
		if filter.Match(d) {
			found = append(found, d)
		}
	}
	if op.Kind == Count {
		n := int64(len(found))
		if op.Limit > 0 {
			n = min(n, op.Limit)
		}
		return &Answer{Count: n}, nil
	}
	return m.find(op, found, filter)
}

func (m *reference) find(op *Op, docs []bson.Raw, filter *mql.Filter) (*Answer, error) {
	project, err := projectionOf(op.Project)
	if err != nil {
		return nil, err
	}
	sort := sortOf(op.Sort)
	for _, d := range docs {
		if _, err := sort.AppendValues(nil, d); err != nil {
			return nil, err
		}
	}
	if len(sort) > 0 {
		slices.SortStableFunc(docs, sort.Compare)
	}
	if op.After != nil {
		docs = m.behind(op, sort, docs)
	}
	docs = docs[min(op.Skip, int64(len(docs))):]
	if op.Limit > 0 {
		docs = docs[:min(op.Limit, int64(len(docs)))]
	}
	if project != nil {
		for i, d := range docs {
			if docs[i], err = project.Apply(nil, d, filter); err != nil {
				return nil, err
			}
		}
	}
	if len(sort) == 0 {
		slices.SortFunc(docs, func(a, b bson.Raw) int { return bytes.Compare(a, b) })
	}
	return &Answer{Docs: docs}, nil
}

// behind asks both forms of paging, by the keys and by the filter that mql makes of them.
func (m *reference) behind(op *Op, sort mql.Sort, docs []bson.Raw) []bson.Raw {
	id, err := document.MarshalValue(op.After)
	if err != nil {
		return nil
	}
	at := slices.IndexFunc(m.docs, func(d bson.Raw) bool { return document.Compare(d.Lookup("_id"), id) == 0 })
	if at < 0 {
		return nil
	}
	key := sort.Key(m.docs[at])
	return slices.DeleteFunc(docs, func(d bson.Raw) bool { return sort.CompareKeys(sort.Key(d), key) <= 0 })
}
