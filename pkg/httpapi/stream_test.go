package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
)

type send = func(id int64, kind string, data []byte) error

// TestStream has a quiet stream get comments, and end with what it tells of.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		_, run := httpapi.Stream(w, r, func(_ context.Context, send send) error {
			time.Sleep(40 * time.Second)
			return send(7, "done", []byte(`{"message":"a"}`))
		})
		if err := run(); err != nil {
			t.Error(err)
		}
		want := ": \n\n: \n\n: \n\nid: 7\nevent: done\ndata: {\"message\":\"a\"}\n\n"
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
		if h := w.Header(); h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", h)
		}
	})
}

// TestStreamOfAServiceThatStops has the reader be told to come again.
func TestStreamOfAServiceThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		end, run := httpapi.Stream(w, r, func(ctx context.Context, _ send) error {
			<-ctx.Done()
			return ctx.Err()
		})
		time.AfterFunc(time.Second, end)
		time.AfterFunc(2*time.Second, end) // once more is no harm
		if err := run(); err != nil {
			t.Error(err)
		}
		want := ": \n\nevent: stopping\ndata: {\"message\":\"the service is stopping; connect again\"}\n\n"
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
	})
}

// TestStreamOfAReaderWhoMayNot ends within seconds of the moment from which the reader may not read it.
func TestStreamOfAReaderWhoMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		began := time.Now()
		_, run := httpapi.StreamWhile(w, r, func() error {
			if time.Since(began) > 5*time.Second {
				return errs.ErrDenied
			}
			return nil
		}, func(ctx context.Context, send send) error {
			for n := int64(1); ; n++ {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
				}
				if err := send(n, "log", []byte(`{}`)); err != nil {
					return err
				}
			}
		})
		if err := run(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("it ended after %s", took)
		}
		if strings.Contains(w.Body.String(), "id: 7") || !strings.Contains(w.Body.String(), "id: 5") || strings.Contains(w.Body.String(), "denied") {
			t.Error(w.Body)
		}
	})
}

// stuckWriter is the connection of a reader who takes nothing: a write ends at its deadline.
type stuckWriter struct {
	*httptest.ResponseRecorder

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{}
	stuck    bool
}

func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	select {
	case w.moved <- struct{}{}:
	default:
	}
	return nil
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	for w.stuck {
		w.mu.Lock()
		wait := time.Until(w.deadline)
		w.mu.Unlock()
		if wait <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-time.After(wait):
		case <-w.moved:
		}
	}
	w.stuck = bytes.Contains(p, []byte("last"))
	return w.ResponseRecorder.Write(p)
}

// TestStreamOfAReaderWhoTakesNothing cuts a reader off after 30 s, and after one second once the service stops.
func TestStreamOfAReaderWhoTakesNothing(t *testing.T) {
	for name, tt := range map[string]struct{ stops, want time.Duration }{
		"cut off":           {time.Hour, 31 * time.Second},
		"the service stops": {10 * time.Second, 12 * time.Second}, // the event says so, too
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), moved: make(chan struct{}, 1)}
				began := time.Now()
				end, run := httpapi.Stream(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), func(_ context.Context, send send) error {
					time.Sleep(time.Second)
					for n := int64(1); ; n++ {
						if err := send(n, "last", []byte(`{}`)); err != nil {
							return err
						}
					}
				})
				time.AfterFunc(tt.stops, end)
				_ = run()
				if took := time.Since(began); took != tt.want {
					t.Errorf("it ended after %s, want %s", took, tt.want)
				}
			})
		})
	}
}

// brokenWriter is the connection of a reader who has gone.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestStreamOfAReaderWhoIsGone ends what is followed: at the first write, at a comment, and when the request ends.
func TestStreamOfAReaderWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		_, run := httpapi.Stream(brokenWriter{httptest.NewRecorder()}, r, func(context.Context, send) error {
			t.Error("nobody reads what is followed")
			return nil
		})
		if err := run(); errs.From(err).Code != "client_gone" {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, run = httpapi.Stream(httptest.NewRecorder(), r.WithContext(ctx), func(ctx context.Context, _ send) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err := run(); errs.From(err).Code != "client_gone" {
			t.Errorf("%v", err)
		}
	})
}
