package wire_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestDocuments does with the Go driver what everybody does.
func TestDocuments(t *testing.T) {
	t.Parallel()
	coll := things(t)
	ctx := t.Context()
	insert(t, coll, `{"_id":1,"n":1,"tags":["a"]}`, `{"_id":2,"n":2}`, `{"_id":3,"n":3}`)
	many, err := coll.InsertMany(ctx, []any{bson.D{{Key: "n", Value: 4}}, bson.D{{Key: "n", Value: 5}}})
	if err != nil || len(many.InsertedIDs) != 2 {
		t.Fatalf("InsertMany: %v %v", many, err)
	}
	if n, err := coll.CountDocuments(ctx, bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 2}}}}); n != 4 || err != nil {
		t.Errorf("CountDocuments: %d %v", n, err)
	}
	if n, err := coll.CountDocuments(ctx, bson.D{}, options.Count().SetSkip(1).SetLimit(2)); n != 2 || err != nil {
		t.Errorf("CountDocuments with skip and limit: %d %v", n, err)
	}
	if n, err := coll.EstimatedDocumentCount(ctx); n != 5 || err != nil {
		t.Errorf("EstimatedDocumentCount: %d %v", n, err)
	}
	up, err := coll.UpdateMany(ctx, bson.D{}, object(t, `{"$inc":{"n":10}}`))
	if err != nil || up.MatchedCount != 5 || up.ModifiedCount != 5 {
		t.Errorf("UpdateMany: %+v %v", up, err)
	}
	up, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 9}}, object(t, `{"$set":{"n":9}}`), options.UpdateOne().SetUpsert(true))
	if err != nil || up.UpsertedID != int32(9) || up.UpsertedCount != 1 {
		t.Errorf("upsert: %+v %v", up, err)
	}
	if up, err = coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 9}}, bson.D{{Key: "r", Value: true}}); err != nil || up.ModifiedCount != 1 {
		t.Errorf("ReplaceOne: %+v %v", up, err)
	}
	var got bson.D
	err = coll.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}}, object(t, `{"$push":{"tags":"b"}}`),
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.D{{Key: "tags", Value: 1}})).Decode(&got)
	if want := `{"_id":1,"tags":["a","b"]}`; err != nil || text(t, got) != want {
		t.Errorf("FindOneAndUpdate: %s %v", text(t, got), err)
	}
	var ns []int32
	if err := coll.Distinct(ctx, "n", bson.D{}).Decode(&ns); err != nil || len(ns) != 5 {
		t.Errorf("Distinct: %v %v", ns, err)
	}
	del, err := coll.DeleteMany(ctx, object(t, `{"n":{"$gt":12}}`))
	if err != nil || del.DeletedCount != 3 {
		t.Errorf("DeleteMany: %+v %v", del, err)
	}
	got2 := all(t, coll, options.Find().SetSort(bson.D{{Key: "_id", Value: -1}}))
	if want := `{"_id":9,"r":true} {"_id":2,"n":12} {"_id":1,"n":11,"tags":["a","b"]}`; strings.Join(got2, " ") != want {
		t.Errorf("all: %v", got2)
	}
}

// TestBatches reads more than fits in an answer.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	coll := s.client(t).Database("test").Collection("things")
	ctx := t.Context()
	var docs []any
	for i := range 1000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 100)}})
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*options.FindOptionsBuilder{
		options.Find(), options.Find().SetBatchSize(7), options.Find().SetBatchSize(1000), options.Find().SetBatchSize(0), options.Find().SetLimit(1000).SetBatchSize(300),
	} {
		if got := all(t, coll, opts); len(got) != 1000 {
			t.Errorf("%d documents", len(got))
		}
	}
	if got := all(t, coll, options.Find().SetLimit(250).SetSkip(800)); len(got) != 200 {
		t.Errorf("skip and limit give %d documents", len(got))
	}
	if got := all(t, coll, options.Find().SetLimit(-5)); len(got) != 5 {
		t.Errorf("a single batch gives %d documents", len(got))
	}
	if n := s.OpenCursors(); n != 0 {
		t.Errorf("%d cursors are open", n)
	}
	cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(5))
	if err != nil {
		t.Fatal(err)
	}
	if n := s.OpenCursors(); n != 1 || cursor.ID() == 0 {
		t.Errorf("%d cursors are open", n)
	}
	if err := cursor.Close(ctx); err != nil || s.OpenCursors() != 0 {
		t.Errorf("after Close: %v, %d cursors are open", err, s.OpenCursors())
	}
}

// TestBulk writes in order and without.
func TestBulk(t *testing.T) {
	t.Parallel()
	coll := things(t)
	ctx := t.Context()
	docs := []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 3}}}
	_, err := coll.InsertMany(ctx, docs)
	var bulk mongo.BulkWriteException
	if !asBulk(err, &bulk) || len(bulk.WriteErrors) != 1 || bulk.WriteErrors[0].Index != 2 || bulk.WriteErrors[0].Code != 11000 {
		t.Fatalf("in order: %v", err)
	}
	if raw := bulk.WriteErrors[0].Raw; raw.Lookup("keyPattern", "_id").Type == 0 || raw.Lookup("keyValue", "_id").Int32() != 1 {
		t.Errorf("the error has no key: %v", raw)
	}
	if got := all(t, coll); len(got) != 2 {
		t.Errorf("in order: %v", got)
	}
	_, err = coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	if !asBulk(err, &bulk) || len(bulk.WriteErrors) != 3 {
		t.Fatalf("without order: %v", err)
	}
	if got := all(t, coll); len(got) != 3 {
		t.Errorf("without order: %v", got)
	}
	if _, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "u", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, object(t, `{"$set":{"u":5}}`)); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{`{"$set":{"u":5}}`, `{"$inc":{"u":5}}`} {
		_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 2}}, object(t, change))
		if err == nil || !strings.Contains(err.Error(), "index: u_1 dup key: { u: 5 }") {
			t.Errorf("%s: %v", change, err)
		}
	}
	res, err := coll.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: 7}}),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 7}}).SetUpdate(object(t, `{"$set":{"a":1}}`)),
		mongo.NewUpdateManyModel().SetFilter(bson.D{}).SetUpdate(object(t, `{"$set":{"b":1}}`)).SetUpsert(true),
		mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}),
		mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: 8}}).SetReplacement(bson.D{{Key: "c", Value: 1}}).SetUpsert(true),
	})
	if err != nil || res.InsertedCount != 1 || res.ModifiedCount != 5 || res.DeletedCount != 1 || res.UpsertedCount != 1 {
		t.Errorf("BulkWrite: %+v %v", res, err)
	}
}
