package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// An index that records stand in the way of is tried again after a time that doubles from the first of these to the
// second: each try reads the collection, and while it lasts, writes are held to the index.
const (
	firstRetry   = 5 * time.Minute
	longestRetry = time.Hour
)

// indexReconciler makes the indexes in the store those that the served generation declares. Its key is the id of the
// project's registration.
type indexReconciler struct {
	Deps

	mu       sync.Mutex
	refused  map[string]*refusals     // by project id
	requests map[string]request       // by project id
	runs     map[string]bool          // ids of which a run is under way
	leases   map[string]*lease.Leases // by namespace
}

// refusals are a project's indexes that can't be built. They are replaced as a whole, never changed.
type refusals struct {
	generation int64
	why        map[string]refusal // by collection/index
	tries      int
	next       time.Time // of the next try
}

// refusal is why an index can't be built.
type refusal struct {
	text     string
	violated bool // records violate it, and it is unique
}

// of gives the refusal of an index; ok is false when there is none.
func (r *refusals) of(collection, index string) (why refusal, ok bool) {
	if r == nil {
		return refusal{}, false
	}
	why, ok = r.why[collection+"/"+index]
	return why, ok
}

// request is what somebody wants of the next run.
type request struct {
	retry bool  // what was refused is to be tried again at once
	sync  int64 // the generation whose indexes are to be made as declared, in mode observe, too: what others drop nobody was asked; 0: none
}

// request makes the next run of a key try again what was refused. If the generation sync is served then, it makes the indexes as
// declared, whatever the mode.
func (r *indexReconciler) request(id string, sync int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[id] = request{retry: true, sync: max(sync, r.requests[id].sync)}
}

// again keeps what was asked for, for a run that is yet to come.
func (r *indexReconciler) again(id string, asked request) {
	if asked.retry {
		r.request(id, asked.sync)
	}
}

// take gives what was refused before, and what was asked for.
func (r *indexReconciler) take(id string) (before *refusals, asked request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked = r.requests[id]
	delete(r.requests, id)
	return r.refused[id], asked
}

// working notes whether a run is under way.
func (r *indexReconciler) working(id string, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is {
		r.runs[id] = true
	} else {
		delete(r.runs, id)
	}
}

// atWork gives what was refused of a project, and whether its indexes are being converged, or will be at any moment.
func (r *indexReconciler) atWork(id string) (refused *refusals, working bool) {
	st, _ := r.Board.Get(id)
	cond, _ := st.Condition(status.IndexesConverged)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[id], r.runs[id] || cond.Reason == status.ReasonProgressing
}

// note keeps what a run has found in place of what the run before had.
func (r *indexReconciler) note(id string, found *refusals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found == nil {
		delete(r.refused, id)
	} else {
		r.refused[id] = found
	}
}

// Reconcile creates, rebuilds and drops indexes, one collection after the other, and goes on behind one that fails.
func (r *indexReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	before, asked := r.take(id)
	p := r.Registry.ByID(id)
	if p == nil {
		r.note(id, nil)
		return controller.Result{}, nil
	}
	if before != nil && before.generation != p.Generation {
		before = &refusals{why: before.why} // only for telling what is new
	}
	if why, sync := r.leftAlone(p); why != "" && (!sync || asked.sync != p.Generation) {
		return controller.Result{}, r.observe(ctx, p, why, sync)
	}
	run := indexRun{
		indexReconciler: r, db: r.records(p), project: p, namespace: p.Namespace,
		before: before, asked: asked.retry, retry: asked.retry || before == nil || !r.Now().Before(before.next), refused: map[string]refusal{},
	}
	r.working(id, true)
	err := r.leased(ctx, &run, p)
	r.working(id, false)
	if errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrLost) {
		r.again(id, asked)
		r.tell(id, status.Condition{
			Type: status.IndexesConverged, Status: status.Unknown, Reason: status.ReasonProgressing,
			Message: "another instance is at the indexes", ObservedGeneration: p.Generation,
		})
		return controller.Result{RequeueAfter: indexLook}, nil
	}
	cond := converged(p, err)
	var result controller.Result
	found := run.found(p.Generation)
	if err == nil && found != nil {
		cond.Status, cond.Reason, cond.Message = status.False, run.reason(), run.message()
		result.RequeueAfter = max(found.next.Sub(r.Now()), time.Second)
	}
	r.note(id, found)
	if !r.tell(id, cond) {
		return controller.Result{}, nil
	}
	return result, err
}

// tell shows how a project's indexes stand, unless it has been unregistered meanwhile.
func (r *indexReconciler) tell(id string, cond status.Condition) bool {
	if r.Registry.ByID(id) == nil {
		r.note(id, nil)
		return false
	}
	r.Board.Set(id, cond)
	r.events.tellCondition(id, aboutIndexes, cond)
	return true
}

// leftAlone tells why the indexes of a project are not changed, "" if they are, and whether somebody may ask for it all the same. An
// instance with an older config than others serve would take away what these have made.
func (r *indexReconciler) leftAlone(p *project.Project) (why string, sync bool) {
	st, _ := r.Board.Get(p.ID)
	files, _ := st.Condition(status.OutOfDate)
	switch {
	case files.Reason == status.ReasonBehind:
		return "other instances serve a newer config", false
	case p.Suspended:
		return "the project is suspended", true
	case p.Observe:
		return "mode is observe", true
	}
	return "", false
}

// observe tells how a project's indexes stand, and changes none.
func (r *indexReconciler) observe(ctx context.Context, p *project.Project, why string, sync bool) error {
	differences, err := r.differences(ctx, p)
	cond := converged(p, err)
	var parts []string
	for _, d := range differences {
		if !d.Foreign {
			parts = append(parts, d.Object+" is "+d.Action)
		}
	}
	if len(parts) > 0 {
		cond.Status, cond.Reason = status.False, status.ReasonDrifted
		cond.Message = strings.Join(parts, ", ") + "; " + why
		if sync {
			cond.Message += ": svcctl index sync " + p.Namespace + " makes them as declared"
		}
	}
	r.tell(p.ID, cond)
	return err
}

// converged is the condition of indexes that are the declared ones, or that of a store that has failed.
func converged(p *project.Project, err error) status.Condition {
	n := 0
	for _, c := range p.Collections {
		n += len(c.Indexes)
	}
	cond := status.Condition{
		Type: status.IndexesConverged, Status: status.True, Reason: status.ReasonConverged,
		Message: counted(n, "index", "indexes"), ObservedGeneration: p.Generation,
	}
	if err != nil {
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonStoreError, "the store failed; svcd tries again by itself"
	}
	return cond
}

// indexRun is one run over a project's indexes, and what it finds.
type indexRun struct {
	*indexReconciler

	db        store.Database
	project   *project.Project
	namespace string
	before    *refusals    // of the run before; nil: none
	asked     bool         // somebody waits for it
	retry     bool         // whether what was refused before is tried again
	lease     *lease.Lease // nil: there is none yet

	refused      map[string]refusal // by collection/index
	begun, total int                // builds, of how many
}

// tellBuild shows that an index is about to be built, to who waits for that: in a new generation, or as they asked for it. A repair, and
// another try of what records stand in the way of, move no condition before they have found out.
func (r *indexRun) tellBuild(ctx context.Context, key string) {
	st, _ := r.Board.Get(r.project.ID)
	cond, _ := st.Condition(status.IndexesConverged)
	if !r.asked && cond.Reason != status.ReasonProgressing || r.Registry.ByID(r.project.ID) == nil {
		return
	}
	if r.begun++; r.total == 0 {
		found, err := r.differences(ctx, r.project)
		if err != nil {
			return // the build will tell
		}
		for _, d := range found {
			if d.Action != api.DriftUnexpected && (d.repaired || r.retry) {
				r.total++
			}
		}
	}
	r.Board.Set(r.project.ID, status.Condition{
		Type: status.IndexesConverged, Status: status.Unknown, Reason: status.ReasonProgressing, ObservedGeneration: r.project.Generation,
		Message: fmt.Sprintf("building %s (%d of %d)", key, r.begun, max(r.begun, r.total)),
	})
}

// all does each declared collection, then those that are no longer declared.
func (r *indexRun) all(ctx context.Context, p *project.Project) error {
	var failures []error
	err := eachCollection(ctx, r.db, p, func(name, stored string, declared *project.Collection) error {
		if err := r.converge(ctx, name, stored, declared); err != nil {
			failures = append(failures, fmt.Errorf("collection %s: %w", name, err))
		}
		return nil
	})
	return errors.Join(append(failures, err)...)
}

// eachCollection calls fn for each collection that a project declares, then for those that the store has besides, of which declared
// is nil, until it fails. stored is the name that the store has for it.
func eachCollection(ctx context.Context, db store.Database, p *project.Project, fn func(name, stored string, declared *project.Collection) error) error {
	inUse := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		c := p.Collections[name]
		inUse[c.StoredName()] = true
		if err := fn(name, c.StoredName(), c); err != nil {
			return err
		}
	}
	names, err := db.CollectionNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if inUse[name] {
			continue
		}
		if err := fn(name, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// found gives what was refused, and when that is tried again; nil: nothing was.
func (r *indexRun) found(generation int64) *refusals {
	if len(r.refused) == 0 {
		return nil
	}
	found := &refusals{generation: generation, why: r.refused}
	switch {
	case r.before != nil && !r.retry:
		found.tries, found.next = r.before.tries, r.before.next
	default:
		if r.before != nil {
			found.tries = r.before.tries
		}
		found.next = r.Now().Add(min(firstRetry<<found.tries, longestRetry))
		found.tries = min(found.tries+1, 8) // far behind the longest time, and far from an overflow
	}
	return found
}

// converge does one collection: first what has to go, then what has to come. An index whose keys have changed goes only
// when its successor is ready.
func (r *indexRun) converge(ctx context.Context, collection, stored string, declared *project.Collection) error {
	coll := r.db.Collection(stored)
	actual, err := coll.Indexes(ctx)
	if err != nil {
		return err
	}
	plan := planIndexes(actual, desiredIndexes(declared))
	for _, name := range plan.drop {
		if err := r.drop(ctx, coll, collection, name); err != nil {
			return err
		}
	}
	began, built := r.Now(), 0
	for _, b := range plan.build {
		ready, err := r.build(ctx, coll, collection, b)
		if err != nil {
			return err
		}
		if !ready {
			continue
		}
		built++
		for _, name := range b.replaces {
			if err := r.drop(ctx, coll, collection, name); err != nil {
				return err
			}
		}
	}
	if built > 0 {
		r.Logger.InfoContext(ctx, "indexes built", "namespace", r.namespace, "collection", collection,
			"count", built, "took", r.Now().Sub(began).Round(time.Millisecond).String())
	}
	return nil
}

func (r *indexRun) drop(ctx context.Context, coll store.Collection, collection, name string) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.Logger.InfoContext(ctx, "index dropped", "namespace", r.namespace, "collection", collection, "index", name)
	return coll.DropIndex(ctx, name)
}

// build makes one index, unless it was refused and its next try is not due. It says whether the index is ready; that it is
// refused is noted, and no error.
func (r *indexRun) build(ctx context.Context, coll store.Collection, collection string, b indexBuild) (ready bool, err error) {
	key := collection + "/" + b.declared
	before, refused := r.before.of(collection, b.declared)
	if refused && !r.retry {
		r.refused[key] = before
		return false, nil
	}
	if err := r.may(ctx); err != nil {
		return false, err
	}
	r.tellBuild(ctx, collection+"/"+strings.TrimPrefix(b.declared, indexPrefix))
	r.Logger.DebugContext(ctx, "index is being built", "namespace", r.namespace, "collection", collection, "index", b.index.Name)
	err = coll.CreateIndex(ctx, b.index)
	var why refusal
	var bad *store.ViolationError
	switch kind := errs.KindOf(err); {
	case err == nil:
		return true, nil
	case errors.As(err, &bad):
		why = refusal{violation(b.index, bad), true}
	case kind == errs.Invalid || kind == errs.Conflict: // such as lists in two fields of one key
		why = refusal{publicText(err), false}
	default:
		return false, err
	}
	r.refused[key] = why
	if why != before {
		r.Logger.WarnContext(ctx, "index can't be built", "namespace", r.namespace, "collection", collection,
			"index", b.index.Name, "reason", why.text)
	}
	return false, nil
}

// reason sums up what was refused.
func (r *indexRun) reason() string {
	for _, why := range r.refused {
		if why.violated {
			return status.ReasonUniqueViolation
		}
	}
	return status.ReasonIndexRefused
}

// message tells what is wrong with each refused index.
func (r *indexRun) message() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(r.refused)) {
		collection, _, _ := strings.Cut(key, "/")
		parts = append(parts, collection+": "+r.refused[key].text)
	}
	return strings.Join(parts, "; ")
}

func violation(ix store.Index, v *store.ViolationError) string {
	ids := make([]string, 0, len(v.IDs))
	for _, id := range v.IDs {
		if oid, ok := id.ObjectIDOK(); ok {
			ids = append(ids, oid.Hex())
		}
	}
	return fmt.Sprintf("records share a value of the unique index on %s, such as %s",
		strings.Join(keyNames(ix.Keys), ", "), strings.Join(ids, ", "))
}

// counted says how many of something there are.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
