package wire_test

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/svcctl/svc/pkg/store/wire"
)

// A read that does not say how long it may take has the time of the endpoint, each batch of a cursor anew; what it says counts
// for more, and writes take what they take.
func TestMaxTime(t *testing.T) {
	db := serve(t, func(o *wire.Options) { o.MaxTime = time.Nanosecond }).client(t).Database("test")
	coll := db.Collection("things")
	insert(t, coll, `{"_id": 1}`, `{"_id": 2}`)
	run := func(command string) (bson.D, error) {
		var reply bson.D
		err := db.RunCommand(t.Context(), object(t, command)).Decode(&reply)
		return reply, err
	}
	wantExpired := func(what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[mongo.CommandError](err); !ok || e.Name != "MaxTimeMSExpired" {
			t.Errorf("%s: %v, want MaxTimeMSExpired", what, err)
		}
	}
	for _, command := range []string{`{"count": "things"}`, `{"distinct": "things", "key": "_id"}`} {
		_, err := run(command)
		wantExpired(command, err)
		if _, err := run(command[:len(command)-1] + `, "maxTimeMS": 600000}`); err != nil {
			t.Errorf("%s with maxTimeMS: %v", command, err)
		}
	}
	const endless = `{"$reduce": {"input": {"$range": [0, 1000000]}, "initialValue": 0, "in": {"$add": ["$$value",
		{"$reduce": {"input": {"$range": [0, 1000000]}, "initialValue": 0, "in": {"$add": ["$$value", 1]}}}]}}}`
	for _, command := range []string{
		`{"find": "things", "filter": {"$expr": {"$gt": [` + endless + `, 0]}}}`,
		`{"aggregate": "things", "pipeline": [{"$project": {"n": ` + endless + `}}], "cursor": {}}`,
	} {
		_, err := run(command)
		wantExpired(command, err)
	}
	reply, err := run(`{"aggregate": "things", "pipeline": [{"$project": {"n": {"$cond": [{"$eq": ["$_id", 1]}, 1, ` + endless + `]}}}],
		"cursor": {"batchSize": 1}, "maxTimeMS": 600000}`)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bson.Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	id := bson.Raw(raw).Lookup("cursor", "id").AsInt64()
	err = db.RunCommand(t.Context(), bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "things"}}).Err()
	wantExpired("getMore", err)
}

// More of a change stream is waited for as long as the client says.
func TestMaxTimeOfStreams(t *testing.T) {
	srv := serve(t, func(o *wire.Options) { o.MaxTime = time.Minute })
	coll := srv.client(t).Database("test").Collection("things")
	insert(t, coll, `{"_id": 1}`)
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(t.Context()) }()
	insert(t, coll, `{"_id": 2}`)
	if !stream.Next(t.Context()) {
		t.Error(stream.Err())
	}
}
