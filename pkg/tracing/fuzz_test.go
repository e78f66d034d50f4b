package tracing_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/svcctl/svc/pkg/tracing"
)

// FuzzRejected: whatever a collector answers, it is an error or a number of spans.
func FuzzRejected(f *testing.F) {
	for _, seed := range []string{"", "\x0a\x02\x08\x63", "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff", "\x0a\xff", "\x08\x01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if n, err := tracing.Rejected(answer); n < 0 || n > 1<<31 || err != nil && n != 0 {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// FuzzHeaders: the headers for a collector are refused or can be sent, and no value of them is in a refusal.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"", "Authorization=Bearer%20canary", "a=canary,b=canary%0a", "canary", "=canary", "Host=canary", " a = canary , "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, headers string) {
		err := tracing.Config{Headers: headers}.CheckHeaders()
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Error(err)
		}
	})
}

// FuzzTraceparent: what a caller says of a trace is taken whole or not at all, and goes on to others as a traceparent of our own.
func FuzzTraceparent(f *testing.F) {
	tracer, err := tracing.New(tracing.Options{
		Config: tracing.Config{Endpoint: "http://127.0.0.1:1", SampleRatio: 0}, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := tracer.Close(context.WithoutCancel(f.Context())); err != nil {
			f.Error(err)
		}
	})
	for _, seed := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		ctx, span := tracer.Request(t.Context(), http.Header{"Traceparent": {given}}, "x")
		defer span.End(nil)
		out := http.Header{}
		tracing.Follow(ctx, out)
		id := trace.SpanContextFromContext(ctx).TraceID().String()
		if got := out.Get("Traceparent"); len(out) != 1 || len(got) != 55 || !strings.HasPrefix(got, "00-"+id+"-") {
			t.Errorf("%q goes on as %v", given, out)
		}
	})
}
