package httpapi

import "net/http"

// drift tells where what the project declares and what there is differ.
func (s *Server) drift(w http.ResponseWriter, r *request) error {
	out, err := s.cfg.Control.Drift(r.Context(), r.project)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out)
}
