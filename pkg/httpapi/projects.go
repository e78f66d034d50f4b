package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

func (s *Server) listProjects(w http.ResponseWriter, r *request) error {
	return listModel(w, r, s.cfg.System.Projects.List, projectOut)
}

func (s *Server) registerProject(w http.ResponseWriter, r *request) error {
	return createModel(w, r, func(ctx context.Context, _ *access.Principal, doc bson.D) (system.Project, error) {
		return s.cfg.Control.Register(ctx, doc)
	}, projectOut, func(p api.Project) string { return api.ProjectPath(p.ID) })
}

func (s *Server) getProject(w http.ResponseWriter, r *request) error {
	return getModel(w, r, s.cfg.System.Projects.Get, projectOut)
}

func (s *Server) updateProject(w http.ResponseWriter, r *request) error {
	return updateModel(w, r, func(ctx context.Context, _ *access.Principal, id string, doc bson.D) (system.Project, error) {
		return s.cfg.Control.Update(ctx, id, doc)
	}, projectOut)
}

func (s *Server) unregisterProject(w http.ResponseWriter, r *request) error {
	return deleteModel(w, r, func(ctx context.Context, _ *access.Principal, id string) error {
		return s.cfg.Control.Unregister(ctx, id)
	})
}

func projectOut(p system.Project) api.Project {
	return api.Project{
		ID: p.ID.Hex(), Name: p.Name, Description: p.Description, ConfigFile: p.ConfigFile, Enabled: p.Enabled, Suspended: p.Suspended,
		OrgID: p.OrgID, Namespace: p.Namespace, CreatedAt: api.Time{Time: p.CreatedAt}, UpdatedAt: api.Time{Time: p.UpdatedAt},
	}
}

func (s *Server) projectStatus(w http.ResponseWriter, r *request) error {
	p, err := s.cfg.System.Projects.Get(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	st, _ := s.cfg.Status.Get(p.ID.Hex())
	return r.json(w, http.StatusOK, api.ProjectStatus{
		ID: p.ID.Hex(), Namespace: p.Namespace, Phase: phase(p, st),
		ObservedGeneration: st.ObservedGeneration, Revision: st.Revision,
		Conditions: conditionsOut(st.Conditions), Problems: problemsOut(st.Problems),
		Counts: s.counts(r, p.Namespace), SuspendedScripts: s.suspendedScripts(p.Namespace),
	})
}

// counts tells how many records the collections of a served project have, those that the caller may read all of. Left out are those that a script
// decides about, which is not run for this, and all while the store can't be asked: a status is wanted most when something is wrong.
func (s *Server) counts(r *request, namespace string) map[string]int64 {
	p, err := s.cfg.Registry.Get(namespace)
	if err != nil { // none is served
		return nil
	}
	out := map[string]int64{}
	for name, c := range p.Collections {
		if !s.cfg.Records.ReadsAll(r.Context(), &records.Call{Project: p, Collection: c, Principal: r.principal}) {
			continue
		}
		stats, err := s.cfg.Control.Stats(r.Context(), p, name)
		if err != nil {
			return nil
		}
		out[name] = stats.Records
	}
	return out
}

// suspendedScripts lists the scripts of a served project that rest, by file.
func (s *Server) suspendedScripts(namespace string) []api.SuspendedScript {
	p, err := s.cfg.Registry.Get(namespace)
	if err != nil { // none is served
		return nil
	}
	var out []api.SuspendedScript
	for sc := range p.Scripts() {
		if state := sc.Program.State(s.cfg.Now()); state.Suspended {
			out = append(out, api.SuspendedScript{File: sc.Program.Name(), Runaways: state.Runaways, Until: api.Time{Time: state.Until}})
		}
	}
	slices.SortFunc(out, func(a, b api.SuspendedScript) int { return strings.Compare(a.File, b.File) })
	return slices.CompactFunc(out, func(a, b api.SuspendedScript) bool { return a.File == b.File })
}

// phase sums a project's state up in one word.
func phase(p system.Project, st status.State) api.Phase {
	ready, _ := st.Condition(status.Ready)
	valid, loaded := st.Condition(status.ConfigValid)
	switch {
	case !p.Enabled:
		return api.PhaseDisabled
	case st.ObservedGeneration > 0 && ready.Status == status.True && p.Suspended:
		return api.PhaseSuspended
	case st.ObservedGeneration > 0 && ready.Status == status.True:
		return api.PhaseReady
	case st.ObservedGeneration > 0:
		return api.PhaseDegraded
	case loaded && valid.Status == status.False:
		return api.PhaseFailed
	}
	return api.PhasePending
}

// reload loads the project's files again. Without wait=true the answer says that it will be done. One that has to be as it
// was planned is always waited for.
func (s *Server) reload(w http.ResponseWriter, r *request) error {
	wait, err := r.boolean(api.ParamWait)
	if err != nil {
		return err
	}
	hash, allow, err := r.planned()
	if err != nil {
		return err
	}
	if err := r.noBody(w, "plan, allow and wait are parameters of the address: ?plan=<hash>&allow=<risk>"); err != nil {
		return err
	}
	before := r.project.Generation
	// The entry comes first: what is asked for is told of, even if it fails, and none is done that isn't told of.
	if err := s.cfg.System.Reloaded(r.Context(), r.project.ID, r.project.Namespace); err != nil {
		return err
	}
	if hash != "" || allow != "" {
		wait, err = true, s.cfg.Control.ReloadPlanned(r.Context(), r.project.ID, hash, allow)
	} else {
		err = s.cfg.Control.Reload(r.Context(), r.project.ID, wait)
	}
	if err != nil {
		return err
	}
	st, _ := s.cfg.Status.Get(r.project.ID)
	code := http.StatusAccepted
	if wait {
		code = http.StatusOK
	}
	return r.json(w, code, api.ReloadResult{
		Generation: st.ObservedGeneration, Changed: st.ObservedGeneration != before, Revision: st.Revision,
		Conditions: conditionsOut(st.Conditions), Warnings: problemsOut(st.Problems),
	})
}

func conditionsOut(in []status.Condition) []api.Condition {
	out := make([]api.Condition, 0, len(in))
	for _, c := range in {
		out = append(out, api.Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: api.Time{Time: c.LastTransitionTime},
		})
	}
	return out
}

func problemsOut(in []status.Problem) []api.ConfigProblem {
	out := make([]api.ConfigProblem, 0, len(in))
	for _, p := range in {
		out = append(out, api.ConfigProblem(p))
	}
	return out
}

func configProblems(in schema.Problems) []api.ConfigProblem {
	out := make([]api.ConfigProblem, 0, len(in))
	for _, p := range in {
		out = append(out, api.ConfigProblem{
			File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Code: p.Code, Message: p.Message, Warning: p.Warning,
		})
	}
	return out
}
