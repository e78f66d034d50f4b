package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// projectReconciler serves what a registration's files say. Its key is the id of the registration.
type projectReconciler struct {
	Deps

	loader    *project.Loader
	mu        sync.Mutex
	requested map[string]asked   // by id, of those whose reload was asked for, against waiting for it
	seen      map[string]string  // by id: the revision of the files when they were last served, or held against; or system.UnreadableFiles
	expected  map[string][]*step // by id, of those who wait for one change alone

	snapshotDirs map[string]string // by id: the folder that is not watched
}

// asked says who asked for a reload; nil: nobody did.
type asked *system.Actor

// request makes the next run of a key serve what it finds, whatever the watch mode.
func (r *projectReconciler) request(id string, by system.Actor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requested[id] = &by
}

func (r *projectReconciler) takeRequest(id string) asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.requested[id]
	delete(r.requested, id)
	return by
}

// Reconcile loads the project's files and, when they are valid and wanted, swaps them in as a generation. A broken
// config leaves the served generation as it is and says why.
func (r *projectReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	by := r.takeRequest(id)
	err := r.reconcile(ctx, id, by)
	for tries := 1; errors.Is(err, system.ErrMoved) && tries < maxMoves; tries++ {
		err = r.reconcile(ctx, id, by)
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		err = controller.TerminalError(err)
	case err != nil && by != nil:
		r.request(id, *by) // a retry is still what was asked for
	}
	if errors.Is(err, errFounding) {
		return controller.Result{RequeueAfter: foundingPause}, nil
	}
	return controller.Result{}, err
}

// errFounding says that a restore goes on that makes the project.
var errFounding = errors.New("a restore is making the project")

// maxMoves bounds how often files are read again at once because another instance has served newer ones meanwhile.
const maxMoves = 5

// refusedError is why files can't be served. Another try makes no sense before something changes.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

func (r *projectReconciler) reconcile(ctx context.Context, id string, by asked) error {
	reg, err := r.Projects.ByID(ctx, id)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		return r.forget(ctx, id)
	case err != nil:
		return err
	case reg.Founding:
		done, err := r.endFounding(ctx, reg)
		if err != nil {
			return err
		}
		if !done {
			return errFounding
		}
		return r.reconcile(ctx, id, by) // as it is now
	case !reg.Enabled:
		r.disable(id)
		return nil
	}
	if err := r.follow(reg); err != nil {
		return err
	}
	head, err := r.Generations.Head(ctx, id)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	if reg.Suspended {
		r.suspend(ctx, reg, head)
		return nil
	}
	r.events.tell(id, system.Note{Concern: aboutRegistration, Type: system.EventNormal, Reason: status.ReasonEnabled, Message: "the registration is enabled"})
	if current := r.current(reg); r.Watch == WatchOff && !r.resumed(id) && by == nil && !r.expecting(id) && current != nil && current.Generation >= head.Number {
		return nil
	}
	dir, entry, err := project.Locate(r.ProjectsDir, reg.ConfigFile)
	if err != nil {
		r.Board.SetProblems(id, nil)
		return r.refuse(ctx, reg, head, dir, status.ReasonUnreadable, err)
	}
	r.watchFiles(ctx, reg, dir, r.beside(id))
	p, problems := r.loader.Load(dir, entry)
	if !problems.Err() && p.SnapshotDir != r.beside(id) {
		r.watchFiles(ctx, reg, dir, p.SnapshotDir)
		if err := r.Manager.Trigger(projectController, id); err != nil { // for what has changed between the two
			return err
		}
	}
	r.Board.SetProblems(id, boardProblems(problems))
	if problems.Err() {
		return r.refuse(ctx, reg, head, dir, status.ReasonInvalid, &project.ConfigError{Problems: problems})
	}
	if p.Namespace != reg.Namespace {
		return r.refuse(ctx, reg, head, dir, status.ReasonNamespaceChanged, errs.New(errs.Limit, "namespace_changed",
			"the files now name the project %s, this registration is for %s: register it by itself", p.Namespace, reg.Namespace))
	}
	return r.serve(ctx, reg, head, p, by)
}

// defaultSnapshotDir is where snapshots are as long as no config was loaded that says otherwise.
const defaultSnapshotDir = "snapshots"

// beside is the folder of snapshots, which are no files of the config.
func (r *projectReconciler) beside(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.snapshotDirs[id], defaultSnapshotDir)
}

// watchFiles watches a project's directory, but for its snapshots: to watch is to read every file in it.
func (r *projectReconciler) watchFiles(ctx context.Context, reg system.Project, dir, snapshots string) {
	id := reg.ID.Hex()
	r.mu.Lock()
	r.snapshotDirs[id] = snapshots
	r.mu.Unlock()
	if r.Watch == WatchOff {
		return
	}
	if err := r.Watcher.Watch(id, dir, snapshots); err != nil {
		r.Logger.WarnContext(ctx, "project directory can't be watched", "namespace", reg.Namespace, "error", err)
	}
}

// serve swaps p in, unless it is what is served already, has to wait for a reload call, or a rollback holds against it.
func (r *projectReconciler) serve(ctx context.Context, reg system.Project, head system.Head, p *project.Project, by asked) error {
	id, current := reg.ID.Hex(), r.current(reg)
	valid := status.Condition{
		Type: status.ConfigValid, Status: status.True, Reason: status.ReasonLoaded,
		Message: counted(len(p.Collections), "collection", "collections"),
	}
	if by == nil {
		by = r.expects(id, current, p)
	}
	if by == nil && r.held(ctx, reg, head, p.Dir, p.Revision) {
		r.see(id, p.Revision)
		r.Board.Set(id, valid, r.rolledBack(reg, head))
		r.events.tellLoaded(id, head.Number)
		return nil
	}
	switch {
	case current != nil && current.Revision == p.Revision && head.Over == "" && (head.Revision != p.Revision || head.Number == current.Generation):
		r.see(id, p.Revision)
		files := upToDate()
		if head.Number > current.Generation {
			files = behind(head)
		}
		r.Board.Set(id, valid, files)
		r.events.tellLoaded(id, current.Generation)
		return nil
	case current != nil && r.Watch != WatchReload && by == nil && head.Revision != p.Revision: // which another instance was not asked for either
		r.Board.Set(id, valid, status.Condition{
			Type: status.OutOfDate, Status: status.True, Reason: status.ReasonChangedOnDisk,
			Message: "the files have changed; a reload serves them",
		})
		r.events.tellLoaded(id, head.Number)
		return nil
	}
	switch {
	case by != nil:
	case head.Number == 0 && reg.CreatedBy != (system.Actor{}):
		by = &reg.CreatedBy
	default:
		by = &system.Actor{Kind: system.ActorFiles}
	}
	if err := r.name(ctx, p, current, false); errs.KindOf(err) == errs.Limit {
		return r.refuse(ctx, reg, head, p.Dir, status.ReasonInvalid, err)
	} else if err != nil {
		return err
	}
	c := system.Config{Revision: p.Revision, Entry: p.Bundle.Entry, Files: p.Bundle.Files}
	number, err := r.number(ctx, id, head, current, c, *by)
	if err != nil {
		if current == nil && !errors.Is(err, system.ErrMoved) { // to serve what was served last takes no write
			r.restore(ctx, reg, head, p.Dir)
		}
		return err
	}
	r.events.tellLoaded(id, number)
	if current == nil || current.Generation != number || current.Revision != p.Revision {
		err = r.swap(ctx, reg, p, number)
		r.events.tellServed(id, system.Head{}, number)
	}
	r.see(id, p.Revision)
	r.Board.Set(id, valid, upToDate())
	return err
}

// numberPatience is how long a start waits to write that new files are served, before it serves what was served last: a MongoDB
// keeps what an instance that was killed was about to write from others for a minute.
const numberPatience = 3 * time.Second

// number gives files the number of their generation.
func (r *projectReconciler) number(ctx context.Context, id string, head system.Head, current *project.Project, c system.Config, by system.Actor) (int64, error) {
	if current == nil && head.Number > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, numberPatience)
		defer cancel()
	}
	return r.Generations.Number(ctx, id, head.Number, c, by)
}

// swap makes p what is served, in one step, and has its indexes, jobs, searches and snapshots looked at.
func (r *projectReconciler) swap(ctx context.Context, reg system.Project, p *project.Project, number int64) error {
	p.ID, p.OrgID, p.Suspended, p.Generation = reg.ID.Hex(), reg.OrgID, reg.Suspended, number
	if err := r.name(ctx, p, r.current(reg), true); err != nil {
		return err
	}
	if r.Restores != nil && r.current(reg) == nil { // a mixture of old and new records is never served
		if err := r.Restores.Recover(ctx, p); err != nil {
			return err
		}
	}
	r.Registry.Set(p)
	r.Board.SetServed(p.ID, number, p.Revision)
	r.Board.Set(p.ID, status.Condition{
		Type: status.IndexesConverged, Status: status.Unknown, Reason: status.ReasonProgressing, Message: "being looked at",
	})
	if len(p.Jobs) > 0 {
		r.Board.Set(p.ID, status.Condition{
			Type: status.JobsScheduled, Status: status.Unknown, Reason: status.ReasonProgressing, Message: "being looked at",
		})
	} else {
		r.Board.Unset(p.ID, status.JobsScheduled)
	}
	if hasSearches(p) {
		r.Board.Set(p.ID, status.Condition{
			Type: status.SearchReady, Status: status.Unknown, Reason: status.ReasonProgressing, Message: "being looked at",
		})
	} else {
		r.Board.Unset(p.ID, status.SearchReady)
	}
	if hasSnapshots(p) {
		r.Board.Set(p.ID, status.Condition{
			Type: status.SnapshotsScheduled, Status: status.Unknown, Reason: status.ReasonProgressing, Message: "being looked at",
		})
	} else {
		r.Board.Unset(p.ID, status.SnapshotsScheduled, status.SnapshotsVerified)
	}
	r.Board.Unset(p.ID, status.EmbeddingReady) // until it is known for this generation
	r.Logger.InfoContext(ctx, "project served", "namespace", p.Namespace, "generation", number, "collections", len(p.Collections))
	return errors.Join(r.Manager.Trigger(indexController, p.ID), r.Manager.Trigger(jobController, p.ID), r.Manager.Trigger(searchController, p.ID),
		r.Manager.Trigger(snapController, p.ID), r.Manager.Trigger(keepController, p.ID))
}

func hasSearches(p *project.Project) bool {
	for _, c := range p.Collections {
		if len(c.Searches) > 0 {
			return true
		}
	}
	return false
}

func upToDate() status.Condition {
	return status.Condition{
		Type: status.OutOfDate, Status: status.False, Reason: status.ReasonUpToDate, Message: "the files are what is served",
	}
}

// behind is the condition of a project that other instances serve from files that this one does not have yet.
func behind(head system.Head) status.Condition {
	return status.Condition{
		Type: status.OutOfDate, Status: status.True, Reason: status.ReasonBehind,
		Message: fmt.Sprintf("other instances serve generation %d, of other files than are here: bring them here, or reload to have these served", head.Number),
	}
}

// current is the generation that this registration is served from, or nil.
func (r *projectReconciler) current(reg system.Project) *project.Project {
	return r.Registry.ByID(reg.ID.Hex())
}

// refuse notes why the files can't be served. What is served goes on; when nothing is, what was served last comes back.
func (r *projectReconciler) refuse(ctx context.Context, reg system.Project, head system.Head, dir, reason string, err error) error {
	id := reg.ID.Hex()
	if current := r.current(reg); current == nil || head.Over != "" && current.Generation < head.Number {
		r.restore(ctx, reg, head, dir)
	}
	if head.Over == system.UnreadableFiles { // else they may be as they were, once they can be read again
		r.see(id, system.UnreadableFiles)
	}
	if r.current(reg) != nil {
		r.Board.Set(id, status.Condition{
			Type: status.OutOfDate, Status: status.True, Reason: status.ReasonChangedOnDisk,
			Message: "the files have changed and can't be served",
		})
	}
	invalid := status.Condition{Type: status.ConfigValid, Status: status.False, Reason: reason, Message: publicText(err)}
	r.Board.Set(id, invalid)
	invalid.ObservedGeneration = head.Number // an instance that comes to tell it behind the next one tells of the past
	r.events.tellCondition(id, aboutConfig, invalid)
	return &refusedError{err}
}

func publicText(err error) string { return errs.From(err).Message }

// stopServing takes a project out of what is served, and has those who keep something of it, such as metrics and search indexes, let go of that.
func (r *projectReconciler) stopServing(id string) {
	r.Registry.Remove(id)
	_ = errors.Join(r.Manager.Trigger(jobController, id), r.Manager.Trigger(searchController, id), r.Manager.Trigger(snapController, id)) // they are there: New adds them
}

// disable stops serving a project that stays registered.
func (r *projectReconciler) disable(id string) {
	r.stopServing(id)
	r.Watcher.Unwatch(id)
	r.see(id, "")
	r.Board.SetServed(id, 0, "")
	r.Board.SetProblems(id, nil)
	r.Board.Unset(id, status.OutOfDate, status.IndexesConverged, status.JobsScheduled, status.SearchReady, status.EmbeddingReady,
		status.SnapshotsScheduled, status.SnapshotsVerified)
	r.Board.Set(id, status.Condition{
		Type: status.ConfigValid, Status: status.Unknown, Reason: status.ReasonDisabled, Message: "the registration is disabled",
	})
	r.events.tell(id, system.Note{Concern: aboutRegistration, Type: system.EventNormal, Reason: status.ReasonDisabled, Message: "the registration is disabled"})
}

// forget drops all that is known of a registration that is gone. The project's data stays in the store.
func (r *projectReconciler) forget(ctx context.Context, id string) error {
	r.stopServing(id)
	r.Watcher.Unwatch(id)
	r.Board.Remove(id)
	r.mu.Lock()
	delete(r.snapshotDirs, id)
	r.mu.Unlock()
	r.see(id, "")
	err := r.Generations.Remove(ctx, id)
	if r.Events != nil {
		r.events.forget(id)
		err = errors.Join(err, r.Events.Remove(ctx, id))
	}
	return err
}

func boardProblems(in schema.Problems) []status.Problem {
	out := make([]status.Problem, 0, len(in))
	for _, p := range in {
		out = append(out, status.Problem{
			File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Code: p.Code, Message: p.Message, Warning: p.Warning,
		})
	}
	return out
}
