package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/gzhttp"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/catalog"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mcp"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/tracing"
)

// Server is the door. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg     Config
	catalog *catalog.Catalog
	mcp     *mcp.Server
	log     *slog.Logger
	metrics *metrics
	router  chi.Router
	handler http.Handler

	restGrace time.Duration
	bodies    bodies

	feeds feedPlaces

	endOnce sync.Once
	ending  chan struct{} // closed by EndStreams
}

// New makes the door and registers its metrics.
func New(cfg Config) (*Server, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MCP.MaxResultItems == 0 {
		cfg.MCP.MaxResultItems = defaultResultItems
	}
	router := chi.NewRouter()
	s := &Server{cfg: cfg, catalog: catalog.New(cfg.Records, cfg.Actions, cfg.Control.Indexes), log: cfg.Logger, metrics: m, router: router, restGrace: restGrace, bodies: bodies{most: cfg.BodyMemory}, ending: make(chan struct{})}
	s.mcp = mcp.New(mcp.Options{
		AllowAdminActions: cfg.MCP.AllowAdminActions, MaxResultItems: cfg.MCP.MaxResultItems, Namespaces: s.namespaces, Begin: s.beginTool,
	})
	asked := map[string]bool{}
	for _, rt := range routes() {
		h, pattern := s.serve(rt), api.Prefix+rt.pattern
		const other = "[^_/][^/]*" // what begins with _ is other routes, or none
		switch rt.pattern {
		case api.RouteRecord:
			pattern = strings.Replace(pattern, "{id}", "{id:"+other+"}", 1)
		case api.RouteFile: // with any path behind it
			pattern = strings.Replace(pattern, "{collection}", "{collection:"+other+"}", 1)
		}
		router.Method(rt.method, pattern, h)
		if rt.method == http.MethodGet {
			router.Method(http.MethodHead, pattern, h)
		}
		if rt.right.inProject() && !asked[rt.pattern] {
			asked[rt.pattern] = true
			router.Method(http.MethodOptions, pattern, s.serve(route{right: right{kind: rightPublic}, handle: (*Server).noMethod, preflight: true, anyQuery: true}))
		}
	}
	s.rootRoutes(router)
	router.NotFound(s.serve(route{right: right{kind: rightPublic}, handle: (*Server).noRoute, anyQuery: true}))
	router.MethodNotAllowed(s.serve(route{right: right{kind: rightPublic}, handle: (*Server).noMethod, anyQuery: true}))
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.ContentTypes([]string{api.MediaJSON, api.MediaProblem, "text/plain"}))
	if err != nil {
		return nil, errs.Wrap(err, "set up compression")
	}
	prefixes, err := prefixesOf(cfg.AdminHosts, cfg.Fronts)
	if err != nil {
		return nil, err
	}
	s.handler = s.hosts(prefixes, compress(router))
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// serve wraps a route's handler with what every request goes through.
func (s *Server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		start := time.Now()
		if !ofAgent(hr.Context()) { // which is one already
			s.metrics.active.Inc()
			defer s.metrics.active.Dec()
		}
		var span tracing.Span
		if s.cfg.Tracer != nil && !rt.probe {
			hr, span = s.traced(hr, rt)
		}
		r := &request{
			Request: hr, server: s, route: rt, id: requestID(hr.Header.Get(api.HeaderRequestID)),
			unread: hr.Body != nil && hr.Body != http.NoBody,
		}
		rec := &recorder{ResponseWriter: w, begin: func() { s.beginRest(w, r) }}
		rec.Header().Set(api.HeaderRequestID, r.id)
		defer func() {
			if p := recover(); p != nil {
				s.panicked(rec, r, p)
			}
			s.finish(rec, r, time.Since(start))
			s.endRest(rec, r)
			r.endSpan(span, rec.status)
			if r.cutOff {
				panic(http.ErrAbortHandler)
			}
		}()
		if err := s.dispatch(rec, r); err != nil {
			s.fail(rec, r, err)
		}
	}
}

// dispatch runs the steps that come before a handler, in this order: origin, query, project, caller, right, parameters. So nobody
// learns more than that they may not, and no body is read for them. When a body has come, all but the first two and the last of
// these are done again.
func (s *Server) dispatch(w http.ResponseWriter, r *request) (err error) {
	if err := r.headFits(); err != nil {
		return err
	}
	if r.route.right.inProject() || r.route.preflight {
		if c, allowed := r.allowOrigin(w.Header()); c != nil && r.route.preflight {
			s.preflight(w, r, c, allowed)
			return nil
		}
	}
	if r.query, err = parseQuery(r.URL.RawQuery); err != nil {
		return err
	}
	if r.pretty, err = r.boolean(api.ParamPretty); err != nil {
		return err
	}
	if r.lang, err = r.language(); err != nil {
		return err
	}
	if s.cfg.Moment != nil && (!r.route.long || r.route.right.kind == rightAction) {
		r.Request = r.WithContext(s.cfg.Moment(r.Context()))
	}
	if r.route.right.kind != rightRecords && !r.route.long { // records have limits of their own, and bulk writes may take long
		ctx, cancel := context.WithTimeout(r.Context(), systemTimeout)
		defer cancel()
		r.Request = r.WithContext(ctx)
	}
	if err := r.enter(w.Header()); err != nil {
		return err
	}
	if err := r.known(); err != nil {
		return err
	}
	defer r.discardUploads()
	defer r.dropBody()
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	dry := false
	if slices.Contains(r.route.query, api.ParamDryRun) { // an action may have a field of that name
		if dry, err = r.boolean(api.ParamDryRun); err != nil {
			return err
		}
	}
	if key == "" || dry {
		return r.route.handle(s, w, r)
	}
	return s.once(w, r, key)
}

// systemTimeout bounds requests that are not for records, below the time in which an answer must be out.
const systemTimeout = 30 * time.Second

// fail answers with an error, unless the answer has begun.
func (s *Server) fail(w *recorder, r *request, err error) {
	e := public(r.Context(), err)
	s.logError(r, e)
	if w.status != 0 {
		return
	}
	p := problem(e, r.id)
	if refused, ok := errors.AsType[*project.ConfigError](err); ok {
		p.Problems = configProblems(refused.Problems)
	}
	s.sendProblem(w, r, p, e.RetryAfter)
}

// logError logs what a caller is not told: the causes of our own failures.
func (s *Server) logError(r *request, e *errs.Error) {
	if e.Logged {
		return
	}
	switch e.Kind {
	case errs.Internal:
		s.log.ErrorContext(r.Context(), "request failed", "request_id", r.id, "method", r.Method, "path", r.URL.Path, "error", e.Error())
	case errs.Unavailable, errs.Timeout, errs.Full:
		s.log.WarnContext(r.Context(), "request not served", "request_id", r.id, "method", r.Method, "path", r.URL.Path, "error", e.Error())
	default:
	}
}

func (s *Server) panicked(w *recorder, r *request, p any) {
	s.log.ErrorContext(r.Context(), "panic in a request", "request_id", r.id, "method", r.Method, "path", r.URL.Path,
		"panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		s.sendProblem(w, r, problem(errs.From(errPanic), r.id), 0)
	}
}

var errPanic = errs.New(errs.Internal, "internal", "internal error")

// finish counts and logs a request. The query is never logged: it may hold a token.
func (s *Server) finish(w *recorder, r *request, took time.Duration) {
	if w.status == 0 {
		w.began(http.StatusOK)
	}
	namespace, collection := "", ""
	if r.project != nil {
		namespace = r.project.Namespace
	}
	if r.collection != nil {
		collection = r.collection.Name
	}
	s.metrics.observe(r.Method, w.status, namespace, collection, took)
	if s.log.Enabled(r.Context(), slog.LevelDebug) {
		s.log.DebugContext(r.Context(), "request", "request_id", r.id, "method", r.Method, "path", r.URL.Path,
			"status", w.status, "duration", took, "bytes", w.bytes)
	}
}
