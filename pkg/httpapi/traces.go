package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/tracing"
)

// traced begins the span of a request, which has the pattern of its route for a name: never its path, which has ids, nor its query. What is no
// route has none.
func (s *Server) traced(hr *http.Request, rt route) (*http.Request, tracing.Span) {
	about := append(make([]tracing.Attribute, 0, 2), tracing.Method(hr.Method))
	name := "request"
	if rt.pattern != "" {
		pattern := api.Prefix + rt.pattern
		about = append(about, tracing.Route(pattern))
		name = rt.method + " " + pattern // HEAD is as GET
	}
	ctx, span := s.cfg.Tracer.Request(hr.Context(), hr.Header, name, about...)
	return hr.WithContext(ctx), span
}

// endSpan ends the span of a request, with what is known of it by then.
func (r *request) endSpan(span tracing.Span, status int) {
	if r.server.cfg.Tracer == nil {
		return
	}
	span.Set(tracing.Status(status))
	if r.project != nil {
		span.Set(tracing.Namespace(r.project.Namespace))
	}
	if r.collection != nil {
		span.Set(tracing.Collection(r.collection.Name))
	}
	if status >= http.StatusInternalServerError {
		span.Bad()
	}
	span.End(nil)
}

// beginTool begins what is measured of a call of a tool ("": none that there is), and its span, below which is what it asks.
func (s *Server) beginTool(ctx context.Context, tool string) (_ context.Context, end func(code int)) {
	start, span := time.Now(), tracing.Span{}
	if tool != "" {
		ctx, span = s.cfg.Tracer.Within(ctx, "tool "+tool, tracing.Tool(tool))
	}
	return ctx, func(code int) {
		s.metrics.observeTool(tool, code, time.Since(start))
		if code != 0 {
			span.Set(tracing.Code(code))
		}
		span.End(nil)
	}
}
