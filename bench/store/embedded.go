package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// embeddedEngine is the service's own store, through its port.
type embeddedEngine struct {
	store *embedded.Store
	coll  store.Collection
}

func openEmbedded(ctx context.Context, dir string) (*embeddedEngine, error) {
	s, err := embedded.Open(ctx, embedded.Options{Dir: dir, OnFatal: func(err error) { panic(err) }})
	if err != nil {
		return nil, err
	}
	return &embeddedEngine{store: s, coll: s.Database("bench").Collection("articles")}, nil
}

func (e *embeddedEngine) load(ctx context.Context, docs []article) error {
	for _, index := range []store.Index{
		{Name: "kind", Keys: []store.IndexKey{{Path: "kind"}, {Path: "seq"}}},
		{Name: "seq", Keys: []store.IndexKey{{Path: "seq"}}},
		{Name: "rnd", Keys: []store.IndexKey{{Path: "rnd"}}},
	} {
		if err := e.coll.CreateIndex(ctx, index); err != nil {
			return err
		}
	}
	var ops []store.Op
	for i, d := range docs {
		ops = append(ops, store.Op{Kind: store.Insert, Doc: d.raw})
		if len(ops) == 1000 || i == len(docs)-1 {
			if err := e.write(ctx, ops...); err != nil {
				return err
			}
			ops = ops[:0]
		}
	}
	return nil
}

func (e *embeddedEngine) write(ctx context.Context, ops ...store.Op) error {
	results, err := e.coll.Write(ctx, ops, false)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

func idValue(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

func (e *embeddedEngine) get(ctx context.Context, id bson.ObjectID) error {
	_, err := e.coll.Get(ctx, idValue(id))
	return err
}

func (e *embeddedEngine) page(ctx context.Context, kind string, dst []byte) ([]byte, error) {
	q := store.Query{
		Filter: mql.MustCompile(bson.D{{Key: "kind", Value: kind}}),
		Sort:   mql.Sort{{Path: "seq", Desc: true}, {Path: "_id", Desc: true}}, Limit: 50,
	}
	err := e.coll.Find(ctx, q, func(doc bson.Raw) error {
		dst = document.AppendJSON(dst, doc, nil)
		return nil
	})
	return dst, err
}

func between(field string, lo, hi int64) *mql.Filter {
	return mql.MustCompile(bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lt", Value: hi}}}})
}

func (e *embeddedEngine) fetch(ctx context.Context, field string, lo, hi int64, limit int) (int, error) {
	q := store.Query{Filter: between(field, lo, hi), Sort: mql.Sort{{Path: field}, {Path: "_id"}}, Limit: int64(limit)}
	return e.find(ctx, q)
}

func (e *embeddedEngine) find(ctx context.Context, q store.Query) (n int, err error) {
	err = e.coll.Find(ctx, q, func(bson.Raw) error { n++; return nil })
	return n, err
}

func (e *embeddedEngine) scan(ctx context.Context, status string, score float64) (int, error) {
	return e.find(ctx, store.Query{Filter: mql.MustCompile(bson.D{
		{Key: "status", Value: status}, {Key: "score", Value: bson.D{{Key: "$gte", Value: score}}},
	})})
}

func (e *embeddedEngine) count(ctx context.Context, lo, hi int64) (int, error) {
	n, err := e.coll.Count(ctx, between("seq", lo, hi), 0)
	return int(n), err
}

func (e *embeddedEngine) top(ctx context.Context) (int, error) {
	return e.find(ctx, store.Query{Sort: mql.Sort{{Path: "score", Desc: true}, {Path: "_id", Desc: true}}, Limit: 20})
}

func (e *embeddedEngine) group(ctx context.Context) (int, error) {
	return e.aggregate(ctx, groupStages(), nothing)
}

func (e *embeddedEngine) lookup(ctx context.Context, lo, hi int64) (n int, err error) {
	_, err = e.aggregate(ctx, lookupStages(lo, hi), func(doc bson.Raw) { n = int(doc.Lookup("n").AsInt64()) })
	return n, err
}

func (e *embeddedEngine) facet(ctx context.Context) (n int, err error) {
	_, err = e.aggregate(ctx, facetStages(), func(doc bson.Raw) { n = countOf(doc, "status") })
	return n, err
}

func (e *embeddedEngine) values(ctx context.Context) (n int, err error) {
	p, err := facetsOfAPI()
	if err != nil {
		return 0, err
	}
	err = e.coll.Aggregate(ctx, p, store.AggregateOptions{}, func(doc bson.Raw) error {
		_, values := pipeline.ReadFacets(doc)
		n = len(values[0])
		return nil
	})
	return n, err
}

// facetsOfAPI counts the fields that facetStages does.
func facetsOfAPI() (*pipeline.Pipeline, error) {
	return pipeline.Facets(nil, []string{"status", "tags", "kind"}, 1001)
}

// countOf is how many elements a list of a document has.
func countOf(doc bson.Raw, field string) int {
	values, err := doc.Lookup(field).Array().Values()
	if err != nil {
		return -1
	}
	return len(values)
}

func (e *embeddedEngine) aggregate(ctx context.Context, stages bson.A, fn func(doc bson.Raw)) (n int, err error) {
	p, err := pipeline.Compile(stages, pipeline.Options{Stages: pipeline.Scripts})
	if err != nil {
		return 0, err
	}
	err = e.coll.Aggregate(ctx, p, store.AggregateOptions{}, func(doc bson.Raw) error {
		n++
		fn(doc)
		return nil
	})
	return n, err
}

func (e *embeddedEngine) insert(ctx context.Context, a article) error {
	return e.write(ctx, store.Op{Kind: store.Insert, Doc: a.raw})
}

func (e *embeddedEngine) update(ctx context.Context, id bson.ObjectID, rnd int64) error {
	u, err := mql.CompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "rnd", Value: rnd}}}}, nil)
	if err != nil {
		return err
	}
	return e.write(ctx, store.Op{Kind: store.Update, ID: idValue(id), Update: u})
}

func (e *embeddedEngine) build(ctx context.Context, done func()) error {
	if err := e.coll.CreateIndex(ctx, store.Index{Name: "score", Keys: []store.IndexKey{{Path: "score"}}}); err != nil {
		return err
	}
	done()
	return e.coll.DropIndex(ctx, "score")
}

func (e *embeddedEngine) backup(ctx context.Context, dir string) error {
	if err := e.store.Checkpoint(ctx, dir); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (e *embeddedEngine) close() error { return e.store.Close() }
