package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkCredentials is what a request for a record costs inside the service, without a credential and with each kind.
func BenchmarkCredentials(b *testing.B) {
	d := newDoor(b, nil)
	ctx, pat := b.Context(), d.agent(b)
	session, err := d.auth.Login(ctx, "ann", "password-of-ann", "127.0.0.1")
	if err != nil {
		b.Fatal(err)
	}
	path := d.made(b)
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

// BenchmarkMCP is what a read of a record costs inside the service by REST and by a tool, for the same agent.
func BenchmarkMCP(b *testing.B) {
	d := newDoor(b, nil)
	ctx, pat := b.Context(), d.agent(b)
	path := d.made(b)
	get := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"document_get","arguments":{"namespace":"door","collection":"items","id":"` + path[strings.LastIndexByte(path, '/')+1:] + `"}}}`
	post := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/mcp", http.NoBody)
	post.Header.Set("Content-Type", "application/json")
	for _, bb := range []struct {
		name string
		r    *http.Request
		body string
	}{{"rest", get, ""}, {"document_get", post, call}, {"ping", post, `{"jsonrpc":"2.0","id":1,"method":"ping"}`}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			bb.r.Header.Set("Accept", "application/json")
			bb.r.Header.Set("X-Auth-Token", pat)
			for b.Loop() {
				bb.r.Body, bb.r.ContentLength = io.NopCloser(strings.NewReader(bb.body)), int64(len(bb.body))
				w := &discard{header: http.Header{}}
				d.server.ServeHTTP(w, bb.r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// made makes a record, and gives its path.
func (d *door) made(b *testing.B) string {
	b.Helper()
	post := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/v1/_/door/items", strings.NewReader(`{"title":"x"}`))
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Token", "writer")
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, post)
	return w.Header().Get("Location")
}

// discard is an answer that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
