package mongo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestSecured uses a server that takes only TLS and users with a password, by nothing but the URI.
func TestSecured(t *testing.T) {
	t.Parallel()
	server, err := mongotest.Start(t.Context(), mongotest.Secured())
	if err != nil {
		t.Skipf("NOT TESTED with TLS and passwords: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	db := databaseOn(t, open(t, server.URI))
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db.Collection("c"), insertion(t, `{"_id":1}`))
	if got := list(events(t, db, store.Watch{After: start})); strings.Join(got, ",") != "+ c 1" {
		t.Errorf("told %q", got)
	}
	before, rest, _ := strings.Cut(server.URI, "@")
	credentials := strings.TrimPrefix(before, "mongodb://")
	user, _, _ := strings.Cut(credentials, ":")
	plain, _, _ := strings.Cut(rest, "&tls")
	for name, uri := range map[string]string{
		"a wrong password": "mongodb://" + user + ":" + canary + "@" + rest,
		"no password":      "mongodb://" + rest,
		"no TLS":           before + "@" + plain,
		"an unknown CA":    before + "@" + plain + "&tls=true",
	} {
		s, err := mongo.Open(t.Context(), mongo.Options{URI: uri, SelectTimeout: 500 * time.Millisecond})
		if err == nil { // a server says hello to anybody
			_, err = s.Database("db").CollectionNames(t.Context())
			_ = s.Close()
		}
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("with %s: %v", name, err)
		}
		if text := texts(err); strings.Contains(text, canary) || strings.Contains(text, credentials) {
			t.Errorf("with %s the password is in the error: %s", name, text)
		}
	}
}
