package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/svcctl/svc/pkg/access"
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

// WriteHeaders are what a write's headers say: its key, the revisions of If-Match, whether it wants ids only, and its id.
type WriteHeaders struct {
	Key     string
	Revs    []int64
	Minimal bool
	ID      string
}

// ReadWriteHeaders reads the headers of a POST that may have a key, each of which may be given several times.
func ReadWriteHeaders(h http.Header) (out WriteHeaders, err error) {
	r := &request{Request: &http.Request{Method: http.MethodPost, Header: h}, route: route{key: keyOnce}}
	out.Minimal, out.ID = r.minimal(http.Header{}), requestID(h.Get("X-Request-Id"))
	if out.Key, err = r.idempotencyKey(); err != nil {
		return out, err
	}
	out.Revs, err = r.ifMatch()
	return out, err
}

// LastEvent reads the header Last-Event-ID of a stream of a run.
func LastEvent(h http.Header) (int64, error) {
	return (&request{Request: &http.Request{Method: http.MethodGet, Header: h}}).lastEvent()
}

// Language reads the parameter lang of a list of records.
func Language(rawQuery string) (string, error) {
	values, err := parseQuery(rawQuery)
	if err != nil {
		return "", err
	}
	return (&request{query: values, route: route{right: right{kind: rightRecords}}}).language()
}

// ReadBody reads a request's body, for a route that is anyone's.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	server := &Server{cfg: Config{MaxBodySize: limit}}
	return (&request{Request: r, server: server, route: route{right: right{kind: rightPublic}}}).body(w)
}

// Bodies gives a func that reads the bodies of requests to one server, which has memory for so many bytes. Each request goes
// on until its end is called.
func Bodies(limit, memory int64) func(w http.ResponseWriter, r *http.Request) (end func(), err error) {
	server := &Server{cfg: Config{MaxBodySize: limit}, bodies: bodies{most: memory}}
	return func(w http.ResponseWriter, hr *http.Request) (func(), error) {
		r := &request{Request: hr, server: server, route: route{right: right{kind: rightPublic}}}
		_, err := r.body(w)
		return r.dropBody, err
	}
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

// File is a file that ServeFile answers with.
type File struct {
	Name, Media, Tag string
	Body             []byte
	Shared, Download bool
	By               access.Kind // who asks
}

// ServeFile gives a handler that answers with a file, behind the compression of every answer.
func ServeFile(f File) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(100), gzhttp.ContentTypes([]string{"application/problem+json", "text/plain"}))
	if err != nil {
		panic(err)
	}
	return wrap(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, server: &Server{}, principal: &access.Principal{Kind: f.By}}
		rec := &recorder{ResponseWriter: w, begin: func() {}}
		err := r.serveFile(rec, content{
			name: f.Name, media: f.Media, tag: f.Tag, modified: time.Unix(1_700_000_000, 0), body: bytes.NewReader(f.Body),
			shared: f.Shared, download: f.Download,
		})
		if err != nil {
			(&Server{}).sendProblem(rec, r, problem(errs.From(err), ""), 0)
		}
	}))
}

// ReadBundle gives the files of an archive of a config.
func ReadBundle(data []byte) (map[string][]byte, error) {
	b, err := readBundle(data)
	if err != nil {
		return nil, err
	}
	return b.Files, nil
}
