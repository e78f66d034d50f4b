package httpapi

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// rootRoutes are the routes outside the API's prefix, for the machinery around the service.
func (s *Server) rootRoutes(router chi.Router) {
	for _, rt := range []route{
		{method: "GET", pattern: api.RootHealth, right: right{kind: rightPublic}, handle: (*Server).health, anyQuery: true, probe: true},
		{method: "GET", pattern: api.RootReady, right: right{kind: rightPublic}, handle: (*Server).ready, anyQuery: true, probe: true},
		{method: "GET", pattern: api.RootMetrics, right: right{kind: rightPublic}, handle: (*Server).scrape, anyQuery: true, probe: true},
	} {
		h := s.serve(rt)
		router.Method(rt.method, rt.pattern, h)
		router.Method(http.MethodHead, rt.pattern, h)
	}
}

// health says that the process answers; it asks nothing of the store, so that an outage there restarts nothing.
func (s *Server) health(w http.ResponseWriter, r *request) error {
	return r.json(w, http.StatusOK, api.Health{Status: "ok"})
}

// ready says whether this instance should get traffic, and what is not as it should be: always where it should get none, else where ?verbose asks. Projects are named to
// those who may scrape, whom the metrics tell their names, too.
func (s *Server) ready(w http.ResponseWriter, r *request) error {
	out := api.Health{Status: "ok", Checks: s.cfg.Ready(r.Context(), s.mayScrape(r))}
	for _, c := range out.Checks {
		if c.Status == api.CheckFailed {
			out.Errors = append(out.Errors, c.Message)
		}
	}
	if len(out.Errors) > 0 {
		out.Status = "not ready"
		return r.json(w, http.StatusServiceUnavailable, out)
	}
	if !r.query.Has("verbose") {
		out.Checks = nil
	}
	return r.json(w, http.StatusOK, out)
}

// mayScrape says whether the caller may see the metrics: on this machine, with the server admin token, and all when
// metrics.public is set. A proxy on this machine is no such caller.
func (s *Server) mayScrape(r *request) bool {
	return r.addr().IsLoopback() && !proxied(r.Header) || s.cfg.MetricsPublic || r.principal.Kind == access.KindAdmin
}

// scrape gives the metrics.
func (s *Server) scrape(w http.ResponseWriter, r *request) error {
	if !s.mayScrape(r) {
		return errs.ErrDenied
	}
	promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r.Request)
	return nil
}

// proxied says whether a request has a header that proxies set, whatever it says.
func proxied(h http.Header) bool {
	for name := range h {
		if name == "Via" || name == "X-Real-Ip" || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

func (s *Server) version(w http.ResponseWriter, r *request) error {
	return r.json(w, http.StatusOK, api.Version{Version: s.cfg.Version})
}
