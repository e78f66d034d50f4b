package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/controller"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/status"
)

// Searches keep the indexes of searches. *engine.Engine does.
type Searches interface {
	Serve(p *project.Project) error
	Forget(namespace string) error
	Queue(p *project.Project, c *project.Collection) engine.Queue
}

// searchLook is how soon a project is looked at again while one of its search indexes is being made.
const searchLook = time.Second

// embeddingLook is how soon it is looked again whether the groups of searches of mode vector give vectors.
const embeddingLook = 5 * time.Second

// searchReconciler has the search indexes of this instance be those that the served generation declares. Its key is the id of the
// project's registration.
type searchReconciler struct {
	Deps

	mu         sync.Mutex
	namespaces map[string]string // by id, of those that are served
}

// Reconcile says to the engine what is served, and shows how its indexes stand.
func (r *searchReconciler) Reconcile(_ context.Context, id string) (controller.Result, error) {
	p := r.Registry.ByID(id)
	gone := r.note(id, p)
	if gone != "" {
		return controller.Result{}, r.Searches.Forget(gone)
	}
	if p == nil {
		return controller.Result{}, nil
	}
	err := r.Searches.Serve(p)
	cond, making := r.condition(p, err)
	if r.Registry.ByID(id) == nil { // unregistered meanwhile: it is told once more
		return controller.Result{}, r.Manager.Trigger(searchController, id)
	}
	embedding := r.embedding(p)
	r.show(id, aboutSearches, cond)
	r.show(id, aboutVectors, embedding)
	switch {
	case making || embedding.Status == status.Unknown:
		return controller.Result{RequeueAfter: searchLook}, err
	case embedding.Message != "":
		return controller.Result{RequeueAfter: embeddingLook}, err
	}
	return controller.Result{}, err
}

// note keeps in mind what is served, and gives the namespace of what is served no more.
func (r *searchReconciler) note(id string, p *project.Project) (gone string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != nil {
		r.namespaces[id] = p.Namespace
		return ""
	}
	gone = r.namespaces[id]
	delete(r.namespaces, id)
	if other, err := r.Registry.Get(gone); err == nil && other != nil { // another registration has it
		return ""
	}
	return gone
}

// condition tells how the searches of a project stand, without a message if it has none, and whether an index is being made.
func (r *searchReconciler) condition(p *project.Project, failed error) (cond status.Condition, making bool) {
	cond = status.Condition{Type: status.SearchReady, Status: status.True, Reason: status.ReasonIndexed, ObservedGeneration: p.Generation}
	n := 0
	var building, stale, failing []string
	for _, c := range p.Collections {
		n += len(c.Searches)
		for _, s := range r.Searches.Queue(p, c).Searches {
			name := c.Name + "/" + s.Name
			if s.Failed > 0 {
				failing = append(failing, fmt.Sprintf("the eval of %s fails for %s", name, counted(s.Failed, "record", "records")))
			}
			switch s.State {
			case engine.Building:
				building = append(building, fmt.Sprintf("%s is being made (%d of %d records)", name, s.Done, max(s.Done, s.Total)))
			case engine.Rebuilding:
				making = true
			case engine.Stale:
				stale = append(stale, name)
			case engine.Ready:
			}
		}
	}
	slices.Sort(building)
	slices.Sort(stale)
	switch {
	case n == 0:
		return cond, false
	case failed != nil:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonSearchFailed, "the search indexes can't be opened; svcd tries again by itself"
	case len(building) > 0:
		cond.Status, cond.Reason, cond.Message = status.Unknown, status.ReasonProgressing, strings.Join(building, ", ")
	case len(stale) > 0:
		cond.Status, cond.Reason = status.False, status.ReasonStale
		cond.Message = "the index is of a config before: " + strings.Join(stale, ", ") + "; svcctl search regenerate " + p.Namespace + " makes it anew"
	default:
		slices.Sort(failing)
		cond.Message = strings.Join(append([]string{counted(n, "search", "searches")}, failing...), "; ")
	}
	return cond, making || len(building) > 0
}

// embedding tells how the searches of mode vector stand, without a message if there are none.
func (r *searchReconciler) embedding(p *project.Project) status.Condition {
	cond := status.Condition{Type: status.EmbeddingReady, Status: status.True, Reason: status.ReasonEmbedded, ObservedGeneration: p.Generation}
	n := 0
	var offline, waiting, refused []string
	for _, c := range p.Collections {
		for _, s := range r.Searches.Queue(p, c).Searches {
			if s.Mode != search.Vector {
				continue
			}
			n++
			name := c.Name + "/" + s.Name
			if s.Offline != nil {
				offline = append(offline, name+": "+errs.From(s.Offline).Message)
			}
			if s.Waiting > 0 {
				text := fmt.Sprintf("%s: %s wait for their vectors", name, counted(s.Waiting, "record", "records"))
				if s.Failure != nil {
					text += " (" + errs.From(s.Failure).Message + ")"
				}
				waiting = append(waiting, text)
			}
			if s.Refused > 0 {
				refused = append(refused, fmt.Sprintf("%s: the embedding group %s refuses the text of %s", name, s.Group, counted(s.Refused, "record", "records")))
			}
		}
	}
	told := func(list []string) string { slices.Sort(list); return strings.Join(list, ", ") }
	switch {
	case n == 0:
		return cond
	case len(offline) > 0:
		cond.Status, cond.Reason, cond.Message = status.False, status.ReasonGroupOffline, told(offline)
	case len(waiting) > 0:
		cond.Status, cond.Reason, cond.Message = status.Unknown, status.ReasonEmbedding, told(waiting)
	case len(refused) > 0:
		cond.Message = told(refused)
	default:
		cond.Message = counted(n, "search", "searches") + " of mode vector"
	}
	return cond
}
