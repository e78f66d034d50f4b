package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
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
	how, err := s.restoreOf(r, in)
	if err != nil {
		return err
	}
	return s.startSnapshots(w, r, audit.OpRestore, runs.Start{Kind: operation.Restore, Snapshot: r.param("id"), Restore: how})
}

// restoreOf checks what a request says of a restore.
func (s *Server) restoreOf(r *request, in api.SnapshotRestore) (*runs.Restore, error) {
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
	var err error
	how.Into, err = s.restoreTarget(r, in.Into)
	return how, err
}

// restoreTarget gives another project that a snapshot may be restored into: one for which the caller has the right, too.
func (s *Server) restoreTarget(r *request, namespace string) (*project.Project, error) {
	target, err := s.cfg.Registry.Get(namespace)
	if err != nil {
		return nil, err
	}
	if r.principal.Foreign(target.OrgID) {
		return nil, errs.ErrProjectNotFound
	}
	return target, s.cfg.Records.MayOperate(target, r.principal, access.ProjectSnapshot)
}

// restoreBackup takes in a backup, and restores it. The answer comes when all of it has come and was checked; the run goes on then.
func (s *Server) restoreBackup(w http.ResponseWriter, r *request) error {
	in, err := r.restoreParams()
	if err != nil {
		return err
	}
	how, err := s.restoreOf(r, in)
	if err != nil {
		return err
	}
	archive, err := s.receive(w, r, audit.OpRestore)
	if err != nil {
		return err
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
	if in.Mode, err = r.one(api.ParamMode); err != nil {
		return in, err
	}
	in.DryRun, err = r.boolean(api.ParamDryRun)
	return in, err
}
