package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/client"
)

// TestFileGoesOn: what breaks off is read on where it was, as long as it is the same file.
func TestFileGoesOn(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789"), 100)
	for name, tt := range map[string]struct {
		cut  int // bytes of each answer before it breaks off; 0: none does
		tags []string
		want string // what ends it; "": nothing
		asks int
	}{
		"in one go":              {0, []string{`"a"`}, "", 1},
		"in pieces":              {300, []string{`"a"`, `"a"`, `"a"`, `"a"`}, "", 4},
		"another file by then":   {300, []string{`"a"`, `"b"`}, "has changed while it was read", 2},
		"without a name for it":  {300, []string{""}, "broke off at byte 300 of 1000", 1},
		"nothing comes any more": {-1, []string{`"a"`, `"a"`, `"a"`, `"a"`}, "broke off at byte 0 of 1000", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked > len(tt.tags) {
					t.Error("asked too often")
					panic(http.ErrAbortHandler)
				}
				tag := tt.tags[asked-1]
				if tag != "" {
					w.Header().Set("ETag", tag)
				}
				if tt.cut == 0 {
					http.ServeContent(w, r, "f.bin", time.Time{}, bytes.NewReader(content))
					return
				}
				from := 0
				if given := r.Header.Get("Range"); given != "" && r.Header.Get("If-Range") == tag {
					from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(given, "bytes="), "-"))
					w.Header().Set("Content-Range", "bytes "+strconv.Itoa(from)+"-999/1000")
				}
				rest := content[from:]
				w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
				if from > 0 || w.Header().Get("Content-Range") != "" {
					w.WriteHeader(http.StatusPartialContent)
				}
				_, _ = w.Write(rest[:max(0, min(tt.cut, len(rest)))])
				_ = http.NewResponseController(w).Flush()
				if tt.cut < len(rest) {
					panic(http.ErrAbortHandler)
				}
			})
			f, err := c.Asset(t.Context(), "blog", "static", "a/f.bin")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Size != 1000 {
				t.Errorf("size %d", f.Size)
			}
			got, err := io.ReadAll(f)
			switch {
			case tt.want == "" && (err != nil || !bytes.Equal(got, content)):
				t.Errorf("%d bytes, %v", len(got), err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %s", err, tt.want)
			}
			if asked != tt.asks {
				t.Errorf("asked %d times, want %d", asked, tt.asks)
			}
		})
	}
}

// TestFileIsRefused: a refusal is one, and is not asked about again.
func TestFileIsRefused(t *testing.T) {
	t.Parallel()
	asked := 0
	c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if got, want := r.URL.EscapedPath(), "/api/v1/_/blog/_/assets/static/a%20b/%2E%2E/c"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		http.NotFound(w, r)
	})
	_, err := c.Asset(t.Context(), "blog", "static", "a b/../c")
	if !client.IsStatus(err, http.StatusNotFound) || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := c.Asset(t.Context(), "blog", "static", ""); err == nil || errors.As(err, new(*client.Error)) {
		t.Errorf("an empty name: %v", err)
	}
}
