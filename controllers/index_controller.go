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

// violationRetry is when an index that records violate is tried again: only their change can help.
const violationRetry = time.Minute

// indexReconciler makes the indexes in the store those that the served generation declares. Its key is the id of the
// project's registration.
type indexReconciler struct {
	Deps

	mu     sync.Mutex
	failed map[string]string // namespace/collection/index -> why it can't be built
}

// Reconcile creates, rebuilds and drops indexes, one collection after the other, and goes on behind one that fails.
func (r *indexReconciler) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	p := r.project(id)
	if p == nil {
		return controller.Result{}, nil
	}
	var violations []string
	var failures []error
	n := 0
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		v, err := r.converge(ctx, p, p.Collections[name])
		violations = append(violations, v...)
		if err != nil {
			failures = append(failures, fmt.Errorf("collection %s: %w", name, err))
		}
		n += len(p.Collections[name].Indexes)
	}
	cond := status.Condition{
		Type: status.IndexesConverged, Status: status.True, Reason: status.ReasonConverged,
		Message: fmt.Sprintf("%d indexes", n), ObservedGeneration: p.Generation,
	}
	var result controller.Result
	switch {
	case len(failures) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonStoreError, "the store failed; it is tried again"
	case len(violations) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonUniqueViolation, strings.Join(violations, "; ")
		result.RequeueAfter = violationRetry
	}
	if r.project(id) == nil { // unregistered meanwhile
		return controller.Result{}, nil
	}
	r.Board.Set(id, cond)
	return result, errors.Join(failures...)
}

func (r *indexReconciler) project(id string) *project.Project {
	for _, p := range r.Registry.List() {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// converge does one collection: first what has to go, then what has to come.
func (r *indexReconciler) converge(ctx context.Context, p *project.Project, c *project.Collection) (violations []string, err error) {
	coll := r.Store.Database(project.DatabaseName(p.Namespace)).Collection(c.Name)
	actual, err := coll.Indexes(ctx)
	if err != nil {
		return nil, err
	}
	desired := desiredIndexes(c)
	for _, ix := range actual {
		if want, ok := desired[ix.Name]; strings.HasPrefix(ix.Name, indexPrefix) && (!ok || !sameIndex(ix, want)) {
			r.Logger.InfoContext(ctx, "index dropped", "namespace", p.Namespace, "collection", c.Name, "index", ix.Name)
			if err := coll.DropIndex(ctx, ix.Name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		key := p.Namespace + "/" + c.Name + "/" + name
		err := r.create(ctx, coll, actual, desired[name])
		var bad *store.ViolationError
		switch {
		case errors.As(err, &bad):
			text := violation(c.Name, desired[name], bad)
			r.note(key, text)
			violations = append(violations, text)
		case errs.KindOf(err) == errs.Invalid && err != nil: // such as lists in two fields of one key
			r.note(key, publicText(err))
			violations = append(violations, c.Name+": "+publicText(err))
		case err != nil:
			return violations, err
		default:
			r.note(key, "")
		}
	}
	return violations, nil
}

// create builds an index unless it is there.
func (r *indexReconciler) create(ctx context.Context, coll store.Collection, actual []store.Index, want store.Index) error {
	for _, ix := range actual {
		if ix.Name == want.Name && sameIndex(ix, want) {
			return nil
		}
	}
	return coll.CreateIndex(ctx, want)
}

func (r *indexReconciler) note(key, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == "" {
		delete(r.failed, key)
	} else {
		r.failed[key] = why
	}
}

func violation(collection string, ix store.Index, v *store.ViolationError) string {
	ids := make([]string, 0, len(v.IDs))
	for _, id := range v.IDs {
		if oid, ok := id.ObjectIDOK(); ok {
			ids = append(ids, oid.Hex())
		}
	}
	return fmt.Sprintf("%s: records share a value of the unique index on %s, such as %s",
		collection, strings.Join(keyNames(ix.Keys), ", "), strings.Join(ids, ", "))
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

// describe tells how each index of a collection stands.
func (r *indexReconciler) describe(ctx context.Context, p *project.Project, c *project.Collection) ([]api.IndexDescription, error) {
	actual, err := r.Store.Database(project.DatabaseName(p.Namespace)).Collection(c.Name).Indexes(ctx)
	if err != nil {
		return nil, err
	}
	desired := desiredIndexes(c)
	out := make([]api.IndexDescription, 0, len(desired))
	for _, ix := range actual {
		state := api.IndexForeign
		if want, ok := desired[ix.Name]; ok && sameIndex(ix, want) {
			state = api.IndexReady
			delete(desired, ix.Name)
		} else if strings.HasPrefix(ix.Name, indexPrefix) {
			continue // about to be dropped or rebuilt
		}
		out = append(out, describeIndex(ix, state, ""))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		state, why := api.IndexBuilding, r.failed[p.Namespace+"/"+c.Name+"/"+name]
		if why != "" {
			state = api.IndexFailed
		}
		out = append(out, describeIndex(desired[name], state, why))
	}
	return out, nil
}

func describeIndex(ix store.Index, state, message string) api.IndexDescription {
	return api.IndexDescription{
		Name: strings.TrimPrefix(ix.Name, indexPrefix), Key: keyNames(ix.Keys), Unique: ix.Unique, Sparse: ix.Sparse,
		State: state, Message: message,
	}
}
