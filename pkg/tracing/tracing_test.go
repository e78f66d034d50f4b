package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/tracing"
	"github.com/svcctl/svc/pkg/tracing/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bench is a tracer, and what it tells.
type bench struct {
	*tracing.Tracer
	log     *lines
	metrics *prometheus.Registry
}

// open makes a tracer that is in a hurry.
func open(t *testing.T, c tracing.Config) *bench {
	t.Helper()
	b := &bench{log: &lines{}, metrics: prometheus.NewRegistry()}
	o := tracing.Options{
		Config: c, Version: "v0-test", Instance: "one", Registerer: b.metrics,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	var err error
	if b.Tracer, err = tracing.New(tracing.Patience(o, 5*time.Millisecond, 200*time.Millisecond, time.Millisecond, time.Hour)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.end(t, 10*time.Second) })
	return b
}

func (b *bench) end(t *testing.T, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

// count reads a metric, of all its labels or of one value.
func (b *bench) count(t *testing.T, name, label string) (n int) {
	t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// until waits for what has to come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal(what)
		}
	}
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// What the caller of a request says of traces: its ids are taken, its "no" counts, and its "yes" counts for nothing.
func TestCallersTraces(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		given  []string
		ratio  float64
		joined bool
		traced bool
	}{
		{"none", nil, 1, false, true},
		{"none, and none wanted", nil, 0, false, false},
		{"sampled", []string{"00-" + callersTrace + "-" + callersSpan + "-01"}, 1, true, true},
		{"sampled, where there are to be none", []string{"00-" + callersTrace + "-" + callersSpan + "-01"}, 0, false, false},
		{"of a low id, where there are to be none", []string{"00-00000000000000000000000000000001-" + callersSpan + "-01"}, 0, false, false},
		{"not sampled", []string{"00-" + callersTrace + "-" + callersSpan + "-00"}, 1, true, false},
		{"two", []string{"00-" + callersTrace + "-" + callersSpan + "-01", "00-" + callersTrace + "-" + callersSpan + "-00"}, 1, false, true},
		{"nonsense", []string{"00-canary-" + callersSpan + "-01"}, 1, false, true},
		{"no ids", []string{"00-00000000000000000000000000000000-0000000000000000-01"}, 1, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := tracetest.NewCollector(t)
			b := open(t, tracing.Config{Endpoint: c.URL, SampleRatio: tc.ratio})
			h := http.Header{"Traceparent": tc.given, "Tracestate": {"canary=state"}, "Baggage": {"canary=baggage"}}
			ctx, span := b.Request(t.Context(), h, "GET /x", tracing.Method("GET"))
			if got := tracing.Records(ctx); got != tc.traced {
				t.Errorf("it is recorded: %v", got)
			}
			_, step := b.Within(ctx, "step")
			step.End(nil)
			span.End(nil)
			b.end(t, 10*time.Second)
			all := c.Spans()
			if !tc.traced {
				if len(all) != 0 {
					t.Errorf("there are spans: %+v", all)
				}
				return
			}
			if len(all) != 2 || all[0].Name != "step" || all[0].Parent != all[1].ID || all[1].Kind != "server" || all[0].Kind != "internal" {
				t.Fatalf("%+v", all)
			}
			if joined := all[1].Trace == callersTrace && all[1].Parent == callersSpan; joined != tc.joined {
				t.Errorf("it is below the caller's: %v; %+v", joined, all[1])
			}
			if strings.Contains(c.Raw(), "canary") {
				t.Error("something of the caller's header got out")
			}
		})
	}
}

// A caller that says "yes" each time, by ids that other samplers take, gets no more traces than the ratio has.
func TestCallersCannotRaiseTheRatio(t *testing.T) {
	t.Parallel()
	b := open(t, tracing.Config{Endpoint: tracetest.NewCollector(t).URL, SampleRatio: 0.1})
	recorded, none := 0, 0
	const n = 5000
	for range n {
		ctx, span := b.Request(t.Context(), http.Header{"Traceparent": {"00-00000000000000000000000000000001-" + callersSpan + "-01"}}, "x")
		if tracing.Records(ctx) {
			recorded++
		}
		span.End(nil)
		ctx, span = b.Request(t.Context(), http.Header{"Traceparent": {"00-00000000000000000000000000000001-" + callersSpan + "-00"}}, "x")
		if tracing.Records(ctx) {
			none++
		}
		span.End(nil)
	}
	if recorded < n/20 || recorded > n/5 || none != 0 { // 500 are expected, and 250 are 12 standard deviations away
		t.Errorf("%d of %d are recorded, and %d of those that want none", recorded, n, none)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	b := open(t, tracing.Config{Endpoint: c.URL + "/", Headers: "Authorization=Bearer%20canary%2C1, x-org = 7 ", SampleRatio: 1, Service: "cms"})
	if _, alone := b.Within(t.Context(), "alone"); alone != (tracing.Span{}) {
		t.Error("a step of nothing has a span")
	}
	ctx, run := b.Background(t.Context(), "run", tracing.Kind("job"))
	_, found := b.Asking(ctx, "get items", tracing.Stored("items"), tracing.Count(3))
	found.End(errs.New(errs.NotFound, "canary_code", "canary text"))
	_, lost := b.Asking(ctx, strings.Repeat("long", 10), tracing.Stored(strings.Repeat("é", 200)))
	lost.End(errs.New(errs.Unavailable, "canary_code", "canary text").With(errors.New("canary cause")))
	run.End(context.Canceled)
	all := c.Wait(t, func(all []tracetest.Span) bool { return len(all) == 3 })
	if all[0].Attributes["error.type"] != "not_found" || all[0].Bad || all[0].Kind != "client" || all[0].Attributes["db.operation.batch.size"] != "3" || all[0].Service != "cms" {
		t.Errorf("%+v", all[0])
	}
	if all[1].Attributes["error.type"] != "unavailable" || !all[1].Bad || len(all[1].Attributes["db.collection.name"]) > 512 {
		t.Errorf("%+v", all[1])
	}
	if all[2].Attributes["error.type"] != "canceled" || all[2].Bad || all[2].Attributes["svc.run.kind"] != "job" {
		t.Errorf("%+v", all[2])
	}
	if strings.Contains(c.Raw(), "canary") {
		t.Error("a text of an error got out")
	}
	if h := c.Headers(); h.Get("Authorization") != "Bearer canary,1" || h.Get("X-Org") != "7" {
		t.Errorf("headers %v", h)
	}
	until(t, "they are not counted", func() bool { return b.count(t, "svc_trace_spans_sent_total", "") == 3 })
}

// A request with very many steps has spans of the first ones, and says how many there were besides.
func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	c := tracetest.NewCollector(t)
	b := open(t, tracing.Config{Endpoint: c.URL, SampleRatio: 1})
	ctx, run := b.Background(t.Context(), "run")
	for range tracing.MaxSteps + 7 {
		_, s := b.Within(ctx, "step")
		s.End(nil)
	}
	run.End(nil)
	all := c.Wait(t, func(all []tracetest.Span) bool { return len(all) >= tracing.MaxSteps+1 })
	last := all[len(all)-1]
	if len(all) != tracing.MaxSteps+1 || last.Name != "run" || last.Attributes["svc.steps.left_out"] != "7" {
		t.Errorf("%d spans, the last is %+v", len(all), last)
	}
}

func TestLogHasTheTrace(t *testing.T) {
	t.Parallel()
	b := open(t, tracing.Config{Endpoint: tracetest.NewCollector(t).URL})
	log := slog.New(tracing.LogHandler(slog.NewTextHandler(b.log, nil))).With("a", "b")
	log.InfoContext(t.Context(), "without")
	ctx, span := b.Request(t.Context(), http.Header{"Traceparent": {"00-" + callersTrace + "-" + callersSpan + "-00"}}, "x")
	log.InfoContext(ctx, "with")
	span.End(nil)
	got := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	if len(got) != 2 || strings.Contains(got[0], "trace_id") || !strings.HasSuffix(got[1], "msg=with a=b trace_id="+callersTrace) {
		t.Errorf("%q", got)
	}
}

// Without a tracer nothing is done: nothing is allocated, and no context is made.
func TestOffCostsNothing(t *testing.T) { // not parallel: it counts allocations
	tracer, err := tracing.New(tracing.Options{})
	if tracer != nil || err != nil {
		t.Fatal(tracer, err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		in, span := tracer.Request(ctx, nil, "x")
		_, step := tracer.Within(in, "y")
		_, other := tracer.Background(in, "z")
		other.End(nil)
		step.End(errs.ErrNotFound)
		span.End(nil)
		if in != ctx {
			t.Error("there is another context")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := tracer.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestConfigThatIsNoGood(t *testing.T) {
	t.Parallel()
	for _, c := range []tracing.Config{
		{Endpoint: "collector:4318"}, {Endpoint: "ftp://collector"}, {Endpoint: "http://canary:canary@collector"}, {Endpoint: "http://collector?canary=1"}, {Endpoint: "http://"},
		{Headers: "canary"}, {Headers: "a=canary,=canary"}, {Headers: "a b=canary"}, {Headers: "a=canary%0d%0ab: c"}, {Headers: "a=%zzcanary"}, {Headers: "content-type=canary"}, {Headers: "Host=canary"},
		{SampleRatio: -0.1}, {SampleRatio: 1.1},
	} {
		if c.Endpoint == "" {
			c.Endpoint = "http://collector"
		}
		tracer, err := tracing.New(tracing.Options{Config: c, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
		if err == nil || tracer != nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
