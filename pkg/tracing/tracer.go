package tracing

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/svcctl/svc/pkg/errs"
)

// Options of a Tracer.
type Options struct {
	Config     Config
	Version    string                // of the service
	Instance   string                // names this process among those of the service
	Logger     *slog.Logger          // required: is told when spans are lost
	Registerer prometheus.Registerer // required: counts them

	timing timing // for tests; zero: what users get
}

// Tracer makes spans. A nil one makes none, and whoever has one does nothing for it: that is why they ask for nil before they put
// attributes together. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	exporter *exporter
}

// New makes a Tracer that Close ends; nil if the config has no endpoint. It does not ask the collector anything.
func New(o Options) (*Tracer, error) {
	if o.Config.Endpoint == "" {
		return nil, nil //nolint:nilnil // a nil Tracer is one that is off
	}
	if err := o.Config.Check(); err != nil {
		return nil, err
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", o.Config.service()), attribute.String("service.version", o.Version)}
	if o.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", o.Instance))
	}
	of := resource.NewSchemaless(attributes...)
	e, err := newExporter(o, of)
	if err != nil {
		return nil, err
	}
	limits := sdk.SpanLimits{AttributeCountLimit: 16, AttributeValueLengthLimit: maxText}
	provider := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(e), sdk.WithResource(of), sdk.WithRawSpanLimits(limits), sdk.WithSampler(sampler{ratio: o.Config.SampleRatio}),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/svcctl/svc"), exporter: e}, nil
}

// Close hands over what there is, until ctx ends. Spans that end later are dropped.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Request begins the span of a request: below the one that ctx has, as a tool of an agent has for what it asks, or else below the one
// that its caller names (traceparent of the W3C). Nothing is taken from there but the ids, and that the caller wants no trace: whether
// there is one else is for the operator's ratio to say.
func (t *Tracer) Request(ctx context.Context, header http.Header, name string, about ...Attribute) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	kind := trace.SpanKindInternal
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx, kind = below(ctx, header), trace.SpanKindServer
	}
	return t.whole(ctx, kind, name, about)
}

// below gives ctx the span that the caller of a request names, if it names one.
func below(ctx context.Context, header http.Header) context.Context {
	given := header.Values("Traceparent")
	if len(given) != 1 {
		return ctx
	}
	named := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": given[0]}) //nolint:forbidigo // it holds one value on its way to ctx
	if of := trace.SpanContextFromContext(named); of.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, of)
	}
	return ctx
}

// Follow says in the header of a request that goes to another service which span it is part of; without one, it says nothing.
func Follow(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Background begins the span of something that nobody waits for, such as a reconcile: below the one that ctx has, or as the first of a trace.
func (t *Tracer) Background(ctx context.Context, name string, about ...Attribute) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.whole(ctx, trace.SpanKindInternal, name, about)
}

// Within begins the span of a step. Where ctx has no span that is recorded there is none: a step alone tells nothing.
func (t *Tracer) Within(ctx context.Context, name string, about ...Attribute) (context.Context, Span) {
	return t.step(ctx, trace.SpanKindInternal, name, about)
}

// Asking is Within for what another server may be asked.
func (t *Tracer) Asking(ctx context.Context, name string, about ...Attribute) (context.Context, Span) {
	return t.step(ctx, trace.SpanKindClient, name, about)
}

// Records says that ctx has a span that is recorded.
func Records(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// maxSteps is how many steps of a request or a run have spans: a script may read records by the million.
const maxSteps = 1000

// steps counts those of a request, a reconcile or a run.
type steps struct{ n atomic.Int64 }

type stepsKey struct{}

// whole begins the span of something that has steps.
func (t *Tracer) whole(ctx context.Context, kind trace.SpanKind, name string, about []Attribute) (context.Context, Span) {
	ctx, span := t.start(ctx, kind, name, about)
	if span.span.IsRecording() {
		span.steps = &steps{}
		ctx = context.WithValue(ctx, stepsKey{}, span.steps)
	}
	return ctx, span
}

// step begins the span of a step, unless there were too many.
func (t *Tracer) step(ctx context.Context, kind trace.SpanKind, name string, about []Attribute) (context.Context, Span) {
	if t == nil || !Records(ctx) {
		return ctx, Span{}
	}
	if of, ok := ctx.Value(stepsKey{}).(*steps); ok && of.n.Add(1) > maxSteps {
		return ctx, Span{}
	}
	return t.start(ctx, kind, name, about)
}

func (t *Tracer) start(ctx context.Context, kind trace.SpanKind, name string, about []Attribute) (context.Context, Span) {
	ctx, s := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	span := Span{span: s}
	span.Set(about...)
	return ctx, span
}

// Span is a step of a trace that has begun. The zero value is none, and takes everything.
type Span struct {
	span  trace.Span
	steps *steps // nil: it is one itself
}

// Set adds attributes.
func (s Span) Set(about ...Attribute) {
	if s.span == nil || !s.span.IsRecording() {
		return
	}
	of := make([]attribute.KeyValue, len(about))
	for i := range about {
		of[i] = about[i].kv
	}
	s.span.SetAttributes(of...)
}

// Fail notes the kind of an error. One that is no fault of the service, such as that there is no such record, leaves a span good.
func (s Span) Fail(err error) {
	if s.span == nil || err == nil || !s.span.IsRecording() {
		return
	}
	word, ours := errorType(errs.KindOf(err))
	if errors.Is(err, context.Canceled) {
		word, ours = "canceled", false
	}
	s.span.SetAttributes(attribute.String("error.type", word))
	if ours {
		s.Bad()
	}
}

// Bad says that something went wrong.
func (s Span) Bad() {
	if s.span != nil {
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span, with the kind of an error if there is one.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	s.Fail(err)
	if s.steps != nil {
		if left := s.steps.n.Load() - maxSteps; left > 0 {
			s.span.SetAttributes(attribute.Int64("svc.steps.left_out", left))
		}
	}
	s.span.End()
}

// sampler says of which traces there are spans. What is below one of our spans is as that is. Of a caller's, a "no" counts, and a "yes" does
// not: that is drawn by lot, as for a request without. The ids are not asked either, as other samplers do, since callers choose them.
type sampler struct{ ratio float64 }

func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	sampled := s.ratio >= 1 || s.ratio > 0 && rand.Float64() < s.ratio //nolint:gosec // nothing is kept from anybody by it
	switch {
	case parent.IsValid() && !parent.IsRemote():
		sampled = parent.IsSampled()
	case parent.IsValid() && !parent.IsSampled():
		sampled = false
	}
	if sampled {
		return sdk.SamplingResult{Decision: sdk.RecordAndSample}
	}
	return sdk.SamplingResult{Decision: sdk.Drop}
}

func (sampler) Description() string { return "svc" }
