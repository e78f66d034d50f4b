package engine

import (
	"context"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search/analysis"
)

// Sweep drops the vectors that a project does not need.
func Sweep(ctx context.Context, e *Engine, namespace string) error {
	e.mu.Lock()
	t := e.tenants[namespace]
	e.mu.Unlock()
	return t.sweep(ctx)
}

// DropUnserved drops the indexes of projects that are not served.
func DropUnserved(e *Engine) error { return e.dropUnserved() }

// Flush writes to the disk what has come.
func Flush(ctx context.Context, e *Engine) error { return e.db.Flush(ctx) }

// Lose has all indexes be made anew.
func Lose(e *Engine) {
	for _, t := range e.all() {
		for _, s := range t.all() {
			s.lose()
			at, err := t.farthestBehind(e.ctx)
			if err != nil {
				return
			}
			s.following(at)
		}
	}
}

// Indexes are how many there are, of all projects.
func Indexes(e *Engine) int { return len(e.db.Names()) }

// Cut cuts a text piece by piece.
func Cut(how func(text string) []analysis.Token, text string) []analysis.Token {
	return slices.Collect(cutter(how).all(text))
}

// WaitForEver has writes wait until their records can be found.
func WaitForEver(e *Engine) { e.patience = 1000 * time.Hour }

// WearOut has indexes be made anew with more than n replaced versions of records, if these are most.
func WearOut(e *Engine, n int) { e.worn.Store(int64(n)) }

// IndexNames are those of all indexes, sorted.
func IndexNames(e *Engine) []string { return e.db.Names() }

// SearchLate searches in a collection of which something becomes once it is known where to search.
func SearchLate(ctx context.Context, e *Engine, q Query, become func()) error {
	s, err := e.shelf(q.Project, q.Collection)
	if err != nil {
		return err
	}
	become()
	m, err := s.search(ctx, q, q.Search)
	if err != nil {
		return err
	}
	return m.close()
}

// Gather has what the feed tells of wait for d until it is read.
func Gather(e *Engine, d time.Duration) { e.gather.Store(int64(d)) }

// Handed is how many records of a collection were handed over of which the feed has yet to tell.
func Handed(e *Engine, p *project.Project, c *project.Collection) int {
	s, err := e.shelf(p, c)
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recent)
}

// Behind is of how many records of a collection the feed has told that were not read yet.
func Behind(e *Engine, p *project.Project, c *project.Collection) int {
	s, err := e.shelf(p, c)
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.behind)
}
