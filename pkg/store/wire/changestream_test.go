package wire_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// next gives the next n events of a stream, shortly.
func next(t *testing.T, stream *mongo.ChangeStream, n int) string {
	t.Helper()
	var events []string
	for range n {
		if !stream.Next(t.Context()) {
			t.Fatalf("after %v: %v", events, stream.Err())
		}
		e := stream.Current
		line := e.Lookup("operationType").StringValue()
		if coll, ok := e.Lookup("ns", "coll").StringValueOK(); ok {
			line += " " + coll
		}
		if id := e.Lookup("documentKey", "_id"); id.Type != 0 {
			line += " " + id.String()
		}
		if full, ok := e.Lookup("fullDocument").DocumentOK(); ok {
			line += " " + text(t, full)
		}
		events = append(events, line)
	}
	return strings.Join(events, "; ")
}

func TestChangeStreams(t *testing.T) {
	t.Parallel()
	db := serve(t, nil).client(t).Database("test")
	coll := db.Collection("things")
	ctx := t.Context()
	stream, err := coll.Watch(ctx, mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := db.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: object(t, `{"operationType":"delete"}`)}}, {{Key: "$project", Value: object(t, `{"wallTime":0}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, db.Collection("other"), `{"_id":1}`)
	insert(t, coll, `{"_id":1,"a":1}`)
	if got := next(t, stream, 1); got != `insert things {"$numberInt":"1"} {"_id":1,"a":1}` {
		t.Error(got)
	}
	token := stream.ResumeToken()
	if _, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, object(t, `{"$set":{"b":2}}`)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, stream, 1); got != `replace things {"$numberInt":"1"} {"_id":1,"a":1,"b":2}` {
		t.Error(got)
	}
	if _, err := coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if got := next(t, stream, 1); got != `delete things {"$numberInt":"1"}` {
		t.Error(got)
	}
	if got := next(t, whole, 1); got != `delete things {"$numberInt":"1"}` || whole.Current.Lookup("wallTime").Type != 0 {
		t.Errorf("of the database: %s", got)
	}
	again, err := coll.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, again, 2); got != `replace things {"$numberInt":"1"}; delete things {"$numberInt":"1"}` {
		t.Errorf("behind a token: %s", got)
	}
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if got := next(t, again, 2); got != `drop things; invalidate` {
		t.Error(got)
	}
	if again.Next(ctx) || again.Err() != nil || again.ID() != 0 {
		t.Errorf("after the end: %v %v", again.Current, again.Err())
	}
	for _, s := range []*mongo.ChangeStream{stream, whole, again} {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestStreamFromATime begins where an earlier answer was.
func TestStreamFromATime(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`)
	at, err := client.Database("test").RunCommand(t.Context(), bson.D{{Key: "count", Value: "things"}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	insert(t, coll, `{"_id":2}`, `{"_id":3}`)
	seconds, n := at.Lookup("operationTime").Timestamp()
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: seconds, I: n}))
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, stream, 2); got != `insert things {"$numberInt":"2"} {"_id":2}; insert things {"$numberInt":"3"} {"_id":3}` {
		t.Error(got)
	}
	if err := stream.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: seconds - 1000, I: 1}))
	if codeOf(err) != 286 {
		t.Errorf("from long ago: %v", err)
	}
	_, err = coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(bson.D{{Key: "_data", Value: "8263"}}))
	if codeOf(err) != 260 {
		t.Errorf("behind a token of somebody else: %v", err)
	}
}
