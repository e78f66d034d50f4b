package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
)

// request is one request on its way: the HTTP request and what has been found out about it so far.
type request struct {
	*http.Request

	server     *Server
	route      route
	id         string
	byCookie   bool // the session cookie is the credential
	unread     bool // some of the body may still be to come
	small      bool // the body holds a few short strings
	lingers    bool // the answer went out before the body had come
	query      url.Values
	pretty     bool
	lang       string // that the answer is to be in; "": none
	principal  *access.Principal
	project    *project.Project    // of the namespace in the path, the same one from when the body has come
	unserved   bool                // the project has no generation to serve
	collection *project.Collection // of the path
	action     *project.Action     // of the path
	profiles   *profiles           // of snapshots that the caller has to do with; nil: the route has its own right
	toRecords  *records.Call       // for the collection, once it is known
	read       []byte              // the body, if hasRead
	hasRead    bool
	bodyBytes  int64              // of the body, in memory
	spool      *records.Spool     // a form that has been read, on the disk
	uploads    records.Uploads    // the files of a form
	claim      *idempotency.Claim // to carry out a request that has a key; nil: it has none
	cutOff     bool               // the answer ends early, and its reader is to notice
}

// newRequestID makes an id for a request that came without one.
func newRequestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// requestID takes the caller's id if it is one that is safe to repeat in headers and logs.
func requestID(given string) string {
	if given == "" || len(given) > 64 {
		return newRequestID()
	}
	for _, c := range given {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("-_.:", c) {
			return newRequestID()
		}
	}
	return given
}

// maxHead bounds a request's address and headers together.
const maxHead = 64 << 10

// headFits refuses a request whose address and headers are too long, such as one with a filter of thousands of values. What
// is longer by far, the HTTP server refuses without our words.
func (r *request) headFits() error {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size <= maxHead {
		return nil
	}
	e := errs.New(errs.Invalid, "head_too_large", "the address and the headers are longer than %d KiB together: ask for less, or in several requests", maxHead>>10)
	e.Status = http.StatusRequestHeaderFieldsTooLarge
	return e
}

// param gives a part of the path, decoded.
func (r *request) param(name string) string {
	v := chi.URLParam(r.Request, name)
	if r.URL.RawPath == "" {
		return v
	}
	decoded, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return decoded
}

// credentials gathers what the caller shows, wherever it may stand.
func (r *request) credentials() (auth.Credentials, error) {
	c := auth.Credentials{
		XAuthToken: r.Header.Get(api.HeaderAuthToken),
		AdminToken: r.Header.Get(api.HeaderAdminToken),
		Token:      r.Header.Get(api.HeaderToken),
	}
	for _, name := range []string{api.HeaderAuthToken, api.HeaderAdminToken, api.HeaderToken, api.HeaderAuthorization} {
		if len(r.Header.Values(name)) > 1 {
			return c, errs.New(errs.Invalid, "two_credentials", "the header %s is given more than once", name)
		}
	}
	if given := r.Header.Get(api.HeaderAuthorization); given != "" {
		scheme, value, ok := strings.Cut(given, " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return c, errs.ErrDenied
		}
		c.Bearer = strings.TrimSpace(value)
	}
	for name, v := range r.query {
		if !isTokenParameter(name) {
			continue
		}
		if len(v) > 1 || c.TokenQuery != "" {
			return c, errs.New(errs.Invalid, "two_credentials", "the parameter %s is given more than once", name)
		}
		c.TokenQuery = v[0]
	}
	return c, nil
}

// authenticate finds out who is calling. A session cookie that is not valid is taken from the browser, which would go
// on sending it.
func (r *request) authenticate(h http.Header) error {
	c, err := r.credentials()
	if err != nil {
		return err
	}
	if c == (auth.Credentials{}) && !r.route.noCookie {
		if c.Cookie, err = r.cookie(); err != nil {
			return err
		}
		r.byCookie = c.Cookie != ""
	}
	who := r.server.cfg.Authenticate
	if who == nil {
		who = r.server.cfg.Auth.Authenticate
	}
	p, err := who(r.Context(), c)
	if err != nil {
		if r.byCookie && errs.KindOf(err) == errs.Denied {
			r.clearCookie(h)
		}
		return err
	}
	if r.byCookie { // of a session that is one: any other is no reason to look at the body's type
		if err := r.sameOrigin(); err != nil {
			return err
		}
	}
	r.principal = p
	if r.project != nil && r.principal.Foreign(r.project.OrgID) {
		r.project = nil
		return errs.ErrProjectNotFound
	}
	return nil
}

// enter finds the project of the path and who is calling, and holds them against the right of the route. It is done at the
// head of a request, and again when its body has come, which takes as long as the caller likes: what was revoked
// meanwhile, by whatever means, does not write.
func (r *request) enter(h http.Header) error {
	if r.route.right.kind == rightMCP {
		if err := r.mayUseMCP(); err != nil {
			return err
		}
	}
	if r.route.right.inProject() {
		if err := r.inProject(r.route.right.kind); err != nil {
			return err
		}
	}
	err := r.admit(h)
	switch {
	case errors.Is(err, errs.ErrProjectNotFound):
		forgetOrigin(h)
	case r.route.right.kind == rightMCP && errs.KindOf(err) == errs.Denied && err != nil: // all that is not the one credential
		err = errPATRequired
	}
	if r.project != nil && !r.unserved {
		h.Set(api.HeaderGeneration, strconv.FormatInt(r.project.Generation, 10))
	}
	if err == nil {
		r.audited()
	}
	return err
}

// again is enter for a request that goes on for long: whether its caller still may. It leaves the request as it is.
func (r *request) again() (*request, error) {
	now := *r
	return &now, now.enter(http.Header{})
}

// callerAgain is again for what outlives the request: it keeps what the caller has shown and where, but neither body nor
// context, and goes by the context that it is given.
func (r *request) callerAgain() func(ctx context.Context) (*access.Principal, error) {
	shown := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header, RemoteAddr: r.RemoteAddr, TLS: r.TLS}
	given := chi.RouteContext(r.Context()).URLParams // chi takes its own back for another request
	path := chi.RouteParams{Keys: slices.Clone(given.Keys), Values: slices.Clone(given.Values)}
	server, route, id, query := r.server, r.route, r.id, r.query
	return func(ctx context.Context) (*access.Principal, error) {
		in := chi.NewRouteContext()
		in.URLParams = path
		now := request{Request: shown.WithContext(context.WithValue(ctx, chi.RouteCtxKey, in)), server: server, route: route, id: id, query: query}
		err := now.enter(http.Header{})
		return now.principal, err
	}
}

// inProject finds the project of the path. A namespace that is not served is not found, whatever else is asked of it;
// only its operators can reach a registered one whose config was never valid, to reload it.
func (r *request) inProject(kind rightKind) error {
	namespace := r.param("project")
	p, err := r.server.cfg.Registry.Get(namespace)
	r.unserved = false
	if err != nil && kind == rightProject {
		p, err = r.standIn(namespace)
		r.unserved = err == nil
	}
	r.project = p
	return err
}

// standIn stands in for a registered project that has no generation to serve.
func (r *request) standIn(namespace string) (*project.Project, error) {
	reg, err := r.server.cfg.System.Projects.ByNamespace(r.Context(), namespace)
	switch {
	case errors.Is(err, errs.ErrNotFound), err == nil && !reg.Enabled:
		return nil, errs.ErrProjectNotFound
	case err != nil:
		return nil, err
	}
	return &project.Project{ID: reg.ID.Hex(), Namespace: reg.Namespace, OrgID: reg.OrgID}, nil
}

// admit finds out who is calling and holds them against the right of the route. Those who may not operate a project
// that is not served are not told that it is registered.
func (r *request) admit(h http.Header) error {
	err := r.authenticate(h)
	if errors.Is(err, errs.ErrProjectNotFound) { // of a foreign org: as if it were not there, headers included
		return err
	}
	if err == nil {
		err = r.lacking(r.allowed())
	}
	if kind := errs.KindOf(err); err != nil && r.unserved && (kind == errs.Denied || kind == errs.Invalid) {
		r.project = nil
		return errs.ErrProjectNotFound
	}
	if r.principal != nil {
		keepPrivate(h, r.principal)
	}
	return err
}

// inCollection says which collection the request is about.
func (r *request) inCollection(c *project.Collection) {
	r.collection = c
	r.toRecords = &records.Call{Project: r.project, Collection: c, Principal: r.principal}
	if !r.route.labels {
		r.toRecords.Lang = r.lang
	}
	if c != nil && c.Scripted() {
		r.toRecords.Request = r.forScripts()
	}
}

// forScripts is what scripts see of the request.
func (r *request) forScripts() *hooks.Request {
	return &hooks.Request{ID: r.id, Query: r.query, Headers: r.Header, Lang: r.query.Get(api.ParamLang)}
}

// call is what the record service is told: the project's one generation, the collection, the caller. It is one for the
// whole request, so that what the caller may do is decided once.
func (r *request) call() *records.Call { return r.toRecords }
