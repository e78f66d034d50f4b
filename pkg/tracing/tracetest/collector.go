package tracetest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes OTLP over HTTP. It is safe for concurrent use.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	raw     strings.Builder
	headers http.Header
	answer  func(w http.ResponseWriter, r *http.Request) bool
}

// Span is one that was sent. Attributes are as texts.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent may be ""
	Name, Kind        string
	Bad               bool
	Attributes        map[string]string
	Service           string // service.name
	Start, End        time.Time
}

// NewCollector starts a collector, which ends with the test.
func NewCollector(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.URL = server.URL
	return c
}

// Answer has fn answer in place of the collector. Where it gives true the collector has its turn as well.
func (c *Collector) Answer(fn func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = fn
}

// ServeHTTP takes spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	body, err := io.ReadAll(r.Body) // before anything else: until then nobody notices that the client has gone
	if answer != nil && !answer(w, r) {
		return
	}
	var sent otlp.TracesData
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &sent) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header.Clone()
	c.raw.Write(body)
	for _, resource := range sent.GetResourceSpans() {
		service := ""
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, read(service, s))
			}
		}
	}
}

func read(service string, s *otlp.Span) Span {
	out := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")), Service: service,
		Bad: s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR, Attributes: map[string]string{},
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())), //nolint:gosec // a time
	}
	for _, a := range s.GetAttributes() {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out.Attributes[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out.Attributes[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		default:
			out.Attributes[a.GetKey()] = "of another type"
		}
	}
	return out
}

// Spans are those that were sent, as they came.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Raw is all bodies that came, one behind the other.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Headers are those of the last request.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}

// Wait waits until the spans have what a test is about.
func (c *Collector) Wait(tb testing.TB, enough func(all []Span) bool) []Span {
	tb.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if all := c.Spans(); enough(all) {
			return all
		}
	}
	tb.Fatalf("the spans did not come: %+v", c.Spans())
	return nil
}

// Tree draws a trace: a line for each span, indented below its parent, in the order in which they began.
func Tree(all []Span, trace string, line func(s Span) string) string {
	var mine []Span
	ids := map[string]bool{}
	for _, s := range all {
		if s.Trace == trace {
			mine, ids[s.ID] = append(mine, s), true
		}
	}
	slices.SortStableFunc(mine, func(a, b Span) int { return a.Start.Compare(b.Start) })
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range mine {
			if s.Parent == parent || parent == "" && !ids[s.Parent] {
				b.WriteString(indent + line(s) + "\n")
				draw(s.ID, indent+"  ")
			}
		}
	}
	draw("", "")
	return b.String()
}
