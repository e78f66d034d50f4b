package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/schema"
)

// corsHeaders are the headers that browsers may send where a config names none.
func corsHeaders() []string {
	return []string{
		"Content-Type", "Accept", api.HeaderAuthToken, api.HeaderToken, api.HeaderAuthorization, api.HeaderRequestID, api.HeaderLastEventID,
	}
}

// originAllowed says whether pages of an origin may call.
func originAllowed(c *schema.CORS, origin string) bool {
	return c != nil && origin != "" && slices.ContainsFunc(c.Origins, func(allowed string) bool {
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

// allowOrigin lets pages of other origins read the answer, as far as the config of the action in the path says.
func (r *request) allowOrigin(h http.Header) (c *schema.CORS, allowed bool) {
	a, err := actions.Find(r.project, r.param("action"))
	if err != nil || a.CORS == nil {
		return nil, false
	}
	if !slices.Contains(h.Values("Vary"), "Origin") {
		h.Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if !originAllowed(a.CORS, origin) {
		return a.CORS, false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if slices.Contains(a.CORS.Origins, "*") {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	if a.CORS.Credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if expose := a.CORS.ExposeHeaders; len(expose) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(expose, ", "))
	}
	return a.CORS, true
}

// preflight answers a browser that asks whether a page may call an action. Without a config for it there is no such
// method, as on any other path.
func (s *Server) preflight(w http.ResponseWriter, r *request) error {
	p, err := s.cfg.Registry.Get(r.param("project"))
	if err != nil {
		return err
	}
	r.project = p
	h := w.Header()
	c, allowed := r.allowOrigin(h)
	if c == nil {
		return s.noMethod(w, r)
	}
	methods := c.Methods
	if len(methods) == 0 {
		methods = []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	}
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
	return nil
}
