package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/audit"
)

// drift tells where what the project declares and what there is differ.
func (s *Server) drift(w http.ResponseWriter, r *request) error {
	out, err := s.cfg.Control.Drift(r.Context(), r.project)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out)
}

// syncIndexes makes the project's indexes as they are declared.
func (s *Server) syncIndexes(w http.ResponseWriter, r *request) error {
	allow, err := r.allow()
	if err != nil {
		return err
	}
	if err := r.noBody(w, "allow is a parameter of the address: ?allow=<risk>"); err != nil {
		return err
	}
	// As for a reload, the entry comes first.
	if err := s.cfg.System.Operated(r.Context(), audit.OpSyncIndexes, r.project.Namespace, "", ""); err != nil {
		return err
	}
	out, err := s.cfg.Control.SyncIndexes(r.Context(), r.project, allow)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out)
}
