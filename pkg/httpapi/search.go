package httpapi

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	searches "github.com/svcctl/svc/pkg/search/runs"
)

// searchQueue tells what a collection has to index yet.
func (s *Server) searchQueue(w http.ResponseWriter, r *request) error {
	c := r.project.Collections[r.param("collection")]
	if c == nil {
		return errs.ErrCollectionNotFound
	}
	return r.json(w, http.StatusOK, s.queueOf(r.project, c))
}

// searchWorker tells that of all collections that are searched.
func (s *Server) searchWorker(w http.ResponseWriter, r *request) error {
	out := api.SearchWorker{Collections: []api.CollectionQueue{}}
	for _, name := range slices.Sorted(maps.Keys(r.project.Collections)) {
		if c := r.project.Collections[name]; len(c.Searches) > 0 {
			out.Collections = append(out.Collections, api.CollectionQueue{Collection: name, SearchQueue: s.queueOf(r.project, c)})
		}
	}
	return r.json(w, http.StatusOK, out)
}

func (s *Server) queueOf(p *project.Project, c *project.Collection) api.SearchQueue {
	q := s.cfg.Searches.Queue(p, c)
	out := api.SearchQueue{Pending: q.Pending, InFlight: q.InFlight, Failed: q.Failed, Searches: []api.SearchState{}}
	if !q.Since.IsZero() {
		out.OldestAgeSeconds = max(0, s.cfg.Now().Sub(q.Since).Seconds())
	}
	if q.LastError != nil {
		out.LastError = errs.From(q.LastError).Message
	}
	for _, x := range q.Searches {
		state := api.SearchState{
			Name: x.Name, Mode: string(x.Mode), State: string(x.State), Records: x.Records, Bytes: x.Disk, Memory: x.Memory, Done: x.Done, Total: x.Total, Failed: x.Failed,
			Group: x.Group, Waiting: x.Waiting, Refused: x.Refused,
		}
		if x.Failure != nil {
			state.LastError = errs.From(x.Failure).Message
		}
		out.Searches = append(out.Searches, state)
	}
	return out
}

// regenerateSearch starts a run that makes search indexes anew. It answers at once, or with the run's events if the caller accepts a
// stream. The run goes on when the caller leaves.
func (s *Server) regenerateSearch(w http.ResponseWriter, r *request) error {
	if err := r.noBody(w, "say what is made anew by the parameters collection and search"); err != nil {
		return err
	}
	var what searches.Target
	var err error
	if what.Collection, err = r.one(api.ParamCollection); err != nil {
		return err
	}
	if what.Search, err = r.one(api.ParamSearch); err != nil {
		return err
	}
	if what.Search != "" && what.Collection == "" {
		return errs.New(errs.Invalid, "bad_parameter", "%s needs %s", api.ParamSearch, api.ParamCollection)
	}
	if err := searches.Check(r.project, what); err != nil {
		return err
	}
	if err := s.cfg.System.Operated(r.Context(), audit.OpRegenerate, r.project.Namespace, what.Collection, ""); err != nil {
		return err
	}
	run, err := s.cfg.Searches.Start(r.Context(), r.project, what, actorOf(r))
	if err != nil {
		return err
	}
	w.Header().Set(api.HeaderLocation, api.RegenerationPath(r.project.Namespace, run.ID))
	if r.wantsStream() {
		return s.streamRegeneration(w, r, run, 0)
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}

func (s *Server) getRegeneration(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Searches.Get(r.Context(), r.project, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runOut(run))
}

func (s *Server) followRegeneration(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Searches.Get(r.Context(), r.project, r.param("id"))
	if err != nil {
		return err
	}
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	return s.streamRegeneration(w, r, run, after)
}

func (s *Server) streamRegeneration(w http.ResponseWriter, r *request, run *operation.Run, after int64) error {
	return s.streamRun(w, r, run, after, func() error { _, err := r.again(); return err }, func(ctx context.Context, after int64, fn func(operation.Event) error) error {
		return s.cfg.Searches.Follow(ctx, r.project, run.ID, after, fn)
	})
}
