package tracing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/tracing"
	"github.com/svcctl/svc/pkg/tracing/tracetest"
)

// spans ends n spans, each a trace of its own.
func (b *bench) spans(t *testing.T, n int) {
	t.Helper()
	for range n {
		_, s := b.Background(t.Context(), "x")
		s.End(nil)
	}
}

// Whatever a collector does, its spans are counted as lost, the log tells of it once, without a word of the answer, and what comes when it is well
// again arrives.
func TestCollectorThatFails(t *testing.T) {
	t.Parallel()
	say := func(status int, kind, body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return false
		}
	}
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request) bool
		told   string
	}{
		{"away", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "EOF"},
		{"no right", say(401, "text/plain", "canary"), "answers 401 Unauthorized"},
		{"overloaded", say(503, "", "canary"), "answers 503 Service Unavailable"},
		{"a page", say(200, "text/html", "<p>canary"), "does otel.endpoint lead to a collector"},
		{"garbage", say(200, "application/x-protobuf", "\xff\xff\xffcanary"), "does otel.endpoint lead to a collector"},
		{"a redirect", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "/elsewhere?canary")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return false
		}, "answers 307"},
		{"endless", func(w http.ResponseWriter, r *http.Request) bool {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					break
				}
			}
			return false
		}, "lost"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return false
		}, "context deadline exceeded"},
		{"a part refused", say(200, "application/x-protobuf", "\x0a\x02\x08\x63"), "refused a part"}, // 99 of them
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := tracetest.NewCollector(t)
			c.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/v1/traces" {
					t.Errorf("it was led to %s, with %v", r.URL, r.Header)
				}
				return tc.answer(w, r)
			})
			b := open(t, tracing.Config{Endpoint: c.URL, Headers: "authorization=canary", SampleRatio: 1})
			const n = 3
			for i := range n {
				b.spans(t, 1)
				until(t, "it is not counted", func() bool { return b.count(t, "svc_trace_spans_dropped_total", "send") == i+1 })
			}
			if sent := b.count(t, "svc_trace_spans_sent_total", ""); sent != 0 {
				t.Errorf("%d were sent", sent)
			}
			if log := b.log.String(); strings.Count(log, "traces are lost") != 1 || !strings.Contains(log, tc.told) || strings.Contains(log, "canary") {
				t.Errorf("the log has %s", log)
			}
			c.Answer(nil)
			b.spans(t, 2)
			c.Wait(t, func(all []tracetest.Span) bool { return len(all) == 2 })
			until(t, "the log does not tell that all is well", func() bool { return strings.Contains(b.log.String(), "traces are delivered again") })
		})
	}
}

// A collector that is busy for a moment loses nothing.
func TestCollectorIsAskedAgain(t *testing.T) {
	t.Parallel()
	c, asked := tracetest.NewCollector(t), make(chan struct{}, 100)
	c.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		asked <- struct{}{}
		if len(asked) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		}
		return true
	})
	b := open(t, tracing.Config{Endpoint: c.URL, SampleRatio: 1})
	b.spans(t, 1)
	c.Wait(t, func(all []tracetest.Span) bool { return len(all) == 1 })
	if lost := b.count(t, "svc_trace_spans_dropped_total", ""); lost != 0 || b.log.String() != "" {
		t.Errorf("%d were lost: %s", lost, b.log)
	}
}

// A collector that hangs holds nobody up: what does not fit into the queue is dropped, and the end is when it has to be.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	c, hang := tracetest.NewCollector(t), make(chan struct{})
	c.Answer(func(http.ResponseWriter, *http.Request) bool {
		<-hang
		return false
	})
	defer close(hang)
	b := open(t, tracing.Config{Endpoint: c.URL, SampleRatio: 1})
	const n = 5 * tracing.MaxQueue
	b.spans(t, n) // would not come back if it waited
	dropped := b.count(t, "svc_trace_spans_dropped_total", "queue")
	if dropped == 0 || dropped > n-tracing.MaxQueue {
		t.Errorf("%d of %d were dropped, with room for %d", dropped, n, tracing.MaxQueue)
	}
	b.end(t, time.Millisecond)
	b.spans(t, 3) // after the end there are none
	if all := b.count(t, "svc_trace_spans_dropped_total", ""); all != n {
		t.Errorf("%d of %d are counted", all, n)
	}
	if len(c.Spans()) != 0 {
		t.Error("it got some")
	}
}

// What waits at the end goes out.
func TestCloseSendsTheRest(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	b := open(t, tracing.Config{Endpoint: c.URL, SampleRatio: 1})
	const n = 2000
	b.spans(t, n)
	b.end(t, 30*time.Second)
	if got := len(c.Spans()); got != n {
		t.Errorf("%d of %d went out: %s", got, n, b.log)
	}
}
