package httpapi

import (
	"net/http"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

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
