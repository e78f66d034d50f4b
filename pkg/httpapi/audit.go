package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
)

// audited puts the caller on the request's context, for the entries that what they do leads to. Reads have some, too: downloads of snapshots,
// calls of actions, and what hooks of a read write.
func (r *request) audited() {
	c := audit.NewCaller(r.principal, r.id, r.addr().String())
	if r.project != nil {
		c.Actor.Name = cmp.Or(r.server.cfg.Records.TokenName(r.project, r.principal), c.Actor.Name)
	}
	r.Request = r.WithContext(audit.With(r.Context(), c))
}

// useReserve lets what a request of an operator has written from here on, such as its entry in the audit log, into the reserve of the store: it is for what only
// reads or makes room, which a full disk must not keep anybody from.
func (r *request) useReserve() { r.Request = r.WithContext(audit.WithReserve(r.Context())) }

func always(*request) bool { return true }

// asksDryRun says that a body which has come asks for a dry run. One that can't be read asks for nothing.
func (r *request) asksDryRun() bool {
	body, err := r.dataAgain()
	if err != nil {
		return false
	}
	for _, e := range body {
		if dry, ok := e.Value.(bool); ok && e.Key == api.ParamDryRun {
			return dry
		}
	}
	return false
}

// listAudit lists the log of the service itself, whose entries are for administrators: for others there are none.
func (s *Server) listAudit(w http.ResponseWriter, r *request) error {
	return listModel(w, r, func(ctx context.Context, by *access.Principal, params query.Params) (query.Page[audit.Entry], error) {
		if !by.Full() {
			return audit.Nothing(params)
		}
		return s.cfg.Audit.System().List(ctx, params, nil)
	}, entryOut)
}

// listProjectAudit lists the log of a project's records.
func (s *Server) listProjectAudit(w http.ResponseWriter, r *request) error {
	return listModel(w, r, func(ctx context.Context, by *access.Principal, params query.Params) (query.Page[audit.Entry], error) {
		return s.cfg.Records.Audit(ctx, r.project, by, params)
	}, entryOut)
}

func entryOut(e audit.Entry) api.AuditEntry {
	out := api.AuditEntry{
		ID: e.ID.Hex(), At: api.Time{Time: e.At}, Kind: string(e.Kind), Op: e.Op,
		Namespace: e.Namespace, Collection: e.Collection, RecordID: e.RecordID,
		Actor: api.AuditActor(e.Actor), TokenID: e.TokenID, RequestID: e.RequestID, Address: e.Address,
		Note: e.Note, Seq: e.Seq, Prev: e.Prev, Hash: e.Hash,
	}
	if e.Before != nil {
		out.Before = document.AppendJSON(nil, e.Before, e.View)
	}
	if e.After != nil {
		out.After = document.AppendJSON(nil, e.After, e.View)
	}
	return out
}

// noted gives the place that the caller expects the log to have; nil when they don't say.
func (r *request) noted() (*audit.Place, error) {
	text, err := r.one(api.ParamExpect)
	if text == "" || err != nil {
		return nil, err
	}
	place, err := api.ParseAuditPlace(text)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_parameter", "%s: %s", api.ParamExpect, err)
	}
	return (*audit.Place)(&place), nil
}

// verifyAudit checks the chain of a log: that of the project that is named, or of the service itself.
func (s *Server) verifyAudit(w http.ResponseWriter, r *request) error {
	namespace, err := r.one(api.ParamProject)
	if err != nil {
		return err
	}
	log := s.cfg.Audit.System()
	if namespace != "" {
		if _, err := s.cfg.System.Projects.ByNamespace(r.Context(), namespace); errs.KindOf(err) == errs.NotFound {
			return errs.ErrProjectNotFound
		} else if err != nil {
			return err
		}
		log = s.cfg.Audit.Of(project.DatabaseName(namespace))
	}
	noted, err := r.noted()
	if err != nil {
		return err
	}
	report, err := log.Verify(r.Context(), noted)
	if err != nil {
		return err
	}
	out := api.AuditReport{
		OK: len(report.Problems) == 0, Entries: report.Entries, Unsealed: report.Unsealed, More: report.More,
		Anchor: api.AuditPlace(report.Anchor), Head: api.AuditPlace(report.Head), Problems: []api.AuditProblem{},
	}
	for _, p := range report.Problems {
		out.Problems = append(out.Problems, api.AuditProblem{
			Problem: p.Problem, Seq: p.Seq, Through: p.Through, ID: p.ID, Message: p.Text,
		})
	}
	return r.json(w, http.StatusOK, out)
}
