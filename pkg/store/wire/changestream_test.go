package wire_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store"
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
	if got := next(t, stream, 1); got != `update things {"$numberInt":"1"}` ||
		text(t, stream.Current.Lookup("updateDescription").Document()) != `{"updatedFields":{"b":2},"removedFields":[],"truncatedArrays":[]}` {
		t.Errorf("%s: %v", got, stream.Current)
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
	if got := next(t, again, 2); got != `update things {"$numberInt":"1"}; delete things {"$numberInt":"1"}` {
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

// TestStreamOfAllDatabases sees what happens in all databases, in those too that come into being meanwhile, but for those that are hidden.
func TestStreamOfAllDatabases(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client, ctx := s.client(t), t.Context()
	insert(t, client.Database("gone").Collection("things"), `{"_id":"long ago"}`)
	if err := client.Database("gone").Drop(ctx); err != nil {
		t.Fatal(err)
	}
	insert(t, client.Database("old").Collection("things"), `{"_id":"before"}`)
	stream, err := client.Watch(ctx, mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(db, id string) {
		t.Helper()
		coll := s.store.Database(db).Collection("things")
		if _, err := coll.Write(ctx, []store.Op{{Kind: store.Insert, Doc: raw(t, `{"_id":"`+id+`"}`)}}, true); err != nil {
			t.Fatal(err)
		}
	}
	told := func(stream *mongo.ChangeStream) string {
		t.Helper()
		event := next(t, stream, 1)
		return stream.Current.Lookup("ns", "db").StringValue() + ": " + event
	}
	write("svc", "hidden")
	for _, db := range []string{"old", "new", "gone"} {
		write(db, "1")
		if got, want := told(stream), db+`: insert things "1" {"_id":"1"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	token := stream.ResumeToken()
	if err := stream.Close(ctx); err != nil {
		t.Fatal(err)
	}
	write("new", "2")
	write("newer", "1")
	write("old", "2")
	write("svc", "hidden too")
	again, err := client.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{told(again), told(again), told(again)}
	slices.Sort(got)
	want := []string{`new: insert things "2" {"_id":"2"}`, `newer: insert things "1" {"_id":"1"}`, `old: insert things "2" {"_id":"2"}`}
	if !slices.Equal(got, want) {
		t.Errorf("behind the token: %v", got)
	}
	if err := again.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestStreamsThatThereAreNot asks for change streams that can't be opened.
func TestStreamsThatThereAreNot(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	forged, err := bson.Marshal(bson.D{{Key: "test", Value: "no position"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		db, coll, options string
		code              int
	}{
		{"admin", `1`, `{}`, 73},
		{"admin", `"things"`, `{"allChangesForCluster":true}`, 72},
		{"test", `1`, `{"allChangesForCluster":true}`, 72},
		{"svc", `1`, `{"resumeAfter":{"_data":"0102"}}`, 13},
		{"test", `1`, `{"showExpandedEvents":true}`, 238},
		{"admin", `1`, `{"allChangesForCluster":true,"startAtOperationTime":{"$timestamp":{"t":1,"i":1}}}`, 238},
		{"admin", `1`, `{"allChangesForCluster":true,"resumeAfter":{"_data":"0102"}}`, 260},
		{"admin", `1`, `{"allChangesForCluster":true,"resumeAfter":{"_data":"` + hex.EncodeToString(forged) + `"}}`, 260},
	} {
		command := `{"aggregate":` + c.coll + `,"pipeline":[{"$changeStream":` + c.options + `}],"cursor":{}}`
		if err := client.Database(c.db).RunCommand(t.Context(), object(t, command)).Err(); codeOf(err) != c.code {
			t.Errorf("%s in %s: %v, want the code %d", command, c.db, err, c.code)
		}
	}
}

// TestImagesOfStreams asks streams for the documents as they were and became, of collections that keep them and of others.
func TestImagesOfStreams(t *testing.T) {
	t.Parallel()
	db, ctx := serve(t, nil).client(t).Database("test"), t.Context()
	const missing = "missing"
	for _, c := range []struct {
		images       bool
		full, before string
		want         string
	}{
		{true, "whenAvailable", "whenAvailable", `{"_id":1,"a":2} {"_id":1,"a":1}`},
		{true, "required", "required", `{"_id":1,"a":2} {"_id":1,"a":1}`},
		{true, "updateLookup", "off", `{"_id":1,"a":3} -`},
		{true, "default", "off", `- -`},
		{false, "whenAvailable", "whenAvailable", `null null`},
		{false, "updateLookup", "whenAvailable", `{"_id":1,"a":3} null`},
		{false, "required", "off", missing},
		{false, "default", "required", missing},
	} {
		if err := db.Drop(ctx); err != nil {
			t.Fatal(err)
		}
		coll := db.Collection("things")
		insert(t, coll, `{"_id":1,"a":1}`)
		if err := db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "things"}, {Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: c.images}}}}).Err(); err != nil {
			t.Fatal(err)
		}
		now, err := coll.Watch(ctx, mongo.Pipeline{})
		if err != nil {
			t.Fatal(err)
		}
		start := now.ResumeToken()
		for _, a := range []int{2, 3} {
			if _, err := coll.UpdateByID(ctx, 1, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: a}}}}); err != nil {
				t.Fatal(err)
			}
		}
		stream, err := coll.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(start).
			SetFullDocument(options.FullDocument(c.full)).SetFullDocumentBeforeChange(options.FullDocument(c.before)))
		got := missing
		if err == nil {
			if stream.Next(ctx) {
				got = image(t, stream.Current, "fullDocument") + " " + image(t, stream.Current, "fullDocumentBeforeChange")
			}
			err = errors.Join(stream.Err(), stream.Close(ctx))
		}
		if got != c.want || codeOf(err) != 47 && err != nil || (err == nil) == (got == missing) {
			t.Errorf("%+v: got %s, %v", c, got, err)
		}
		if err := now.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{})
	if err != nil || len(specs) != 1 || len(specs[0].Options) > 5 {
		t.Errorf("the collections are %v, %v", specs, err)
	}
	if err := db.RunCommand(ctx, object(t, `{"create":"kept","changeStreamPreAndPostImages":{"enabled":true}}`)).Err(); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{
		`{"collMod":"kept"}`: 0, `{"collMod":"nothing"}`: 26,
		`{"collMod":"kept","validator":{"a":1}}`: 238, `{"collMod":"kept","changeStreamPreAndPostImages":{}}`: 40414,
	} {
		if err := db.RunCommand(ctx, object(t, command)).Err(); codeOf(err) != want || (err == nil) != (want == 0) {
			t.Errorf("%s: %v, want the code %d", command, err, want)
		}
	}
	specs, err = db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: "kept"}})
	if err != nil || len(specs) != 1 || text(t, specs[0].Options) != `{"changeStreamPreAndPostImages":{"enabled":true}}` {
		t.Errorf("created with images: %v, %v", specs, err)
	}
}

// image is a document that an event has.
func image(t *testing.T, event bson.Raw, name string) string {
	t.Helper()
	v := event.Lookup(name)
	switch v.Type { //nolint:exhaustive // of those that there are
	case 0:
		return "-"
	case bson.TypeNull:
		return "null"
	}
	return text(t, v.Document())
}
