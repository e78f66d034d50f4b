package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// TestS27EmbeddingKey has a provider that repeats the key which it was asked with: neither it nor what the provider said
// beside it is where somebody may see it who doesn't run the service; the key is nowhere.
func TestS27EmbeddingKey(t *testing.T) {
	const key, said = "sk-embedding-canary", "what-the-provider-said"
	asked := make(chan struct{}, 100)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error": "%s: wrong key %s"}`, said, r.Header.Get("Authorization"))
	}))
	t.Cleanup(provider.Close)
	s := runShop(t, func(c *app.Config) {
		c.Embedding = embedding.Config{
			Providers: []embedding.ProviderConfig{
				{Name: "far", Type: "openai", Model: "m", BaseURL: provider.URL, APIKey: key, Dimensions: 4},
				{Name: "near", Type: "local", ModelPath: "/no/such/folder"},
			},
			Groups: []embedding.GroupConfig{{Name: "texts", Members: []string{"far"}}, {Name: "papers", Members: []string{"near"}}},
		}
	})
	<-asked
	const service, project = "/api/v1/admin/embedding/status", "/api/v1/_/shop/_/admin/embedding/status"
	s.shows(service, said)

	full := s.do("GET", service, admin)
	full.contains(t, http.StatusOK, `"name":"texts"`, `"reference":"model \"m\", dimensions 4"`, `"state":"offline"`, "401", "[apiKey]", "/no/such/folder")
	redacted := s.do("GET", project, admin)
	redacted.contains(t, http.StatusOK, `"name":"texts"`, "the embedding provider far refuses its apiKey", "embedding provider near: the folder of its modelPath")
	for _, text := range []string{said, provider.URL, strings.TrimPrefix(provider.URL, "http://"), "/no/such/folder"} {
		redacted.lacks(t, text)
	}
	for _, a := range []answer{full, redacted, s.do("GET", "/metrics", admin)} {
		a.lacks(t, key)
	}
	if strings.Contains(s.logs.String(), key) {
		t.Error("the key is in the log")
	}
	s.do("GET", "/metrics", admin).contains(t, http.StatusOK, `svc_embedding_calls_total{group="texts",member="far",outcome="failed"} `,
		`svc_embedding_member_state{group="texts",member="far",state="offline"} 1`, `svc_embedding_member_state{group="texts",member="far",state="live"} 0`,
		`svc_embedding_call_duration_seconds_count{group="texts",kind="document",member="far"} `)
}

// A service starts and serves whatever its providers do, and stops while one of them lets it wait.
func TestR11ServiceBesideEmbedding(t *testing.T) {
	waiting := make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client has gone
		waiting <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	s := runShop(t, func(c *app.Config) {
		c.Embedding = embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "silent", Type: "openai", Model: "m", BaseURL: silent.URL, Dimensions: 4}, {Name: "demo", Type: "hash", Dimensions: 8}},
			Groups:    []embedding.GroupConfig{{Name: "texts", Members: []string{"silent"}}, {Name: "demo", Members: []string{"demo"}}},
		}
	})
	<-waiting // the service runs already, and will be stopped while this goes on
	s.item(`{"title": "A"}`)
	s.shows("/metrics", `svc_embedding_member_state{group="demo",member="demo",state="live"} 1`)
	s.do("GET", "/metrics", admin).contains(t, http.StatusOK, `svc_embedding_breaker_open{group="demo",member="demo"} 0`,
		`svc_embedding_texts_total{group="demo",member="demo"} `, `svc_embedding_member_state{group="texts",member="silent",state="offline"} 1`)
}

// shows waits until an answer has a text.
func (s *service) shows(path, text string) {
	s.t.Helper()
	eventually(s.t, func() string {
		if got := s.do("GET", path, admin); !strings.Contains(got.body, text) {
			return got.String()
		}
		return ""
	})
}
