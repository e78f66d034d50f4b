package main

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// mongodEngine is a MongoDB server on this machine, asked through its own driver. Its oplog is its feed.
type mongodEngine struct {
	server *mongotest.Server
	client *mongo.Client
	coll   *mongo.Collection
}

func openMongod(ctx context.Context) (*mongodEngine, error) {
	server, err := mongotest.Start(ctx)
	if err != nil {
		return nil, err
	}
	journaled := true
	concern := writeconcern.Majority()
	concern.Journal = &journaled
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI).SetWriteConcern(concern))
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &mongodEngine{server: server, client: client, coll: client.Database("bench").Collection("articles")}, nil
}

func (e *mongodEngine) load(ctx context.Context, docs []article) error {
	for _, keys := range []bson.D{{{Key: "kind", Value: 1}, {Key: "seq", Value: 1}}, {{Key: "seq", Value: 1}}, {{Key: "rnd", Value: 1}}} {
		if _, err := e.coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys}); err != nil {
			return err
		}
	}
	for len(docs) > 0 {
		n := min(len(docs), 1000)
		batch := make([]any, n)
		for i, d := range docs[:n] {
			batch[i] = d.raw
		}
		if _, err := e.coll.InsertMany(ctx, batch); err != nil {
			return err
		}
		docs = docs[n:]
	}
	return nil
}

func (e *mongodEngine) get(ctx context.Context, id bson.ObjectID) error {
	_, err := e.coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Raw()
	return err
}

func (e *mongodEngine) each(ctx context.Context, filter bson.D, opts *options.FindOptionsBuilder, fn func(doc bson.Raw)) (n int, err error) {
	cursor, err := e.coll.Find(ctx, filter, opts.SetBatchSize(1001))
	if err != nil {
		return 0, err
	}
	defer cursor.Close(ctx) //nolint:errcheck // it is read to its end
	for ; cursor.Next(ctx); n++ {
		fn(cursor.Current)
	}
	return n, cursor.Err()
}

func (e *mongodEngine) page(ctx context.Context, kind string, dst []byte) ([]byte, error) {
	_, err := e.each(ctx, bson.D{{Key: "kind", Value: kind}}, options.Find().SetSort(bson.D{{Key: "seq", Value: -1}}).SetLimit(50),
		func(doc bson.Raw) { dst = document.AppendJSON(dst, doc, nil) })
	return dst, err
}

func mongoRange(field string, lo, hi int64) bson.D {
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lt", Value: hi}}}}
}

func (e *mongodEngine) fetch(ctx context.Context, field string, lo, hi int64, limit int) (int, error) {
	opts := options.Find().SetSort(bson.D{{Key: field, Value: 1}}).SetLimit(int64(limit))
	return e.each(ctx, mongoRange(field, lo, hi), opts, nothing)
}

func (e *mongodEngine) scan(ctx context.Context, status string, score float64) (int, error) {
	filter := bson.D{{Key: "status", Value: status}, {Key: "score", Value: bson.D{{Key: "$gte", Value: score}}}}
	return e.each(ctx, filter, options.Find(), nothing)
}

func (e *mongodEngine) count(ctx context.Context, lo, hi int64) (int, error) {
	n, err := e.coll.CountDocuments(ctx, mongoRange("seq", lo, hi))
	return int(n), err
}

func (e *mongodEngine) top(ctx context.Context) (int, error) {
	return e.each(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "score", Value: -1}}).SetLimit(20), nothing)
}

func (e *mongodEngine) aggregate(ctx context.Context, stages any, fn func(doc bson.Raw)) (n int, err error) {
	cursor, err := e.coll.Aggregate(ctx, stages, options.Aggregate().SetBatchSize(1001))
	if err != nil {
		return 0, err
	}
	defer cursor.Close(ctx) //nolint:errcheck // it is read to its end
	for ; cursor.Next(ctx); n++ {
		fn(cursor.Current)
	}
	return n, cursor.Err()
}

func (e *mongodEngine) group(ctx context.Context) (int, error) {
	return e.aggregate(ctx, groupStages(), nothing)
}

func (e *mongodEngine) lookup(ctx context.Context, lo, hi int64) (n int, err error) {
	_, err = e.aggregate(ctx, lookupStages(lo, hi), func(doc bson.Raw) { n = int(doc.Lookup("n").AsInt64()) })
	return n, err
}

func (e *mongodEngine) facet(ctx context.Context) (n int, err error) {
	_, err = e.aggregate(ctx, facetStages(), func(doc bson.Raw) { n = countOf(doc, "status") })
	return n, err
}

func (e *mongodEngine) values(ctx context.Context) (n int, err error) {
	p, err := facetsOfAPI()
	if err != nil {
		return 0, err
	}
	_, err = e.aggregate(ctx, p.Raw(), func(doc bson.Raw) {
		_, values := pipeline.ReadFacets(doc)
		n = len(values[0])
	})
	return n, err
}

func (e *mongodEngine) insert(ctx context.Context, a article) error {
	_, err := e.coll.InsertOne(ctx, a.raw)
	return err
}

func (e *mongodEngine) update(ctx context.Context, id bson.ObjectID, rnd int64) error {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "rnd", Value: rnd}}}}
	_, err := e.coll.UpdateByID(ctx, id, set)
	return err
}

func (e *mongodEngine) build(ctx context.Context, done func()) error {
	name, err := e.coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "score", Value: 1}}})
	if err != nil {
		return err
	}
	done()
	return e.coll.Indexes().DropOne(ctx, name)
}

// backup does nothing: a server has no copy of itself to make in one call.
func (e *mongodEngine) backup(context.Context, string) error { return errNotApplicable }

func (e *mongodEngine) close() error {
	return errors.Join(e.client.Disconnect(context.Background()), e.server.Stop())
}
