package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// corsHeaders are the headers that browsers may send where a config names none. The server admin token is not for them.
func corsHeaders() []string {
	return []string{
		"Content-Type", "Accept", api.HeaderAuthToken, api.HeaderToken, api.HeaderAuthorization, api.HeaderRequestID, api.HeaderLastEventID,
		api.HeaderIfMatch, api.HeaderIfNoneMatch, api.HeaderIdempotencyKey, "Prefer",
	}
}

// corsExposed are the headers of answers that pages may always read, beside those that a config names.
func corsExposed() []string {
	return []string{
		api.HeaderETag, api.HeaderLocation, api.HeaderLink, api.HeaderRequestID, api.HeaderGeneration, api.HeaderSnapshot, api.HeaderRun, api.HeaderRetryAfter,
		"Idempotency-Replayed", "Preference-Applied",
	}
}

// originAllowed says whether pages of an origin may call.
func originAllowed(c *schema.CORS, origin string) bool {
	return origin != "" && slices.ContainsFunc(c.Origins, func(allowed string) bool {
		scheme, domain, wild := strings.Cut(allowed, "://*.")
		switch {
		case allowed == "*", strings.EqualFold(allowed, origin):
			return true
		case !wild:
			return false
		}
		host, ok := strings.CutPrefix(strings.ToLower(origin), strings.ToLower(scheme)+"://")
		return ok && strings.HasSuffix(host, "."+strings.ToLower(domain)) && !strings.ContainsAny(host, "/@")
	})
}

// corsOf is what a project's config says about pages of other origins at the request's path: the action or the
// collection, else the project. nil: nothing, so that none may call.
func (r *request) corsOf(p *project.Project) *schema.CORS {
	if name := r.param("action"); name != "" {
		if a, err := actions.Find(p, name); err == nil && a.CORS != nil {
			return a.CORS
		}
	}
	if c := p.Addressed(r.param("collection")); c != nil && c.Config.CORS != nil {
		return c.Config.CORS
	}
	return p.Config.CORS
}

// allowOrigin lets pages of other origins read the answer, as far as the config says. It comes before all that can be
// refused, so that a browser shows why.
func (r *request) allowOrigin(h http.Header) (c *schema.CORS, allowed bool) {
	p, err := r.server.cfg.Registry.Get(r.param("project"))
	if err != nil {
		return nil, false
	}
	if c = r.corsOf(p); c == nil {
		return nil, false
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !originAllowed(c, origin) || r.Method != http.MethodOptions && !methodAllowed(c, r.Method) {
		return c, false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	switch {
	case c.Credentials:
		h.Set("Access-Control-Allow-Credentials", "true")
	case slices.Contains(c.Origins, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	}
	if r.Method != http.MethodOptions {
		h.Set("Access-Control-Expose-Headers", strings.Join(append(corsExposed(), c.ExposeHeaders...), ", "))
	}
	return c, true
}

// forgetOrigin takes back what allowOrigin said, where the project is not there for the caller.
func forgetOrigin(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	if vary := slices.DeleteFunc(h.Values("Vary"), func(v string) bool { return v == "Origin" }); len(vary) == 0 {
		h.Del("Vary")
	} else {
		h["Vary"] = vary
	}
}

func methodAllowed(c *schema.CORS, method string) bool {
	return len(c.Methods) == 0 || slices.Contains(c.Methods, method) || method == http.MethodHead && slices.Contains(c.Methods, http.MethodGet)
}

// preflight answers a browser that asks whether a page may call a path of a project, by the path's config. Nobody is
// asked who they are, since browsers send no credential with it.
func (s *Server) preflight(w http.ResponseWriter, r *request, c *schema.CORS, allowed bool) {
	h := w.Header()
	methods := s.methodsOf(r)
	h.Set("Allow", strings.Join(methods, ", "))
	methods = slices.DeleteFunc(methods, func(m string) bool { return !methodAllowed(c, m) })
	if allowed && slices.Contains(methods, r.Header.Get("Access-Control-Request-Method")) {
		headers := c.Headers
		if len(headers) == 0 {
			headers = corsHeaders()
		}
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
		if c.MaxAge > 0 {
			h.Set("Access-Control-Max-Age", strconv.FormatInt(int64(c.MaxAge.Std()/time.Second), 10))
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// methodsOf lists the methods that the request's path takes.
func (s *Server) methodsOf(r *request) (methods []string) {
	path := r.URL.RawPath // what chi looks at
	if path == "" {
		path = r.URL.Path
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		at := chi.NewRouteContext()
		if s.router.Match(at, method, path) && s.takes(r, at, method) {
			methods = append(methods, method)
		}
	}
	return methods
}

// takes says of a method that the pattern of a path takes whether what is at the path takes it, too: an action need not take both of its two. Which it does,
// those are told who may call it.
func (s *Server) takes(r *request, at *chi.Context, method string) bool {
	if at.RoutePattern() != api.Prefix+api.RouteAction || r.principal == nil {
		return true
	}
	p, err := s.cfg.Registry.Get(at.URLParam("project"))
	if err != nil {
		return true
	}
	for _, a := range s.cfg.Actions.Callable(p, r.principal) {
		if a.Name == at.URLParam("action") {
			m := access.Get
			if method == http.MethodPost {
				m = access.Post
			}
			return a.Methods[m] != nil
		}
	}
	return true
}
