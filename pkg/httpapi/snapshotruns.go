package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

// startSnapshots starts a run of snapshots, and answers with it, or with its events if the caller accepts a stream. The run goes on when
// the caller leaves.
func (s *Server) startSnapshots(w http.ResponseWriter, r *request, op string, what runs.Start) error {
	what.By, what.ID = actorOf(r), bson.NewObjectIDFromTimestamp(s.cfg.Now()).Hex()
	what.Note = s.noteRun(r, op, what.ID)
	if what.Restore != nil && what.Restore.Target() != "" {
		what.Note = s.noteInto(r, op, what.ID, what.Restore.Target())
	}
	if what.Frugal() {
		r.useReserve()
	}
	run, err := s.cfg.Snapshots.Start(r.Context(), r.project, what)
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run)
}

// noteInto is noteRun of what changes another project: the log has it of that one, too, where people look for what has become of its records.
func (s *Server) noteInto(r *request, op, run, namespace string) func(ctx context.Context, profile, subject string, how bson.D) error {
	note := s.noteRun(r, op, run)
	return func(ctx context.Context, profile, subject string, how bson.D) error {
		there := append(bson.D{{Key: "run", Value: run}, {Key: "from", Value: r.project.Namespace}}, how...)
		if err := s.cfg.System.Snapshotted(ctx, op, namespace, profile, subject, there); err != nil {
			return err
		}
		return note(ctx, profile, subject, how)
	}
}

// noteRun notes in the audit log what a run is about to do: what can't be logged doesn't happen.
func (s *Server) noteRun(r *request, op, run string) func(ctx context.Context, profile, subject string, how bson.D) error {
	return func(ctx context.Context, profile, subject string, how bson.D) error {
		return s.cfg.System.Snapshotted(ctx, op, r.project.Namespace, profile, subject, append(bson.D{{Key: "run", Value: run}}, how...))
	}
}

func (s *Server) sendRun(w http.ResponseWriter, r *request, run *operation.Run) error {
	w.Header().Set(api.HeaderLocation, api.SnapshotRunPath(r.project.Namespace, run.ID))
	if r.wantsStream() {
		return s.streamSnapshots(w, r, run, 0)
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}

func (s *Server) listSnapshotRuns(w http.ResponseWriter, r *request) error {
	query, err := r.runQuery()
	if err != nil {
		return err
	}
	kind, err := r.one(api.ParamKind)
	if err != nil {
		return err
	}
	if query.Kind = operation.Kind(kind); kind != "" && !slices.Contains(runs.Kinds(), query.Kind) {
		return errs.New(errs.Invalid, "bad_parameter", "kind must be snapshot, verify, restore, prune, import, drill or backup")
	}
	if query.Name, err = r.one(api.ParamProfile); err != nil {
		return err
	}
	query.Any = r.profiles.runs()
	page, err := s.cfg.Snapshots.Runs(r.Context(), r.project, query)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, runsOut(page))
}

func (s *Server) getSnapshotRun(w http.ResponseWriter, r *request) error {
	run, err := s.cfg.Snapshots.Get(r.Context(), r.project, r.param("id"))
	if err != nil {
		return err
	}
	if !r.profiles.hasRun(run) {
		return operation.ErrNotFound
	}
	return r.json(w, http.StatusOK, runOut(run))
}

// snapshotRun gives the run that the path names: by its own id, or by that of a snapshot, whose newest run it is.
func (s *Server) snapshotRun(r *request) (*operation.Run, error) {
	id := r.param("id")
	run, err := s.cfg.Snapshots.Get(r.Context(), r.project, id)
	if errors.Is(err, operation.ErrNotFound) {
		run, err = s.cfg.Snapshots.Newest(r.Context(), r.project, operation.Query{Subject: id, Any: r.profiles.runs()})
	}
	if err == nil && !r.profiles.hasRun(run) {
		err = operation.ErrNotFound
	}
	return run, err
}

func (s *Server) followSnapshotRun(w http.ResponseWriter, r *request) error {
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	run, err := s.snapshotRun(r)
	if err != nil {
		return err
	}
	return s.streamSnapshots(w, r, run, after)
}

func (s *Server) streamSnapshots(w http.ResponseWriter, r *request, run *operation.Run, after int64) error {
	check := func() error {
		now, err := r.again()
		if err == nil && !now.profiles.hasRun(run) {
			err = errs.ErrDenied
		}
		return err
	}
	return s.streamRun(w, r, run, after, check, func(ctx context.Context, after int64, fn func(operation.Event) error) error {
		return s.cfg.Snapshots.Follow(ctx, r.project, run, after, fn)
	})
}

func (s *Server) cancelSnapshotRun(w http.ResponseWriter, r *request) error {
	if err := r.noBody(w, "the run is the one in the address"); err != nil {
		return err
	}
	run, err := s.snapshotRun(r)
	if err != nil {
		return err
	}
	r.useReserve()
	if err := s.cfg.System.Snapshotted(r.Context(), audit.OpCancel, r.project.Namespace, run.Name, run.ID, nil); err != nil {
		return err
	}
	if err := s.cfg.Snapshots.Cancel(r.Context(), r.project, run); err != nil {
		return err
	}
	run, err = s.cfg.Snapshots.Get(r.Context(), r.project, run.ID)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusAccepted, runOut(run))
}
