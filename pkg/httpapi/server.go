package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/catalog"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/mcp"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	searches "github.com/svcctl/svc/pkg/search/runs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
	"github.com/svcctl/svc/pkg/tracing"
)

// Control is what this door asks of the control plane. controllers.Control implements it.
type Control interface {
	Registrations
	Reloads
	Convergence
}

// Registrations is which projects there are.
type Registrations interface {
	// Register loads a config file, records the registration and waits until its project is served.
	Register(ctx context.Context, body bson.D) (system.Project, error)
	// Update changes a registration and waits until that shows.
	Update(ctx context.Context, id string, body bson.D) (system.Project, error)
	// Unregister ends a registration. The data stays.
	Unregister(ctx context.Context, id string) error
	// Founder makes projects of an org ("": of none), which snapshots are restored into.
	Founder(org string) snapshot.Founder
}

// Reloads is which config a project is served from.
type Reloads interface {
	// Reload loads a project's files again. With wait it returns when the new generation is served, or the error
	// that its config has.
	Reload(ctx context.Context, id string, wait bool) error
	// ReloadPlanned is a Reload that is waited for, and refused if it would change something else than the plan with that
	// hash, or has a greater risk than is allowed; either may be empty.
	ReloadPlanned(ctx context.Context, id, hash string, allow api.Risk) error
	// Plan tells what a reload would change, with the files on disk or those of a bundle. Without counting, no
	// records are looked at.
	Plan(ctx context.Context, id string, bundle *project.Bundle, counting bool) (*api.Plan, error)
	// RollBack serves an earlier generation of a project again, and returns when it is served, with the number that it has now.
	RollBack(ctx context.Context, id string, generation int64) (int64, error)
}

// Convergence is how far what there is follows what is served.
type Convergence interface {
	// Drift tells where what a project declares and what there is differ, and changes nothing.
	Drift(ctx context.Context, p *project.Project) (*api.Drift, error)
	// ScheduleJobs has a project's jobs looked at now.
	ScheduleJobs(id string) error
	// Indexes tells of each index of a collection, declared or found, how it stands.
	Indexes(ctx context.Context, p *project.Project, collection string) ([]api.IndexDescription, error)
	// SyncIndexes makes a project's indexes as they are declared, also where its mode is to observe, and tells of those that
	// are not. Nothing is changed if that drops indexes whose loss is above the
	// risk that is allowed; "": if it drops any.
	SyncIndexes(ctx context.Context, p *project.Project, allow api.Risk) (*api.Drift, error)
	// Stats tells how large a collection and its indexes are.
	Stats(ctx context.Context, p *project.Project, collection string) (api.CollectionStats, error)
}

// Config is what the door serves. All members are required unless they say otherwise.
type Config struct {
	Records    *records.Service
	Actions    *actions.Service
	Registry   *project.Registry
	Auth       *auth.Auth
	System     *system.System
	Audit      *audit.Logs
	Control    Control
	Jobs       *jobs.Jobs
	Searches   *searches.Service
	Snapshots  *runs.Service
	Keys       *idempotency.Keys
	Assets     *assets.Assets
	Embedding  *embedding.Groups // nil: there are none
	Status     *status.Board
	Ready      func(ctx context.Context, names bool) []api.HealthCheck // how the parts of the service are, with the names of projects or without
	Shutdown   func()                                                  // has the service stop, and doesn't wait for it
	Logger     *slog.Logger
	Now        func() time.Time // nil: time.Now
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	Tracer     *tracing.Tracer // nil: nothing is traced
	Version    string

	// Authenticate says who sent credentials, in the place of Auth, for the tests of a project; nil: Auth does.
	Authenticate func(ctx context.Context, c auth.Credentials) (*access.Principal, error)

	// Moment, if set, gives the context of a request whose reads and writes are to be of one state of the records. Routes that take long have none, but for
	// calls of actions.
	Moment func(ctx context.Context) context.Context

	MaxBodySize    int64             // bytes of a request body, the ceiling for every project
	MaxImport      int64             // bytes of an archive of a snapshot, unpacked; 0: snapshot's own limit
	BodyMemory     int64             // bytes of bodies that are kept in memory at once, of all requests; 0: any
	AdminHosts     []string          // host names of the admin front
	Fronts         map[string]string // host name of a site's front -> namespace
	TrustedProxies []netip.Prefix    // whose Forwarded, or else X-Forwarded-For, is believed
	MetricsPublic  bool              // whether /metrics needs no credential beyond loopback

	MCP MCP // the endpoint for agents
}

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
	s := &Server{cfg: cfg, catalog: catalog.New(cfg.Records, cfg.Actions), log: cfg.Logger, metrics: m, router: router, restGrace: restGrace, bodies: bodies{most: cfg.BodyMemory}, ending: make(chan struct{})}
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

// keepPrivate tells caches that an answer depends on who asks, and not to share one that a credential opened.
func keepPrivate(h http.Header, p *access.Principal) {
	if !slices.Contains(h.Values("Vary"), credentialHeaders) {
		h.Add("Vary", credentialHeaders)
	}
	if p.Kind != access.KindAnonymous {
		h.Set("Cache-Control", "private, no-cache")
	}
}

const credentialHeaders = api.HeaderToken + ", " + api.HeaderAuthToken + ", " + api.HeaderAdminToken + ", " + api.HeaderAuthorization + ", Cookie"

// allowed holds the caller against the right of the route.
func (r *request) allowed() error {
	p, need := r.principal, r.route.right
	switch need.kind {
	case rightPublic:
		return nil
	case rightCredential:
		if p.Kind != access.KindAnonymous && p.Kind != access.KindToken { // whether a Token is good, only a project knows
			return nil
		}
	case rightLogin:
		if p.Kind == access.KindUser {
			return nil
		}
	case rightSystem:
		if p.Has(need.name) {
			return nil
		}
	case rightSnapshots:
		return r.maySnapshots()
	case rightProject, rightServed:
		return r.server.cfg.Records.MayOperate(r.project, p, need.name)
	case rightRecords:
		c, ok := r.project.Collections[r.param("collection")]
		if !ok {
			return errs.ErrCollectionNotFound
		}
		r.inCollection(c)
		return r.server.cfg.Records.May(r.Context(), r.call(), need.method)
	case rightFile, rightAsset, rightDescribed:
		if need.kind == rightFile {
			c := r.project.Addressed(r.param("collection"))
			if c == nil {
				return errs.ErrCollectionNotFound
			}
			r.inCollection(c)
		}
		if p.Kind != access.KindToken || r.project.KnowsToken(p.TokenHash, r.server.cfg.Now()) {
			return nil
		}
	case rightActions, rightAction, rightActionRuns:
		return r.mayAct(need)
	case rightMCP:
		if p.Kind == access.KindPAT {
			return nil
		}
	case rightNobody:
	}
	if need.name != "" {
		return p.Require(need.name)
	}
	return errs.ErrDenied
}

// lacking names in a denial the right that the route asks for, to users and their personal access tokens. That is what
// docs/api.md says of the route, of a collection that is there for them: it tells nothing that they can't see. The rights of
// others, who may be anybody, are not named beyond what the interface has as text.
func (r *request) lacking(err error) error {
	p, need := r.principal, r.route.right
	if (p.Kind != access.KindUser && p.Kind != access.KindPAT) || errs.KindOf(err) != errs.Denied {
		return err
	}
	right := need.name
	switch {
	case errs.From(err).Right != "": // of another collection, which the request asks too
		return err
	case need.kind == rightRecords:
		right = access.LackingOn(p, r.project.Namespace, r.collection.Name, need.method)
	}
	return errs.From(err).Lacking(right)
}

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

func (s *Server) noRoute(_ http.ResponseWriter, r *request) error {
	if err := s.servedNamespace(r); err != nil {
		return err
	}
	return errs.New(errs.NotFound, "no_such_route", "not found")
}

// servedNamespace refuses a path below a project that is not served, whatever comes after.
func (s *Server) servedNamespace(r *request) error {
	rest, ok := strings.CutPrefix(r.URL.Path, api.Prefix+"/_/")
	if !ok {
		return nil
	}
	namespace, _, _ := strings.Cut(rest, "/")
	p, err := s.cfg.Registry.Get(namespace)
	if err == nil && r.principal.Foreign(p.OrgID) {
		return errs.ErrProjectNotFound
	}
	return err
}

func (s *Server) noMethod(w http.ResponseWriter, r *request) error {
	if err := s.servedNamespace(r); err != nil {
		return err
	}
	for _, method := range s.methodsOf(r) {
		w.Header().Add("Allow", method)
	}
	return errs.New(errs.Method, "method_not_allowed", "this path does not take that method")
}

func (s *Server) trusts(addr netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// recorder notes the status and size of an answer.
type recorder struct {
	http.ResponseWriter
	begin  func() // called once, before the answer begins
	status int
	bytes  int64
}

func (w *recorder) began(status int) {
	if w.status == 0 {
		w.status = status
		w.begin()
	}
}

func (w *recorder) WriteHeader(status int) {
	w.began(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.began(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
