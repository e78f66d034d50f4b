package mongo_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// canary is a password that must show up nowhere.
const canary = "c4n4ry"

// texts is everything that an error says, on every level.
func texts(err error) string {
	var all strings.Builder
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&all, "%v\n%+v\n%#v\n", err, err, err)
	}
	return all.String()
}

func TestOpenRefusesBadURIs(t *testing.T) {
	for _, uri := range []string{
		"", "localhost", "postgres://u:" + canary + "@h/", "mongodb://", "mongodb://u:" + canary + "%zz@h/",
		"mongodb://u:" + canary + "@x@h/", "mongodb://u:" + canary + "/@h/", "mongodb://u:" + canary + "@h:port/",
		"mongodb://u:" + canary + "@h/?tls=perhaps", "mongodb://u:" + canary + "@h/?authMechanism=NONE",
		"mongodb://u:" + canary + "@h/?w=1&journal=maybe", "mongodb://u:" + canary + "@a,b/?directConnection=true",
		"mongodb://u:" + canary + "@h/?tls=true&tlsCAFile=/nowhere/" + canary,
	} {
		_, err := mongo.Open(t.Context(), mongo.Options{URI: uri})
		if errs.KindOf(err) != errs.Invalid || errs.From(err).Code != "bad_store_uri" {
			t.Errorf("Open(%s): %v", uri, err)
		}
		if strings.Contains(texts(err), canary) {
			t.Errorf("Open(%s) tells the password: %v", uri, err)
		}
	}
}

func TestOpenKeepsSecrets(t *testing.T) {
	shared := mongotest.URI(t)
	host := strings.TrimPrefix(shared, "mongodb://")
	for name, uri := range map[string]string{
		"wrong password": "mongodb://user:" + canary + "@" + host,
		"no server":      "mongodb://user:" + canary + "@127.0.0.1:1/?replicaSet=none",
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			_, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Logger: logger, SelectTimeout: 500 * time.Millisecond})
			if errs.KindOf(err) != errs.Unavailable {
				t.Errorf("got %v, want an outage", err)
			}
			if text := texts(err) + log.String(); strings.Contains(text, canary) {
				t.Errorf("the password is in errors or logs: %s", text)
			}
		})
	}
}

func TestOpenRefusesStandalone(t *testing.T) {
	server, err := mongotest.StartStandalone(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED on a standalone server: %v", err)
	}
	defer func() { _ = server.Stop() }()
	_, err = mongo.Open(t.Context(), mongo.Options{URI: server.URI})
	if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.Code != "standalone_server" || !strings.Contains(e.Message, "--replSet") {
		t.Errorf("got %v, want the outage standalone_server with what to do", err)
	}
}

func TestNames(t *testing.T) {
	s := open(t, mongotest.URI(t))
	for _, name := range []string{"admin", "local", "config", "", "A", "a.b", "a/b", strings.Repeat("x", 61)} {
		if err := s.DropDatabase(t.Context(), name); errs.KindOf(err) != errs.Invalid {
			t.Errorf("DropDatabase(%q): %v", name, err)
		}
		if _, err := s.Database(name).CollectionNames(t.Context()); errs.KindOf(err) != errs.Invalid {
			t.Errorf("CollectionNames of %q: %v", name, err)
		}
	}
	db := s.Database("names-are-checked")
	for _, name := range []string{"", "system.users", "a$b", "$cmd", ".a", "a.", "a b", strings.Repeat("x", 151)} {
		if _, err := db.Collection(name).Get(t.Context(), bson.RawValue{Type: bson.TypeNull}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("Get from %q: %v", name, err)
		}
	}
}

// TestOutage stops the server under a store: every call says so, within the time set.
func TestOutage(t *testing.T) {
	server, err := mongotest.Start(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED in an outage: %v", err)
	}
	s, err := mongo.Open(t.Context(), mongo.Options{URI: server.URI, SelectTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := s.Database("outage").Collection("things")
	insert := []store.Op{{Kind: store.Insert, Doc: number(t, 1)}}
	if _, err := c.Write(t.Context(), insert, false); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, getErr := c.Get(t.Context(), insert[0].Doc.Lookup("_id"))
	_, writeErr := c.Write(t.Context(), insert, false)
	_, atomicErr := c.Write(t.Context(), append(insert, insert...), true)
	for call, err := range map[string]error{
		"Ping": s.Ping(t.Context()), "Get": getErr, "Write": writeErr, "Write atomic": atomicErr,
		"Find": c.Find(t.Context(), store.Query{}, func(bson.Raw) error { return nil }),
	} {
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s without a server: %v", call, err)
		}
	}
}

func number(t *testing.T, id int) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(id)}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
