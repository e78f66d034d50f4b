package operation

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Query says which runs List gives. Zero members leave nothing out.
type Query struct {
	Kind    Kind
	Name    string
	Status  Status
	By      string // the Actor.ID of who started them
	Active  bool   // only those that have not ended
	Offset  int64
	Limit   int64 // 0: 100
	NoInput bool  // leaves out what the runs were given and gave
}

// Page is one page of runs.
type Page struct {
	Items         []*Run
	Limit, Offset int64
	HasMore       bool
}

// List gives runs, newest first, without their events.
func (rs *Runs) List(ctx context.Context, database string, query Query) (*Page, error) {
	if query.Limit <= 0 {
		query.Limit = keepRuns
	}
	page := &Page{Items: []*Run{}, Limit: query.Limit, Offset: query.Offset}
	omit := bson.D{{Key: "events", Value: int64(0)}}
	if query.NoInput {
		omit = append(omit, bson.E{Key: "input", Value: int64(0)}, bson.E{Key: "result", Value: int64(0)})
	}
	q := store.Query{
		Filter: query.filter(), Sort: mql.Sort{{Path: "createdAt", Desc: true}, {Path: "_id", Desc: true}},
		Skip: query.Offset, Limit: query.Limit + 1, Project: mql.MustCompileProjection(omit),
	}
	err := rs.runsOf(database).Find(ctx, q, func(doc bson.Raw) error {
		if page.HasMore = int64(len(page.Items)) == query.Limit; page.HasMore {
			return nil
		}
		r, err := decode(bytes.Clone(doc))
		if err == nil {
			page.Items = append(page.Items, &r.Run)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func (q Query) filter() *mql.Filter {
	filter := bson.D{}
	for _, e := range []bson.E{
		{Key: "kind", Value: string(q.Kind)},
		{Key: "name", Value: q.Name},
		{Key: "status", Value: string(q.Status)},
		{Key: "by.id", Value: q.By},
	} {
		if e.Value != "" {
			filter = append(filter, e)
		}
	}
	if q.Active {
		filter = append(filter, isActive())
	}
	return mql.MustCompile(filter)
}

// ActiveIn says, within a transaction, whether an action or job has an active run. Two transactions that both ask and
// then start one don't notice each other by that alone: they have to write one document, too.
func ActiveIn(ctx context.Context, tx store.Tx, kind Kind, name string) (bool, error) {
	n, err := tx.Collection(collectionName).Count(ctx, Query{Kind: kind, Name: name, Active: true}.filter(), 1)
	return n > 0, err
}
