package operation

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Query says which runs List gives. Zero members leave nothing out.
type Query struct {
	Kind    Kind
	Kinds   []Kind // any of them; none: any
	Name    string
	Any     []Of // any of them; none: any
	Subject string
	Status  Status
	By      string // the Actor.ID of who started them
	Active  bool   // only those that have not ended
	Offset  int64
	Limit   int64 // 0: 100
	NoInput bool  // leaves out what the runs were given and gave
}

// Of are runs of some kinds that have some names.
type Of struct {
	Kinds []Kind
	Names []string
}

// Has says whether a run is among them.
func (o Of) Has(r *Run) bool {
	return slices.Contains(o.Kinds, r.Kind) && slices.Contains(o.Names, r.Name)
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
	if !utf8.ValidString(query.Subject + query.Name) { // of an address; no run has such a one
		return page, nil
	}
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
			page.Items = append(page.Items, rs.asEnded(database, &r.Run))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if query.Active {
		page.Items = slices.DeleteFunc(page.Items, func(r *Run) bool { return !r.Status.Active() })
	}
	return page, nil
}

// asEnded is a run as it has ended here, where its record can't tell that yet.
func (rs *Runs) asEnded(database string, r *Run) *Run {
	rs.mu.Lock()
	l := rs.live[liveKey{database, r.ID}]
	rs.mu.Unlock()
	if l == nil || !r.Status.Active() {
		return r
	}
	now := l.snapshot()
	if now.Status.Active() || l.ending() {
		return r
	}
	out := *r
	out.Status, out.Error, out.FinishedAt, out.Subject, out.Result, out.Output = now.Status, now.Error, now.FinishedAt, now.Subject, now.Result, now.Output
	return &out
}

func (q Query) filter() *mql.Filter {
	filter := bson.D{}
	for _, e := range []bson.E{
		{Key: "kind", Value: string(q.Kind)},
		{Key: "name", Value: q.Name},
		{Key: "subject", Value: q.Subject},
		{Key: "status", Value: string(q.Status)},
		{Key: "by.id", Value: q.By},
	} {
		if e.Value != "" {
			filter = append(filter, e)
		}
	}
	if len(q.Kinds) > 0 {
		filter = append(filter, in("kind", q.Kinds))
	}
	if len(q.Any) > 0 {
		either := make(bson.A, len(q.Any))
		for i, of := range q.Any {
			either[i] = bson.D{in("kind", of.Kinds), in("name", of.Names)}
		}
		filter = append(filter, bson.E{Key: "$or", Value: either})
	}
	if q.Active {
		filter = append(filter, isActive())
	}
	return mql.MustCompile(filter)
}

func in[T ~string](member string, values []T) bson.E {
	list := make(bson.A, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return bson.E{Key: member, Value: bson.D{{Key: "$in", Value: list}}}
}

// Find gives a run of one of some kinds by its id alone, or ErrNotFound.
func (rs *Runs) Find(ctx context.Context, database, id string, kinds ...Kind) (*Run, error) {
	rs.mu.Lock()
	l := rs.live[liveKey{database, id}]
	rs.mu.Unlock()
	if l != nil && slices.Contains(kinds, l.run.Kind) && !l.ending() { // the kind never changes
		return l.snapshot(), nil
	}
	doc, err := rs.runsOf(database).Get(ctx, stringID(id))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(doc)
	if err == nil && !slices.Contains(kinds, r.Kind) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &r.Run, nil
}

// ActiveIn says, within a transaction, whether there is an active run of what a query asks for. Two transactions that both ask and
// then start one don't notice each other by that alone: they have to write one document, too.
func ActiveIn(ctx context.Context, tx store.Tx, q Query) (bool, error) {
	q.Active = true
	n, err := tx.Collection(collectionName).Count(ctx, q.filter(), 1)
	return n > 0, err
}
