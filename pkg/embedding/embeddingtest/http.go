package embeddingtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
)

// patience is longer than any answer takes.
const patience = time.Minute

// What must be in no public text.
const (
	key    = "sk-a-key-that-nobody-sees"
	secret = "what-the-provider-said"
)

// RunHTTP checks how a provider that asks a server takes what servers do. open makes one with these settings, to which it
// adds those of its type.
func RunHTTP(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error)) {
	t.Helper()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		code   string
		retry  time.Duration
	}{
		{"400", status(http.StatusBadRequest, nil), embedding.CodeRefused, 0},
		{"401", status(http.StatusUnauthorized, nil), embedding.CodeFailed, 0},
		{"404", status(http.StatusNotFound, nil), embedding.CodeFailed, 0},
		{"413", status(http.StatusRequestEntityTooLarge, nil), embedding.CodeRefused, 0},
		{"422", status(http.StatusUnprocessableEntity, nil), embedding.CodeRefused, 0},
		{"429", status(http.StatusTooManyRequests, nil), embedding.CodeThrottled, 0},
		{"429 for seconds", status(http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}), embedding.CodeThrottled, 7 * time.Second},
		{"429 for a negative time", status(http.StatusTooManyRequests, http.Header{"Retry-After": {"-7"}}), embedding.CodeThrottled, 0},
		{"429 for ever", status(http.StatusTooManyRequests, http.Header{"Retry-After": {"999999999999"}}), embedding.CodeThrottled, 24 * time.Hour},
		{"429 until a time", status(http.StatusTooManyRequests, http.Header{
			"Date": {"Mon, 04 May 2026 10:00:00 GMT"}, "Retry-After": {"Mon, 04 May 2026 10:01:30 GMT"},
		}), embedding.CodeThrottled, 90 * time.Second},
		{"500", status(http.StatusInternalServerError, nil), embedding.CodeFailed, 0},
		{"503 for seconds", status(http.StatusServiceUnavailable, http.Header{"Retry-After": {"3"}}), embedding.CodeThrottled, 3 * time.Second},
		{"503", status(http.StatusServiceUnavailable, nil), embedding.CodeFailed, 0},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, embedding.CodeFailed, 0},
		{"no answer", hangUp, embedding.CodeFailed, 0},
		{"half an answer", halfAnswer, embedding.CodeFailed, 0},
		{"slow", slow, embedding.CodeTimeout, 0},
		{"endless", endless, embedding.CodeGarbage, 0},
		{"web page", text("text/html; charset=utf-8", "<html>"+secret), embedding.CodeGarbage, 0},
		{"nothing", text("application/json", ""), embedding.CodeGarbage, 0},
		{"null", text("application/json", "null"), embedding.CodeGarbage, 0},
		{"another object", text("application/json", `{"error":"`+secret+`"}`), embedding.CodeGarbage, 0},
		{"empty list", text("application/json", "[]"), embedding.CodeGarbage, 0},
		{"no JSON", text("application/json", secret), embedding.CodeGarbage, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			timeout := patience
			if tt.code == embedding.CodeTimeout {
				timeout = 50 * time.Millisecond
			}
			p := openFor(t, open, server.URL, timeout)
			_, err := p.Embed(t.Context(), []string{"a text"}, embedding.Document)
			e := errs.From(err)
			if err == nil || e.Code != tt.code || e.RetryAfter != tt.retry {
				t.Errorf("it gave %v (code %q, again in %s), want %s in %s", err, e.Code, e.RetryAfter, tt.code, tt.retry)
			}
			for _, s := range []string{key, secret, server.URL} {
				if strings.Contains(e.Message, s) {
					t.Errorf("the public text has %q: %s", s, e.Message)
				}
			}
			if strings.Contains(err.Error(), key) {
				t.Errorf("the log's text has the key: %v", err)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		_, err := openFor(t, open, server.URL, patience).Embed(t.Context(), []string{"a text"}, embedding.Query)
		if errs.From(err).Code != embedding.CodeFailed {
			t.Errorf("it gave %v", err)
		}
	})
	t.Run("Redirect", func(t *testing.T) { redirect(t, open) })
	t.Run("Cancel", func(t *testing.T) { cancelled(t, open) })
	t.Run("Key", func(t *testing.T) { sendsKey(t, open) })
	t.Run("CutKey", func(t *testing.T) {
		for before := 2<<10 - len(key); before <= 2<<10; before++ { // the log has 2 KiB of what a server says
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = fmt.Fprint(w, strings.Repeat(" ", before)+key)
			}))
			_, err := openFor(t, open, server.URL, patience).Embed(t.Context(), []string{"a text"}, embedding.Query)
			server.Close()
			if err == nil || strings.Contains(err.Error(), key[:4]) {
				t.Errorf("behind %d spaces, a part of the key is in the log's text: %v", before, err)
			}
		}
	})
	t.Run("Settings", func(t *testing.T) { refusesSettings(t, open) })
}

func openFor(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error), baseURL string, timeout time.Duration) embedding.Provider {
	t.Helper()
	p, err := open(embedding.ProviderConfig{Name: "remote", Model: "m", BaseURL: baseURL, APIKey: key, TimeoutPerAttempt: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// status answers with it, and with what may be in no public text: servers repeat keys.
func status(code int, header http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"error":%q}`, secret+" "+r.Header.Get("Authorization"))
	}
}

func text(mime, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mime)
		_, _ = w.Write([]byte(body))
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func halfAnswer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("[[0.1,"))
}

// slow answers when nobody waits any more.
func slow(_ http.ResponseWriter, r *http.Request) { <-gone(r) }

// gone is closed when the client hung up, which the server sees only after it has read the body.
func gone(r *http.Request) <-chan struct{} {
	buffer := make([]byte, 1<<10)
	for {
		if _, err := r.Body.Read(buffer); err != nil {
			return r.Context().Done()
		}
	}
}

// endless sends more than any answer has.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	chunk := []byte("[" + strings.Repeat("0.25,", 1<<16))
	for range 200 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// redirect checks that neither texts nor keys go elsewhere.
func redirect(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error)) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := openFor(t, open, server.URL, patience).Embed(t.Context(), []string{"a text"}, embedding.Query); errs.From(err).Code != embedding.CodeFailed {
		t.Errorf("it gave %v", err)
	}
}

// cancelled checks that a call ends when its caller goes.
func cancelled(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error)) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-gone(r)
	}))
	defer server.Close()
	if _, err := openFor(t, open, server.URL, patience).Embed(ctx, []string{"a text"}, embedding.Query); !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
}

func sendsKey(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error)) {
	got := make(chan string, 2) // a provider may ask twice
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Get("Authorization"):
		default:
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	if _, err := openFor(t, open, server.URL, patience).Embed(t.Context(), []string{"a text"}, embedding.Query); err == nil {
		t.Error("status 500 is no error")
	}
	if auth := <-got; auth != "Bearer "+key {
		t.Errorf("Authorization is %q", auth)
	}
}

func refusesSettings(t *testing.T, open func(embedding.ProviderConfig) (embedding.Provider, error)) {
	for _, c := range []embedding.ProviderConfig{
		{Model: "m"},
		{Model: "m", BaseURL: "127.0.0.1:80"},
		{Model: "m", BaseURL: "ftp://127.0.0.1"},
		{Model: "m", BaseURL: "http://"},
		{Model: "m", BaseURL: "http://user:" + secret + "@127.0.0.1"},
		{Model: "m", BaseURL: "http://127.0.0.1/#" + secret},
		{Model: "m", BaseURL: "http://127.0.0.1", APIKey: secret + "\r\nX: y"},
		{BaseURL: "http://127.0.0.1"},
	} {
		c.Name = "p"
		p, err := open(c)
		if err == nil {
			_ = p.Close()
			t.Errorf("%+v was taken", c)
			continue
		}
		if e := errs.From(err); e.Kind != errs.Invalid || !strings.Contains(e.Message, "embedding provider p") || strings.Contains(e.Message, secret) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
