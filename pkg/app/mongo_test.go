package app_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongooptions "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/client"
)

// mongoClient connects by the MongoDB endpoint.
func mongoClient(t *testing.T, addr, password string) *mongo.Client {
	t.Helper()
	opts := mongooptions.Client().ApplyURI("mongodb://" + addr + "/?replicaSet=svc").
		SetAuth(mongooptions.Credential{Username: "admin", Password: password}).SetServerSelectionTimeout(patience)
	c, err := mongo.Connect(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.WithoutCancel(t.Context())) })
	return c
}

// TestMongoEndpoint reads a project's records by MongoDB's protocol, and nothing of the service's own.
func TestMongoEndpoint(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.MongoListen, cfg.MongoReadOnly = "127.0.0.1:0", true
	i := start(t, cfg)
	i.register(t)
	if err := i.create(t, `{"title":"hello"}`); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	c := mongoClient(t, i.mongo, adminToken)
	names, err := c.ListDatabaseNames(ctx, bson.D{})
	if err != nil || strings.Join(names, " ") != "svc_blog" {
		t.Errorf("the databases are %v, %v", names, err)
	}
	articles := c.Database("svc_blog").Collection("articles")
	var record struct{ Title string }
	if err := articles.FindOne(ctx, bson.D{}).Decode(&record); err != nil || record.Title != "hello" {
		t.Errorf("the record is %+v, %v", record, err)
	}
	if _, err := articles.InsertOne(ctx, bson.D{{Key: "title", Value: "by the back door"}}); err == nil || !strings.Contains(err.Error(), "store.mongoReadOnly") {
		t.Errorf("a write: %v", err)
	}
	for _, own := range []struct{ db, coll string }{{"svc", "users"}, {"svc", "secrets"}, {"svc_blog", "svc.audit"}} {
		if err := c.Database(own.db).Collection(own.coll).FindOne(ctx, bson.D{}).Err(); err == nil || !strings.Contains(err.Error(), "belong") {
			t.Errorf("%s.%s: %v", own.db, own.coll, err)
		}
	}
	// What restores and drills make is nobody's: neither the collections that are to take the places of others, nor what is noted of them.
	own := c.Database("svc_blog")
	for _, name := range []string{"svc.restore.x.0", "svc.restores", "svc.runs", "svc.snapshots", "svc.due"} {
		for _, command := range []bson.D{
			{{Key: "find", Value: name}},
			{{Key: "count", Value: name}},
			{{Key: "listIndexes", Value: name}},
			{{Key: "aggregate", Value: name}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: bson.D{}}},
			{{Key: "aggregate", Value: name}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}, {Key: "cursor", Value: bson.D{}}},
			{{Key: "aggregate", Value: "articles"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$unionWith", Value: name}}}}, {Key: "cursor", Value: bson.D{}}},
			{{Key: "aggregate", Value: "articles"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$lookup", Value: bson.D{
				{Key: "from", Value: name}, {Key: "localField", Value: "a"}, {Key: "foreignField", Value: "b"}, {Key: "as", Value: "c"},
			}}}}}, {Key: "cursor", Value: bson.D{}}},
			{{Key: "collStats", Value: name}},
			{{Key: "explain", Value: bson.D{{Key: "find", Value: name}}}},
		} {
			if err := own.RunCommand(ctx, command).Err(); err == nil || !strings.Contains(err.Error(), "belong") {
				t.Errorf("%v: %v", command, err)
			}
		}
	}
	for _, command := range []bson.D{{{Key: "find", Value: "articles"}}, {{Key: "listCollections", Value: 1}}, {{Key: "dbStats", Value: 1}}} {
		if err := c.Database("svc-drill-x").RunCommand(ctx, command).Err(); err == nil || !strings.Contains(err.Error(), "belong") {
			t.Errorf("of a drill, %v: %v", command, err)
		}
	}
	if err := mongoClient(t, i.mongo, "not the admin token").Ping(ctx, nil); err == nil || !strings.Contains(err.Error(), "Authentication failed") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestMongoEndpointThroughRestore: what a restore and a drill make is told by no stream, and who writes meanwhile by the endpoint writes to the
// records that were there, or not at all.
func TestMongoEndpointThroughRestore(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.MongoListen, cfg.MongoReadOnly = "127.0.0.1:0", false
	i := start(t, cfg)
	i.register(t)
	if err := i.create(t, `{"title":"hello"}`); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	run := func(run *api.Run, err error) *api.Run {
		t.Helper()
		if err == nil {
			err = i.FollowSnapshotRun(ctx, "blog", run.ID, 0, func(api.RunEvent) error { return nil })
		}
		if err == nil {
			run, err = i.SnapshotRun(ctx, "blog", run.ID)
		}
		if err != nil || run.Status != api.RunSucceeded {
			t.Fatal(err, run)
		}
		return run
	}
	taken := run(i.CreateBackup(ctx, "blog")).Subject
	c := mongoClient(t, i.mongo, adminToken)
	articles := c.Database("svc_blog").Collection("articles")
	var streams []*mongo.ChangeStream
	for _, open := range []func() (*mongo.ChangeStream, error){
		func() (*mongo.ChangeStream, error) { return c.Watch(ctx, mongo.Pipeline{}) },
		func() (*mongo.ChangeStream, error) { return c.Database("svc_blog").Watch(ctx, mongo.Pipeline{}) },
	} {
		stream, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close(ctx) //nolint:errcheck // it was only read
		streams = append(streams, stream)
	}
	written := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				written <- nil
				return
			default:
			}
			_, err := articles.InsertOne(ctx, bson.D{{Key: "title", Value: fmt.Sprint("by the back door ", n)}})
			if err != nil && !strings.Contains(err.Error(), "are being replaced by those of a snapshot") {
				written <- err
				return
			}
		}
	}()
	run(i.DrillSnapshot(ctx, "blog", taken))
	restored := run(i.RestoreSnapshot(ctx, "blog", taken, api.SnapshotRestore{}))
	close(stop)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if _, err := articles.InsertOne(ctx, bson.D{{Key: "title", Value: "the last"}}); err != nil {
		t.Fatal(err)
	}
	result, err := client.SnapshotResultOf(restored)
	if err != nil {
		t.Fatal(err)
	}
	safety, err := i.Snapshot(ctx, "blog", result.Restored.Safety, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range streams {
		inserted, replaced := int64(0), false
		for last := false; !last; {
			if !stream.Next(ctx) {
				t.Fatal(stream.Err())
			}
			event := stream.Current.String()
			var e struct {
				Op   string                 `bson:"operationType"`
				Full struct{ Title string } `bson:"fullDocument"`
			}
			if err := bson.Unmarshal(stream.Current, &e); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(event, "svc-drill") || strings.Contains(event, "svc.") && e.Op != "rename" { // which has them take the place of others
				t.Errorf("a stream tells of %s", event)
			}
			last = e.Full.Title == "the last"
			switch {
			case e.Op != "insert":
				replaced = true
			case !replaced:
				inserted++
			}
		}
		if !replaced || inserted == 0 || inserted+1 != safety.Counts.Documents {
			t.Errorf("%d were written before, and %d are in the snapshot of what was replaced; replaced: %t", inserted, safety.Counts.Documents, replaced)
		}
	}
}

func TestMongoEndpointThatIsRefused(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, want := range map[string]string{
		"127.0.0.1": "no address", ":27018": "no host", "example.com:27018": "network address", taken.Addr().String(): "another store.mongoListen",
	} {
		cfg := newConfig(t)
		cfg.MongoListen = address
		a, err := app.New(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one about %q", address, err, want)
		}
		if err == nil {
			_ = a.Close()
		}
	}
	cfg := newConfig(t)
	cfg.MongoListen, cfg.StoreURI = "127.0.0.1:0", "mongodb://127.0.0.1:1"
	if err := cfg.CheckMongoListen(); err == nil || !strings.Contains(err.Error(), "embedded store only") {
		t.Errorf("on MongoDB: %v", err)
	}
}

// TestMongoEndpointOfAnAppThatIsNotRun has nothing left open.
func TestMongoEndpointOfAnAppThatIsNotRun(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.MongoListen = "127.0.0.1:0"
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
