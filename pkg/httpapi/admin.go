package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/api"
)

// rotateKeys has a new key sign session tokens.
func (s *Server) rotateKeys(w http.ResponseWriter, r *request) error {
	key, err := s.cfg.Auth.RotateKeys(r.Context())
	if err != nil {
		return err
	}
	s.log.InfoContext(r.Context(), "signing keys rotated", "key", key, "by", r.principal.Name, "request_id", r.id)
	return r.json(w, http.StatusOK, api.SigningKey{ID: key.ID, CreatedAt: api.Time{Time: key.CreatedAt}})
}

// shutdown stops this instance as a SIGTERM does: it finishes what is in flight, this answer included.
func (s *Server) shutdown(w http.ResponseWriter, r *request) error {
	if err := s.cfg.System.ShutDown(r.Context()); err != nil { // nobody need wait for the store to stop
		s.log.WarnContext(r.Context(), "a shutdown is not in the audit log", "error", err)
	}
	s.log.InfoContext(r.Context(), "shutdown requested", "by", r.principal.Name, "request_id", r.id)
	defer s.cfg.Shutdown()
	return r.json(w, http.StatusAccepted, api.Health{Status: "stopping"})
}
