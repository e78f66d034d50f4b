package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// What is kept for a collector at most: of each span a few names, and so some MiB.
const (
	maxQueue = 4096 // spans that wait
	maxBatch = 512  // spans that are sent at once
)

// timing is how patient an exporter is.
type timing struct {
	gather  time.Duration // how long a span waits for others at most
	ask     time.Duration // how long a collector may take for a batch
	retry   time.Duration // the wait before a batch is sent again; four times as long before the next time
	logging time.Duration // the time between two lines of the log
}

var usual = timing{gather: 2 * time.Second, ask: 10 * time.Second, retry: time.Second, logging: time.Minute} //nolint:gochecknoglobals // a constant

const (
	tries    = 3                // of a batch
	maxRetry = 30 * time.Second // that a collector may have us wait
)

// Why spans are dropped: values of the label reason.
const (
	droppedQueue = "queue"  // the collector is slower than they come
	droppedSend  = "send"   // it does not take them
	droppedClose = "closed" // the service has ended before they went out
)

// exporter takes the spans that have ended and sends them, in a goroutine of its own. It is a SpanProcessor of the SDK, whose own one tells
// of its errors by what is global. Whoever ends a span never waits for it.
type exporter struct {
	of      *resource.Resource
	target  target
	timing  timing
	log     *slog.Logger
	sent    prometheus.Counter
	dropped *prometheus.CounterVec

	queue   chan sdk.ReadOnlySpan
	closing atomic.Bool
	close   chan struct{}   // closed when all that is left is to be sent
	done    chan struct{}   // closed when the goroutine has ended
	ctx     context.Context //nolint:containedctx // of the goroutine: ended when it may take no longer
	cancel  context.CancelFunc
	once    sync.Once

	// of the goroutine
	told time.Time // when the log was told last; zero: not since all was well
	lost int       // spans since then
}

func newExporter(o Options, of *resource.Resource) (*exporter, error) {
	to, err := newTarget(o.Config)
	if err != nil {
		return nil, err
	}
	e := &exporter{
		of: of, target: to, timing: o.timing, log: o.Logger,
		queue: make(chan sdk.ReadOnlySpan, maxQueue), close: make(chan struct{}), done: make(chan struct{}),
		sent:    prometheus.NewCounter(prometheus.CounterOpts{Name: "svc_trace_spans_sent_total", Help: "Spans that the collector of traces has taken."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "svc_trace_spans_dropped_total", Help: "Spans that the collector of traces did not get, or did not take."}, []string{"reason"}),
	}
	if e.timing == (timing{}) {
		e.timing = usual
	}
	for _, c := range []prometheus.Collector{e.sent, e.dropped} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	for _, reason := range []string{droppedQueue, droppedSend, droppedClose} {
		e.dropped.WithLabelValues(reason) // so that a rate over it has a first value
	}
	e.ctx, e.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // Shutdown ends it
	go e.run()
	return e, nil
}

// OnStart implements sdk.SpanProcessor.
func (*exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It never waits: what has no room is dropped.
func (e *exporter) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if e.closing.Load() {
		e.dropped.WithLabelValues(droppedClose).Inc()
		return
	}
	select {
	case e.queue <- s:
	default:
		e.dropped.WithLabelValues(droppedQueue).Inc()
	}
}

// ForceFlush implements sdk.SpanProcessor. Nobody asks for it.
func (*exporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdk.SpanProcessor: it has what waits sent, until ctx ends. What is left then is dropped. It is no error that a
// collector does not take it.
func (e *exporter) Shutdown(ctx context.Context) error {
	e.once.Do(func() {
		e.closing.Store(true)
		close(e.close)
	})
	select {
	case <-e.done:
	case <-ctx.Done():
		e.cancel()
		<-e.done // soon: whatever it does ends with e.ctx
	}
	e.cancel()
	return nil
}

// run sends batch after batch.
func (e *exporter) run() {
	defer close(e.done)
	defer e.target.client.CloseIdleConnections()
	batch := make([]sdk.ReadOnlySpan, 0, maxBatch)
	for {
		var more bool
		batch, more = e.gather(batch[:0])
		if len(batch) > 0 {
			e.deliver(batch)
			clear(batch) // what has gone out is not kept until others come
		}
		if !more {
			return
		}
	}
}

// gather waits for spans, and for a moment for others. more is false when there will be none.
func (e *exporter) gather(batch []sdk.ReadOnlySpan) (_ []sdk.ReadOnlySpan, more bool) {
	var full <-chan time.Time
	for len(batch) < maxBatch {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
			if full == nil {
				timer := time.NewTimer(e.timing.gather)
				defer timer.Stop()
				full = timer.C
			}
		case <-full:
			return batch, true
		case <-e.close:
			return e.rest(batch)
		}
	}
	return batch, true
}

// rest takes what waits, without waiting for more.
func (e *exporter) rest(batch []sdk.ReadOnlySpan) (_ []sdk.ReadOnlySpan, more bool) {
	for len(batch) < maxBatch {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		default:
			return batch, false
		}
	}
	return batch, true
}

// deliver sends a batch, several times if it has to, and counts what became of it.
func (e *exporter) deliver(batch []sdk.ReadOnlySpan) {
	body, err := encode(e.of, batch)
	if err != nil { // such as a text that is no UTF-8: names of files can be that
		e.drop(droppedSend, len(batch), err)
		return
	}
	wait := e.timing.retry
	for n := 1; ; n++ {
		var lost int64
		lost, err = e.send(body)
		if err == nil {
			e.took(len(batch), int(min(lost, int64(len(batch)))))
			return
		}
		again := retryable(err)
		if n == tries || !again || !e.sleep(max(wait, askedFor(err))) {
			break
		}
		wait *= 4
	}
	reason := droppedSend
	if e.ctx.Err() != nil {
		reason = droppedClose
	}
	e.drop(reason, len(batch), err)
}

// sleep waits, and says whether to go on: not when the service ends.
func (e *exporter) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.close:
		return false
	}
}

func (e *exporter) send(body []byte) (lost int64, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, e.timing.ask)
	defer cancel()
	return e.target.send(ctx, body)
}

// took counts a batch that a collector has answered, of which it may have refused some.
func (e *exporter) took(n, lost int) {
	e.sent.Add(float64(n - lost))
	if lost > 0 {
		e.drop(droppedSend, lost, errRefused)
		return
	}
	if !e.told.IsZero() {
		e.log.Info("traces are delivered again", slog.Int("lost", e.lost))
		e.told, e.lost = time.Time{}, 0
	}
}

// drop counts spans that are lost, and tells the log of it, but not more often than once a minute.
func (e *exporter) drop(reason string, n int, err error) {
	e.dropped.WithLabelValues(reason).Add(float64(n))
	e.lost += n
	if !e.told.IsZero() && time.Since(e.told) < e.timing.logging {
		return
	}
	e.log.Warn("traces are lost: the collector does not take them; see that otel.endpoint leads to it, and that it runs",
		slog.Int("lost", e.lost), slog.String("endpoint", e.target.url), slog.Any("error", err))
	e.told, e.lost = time.Now(), 0
}

// target is a collector.
type target struct {
	url    string
	header http.Header
	client *http.Client
}
