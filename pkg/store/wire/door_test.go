package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/wire"
)

// codeOf gives the code of a server's error, 0 if it is none.
func codeOf(err error) int {
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		return int(e.Code)
	}
	if w, ok := errors.AsType[mongo.WriteException](err); ok && len(w.WriteErrors) > 0 {
		return w.WriteErrors[0].Code
	}
	return 0
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, c := range []struct {
		name       string
		credential options.Credential
	}{
		{"a wrong password", options.Credential{Username: "admin", Password: "wrong"}},
		{"another user", options.Credential{Username: "root", Password: password}},
		{"another mechanism", options.Credential{Username: "admin", Password: password, AuthMechanism: "SCRAM-SHA-1"}},
	} {
		client := s.client(t, func(o *options.ClientOptions) { o.SetAuth(c.credential) })
		err := client.Ping(t.Context(), nil)
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBeforeLogin(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t, func(o *options.ClientOptions) { o.Auth = nil })
	for command, want := range map[string]int{
		`{"ping":1}`: 0, `{"hello":1}`: 0, `{"buildInfo":1}`: 0, `{"connectionStatus":1}`: 0,
		`{"find":"things"}`: 13, `{"listDatabases":1}`: 13, `{"insert":"things","documents":[{}]}`: 13, `{"serverStatus":1}`: 13,
		`{"getLog":"startupWarnings"}`: 13, `{"nonsense":1}`: 59, `{"killSessions":[]}`: 13,
	} {
		err := client.Database("admin").RunCommand(t.Context(), object(t, command)).Err()
		if codeOf(err) != want || (err == nil) != (want == 0) {
			t.Errorf("%s: %v, want the code %d", command, err, want)
		}
	}
}

func TestOutOfReach(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t)
	insert(t, client.Database("test").Collection("things"), `{"_id":1}`)
	for db, commands := range map[string][]string{
		"svc": {
			`{"find":"users"}`, `{"listCollections":1}`, `{"dbStats":1}`, `{"insert":"users","documents":[{}]}`, `{"dropDatabase":1}`,
			`{"aggregate":1,"pipeline":[{"$changeStream":{}}],"cursor":{}}`, `{"explain":{"find":"users"}}`, `{"validate":"users"}`,
		},
		"test": {
			`{"find":"svc.audit"}`, `{"delete":"svc.audit","deletes":[{"q":{},"limit":0}]}`, `{"drop":"svc.leases"}`, `{"explain":{"find":"svc.audit"}}`,
			`{"aggregate":"svc.audit","pipeline":[{"$changeStream":{}}],"cursor":{}}`, `{"dataSize":"svc.users"}`, `{"dataSize":"test.svc.audit"}`,
		},
		"admin": {
			`{"renameCollection":"svc.users","to":"test.users"}`, `{"renameCollection":"test.things","to":"svc.things"}`,
			`{"renameCollection":"test.svc.audit","to":"test.things2"}`, `{"renameCollection":"test.things","to":"test.svc.audit"}`,
		},
	} {
		for _, command := range commands {
			err := client.Database(db).RunCommand(t.Context(), object(t, command)).Err()
			if code := codeOf(err); code != 13 && code != 238 {
				t.Errorf("%s in %s: %v", command, db, err)
			}
		}
	}
	names, err := client.ListDatabaseNames(t.Context(), bson.D{})
	if err != nil || len(names) != 1 || names[0] != "test" {
		t.Errorf("the databases are %v, %v", names, err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *wire.Options) { o.ReadOnly = true })
	db := s.client(t).Database("test")
	for _, command := range []string{
		`{"insert":"things","documents":[{}]}`, `{"update":"things","updates":[{"q":{},"u":{"a":1}}]}`, `{"delete":"things","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"things","remove":true}`, `{"create":"things"}`, `{"drop":"things"}`, `{"dropDatabase":1}`,
		`{"createIndexes":"things","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"dropIndexes":"things","index":"*"}`, `{"renameCollection":"test.a","to":"test.b"}`,
	} {
		if err := db.RunCommand(t.Context(), object(t, command)).Err(); codeOf(err) != 13 {
			t.Errorf("%s: %v", command, err)
		}
	}
	if got := all(t, db.Collection("things")); len(got) != 0 {
		t.Errorf("there is %v", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:27018": "loopback", "localhost:27018": "loopback", "[::1]:27018": "loopback",
		"0.0.0.0:27018": "open", "10.0.0.1:27018": "open", "[::]:27018": "open",
		":27018": "refused", "27018": "refused", "": "refused", "db.example.com:27018": "refused", "127.0.0.1": "refused", "127.0.0.1:": "refused",
	} {
		loopback, err := wire.CheckAddress(address)
		got := "open"
		if loopback {
			got = "loopback"
		}
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", address, got, err, want)
		}
	}
}

// TestOpenAddressIsWarnedOf listens where others can come.
func TestOpenAddressIsWarnedOf(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	serve(t, func(o *wire.Options) {
		o.Address, o.Logger = "0.0.0.0:0", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	if !strings.Contains(log.String(), "not encrypted") {
		t.Errorf("the log says: %s", log.String())
	}
}

// TestBrokenConnections sends what is not the protocol. Whoever does is cut off, and others don't notice.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	coll := s.client(t).Database("test").Collection("things")
	large := append(length(1<<20), make([]byte, 12)...) // beyond what those may send who have not logged in
	for name, data := range map[string][]byte{
		"noise": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "a large message": large, "a bad length": append(length(3), make([]byte, 12)...),
		"an unknown operation": frame(2010, length(0)), "a body that is no document": frame(2013, length(0), []byte{0}, length(99)),
	} {
		nc := dial(t, s)
		if _, err := nc.Write(data); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, nc); n != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %d bytes of answer, %v", name, n, err)
		}
	}
	half := dial(t, s) // which never says the rest; the end of the server doesn't wait for it
	if _, err := half.Write(frame(2013, length(0), []byte{0}, raw(t, `{"ping":1,"$db":"admin"}`))[:20]); err != nil {
		t.Fatal(err)
	}
	insert(t, coll, `{"_id":1}`)
}

func dial(t *testing.T, s *server) net.Conn {
	t.Helper()
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// TestGone has a client hang up while the server works for it.
func TestGone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`)
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan bool, 1)
	go func() { waits <- stream.Next(ctx) }()
	cancel() // the driver closes the connection
	if <-waits {
		t.Error("there is an event")
	}
	insert(t, coll, `{"_id":2}`)
	// The end of the test waits for the command, which would go on for 10 minutes.
}

// TestTooManyConnections has those who have not logged in make room for who has not either, the most silent first: they
// don't bother those who have, and don't keep out who can.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	coll := s.client(t, func(o *options.ClientOptions) { o.SetMinPoolSize(2) }).Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`)
	ping := func(nc net.Conn) bool {
		if _, err := nc.Write(wire.Request(raw(t, `{"ping":1,"$db":"admin"}`), 0)); err != nil {
			return false
		}
		n, err := nc.Read(make([]byte, 1024))
		return n > 0 && err == nil
	}
	silent, talking := dial(t, s), dial(t, s)
	if !ping(silent) {
		t.Fatal("the first connection is not served")
	}
	for i := range 300 {
		if !ping(talking) {
			t.Fatalf("after %d others, the one that talks is ended", i)
		}
		if !ping(dial(t, s)) {
			t.Fatalf("after %d others, one is not served", i)
		}
	}
	if ping(silent) {
		t.Error("the silent connection is still served")
	}
	insert(t, coll, `{"_id":2}`)
	insert(t, s.client(t).Database("test").Collection("things"), `{"_id":3}`)
}

// TestShutdown ends a server on which everything is open that can be.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`, `{"_id":2}`, `{"_id":3}`)
	if _, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1)); err != nil {
		t.Fatal(err)
	}
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	reading, stopReading := context.WithCancel(t.Context())
	go func() { defer close(waiting); stream.Next(reading) }()
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertOne(mongo.NewSessionContext(t.Context(), session), bson.D{{Key: "_id", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.store.Database("test").Collection("things").Get(t.Context(), raw(t, `{"v":4}`).Lookup("v")); err == nil {
		t.Error("the transaction was committed")
	}
	stopReading() // the driver looks for another server
	<-waiting
}
