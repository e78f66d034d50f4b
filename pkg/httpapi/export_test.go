package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
)

// StatusOf is the table from kinds of errors to statuses.
var StatusOf = statusOf

// SetRestGrace changes the time in which the rest of a body must come.
func SetRestGrace(s *Server, d time.Duration) { s.restGrace = d }

// ListParams reads a URL's query as the list of records does.
func ListParams(rawQuery string) (query.Params, error) {
	values, err := parseQuery(rawQuery)
	if err != nil {
		return query.Params{}, err
	}
	return (&request{query: values}).listParams()
}

// ReadBody reads a request's body, for a route that is anyone's.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	server := &Server{cfg: Config{MaxBodySize: limit}}
	return (&request{Request: r, server: server, route: route{right: right{kind: rightPublic}}}).body(w)
}

// ClientAddr is the address of the client.
func ClientAddr(r *http.Request, trusted ...netip.Prefix) netip.Addr {
	return (&request{Request: r, server: &Server{cfg: Config{TrustedProxies: trusted}}}).addr()
}

// RetryAfter is the header Retry-After of a refused request.
func RetryAfter(ctx context.Context, method string, e *errs.Error) string {
	w := httptest.NewRecorder()
	r := &request{Request: httptest.NewRequestWithContext(ctx, method, "/", http.NoBody)}
	(&Server{}).sendProblem(w, r, problem(e, ""), e.RetryAfter)
	return w.Header().Get("Retry-After")
}

// Stream answers with a stream of what follow sends. end has the service stop.
func Stream(w http.ResponseWriter, r *http.Request, follow func(ctx context.Context, send func(id int64, kind string, data []byte) error) error) (end func(), run func() error) {
	return StreamWhile(w, r, func() error { return nil }, follow)
}

// StreamWhile is Stream for a reader of whom check says whether they still may read it.
func StreamWhile(w http.ResponseWriter, r *http.Request, check func() error, follow func(ctx context.Context, send func(id int64, kind string, data []byte) error) error) (end func(), run func() error) {
	s := &Server{ending: make(chan struct{})}
	return s.EndStreams, func() error {
		return s.stream(w, &request{Request: r, server: s}, check, func(ctx context.Context, send sendEvent) error { return follow(ctx, send) })
	}
}
