package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// projectEvents tells what the service did with a project: a list, the latest first, or with watch a stream of those behind
// the one that the reader had last, and of those that come.
func (s *Server) projectEvents(w http.ResponseWriter, r *request) error {
	watch, err := r.boolean(api.ParamWatch)
	if err != nil {
		return err
	}
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	if !watch || r.Method == http.MethodHead { // whose answer has no body to wait for
		return s.listProjectEvents(w, r)
	}
	leave, err := s.feeds.take(r.whose(), true)
	if err != nil {
		return err
	}
	defer leave()
	check := func() error { _, err := r.again(); return err }
	return s.stream(w, r, check, func(ctx context.Context, send sendEvent) error {
		return s.cfg.System.Events.Follow(ctx, r.project.ID, after, func(e system.Event) error {
			data, err := json.Marshal(projectEventOut(e))
			if err != nil {
				return errs.Wrap(err, "encode an event")
			}
			return send(e.ID, api.EventProject, data)
		})
	})
}

func (s *Server) listProjectEvents(w http.ResponseWriter, r *request) error {
	events, err := s.cfg.System.Events.List(r.Context(), r.project.ID)
	if err != nil {
		return err
	}
	out := api.List[api.ProjectEvent]{Items: make([]api.ProjectEvent, 0, len(events)), Limit: system.KeptEvents}
	for _, e := range slices.Backward(events) {
		out.Items = append(out.Items, projectEventOut(e))
	}
	return r.json(w, http.StatusOK, out)
}

func projectEventOut(e system.Event) api.ProjectEvent {
	return api.ProjectEvent{
		ID: e.ID, Type: e.Type, Reason: e.Reason, Message: e.Message, Object: e.Object, Generation: e.Generation, Count: e.Count,
		FirstSeen: api.Time{Time: e.FirstSeen}, LastSeen: api.Time{Time: e.LastSeen},
	}
}
