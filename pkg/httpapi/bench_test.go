package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
)

// BenchmarkCredentials is what a request for a record costs inside the service, without a credential and with each kind.
func BenchmarkCredentials(b *testing.B) {
	d := newDoor(b, nil)
	admin := &access.Principal{Kind: access.KindAdmin}
	ctx := b.Context()
	u, err := d.system.Users.Create(ctx, admin, bson.D{
		{Key: "username", Value: "ann"}, {Key: "password", Value: "password-of-ann"}, {Key: "scopes", Value: bson.A{"namespace.door"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	_, pat, err := d.system.Tokens.Create(ctx, &access.Principal{Kind: access.KindUser, ID: u.ID.Hex(), Scopes: []string{"namespace.door"}},
		bson.D{{Key: "name", Value: "bench"}, {Key: "scopes", Value: bson.A{"namespace.door"}}}, []string{"namespace.door"})
	if err != nil {
		b.Fatal(err)
	}
	session, err := d.auth.Login(ctx, "ann", "password-of-ann", "127.0.0.1")
	if err != nil {
		b.Fatal(err)
	}
	post := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/_/door/items", strings.NewReader(`{"title":"x"}`))
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Token", "writer")
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, post)
	path := w.Header().Get("Location")
	for _, bb := range []struct{ name, header, value string }{
		{"none", "X-None", ""},
		{"session", "X-Auth-Token", session.Token},
		{"cookie", "Cookie", "svc_session=" + session.Token},
		{"pat", "Authorization", "Bearer " + pat},
		{"token", "Token", "writer"},
		{"admin", "X-Admin-Token", adminToken},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
			r.Header.Set("Accept", "application/json")
			r.Header.Set(bb.header, bb.value)
			for b.Loop() {
				w := &discard{header: http.Header{}}
				d.server.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// discard is an answer that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
