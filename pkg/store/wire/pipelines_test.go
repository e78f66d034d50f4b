package wire_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/wire"
)

// given runs a command and gives the documents of its cursor as lines.
func given(t *testing.T, db *mongo.Database, command string) string {
	t.Helper()
	cursor, err := db.RunCommandCursor(t.Context(), object(t, command))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var lines []string
	for cursor.Next(t.Context()) {
		lines = append(lines, text(t, cursor.Current))
	}
	if err := cursor.Err(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Join(lines, " ")
}

// TestPipelines runs what has expressions in it: they are of no query of the port, and yet mean here what they do in a pipeline.
func TestPipelines(t *testing.T) {
	t.Parallel()
	db := serve(t, nil).client(t).Database("test")
	insert(t, db.Collection("orders"), `{"_id":1,"by":"a","n":3,"most":5}`, `{"_id":2,"by":"b","n":7,"most":5}`, `{"_id":3,"by":"a","n":4,"most":4}`)
	insert(t, db.Collection("people"), `{"_id":"a","name":"Ann"}`, `{"_id":"b","name":"Bob"}`)
	for command, want := range map[string]string{
		`{"aggregate":"orders","pipeline":[{"$group":{"_id":"$by","n":{"$sum":"$n"}}},{"$sort":{"_id":1}}],"cursor":{}}`:                                                               `{"_id":"a","n":7} {"_id":"b","n":7}`,
		`{"aggregate":"orders","pipeline":[{"$lookup":{"from":"people","localField":"by","foreignField":"_id","as":"p"}},{"$match":{"_id":2}},{"$project":{"p.name":1}}],"cursor":{}}`: `{"_id":2,"p":[{"name":"Bob"}]}`,
		`{"aggregate":"orders","pipeline":[{"$match":{"$expr":{"$gt":["$n","$$most"]}}},{"$project":{"n":1}}],"let":{"most":{"$add":[3,2]}},"cursor":{"batchSize":0}}`:                 `{"_id":2,"n":7}`,
		`{"aggregate":1,"pipeline":[{"$documents":[{"a":2},{"a":1}]},{"$sort":{"a":1}}],"cursor":{}}`:                                                                                  `{"a":1} {"a":2}`,
		`{"aggregate":"orders","pipeline":[{"$collStats":{"count":{}}},{"$project":{"count":1,"_id":0}}],"cursor":{}}`:                                                                 `{"count":3}`,
		`{"find":"orders","filter":{"$expr":{"$lt":["$n","$most"]}},"projection":{"n":1}}`:                                                                                             `{"_id":1,"n":3}`,
		`{"find":"orders","filter":{"by":"a","$expr":{"$lt":["$n","$$x"]}},"let":{"x":4},"sort":{"_id":-1}}`:                                                                           `{"_id":1,"by":"a","n":3,"most":5}`,
		`{"find":"orders","sort":{"_id":-1},"limit":1,"projection":{"twice":{"$multiply":["$n",2]}}}`:                                                                                  `{"_id":3,"twice":8}`,
	} {
		if got := given(t, db, command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	for command, want := range map[string]int{
		`{"aggregate":"orders","pipeline":[{"$match":{}}],"let":{"x":"$n"},"cursor":{}}`:                          4890500,
		`{"aggregate":"orders","pipeline":[{"$lookup":{"from":"svc.audit","pipeline":[],"as":"x"}}],"cursor":{}}`: 13,
		`{"aggregate":"orders","pipeline":[{"$unionWith":"svc.audit"}],"cursor":{}}`:                              13,
		`{"aggregate":"orders","pipeline":[{"$facet":{"x":[{"$unionWith":{"coll":"svc.audit"}}]}}],"cursor":{}}`:  13,
		`{"aggregate":"orders","pipeline":[{"$out":"svc.audit"}],"cursor":{}}`:                                    13,
		`{"aggregate":"orders","pipeline":[{"$merge":"svc.leases"}],"cursor":{}}`:                                 13,
		`{"aggregate":"orders","pipeline":[{"$out":{"db":"svc","coll":"users"}}],"cursor":{}}`:                    238,
		`{"aggregate":"orders","pipeline":[{"$out":"x"},{"$match":{}}],"cursor":{}}`:                              40601,
		`{"aggregate":1,"pipeline":[{"$match":{}}],"cursor":{}}`:                                                  73,
		`{"update":"orders","updates":[{"q":{},"u":[{"$set":{"_id":9}}],"multi":true}]}`:                          66,
		`{"aggregate":"orders","pipeline":[{"$project":{"x":{"$divide":["$n",0]}}}],"cursor":{}}`:                 2,
	} {
		if err := db.RunCommand(t.Context(), object(t, command)).Err(); codeOf(err) != want {
			t.Errorf("%s: %v, want the code %d", command, err, want)
		}
	}
}

// TestComputedWrites changes documents by expressions.
func TestComputedWrites(t *testing.T) {
	t.Parallel()
	coll := things(t)
	ctx := t.Context()
	insert(t, coll, `{"_id":1,"n":1}`, `{"_id":2,"n":2}`, `{"_id":3,"n":3}`)
	big := object(t, `{"$expr":{"$gte":["$n",2]}}`)
	if r, err := coll.UpdateMany(ctx, big, bson.A{object(t, `{"$set":{"m":{"$multiply":["$n",10]}}}`)}); err != nil || r.MatchedCount != 2 || r.ModifiedCount != 2 {
		t.Errorf("a pipeline: %+v %v", r, err)
	}
	if r, err := coll.UpdateMany(ctx, big, bson.A{object(t, `{"$set":{"m":{"$multiply":["$n",10]}}}`)}); err != nil || r.MatchedCount != 2 || r.ModifiedCount != 0 {
		t.Errorf("the same pipeline: %+v %v", r, err)
	}
	if r, err := coll.UpdateMany(ctx, big, object(t, `{"$inc":{"n":1}}`)); err != nil || r.ModifiedCount != 2 {
		t.Errorf("operators: %+v %v", r, err)
	}
	r, err := coll.UpdateOne(ctx, object(t, `{"_id":4,"$expr":{"$eq":["$n",1]}}`), bson.A{object(t, `{"$set":{"n":{"$add":["$_id",1]}}}`)}, options.UpdateOne().SetUpsert(true))
	if err != nil || r.UpsertedID != int32(4) {
		t.Errorf("an upsert: %+v %v", r, err)
	}
	if _, err := coll.UpdateMany(ctx, bson.D{}, bson.A{object(t, `{"$set":{"_id":9}}`)}); codeOf(err) != 66 {
		t.Errorf("another _id: %v", err)
	}
	var got bson.D
	err = coll.FindOneAndUpdate(ctx, big, bson.A{object(t, `{"$unset":"m"}`)},
		options.FindOneAndUpdate().SetSort(bson.D{{Key: "_id", Value: -1}}).SetReturnDocument(options.After)).Decode(&got)
	if err != nil || text(t, got) != `{"_id":4,"n":5}` {
		t.Errorf("FindOneAndUpdate: %s %v", text(t, got), err)
	}
	if r, err := coll.DeleteOne(ctx, object(t, `{"$expr":{"$eq":["$n",4]}}`)); err != nil || r.DeletedCount != 1 {
		t.Errorf("DeleteOne: %+v %v", r, err)
	}
	want := `{"_id":1,"n":1} {"_id":2,"n":3,"m":20} {"_id":4,"n":5}`
	if got := strings.Join(all(t, coll), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n, err := coll.CountDocuments(ctx, big); n != 2 || err != nil {
		t.Errorf("CountDocuments: %d %v", n, err)
	}
	var ns []int32
	if err := coll.Distinct(ctx, "n", big).Decode(&ns); err != nil || len(ns) != 2 {
		t.Errorf("Distinct: %v %v", ns, err)
	}
}

// TestComputedInTransaction has a transaction that is ended take its computed writes along.
func TestComputedInTransaction(t *testing.T) {
	t.Parallel()
	coll := things(t)
	insert(t, coll, `{"_id":1,"n":1}`)
	session, err := coll.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	ctx := mongo.NewSessionContext(t.Context(), session)
	if _, err := coll.UpdateMany(ctx, bson.D{}, bson.A{object(t, `{"$set":{"n":{"$add":["$n",1]}}}`)}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(all(t, coll), " "); got != `{"_id":1,"n":1}` {
		t.Errorf("outside: %s", got)
	}
	if err := session.AbortTransaction(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(all(t, coll), " "); got != `{"_id":1,"n":1}` {
		t.Errorf("after the end: %s", got)
	}
}

// TestOutput writes what a pipeline gives.
func TestOutput(t *testing.T) {
	t.Parallel()
	db := serve(t, nil).client(t).Database("test")
	insert(t, db.Collection("from"), `{"_id":1,"n":1}`, `{"_id":2,"n":2}`)
	insert(t, db.Collection("to"), `{"_id":2,"x":true}`, `{"_id":9}`)
	if _, err := db.Collection("to").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	given(t, db, `{"aggregate":"from","pipeline":[{"$merge":{"into":"to"}}],"cursor":{}}`)
	if got := strings.Join(all(t, db.Collection("to")), " "); got != `{"_id":1,"n":1} {"_id":2,"x":true,"n":2} {"_id":9}` {
		t.Errorf("merged: %s", got)
	}
	given(t, db, `{"aggregate":"from","pipeline":[{"$merge":{"into":"to","whenMatched":[{"$set":{"n":{"$add":["$n","$$new.n"]}}}],"whenNotMatched":"discard"}}],"cursor":{}}`)
	if got := strings.Join(all(t, db.Collection("to")), " "); got != `{"_id":1,"n":2} {"_id":2,"x":true,"n":4} {"_id":9}` {
		t.Errorf("merged by a pipeline: %s", got)
	}
	given(t, db, `{"aggregate":"from","pipeline":[{"$match":{"n":2}},{"$out":"to"}],"cursor":{}}`)
	if got := strings.Join(all(t, db.Collection("to")), " "); got != `{"_id":2,"n":2}` {
		t.Errorf("replaced: %s", got)
	}
	specs, err := db.Collection("to").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 {
		t.Errorf("its indexes: %v %v", specs, err)
	}
}

// TestOutputReadOnly has the stages that write refused as writes are.
func TestOutputReadOnly(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *wire.Options) { o.ReadOnly = true })
	db := s.client(t).Database("test")
	for _, command := range []string{
		`{"aggregate":"a","pipeline":[{"$out":"b"}],"cursor":{}}`, `{"aggregate":"a","pipeline":[{"$merge":"b"}],"cursor":{}}`,
		`{"aggregate":1,"pipeline":[{"$documents":[{}]},{"$out":"b"}],"cursor":{}}`, `{"dropAllUsersFromDatabase":1}`,
	} {
		if err := db.RunCommand(t.Context(), object(t, command)).Err(); codeOf(err) != 13 {
			t.Errorf("%s: %v", command, err)
		}
	}
	for command, want := range map[string]int{`{"configureFailPoint":"failCommand","mode":"off"}`: 59} {
		if err := s.client(t).Database("admin").RunCommand(t.Context(), object(t, command)).Err(); codeOf(err) != want {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestManyPipelines has more aggregations than there may be refused, until others have ended.
func TestManyPipelines(t *testing.T) {
	t.Parallel()
	coll := things(t)
	insert(t, coll, `{"_id":1}`, `{"_id":2}`, `{"_id":3}`)
	open := func() (*mongo.Cursor, error) {
		return coll.Aggregate(t.Context(), bson.A{object(t, `{"$match":{}}`)}, options.Aggregate().SetBatchSize(1))
	}
	var cursors []*mongo.Cursor
	for {
		cursor, err := open()
		if err != nil {
			if codeOf(err) != 146 || len(cursors) != 64 {
				t.Fatalf("behind %d: %v", len(cursors), err)
			}
			break
		}
		cursors = append(cursors, cursor)
	}
	if err := cursors[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cursors[1].All(t.Context(), new([]bson.D)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := open(); err != nil {
			t.Error(err)
		}
	}
}

// TestPipelinesShare has what runs beside many aggregations be one of them, and hold less than it does alone.
func TestPipelinesShare(t *testing.T) {
	t.Parallel()
	coll := things(t)
	db := coll.Database()
	for id := range 20 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "s", Value: strings.Repeat("x", 1<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(command string) error {
		var reply bson.Raw
		err := db.RunCommand(t.Context(), object(t, command)).Decode(&reply)
		if code, ok := reply.Lookup("writeErrors", "0", "code").AsInt64OK(); ok {
			return mongo.CommandError{Code: int32(code)}
		}
		return err
	}
	const sorted = `{"aggregate":"things","pipeline":[{"$sort":{"n":1,"_id":-1}},{"$project":{"_id":1}}],"cursor":{}}`
	if err := run(sorted); err != nil {
		t.Errorf("alone: %v", err)
	}
	for range 63 {
		if _, err := coll.Aggregate(t.Context(), bson.A{object(t, `{"$project":{"_id":1}}`)}, options.Aggregate().SetBatchSize(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(sorted); codeOf(err) != 292 {
		t.Errorf("beside 63: %v", err)
	}
	if _, err := coll.Aggregate(t.Context(), bson.A{object(t, `{"$match":{}}`)}, options.Aggregate().SetBatchSize(1)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		sorted,
		`{"aggregate":1,"pipeline":[{"$documents":[{"a":1}]}],"cursor":{}}`,
		`{"aggregate":"things","pipeline":[{"$out":"others"}],"cursor":{}}`,
		`{"count":"things","query":{"$expr":{"$gt":["$_id",1]}}}`,
		`{"distinct":"things","key":"_id","query":{"$expr":{"$gt":["$_id",1]}}}`,
		`{"find":"things","filter":{"$expr":{"$gt":["$_id",1]}}}`,
		`{"update":"things","updates":[{"q":{},"u":[{"$set":{"a":1}}],"multi":true}]}`,
	} {
		if err := run(command); codeOf(err) != 146 {
			t.Errorf("%s: %v, want the code 146", command, err)
		}
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); err == nil || codeOf(err) != 146 { // an aggregation, too
		t.Errorf("%d documents are counted, %v", n, err)
	}
	session, in := transaction(t, db.Client())
	if _, err := coll.Find(in, bson.D{}); codeOf(err) != 146 {
		t.Errorf("in a transaction: %v", err)
	}
	session.EndSession(t.Context())
	if got := all(t, coll, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}})); len(got) != 20 {
		t.Errorf("a plain find gives %d documents", len(got))
	}
}

// TestText refuses what nobody could read again.
func TestText(t *testing.T) {
	t.Parallel()
	coll := things(t)
	insert(t, coll, `{"_id":1}`)
	bad := bson.RawValue{Type: bson.TypeString, Value: []byte{3, 0, 0, 0, 0xff, 'a', 0}}
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bad}}}}); codeOf(err) != 2 {
		t.Errorf("an insert: %v", err)
	}
	if _, err := coll.ReplaceOne(t.Context(), bson.D{}, bson.D{{Key: "a", Value: bad}}); codeOf(err) != 2 {
		t.Errorf("a replacement: %v", err)
	}
	if _, err := coll.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: bad}}}}); codeOf(err) == 0 {
		t.Errorf("an update: %v", err)
	}
	old := bson.Binary{Subtype: 2, Data: []byte("abc")}
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: old}}); err != nil {
		t.Errorf("an old binary: %v", err)
	}
}
