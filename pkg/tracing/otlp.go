package tracing

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// What is sent is an ExportTraceServiceRequest, whose bytes are those of TracesData. The types of the former come with gRPC, which these
// do without.

// encode gives a batch as it is sent.
func encode(of *resource.Resource, spans []sdk.ReadOnlySpan) ([]byte, error) {
	out := make([]*otlp.Span, len(spans))
	for i, s := range spans {
		out[i] = encodeSpan(s)
	}
	return proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resources.Resource{Attributes: encodeAttributes(of.Attributes())},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "github.com/svcctl/svc"}, Spans: out}},
	}}})
}

func encodeSpan(s sdk.ReadOnlySpan) *otlp.Span {
	of, id := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	out := &otlp.Span{
		TraceId: of[:], SpanId: id[:], Name: s.Name(), Flags: uint32(s.SpanContext().TraceFlags()),
		StartTimeUnixNano: uint64(max(0, s.StartTime().UnixNano())), EndTimeUnixNano: uint64(max(0, s.EndTime().UnixNano())),
		Attributes: encodeAttributes(s.Attributes()), DroppedAttributesCount: uint32(max(0, s.DroppedAttributes())), //nolint:gosec // there are few
	}
	if p := s.Parent(); p.HasSpanID() {
		parent := p.SpanID()
		out.ParentSpanId = parent[:]
	}
	switch s.SpanKind() { //nolint:exhaustive // we make no others
	case trace.SpanKindServer:
		out.Kind = otlp.Span_SPAN_KIND_SERVER
	case trace.SpanKindClient:
		out.Kind = otlp.Span_SPAN_KIND_CLIENT
	default:
		out.Kind = otlp.Span_SPAN_KIND_INTERNAL
	}
	if s.Status().Code == codes.Error {
		out.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
	}
	return out
}

func encodeAttributes(of []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, len(of))
	for i, a := range of {
		v := &common.AnyValue{}
		switch a.Value.Type() { //nolint:exhaustive // Attribute has no others
		case attribute.INT64:
			v.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		default:
			v.Value = &common.AnyValue_StringValue{StringValue: a.Value.AsString()}
		}
		out[i] = &common.KeyValue{Key: string(a.Key), Value: v}
	}
	return out
}

// errGarbage says that an answer is none of OTLP.
var errGarbage = errors.New("the answer is not one of OTLP: does otel.endpoint lead to a collector's port for OTLP over HTTP?")

// rejected reads how many spans a collector did not take, of an ExportTraceServiceResponse: its member partial_success (1) has the number as
// rejected_spans (1). Its text is not read: nobody knows what is in it.
func rejected(answer []byte) (n int64, err error) {
	partial, err := member(answer, 1, protowire.BytesType)
	if err != nil || partial == nil {
		return 0, err
	}
	number, err := member(partial, 1, protowire.VarintType)
	if err != nil || number == nil {
		return 0, err
	}
	v, _ := protowire.ConsumeVarint(number)
	return int64(min(v, 1<<31)), nil //nolint:gosec // bounded
}

// member gives one of a message as it is encoded, without the length of bytes; nil: it is not there.
func member(message []byte, number protowire.Number, kind protowire.Type) (found []byte, err error) {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, fmt.Errorf("%w (%w)", errGarbage, protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(num, typ, message); n < 0 {
			return nil, fmt.Errorf("%w (%w)", errGarbage, protowire.ParseError(n))
		}
		if num == number && typ == kind {
			if found = message[:n]; typ == protowire.BytesType {
				found, _ = protowire.ConsumeBytes(message)
			}
		}
		message = message[n:]
	}
	return found, nil
}
