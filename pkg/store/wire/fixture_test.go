package wire_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/wire"
)

// password is the one of all servers of these tests.
const password = "the-admin-token-of-tests"

// server is an endpoint on an embedded store in memory.
type server struct {
	*wire.Server
	store *embedded.Store
}

// serve starts a server, which ends with t. change may be nil.
func serve(t testing.TB, change func(*wire.Options)) *server {
	t.Helper()
	st, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	o := wire.Options{
		Store: st,
		Databases: func(context.Context) ([]string, error) {
			names, _ := st.Contents()
			return names, nil
		},
		Hidden: func(name string) bool { return name == "svc" }, Feeds: st, Address: "127.0.0.1:0", Password: password,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	if change != nil {
		change(&o)
	}
	s, err := wire.Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &server{Server: s, store: st}
}

func (s *server) uri() string {
	return "mongodb://admin:" + password + "@" + s.Addr().String() + "/?replicaSet=svc&authSource=admin"
}

// client connects the Go driver. It disconnects when t ends.
func (s *server) client(t testing.TB, change ...func(*options.ClientOptions)) *mongo.Client {
	t.Helper()
	opts := options.Client().ApplyURI(s.uri()).SetServerSelectionTimeout(20 * time.Second)
	for _, fn := range change {
		fn(opts)
	}
	c, err := mongo.Connect(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Disconnect: %v", err)
		}
	})
	return c
}

// things is an empty collection on a server of its own.
func things(t testing.TB) *mongo.Collection {
	t.Helper()
	return serve(t, nil).client(t).Database("test").Collection("things")
}

func object(t testing.TB, json string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

// insert puts documents into a collection.
func insert(t testing.TB, coll *mongo.Collection, docs ...string) {
	t.Helper()
	for _, d := range docs {
		if _, err := coll.InsertOne(t.Context(), object(t, d)); err != nil {
			t.Fatalf("insert %s: %v", d, err)
		}
	}
}

// all gives what there is, as one line of JSON each.
func all(t testing.TB, coll *mongo.Collection, opts ...options.Lister[options.FindOptions]) (lines []string) {
	t.Helper()
	cursor, err := coll.Find(t.Context(), bson.D{}, opts...)
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	for cursor.Next(t.Context()) {
		lines = append(lines, text(t, cursor.Current))
	}
	if err := cursor.Err(); err != nil {
		t.Fatalf("find: %v", err)
	}
	return lines
}

func text(t testing.TB, v any) string {
	t.Helper()
	out, err := bson.MarshalExtJSON(v, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func asBulk(err error, into *mongo.BulkWriteException) bool { return errors.As(err, into) }

// clock is a time that moves when it is told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
