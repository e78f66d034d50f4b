package frametest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport has a handler answer requests in the process, streams included. It waits for nothing but the handler, so that a bubble
// of testing/synctest knows when nothing goes on.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, out := io.Pipe()
	w := &writer{header: http.Header{}, out: out, began: make(chan struct{})}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		defer cancel()
		t.Handler.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		_ = out.Close() // a pipe's never fails
	}()
	context.AfterFunc(ctx, func() {
		if err := r.Context().Err(); err != nil {
			_ = body.CloseWithError(err)
		}
	})
	select {
	case <-w.began:
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.sent, Request: r, Body: answer{body, cancel},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// answer is the body of an answer. Who closes it wants no more, and ends the handler.
type answer struct {
	*io.PipeReader

	cancel context.CancelFunc
}

// Close ends the handler.
func (a answer) Close() error {
	a.cancel()
	return a.PipeReader.Close()
}

type writer struct {
	header http.Header
	out    *io.PipeWriter

	once   sync.Once
	began  chan struct{}
	status int
	sent   http.Header
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}
