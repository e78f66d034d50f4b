package httpapi

import (
	"context"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
)

// mayAct holds the caller against a right on actions.
func (r *request) mayAct(need right) error {
	s := r.server.cfg.Actions
	if need.kind == rightActions {
		// Whether a Token is good, only a project knows; what is of none of its actions is refused as anywhere else.
		if r.principal.Kind == access.KindToken && len(s.Callable(r.project, r.principal)) == 0 {
			return errs.ErrDenied
		}
		return nil
	}
	a, err := actions.Find(r.project, r.param("action"))
	if err != nil {
		return err
	}
	r.action = a
	switch c := r.actionCall(need.method); {
	case need.kind == rightActionRuns:
		return s.MayRuns(c)
	case need.method == 0:
		return s.MayAny(c)
	default:
		return s.May(c, need.method)
	}
}

// actionCall is what the actions are told.
func (r *request) actionCall(m access.Method) *actions.Call {
	return &actions.Call{Project: r.project, Action: r.action, Principal: r.principal, Method: m, Request: r.forScripts()}
}

// callAction calls an action: its answer, or the run that it has become.
func (s *Server) callAction(w http.ResponseWriter, r *request) error {
	m := r.route.right.method
	if r.action.Methods[m] == nil {
		for _, other := range []access.Method{access.Get, access.Post} {
			if r.action.Methods[other] != nil {
				w.Header().Add("Allow", map[access.Method]string{access.Get: http.MethodGet, access.Post: http.MethodPost}[other])
			}
		}
		return errs.New(errs.Method, "method_not_allowed", "this action does not take that method")
	}
	var body bson.D
	if m == access.Post && (r.ContentLength != 0 || r.Header.Get("Content-Type") != "") {
		var err error
		if body, err = r.object(w); err != nil {
			return err
		}
	}
	c := r.actionCall(m)
	c.Again = r.callerAgain()
	answer, run, err := s.cfg.Actions.Do(r.Context(), c, body)
	switch {
	case err != nil:
		return err
	case run == nil:
		return r.answer(w, answer)
	}
	w.Header().Set(api.HeaderLocation, api.ActionRunPath(r.project.Namespace, run.Name, run.ID))
	if r.action.Methods[m].Kind == project.ActionStream && r.wantsStream() {
		return s.streamActionRun(w, r, run, 0)
	}
	return r.json(w, http.StatusAccepted, actionRunOut(run))
}

// answer sends what an action gave. A page of its own would run with the rights of ours, so that it is shut in.
func (r *request) answer(w http.ResponseWriter, a *actions.Answer) error {
	h := w.Header()
	for name, values := range a.Header {
		if name == "Cache-Control" && h.Get(name) != "" { // what a credential opened stays private
			continue
		}
		h[name] = values
	}
	switch {
	case a.Type == "":
		w.WriteHeader(a.Status)
		return nil
	case a.JSON:
		return r.respond(w, a.Status, func(dst []byte) []byte { return append(dst, a.Body...) })
	}
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	return send(w, a.Status, a.Type, a.Body)
}

func (s *Server) listActions(w http.ResponseWriter, r *request) error {
	items := s.catalog.Actions(r.asker())
	return r.json(w, http.StatusOK, api.List[api.ActionDescription]{Items: items, Limit: len(items)})
}

func (s *Server) describeAction(w http.ResponseWriter, r *request) error {
	return r.json(w, http.StatusOK, s.catalog.Action(r.asker(), r.action))
}

func (s *Server) listActionRuns(w http.ResponseWriter, r *request) error {
	query, err := r.runQuery()
	if err != nil {
		return err
	}
	page, err := s.cfg.Actions.Runs(r.Context(), r.actionCall(0), query)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runsOut(page))
}

func (s *Server) getActionRun(w http.ResponseWriter, r *request) error {
	whole, err := r.boolean(api.ParamResult)
	if err != nil {
		return err
	}
	run, err := s.cfg.Actions.Run(r.Context(), r.actionCall(0), r.param("id"))
	if err != nil {
		return err
	}
	if !whole {
		return r.json(w, http.StatusOK, actionRunOut(run))
	}
	answer, err := actions.AnswerOf(run)
	if err != nil {
		return err
	}
	return r.answer(w, answer)
}

func (s *Server) cancelActionRun(w http.ResponseWriter, r *request) error {
	c, id := r.actionCall(0), r.param("id")
	if err := s.cfg.Actions.MayCancel(r.Context(), c, id); err != nil {
		return err
	}
	if err := s.cfg.System.Operated(r.Context(), audit.OpCancel, r.project.Namespace, access.ActionScope(r.action.Name), id); err != nil {
		return err
	}
	if err := s.cfg.Actions.Cancel(r.Context(), c, id); err != nil {
		return err
	}
	run, err := s.cfg.Actions.Run(r.Context(), c, id)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusAccepted, actionRunOut(run))
}

func (s *Server) followActionRun(w http.ResponseWriter, r *request) error {
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	run, err := s.cfg.Actions.Run(r.Context(), r.actionCall(0), r.param("id"))
	if err != nil {
		return err
	}
	return s.streamActionRun(w, r, run, after)
}

func (s *Server) streamActionRun(w http.ResponseWriter, r *request, run *operation.Run, after int64) error {
	seesLog := s.cfg.Actions.SeesLog(r.actionCall(0))
	check := func() error {
		now, err := r.again()
		if err != nil {
			return err
		}
		if seesLog && !s.cfg.Actions.SeesLog(now.actionCall(0)) {
			return errs.ErrDenied // they come again, and get what they may see now
		}
		_, err = s.cfg.Actions.Run(now.Context(), now.actionCall(0), run.ID)
		return err
	}
	return s.streamRun(w, r, run, after, check, func(ctx context.Context, after int64, fn func(operation.Event) error) error {
		return s.cfg.Actions.Follow(ctx, r.actionCall(0), run.ID, after, fn)
	})
}

// actionRunOut is the wire form of a run. What goes out as another type than JSON is for ParamResult alone.
func actionRunOut(run *operation.Run) api.Run {
	out := runOut(run)
	out.Result = valueOut(actions.ValueOf(run))
	return out
}
