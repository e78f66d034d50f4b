package records

import "context"

// Turns are places of which one caller has half.
type Turns struct{ t *turns }

// NewTurns makes places.
func NewTurns(all int) Turns { return Turns{newTurns(all)} }

// Take waits for one.
func (t Turns) Take(ctx context.Context, who string) (leave func(), err error) {
	return t.t.take(ctx, who)
}

// Waiting is how many wait.
func (t Turns) Waiting() int {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	return len(t.t.waiting)
}

// Taken is how many places are taken.
func (t Turns) Taken() int {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	return t.t.taken
}

// LongReads makes reads long from their first records on, and gives their places.
func (s *Service) LongReads() Turns {
	s.pacing.after = 0
	return Turns{s.pacing.places}
}

// OnRest has long reads rest at each step, and calls fn in place of it.
func (s *Service) OnRest(fn func()) {
	s.pacing.restAfter, s.pacing.rest = 0, fn
}

// All is how many places there are.
func (t Turns) All() int { return t.t.all }
