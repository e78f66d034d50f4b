package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/pkg/client"
)

// falling is a service that answers with its version so many times, and then nothing any more.
type falling int

func (s *falling) RoundTrip(r *http.Request) (*http.Response, error) {
	if *s--; *s < 0 {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"version":"v"}`)), Request: r}, nil
}

// TestStalling has transfers go on, or not, within a request timeout of a minute.
func TestStalling(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	for name, tt := range map[string]struct {
		timeout time.Duration
		answers falling
		goOn    func(alive, rest func())
		ends    time.Duration // after the beginning; 0: it does not
		cause   string
	}{
		"nothing moves":    {time.Minute, 0, func(_, _ func()) {}, time.Minute, "nothing moved within the request timeout"},
		"it moves at last": {time.Minute, 0, func(alive, _ func()) { time.Sleep(40 * time.Second); alive() }, 100 * time.Second, "nothing moved within the request timeout"},
		"it rests":         {time.Minute, 99, func(_, rest func()) { rest() }, 0, ""},
		"it moves again": {time.Minute, 99, func(alive, rest func()) {
			rest()
			time.Sleep(150 * time.Second)
			alive()
		}, 210 * time.Second, "nothing moved within the request timeout"},
		"nothing answers beside": {time.Minute, 0, func(_, rest func()) { rest() }, 2 * time.Minute, "it does not answer anything else either"},
		"it moves while nothing answers": {time.Minute, 0, func(alive, rest func()) {
			rest()
			time.Sleep(90 * time.Second) // it is asked since the first minute
			alive()
		}, 150 * time.Second, "nothing moved within the request timeout"},
		"nor any more":      {time.Minute, 2, func(_, rest func()) { rest() }, 4 * time.Minute, "it does not answer anything else either"},
		"without a timeout": {0, 0, func(_, _ func()) {}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := client.New(client.Options{
					Server: "http://svc", HTTPClient: &http.Client{Transport: &tt.answers}, Timeout: tt.timeout,
					Backoff: func(int) time.Duration { return 0 },
				})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				ctx, alive, rest, end := c.Stalling(t.Context())
				tt.goOn(alive, rest)
				select {
				case <-ctx.Done():
					if took := time.Since(began); took != tt.ends {
						t.Errorf("it ends after %s, want %s", took, tt.ends)
					}
					if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) || !strings.Contains(cause.Error(), tt.cause) {
						t.Errorf("it ends with %v", cause)
					}
				case <-time.After(long):
					if tt.ends > 0 {
						t.Error("it does not end")
					}
				}
				end()
				alive() // by who reads what was on the way
				if ctx.Err() == nil {
					t.Error("it goes on behind its end")
				}
			})
		})
	}
}
