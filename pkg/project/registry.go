package project

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/svcctl/svc/pkg/errs"
)

// Registry holds the projects that are served, by namespace. Readers never wait: every change replaces the map as a
// whole. It is safe for concurrent use.
type Registry struct {
	mu       sync.Mutex // writers, one after the other
	projects atomic.Pointer[map[string]*Project]
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	r := &Registry{}
	r.projects.Store(&map[string]*Project{})
	return r
}

// Get gives the project of a namespace, or errs.ErrProjectNotFound. A request keeps what it got to its end, whatever
// is swapped in meanwhile.
func (r *Registry) Get(namespace string) (*Project, error) {
	if p, ok := (*r.projects.Load())[namespace]; ok {
		return p, nil
	}
	return nil, errs.ErrProjectNotFound
}

// Set swaps p in for its namespace, in one step.
func (r *Registry) Set(p *Project) {
	r.change(func(m map[string]*Project) { m[p.Namespace] = p })
}

// Remove stops serving the project with that ID. One that has taken its namespace meanwhile stays.
func (r *Registry) Remove(id string) {
	r.change(func(m map[string]*Project) {
		maps.DeleteFunc(m, func(_ string, p *Project) bool { return p.ID == id })
	})
}

// ByID gives the project with that ID, or nil when it is not served.
func (r *Registry) ByID(id string) *Project {
	for _, p := range *r.projects.Load() {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// List gives the served projects by namespace.
func (r *Registry) List() []*Project {
	m := *r.projects.Load()
	out := make([]*Project, 0, len(m))
	for _, ns := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[ns])
	}
	return out
}

func (r *Registry) change(fn func(map[string]*Project)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := maps.Clone(*r.projects.Load())
	fn(next)
	r.projects.Store(&next)
}
