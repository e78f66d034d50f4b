package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

const (
	defaultDiff = 20   // records that are told of each collection
	maxDiff     = 1000 // of them
)

// diffSnapshot tells what has become of the records of a snapshot. It tells of all, whoever may see which: who may do this may download
// all of it.
func (s *Server) diffSnapshot(w http.ResponseWriter, r *request) error {
	o := snapshot.CompareOptions{Limit: defaultDiff}
	var err error
	if o.With, err = r.one(api.ParamWith); err != nil {
		return err
	}
	collection, err := r.one(api.ParamCollection)
	if err != nil {
		return err
	}
	if collection != "" {
		o.Collections = []string{collection}
	}
	limit, err := r.integer(api.ParamLimit)
	if err != nil {
		return err
	}
	if limit != nil {
		if o.Limit = int(*limit); *limit < 0 || *limit > maxDiff {
			return errs.New(errs.Invalid, "query_limit", "limit is %d; 0 to %d are allowed", *limit, maxDiff)
		}
	}
	id := r.param("id")
	diff, err := s.cfg.Snapshots.Compare(r.Context(), r.project, id, o)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runs.DiffOut(id, o.With, &diff))
}

// restoreSnapshot starts a run that restores a snapshot.
func (s *Server) restoreSnapshot(w http.ResponseWriter, r *request) error {
	body, err := r.optionalObject(w)
	if err != nil {
		return err
	}
	var in api.SnapshotRestore
	if err := read(body, map[string]any{
		"collections": &in.Collections, "media": &in.Media, "mode": &in.Mode, "dryRun": &in.DryRun, "into": &in.Into,
	}); err != nil {
		return err
	}
	if err := filled(body, api.ParamMode, api.ParamInto); err != nil {
		return err
	}
	if in.Collections != nil && len(in.Collections) == 0 {
		return errs.Validation([]errs.FieldError{{Path: api.ParamCollections, Rule: "required", Message: "must name a collection, or be left out: then all that the snapshot has are restored"}})
	}
	how, err := s.restoreOf(r, in, access.ProjectSnapshot)
	if err != nil {
		return err
	}
	return s.startSnapshots(w, r, audit.OpRestore, runs.Start{Kind: operation.Restore, Snapshot: r.param("id"), Restore: how})
}

// restoreOf checks what a request says of a restore. right is the one that it takes, on another project that it restores into, too.
func (s *Server) restoreOf(r *request, in api.SnapshotRestore, right string) (*runs.Restore, error) {
	how := &runs.Restore{RestoreOptions: snapshot.RestoreOptions{
		Collections: in.Collections, Media: in.Media == nil || *in.Media, Mode: snapshot.RestoreMode(in.Mode), DryRun: in.DryRun,
	}}
	if !slices.Contains([]string{"", api.RestoreReplace, api.RestoreMerge}, in.Mode) {
		return nil, errs.Validation([]errs.FieldError{{Path: api.ParamMode, Rule: "enum", Message: "must be replace (what is not in the snapshot goes) or merge (it stays)"}})
	}
	if slices.Contains(in.Collections, "") {
		return nil, errs.Validation([]errs.FieldError{{Path: api.ParamCollections, Rule: "required", Message: "must be names of collections"}})
	}
	if in.Into == "" || in.Into == r.project.Namespace {
		return how, nil
	}
	target, err := s.cfg.Registry.Get(in.Into)
	switch {
	case err != nil:
		return how, s.restoreNew(r, in.Into, how)
	case r.principal.Foreign(target.OrgID):
		return nil, errs.ErrProjectNotFound
	}
	how.Into = target
	return how, s.cfg.Records.MayOperate(target, r.principal, right)
}

// restoreNew has a restore make the project of a namespace that none is served by. Who may not register projects is not told whether there
// is one.
func (s *Server) restoreNew(r *request, namespace string, how *runs.Restore) error {
	if !r.principal.Has(access.ProjectCreate) {
		return errs.ErrProjectNotFound
	}
	_, err := s.cfg.System.Projects.ByNamespace(r.Context(), namespace)
	switch {
	case err == nil:
		return errs.New(errs.Conflict, "project_not_served", "the project %s is registered, and not served: have it served first (svcctl project status says why it is not), or choose another namespace", namespace)
	case !errors.Is(err, errs.ErrNotFound):
		return err
	case !schema.IsNamespace(namespace):
		return errs.Validation([]errs.FieldError{{Path: "into", Rule: "pattern", Message: "must be a namespace: 1 to 40 lowercase letters, digits, _ or -, the first a letter"}})
	}
	how.New, how.Founder = namespace, s.cfg.Control.Founder(r.project.OrgID)
	return nil
}

// restoreBackup takes in a backup, and restores it. The answer comes when all of it has come and was checked; the run goes on then.
func (s *Server) restoreBackup(w http.ResponseWriter, r *request) error {
	in, err := r.restoreParams()
	if err != nil {
		return err
	}
	how, err := s.restoreOf(r, in, access.ProjectBackup)
	if err != nil {
		return err
	}
	archive, err := s.receive(w, r, audit.OpRestore, func(now *request) error {
		_, err := s.restoreOf(now, in, access.ProjectBackup)
		return err
	})
	if err != nil {
		return err
	}
	if into := how.Target(); into != "" {
		archive.Note = s.noteInto(r, audit.OpRestore, archive.ID, into)
	}
	run, err := s.cfg.Snapshots.RestoreBackup(r.Context(), r.project, archive, how)
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run)
}

// restoreParams reads the parameters of a restore.
func (r *request) restoreParams() (in api.SnapshotRestore, err error) {
	names, err := r.one(api.ParamCollections)
	if err != nil {
		return in, err
	}
	if r.query.Has(api.ParamCollections) {
		in.Collections = strings.Split(names, ",")
	}
	if r.query.Has(api.ParamMedia) {
		media, err := r.boolean(api.ParamMedia)
		if err != nil {
			return in, err
		}
		in.Media = &media
	}
	if in.Mode, err = r.given(api.ParamMode); err != nil {
		return in, err
	}
	if in.Into, err = r.given(api.ParamInto); err != nil {
		return in, err
	}
	in.DryRun, err = r.boolean(api.ParamDryRun)
	return in, err
}
