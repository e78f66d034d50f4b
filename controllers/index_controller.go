package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
)

// indexPrefix marks the indexes that the service made, so that it never drops one made by other hands.
const indexPrefix = "svc_"

// refusedRetry is when an index is tried again that records stand in the way of: only their change can help.
const refusedRetry = time.Minute

// indexReconciler makes the indexes in the store those that the served generation declares. Its key is the id of the
// project's registration.
type indexReconciler struct {
	Deps

	mu      sync.Mutex
	refused map[string]map[string]string // project id -> collection/index -> why it can't be built
}

// Reconcile creates, rebuilds and drops indexes, one collection after the other, and goes on behind one that fails.
func (r *indexReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	p := r.Registry.ByID(id)
	if p == nil {
		r.note(id, nil)
		return controller.Result{}, nil
	}
	run := indexRun{indexReconciler: r, namespace: p.Namespace, refused: map[string]string{}}
	var failures []error
	n := 0
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		if err := run.converge(ctx, p.Collections[name]); err != nil {
			failures = append(failures, fmt.Errorf("collection %s: %w", name, err))
		}
		n += len(p.Collections[name].Indexes)
	}
	r.note(id, run.refused)
	cond := status.Condition{
		Type: status.IndexesConverged, Status: status.True, Reason: status.ReasonConverged,
		Message: fmt.Sprintf("%d indexes", n), ObservedGeneration: p.Generation,
	}
	var result controller.Result
	switch {
	case len(failures) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonStoreError, "the store failed; it is tried again"
	case len(run.refused) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonIndexRefused, run.message()
		if run.violated {
			cond.Reason = status.ReasonUniqueViolation
		}
		result.RequeueAfter = refusedRetry
	}
	if r.Registry.ByID(id) == nil { // unregistered meanwhile
		return controller.Result{}, nil
	}
	r.Board.Set(id, cond)
	return result, errors.Join(failures...)
}

// note keeps why indexes of a project can't be built, in place of what the run before has found.
func (r *indexReconciler) note(id string, refused map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(refused) == 0 {
		delete(r.refused, id)
	} else {
		r.refused[id] = refused
	}
}

// indexRun is one run over a project's indexes, and what it finds.
type indexRun struct {
	*indexReconciler

	namespace string
	refused   map[string]string // as in indexReconciler, of this project
	violated  bool              // whether records violate a unique index
}

// converge does one collection: first what has to go, then what has to come.
func (r *indexRun) converge(ctx context.Context, c *project.Collection) error {
	coll := r.Store.Database(project.DatabaseName(r.namespace)).Collection(c.Name)
	actual, err := coll.Indexes(ctx)
	if err != nil {
		return err
	}
	desired := desiredIndexes(c)
	for _, ix := range actual {
		if want, ok := desired[ix.Name]; isOurs(ix) && (!ok || !sameIndex(ix, want)) {
			r.Logger.InfoContext(ctx, "index dropped", "namespace", r.namespace, "collection", c.Name, "index", ix.Name)
			if err := coll.DropIndex(ctx, ix.Name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if standsFor(actual, desired[name]) != "" {
			continue
		}
		r.Logger.InfoContext(ctx, "index is being built", "namespace", r.namespace, "collection", c.Name, "index", name)
		err := coll.CreateIndex(ctx, desired[name])
		var bad *store.ViolationError
		switch kind := errs.KindOf(err); {
		case err == nil:
		case errors.As(err, &bad):
			r.violated = true
			r.refused[c.Name+"/"+name] = violation(desired[name], bad)
		case kind == errs.Invalid || kind == errs.Conflict: // such as lists in two fields of one key
			r.refused[c.Name+"/"+name] = publicText(err)
		default:
			return err
		}
	}
	return nil
}

// message tells what is wrong with each refused index.
func (r *indexRun) message() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(r.refused)) {
		collection, _, _ := strings.Cut(key, "/")
		parts = append(parts, collection+": "+r.refused[key])
	}
	return strings.Join(parts, "; ")
}

// isOurs says whether the service made an index.
func isOurs(ix store.Index) bool { return strings.HasPrefix(ix.Name, indexPrefix) }

// standsFor gives the name of the index that does what want is to do, or "". One made by other hands will do: MongoDB
// does not keep two equal ones.
func standsFor(actual []store.Index, want store.Index) string {
	for _, ix := range actual {
		if sameIndex(ix, want) && (ix.Name == want.Name || !isOurs(ix)) {
			return ix.Name
		}
	}
	return ""
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

// desiredIndexes gives a collection's declared indexes by their names in the store.
func desiredIndexes(c *project.Collection) map[string]store.Index {
	out := make(map[string]store.Index, len(c.Indexes))
	for _, ix := range c.Indexes {
		s := store.Index{Name: indexPrefix + ix.Name, Unique: ix.Unique, Sparse: ix.Sparse}
		for _, k := range ix.Keys {
			s.Keys = append(s.Keys, store.IndexKey(k))
		}
		out[s.Name] = s
	}
	return out
}

func sameIndex(a, b store.Index) bool {
	return a.Unique == b.Unique && a.Sparse == b.Sparse && slices.Equal(a.Keys, b.Keys)
}

func keyNames(keys []store.IndexKey) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		name := k.Path
		if k.Desc {
			name = "-" + name
		}
		out = append(out, name)
	}
	return out
}

// describe tells how each index of a collection stands: the declared ones, then those made by other hands.
func (r *indexReconciler) describe(ctx context.Context, p *project.Project, c *project.Collection) ([]api.IndexDescription, error) {
	actual, err := r.Store.Database(project.DatabaseName(p.Namespace)).Collection(c.Name).Indexes(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	refused := r.refused[p.ID] // replaced as a whole, never changed
	r.mu.Unlock()
	desired := desiredIndexes(c)
	out := make([]api.IndexDescription, 0, len(desired))
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		state, message := api.IndexBuilding, ""
		switch by, why := standsFor(actual, desired[name]), refused[c.Name+"/"+name]; {
		case by != "" && by != name:
			state, message = api.IndexReady, "the index "+by+", made by other hands, does its work"
		case by != "":
			state = api.IndexReady
		case why != "":
			state, message = api.IndexFailed, why
		}
		out = append(out, describeIndex(desired[name], state, message))
	}
	for _, ix := range actual {
		if !isOurs(ix) { // of ours, what is not declared is about to go
			out = append(out, describeIndex(ix, api.IndexForeign, ""))
		}
	}
	return out, nil
}

func describeIndex(ix store.Index, state, message string) api.IndexDescription {
	return api.IndexDescription{
		Name: strings.TrimPrefix(ix.Name, indexPrefix), Key: keyNames(ix.Keys), Unique: ix.Unique, Sparse: ix.Sparse,
		State: state, Message: message,
	}
}
