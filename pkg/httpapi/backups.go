package httpapi

import (
	"errors"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
)

// createBackup starts a run that takes a snapshot of everything.
func (s *Server) createBackup(w http.ResponseWriter, r *request) error {
	if err := r.noBody(w, "a backup has everything; a profile of the config says what is in a snapshot"); err != nil {
		return err
	}
	return s.startSnapshots(w, r, audit.OpBackup, runs.Start{Kind: operation.Backup})
}

// backupOf gives the backup that the request names; "": none.
func (s *Server) backupOf(r *request) (string, error) {
	id, err := r.one(api.ParamID)
	if err != nil || id == "" {
		return "", err
	}
	profile, err := s.cfg.Snapshots.Where(r.Context(), r.project, id)
	if err == nil && profile != snapshot.BackupProfile || errors.Is(err, snapshot.ErrNotFound) {
		err = errs.New(errs.NotFound, snapshot.ErrNotFound.Code, "there is no backup of this id in the project: look at the list for those that there are")
	}
	return id, err
}

func (s *Server) analyzeBackup(w http.ResponseWriter, r *request) error {
	id, err := s.backupOf(r)
	if err != nil {
		return err
	}
	if id == "" {
		return s.estimateBackup(w, r)
	}
	info, err := s.cfg.Snapshots.Show(r.Context(), r.project, id)
	if err != nil {
		return err
	}
	out := api.BackupAnalysis{
		ID: id, ConsistentAt: api.Time{Time: info.ConsistentAt}, Collections: runs.CollectionsOut(info.Collections, info.Files), Documents: info.Counts.Documents,
		MediaFiles: info.Counts.MediaFiles, MediaBytes: info.Counts.MediaBytes,
	}
	if out.Files, out.Bytes, err = info.ArchiveSize(); err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out)
}

// estimateBackup tells what a backup would have that is made now.
func (s *Server) estimateBackup(w http.ResponseWriter, r *request) error {
	now := s.cfg.Now()
	e, err := s.cfg.Snapshots.Estimate(r.Context(), r.project, runs.Everything())
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.BackupAnalysis{
		ConsistentAt: api.Time{Time: now}, Collections: runs.CollectionsOut(e.Collections, nil), Documents: e.Documents,
		MediaFiles: e.MediaFiles, MediaBytes: e.MediaBytes,
		Files: int64(len(e.Collections)) + e.MediaFiles + e.ConfigFiles + snapshot.ExtraFiles, Bytes: e.Bytes + e.MediaBytes + e.ConfigBytes,
	})
}

// downloadBackup answers with a backup as one archive: one that was made before, or one that is made for this, of which nothing stays. What
// is made is a run, which ends with the caller.
func (s *Server) downloadBackup(w http.ResponseWriter, r *request) error {
	id, err := s.backupOf(r)
	if err != nil {
		return err
	}
	if id != "" {
		return s.sendArchive(w, r, snapshot.BackupProfile, id)
	}
	if r.Method == http.MethodHead { // a look makes none
		w.Header().Set("Content-Type", api.MediaZstd)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	runID := bson.NewObjectIDFromTimestamp(s.cfg.Now()).Hex()
	id, err = s.cfg.Snapshots.Take(r.Context(), r.project, runs.Start{Kind: operation.Backup, ID: runID, By: actorOf(r), Note: s.noteRun(r, audit.OpBackup, runID)})
	if err != nil {
		return err
	}
	defer s.cfg.Snapshots.Discard(r.project, id)
	w.Header().Set(api.HeaderRun, runID)
	if _, err := r.again(); err != nil { // it may have taken a while
		return err
	}
	return s.sendArchive(w, r, snapshot.BackupProfile, id)
}
