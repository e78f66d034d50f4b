package httpapi

import (
	"net/http"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/embedding"
)

// embeddingStatus tells of the embedding groups, with what their providers said.
func (s *Server) embeddingStatus(w http.ResponseWriter, r *request) error {
	return r.json(w, http.StatusOK, embeddingStatus(s.cfg.Embedding.Status(true)))
}

// projectEmbeddingStatus tells the same without what providers said, and without addresses and paths: who runs a project
// need not run the service.
func (s *Server) projectEmbeddingStatus(w http.ResponseWriter, r *request) error {
	return r.json(w, http.StatusOK, embeddingStatus(s.cfg.Embedding.Status(false)))
}

func embeddingStatus(groups []embedding.GroupStatus) api.EmbeddingStatus {
	out := api.EmbeddingStatus{Groups: []api.EmbeddingGroup{}}
	for _, g := range groups {
		one := api.EmbeddingGroup{
			Name: g.Name, Description: g.Description, Reference: g.Reference, State: string(g.State), Error: g.Error,
			Sparse: g.Sparse, Dimensions: g.Dimensions, Golden: g.Golden, Members: []api.EmbeddingMember{},
		}
		for _, m := range g.Members {
			one.Members = append(one.Members, api.EmbeddingMember{
				Name: m.Name, Type: m.Type, Model: m.Model, State: string(m.State), Since: api.Time{Time: m.Since.UTC()}, Breaker: string(m.Breaker),
				Failures: m.Failures, RestsUntil: timeOrNone(m.RestsTo), CheckedAt: timeOrNone(m.Checked), Error: m.Error,
			})
		}
		out.Groups = append(out.Groups, one)
	}
	return out
}

func timeOrNone(t *time.Time) *api.Time {
	if t == nil {
		return nil
	}
	return &api.Time{Time: *t}
}
