package records

import (
	"context"
	"slices"
	"sync"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/store"
)

// turns are places for work that costs much. One caller has half of them at most, however much they ask for, so that others
// come to theirs. Who waits has the next place in the order in which they came.
type turns struct {
	all, each int

	mu      sync.Mutex
	taken   int
	of      map[string]int // places taken by each caller
	waiting []*waiter
}

type waiter struct {
	who  string
	turn chan struct{} // closed when it has come
}

func newTurns(all int) *turns { return &turns{all: all, each: max(all/2, 1), of: map[string]int{}} }

// take waits for a turn until ctx ends. leave gives it back.
func (t *turns) take(ctx context.Context, who string) (leave func(), err error) {
	w := &waiter{who: who, turn: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.give()
	t.mu.Unlock()
	leave = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.back(who)
	}
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // it has come just now
		t.back(who)
	}
	return nil, store.Ended(ctx)
}

// wanted says whether somebody waits for a place.
func (t *turns) wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

// back takes a place back, under mu.
func (t *turns) back(who string) {
	t.taken--
	if t.of[who]--; t.of[who] == 0 {
		delete(t.of, who)
	}
	t.give()
}

// give gives the places that are free to those who wait, under mu.
func (t *turns) give() {
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool {
		if t.taken == t.all || t.of[w.who] == t.each {
			return false
		}
		t.taken++
		t.of[w.who]++
		close(w.turn)
		return true
	})
}

// whose says who counts as one caller: a user with all of their tokens, a token, everybody without a credential, the scripts
// of a project.
func whose(c *Call) string {
	p := c.Principal
	switch p.Kind {
	case access.KindToken:
		return string(p.Kind) + " " + string(p.TokenHash[:])
	case access.KindService:
		return string(p.Kind) + " " + c.Project.Namespace
	case access.KindUser, access.KindPAT:
		return string(access.KindUser) + " " + p.ID
	default: // one for all of the kind
		return string(p.Kind)
	}
}
