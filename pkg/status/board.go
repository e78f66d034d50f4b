package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// State is what the Board knows about one project.
type State struct {
	// ObservedGeneration is the generation that is served; 0 when none is.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Revision is the hash over the files of the served generation; "" when none is served.
	Revision string `json:"revision"`
	// Conditions has Ready first, then the others by type.
	Conditions []Condition `json:"conditions"`
	// Problems are the findings of the last load, errors and warnings, whether or not it is served.
	Problems []Problem `json:"problems"`
}

// Condition gives the condition of a type.
func (s State) Condition(typ string) (Condition, bool) {
	for _, c := range s.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return Condition{}, false
}

// Board holds the state of every project, by the id of its registration. It is safe for concurrent use and does no I/O.
type Board struct {
	now func() time.Time

	mu       sync.RWMutex
	projects map[string]*entry
}

type entry struct {
	generation int64
	revision   string
	conditions map[string]Condition // the derived ones included, so that their transition times are kept too
	problems   []Problem
}

// NewBoard makes an empty Board that takes transition times from now.
func NewBoard(now func() time.Time) *Board {
	return &Board{now: now, projects: map[string]*entry{}}
}

// Set puts conditions on a project, which it adds when new. A condition without ObservedGeneration takes the served
// one; LastTransitionTime is the Board's, and moves only when Status changes. Ready, Reconciling and Stalled are ignored:
// they are derived.
func (b *Board) Set(key string, conditions ...Condition) {
	b.change(key, func(e *entry) {
		for _, c := range conditions {
			switch c.Type {
			case Ready, Reconciling, Stalled:
			default:
				e.put(c, b.now())
			}
		}
	})
}

// SetServed records which generation of a project is served, with the revision of its files. Generation 0 means that
// none is. Call it before Set for the conditions of a new generation.
func (b *Board) SetServed(key string, generation int64, revision string) {
	b.change(key, func(e *entry) { e.generation, e.revision = generation, revision })
}

// SetProblems replaces the findings of the last load.
func (b *Board) SetProblems(key string, problems []Problem) {
	problems = slices.Clone(problems)
	b.change(key, func(e *entry) { e.problems = problems })
}

// Unset takes conditions off a project, such as those of a feature that its config no longer uses.
func (b *Board) Unset(key string, types ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.projects[key]
	if !ok {
		return
	}
	for _, t := range types {
		delete(e.conditions, t)
	}
	e.summarize(b.now())
}

// Get gives a copy of a project's state.
func (b *Board) Get(key string) (State, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.projects[key]
	if !ok {
		return State{}, false
	}
	return e.state(), true
}

// Keys lists the projects on the Board, sorted.
func (b *Board) Keys() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Sorted(maps.Keys(b.projects))
}

// Remove forgets a project.
func (b *Board) Remove(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.projects, key)
}

func (b *Board) change(key string, fn func(*entry)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.projects[key]
	if !ok {
		e = &entry{conditions: map[string]Condition{}}
		b.projects[key] = e
	}
	fn(e)
	e.summarize(b.now())
}

func (e *entry) put(c Condition, now time.Time) {
	c.LastTransitionTime = now
	if old, ok := e.conditions[c.Type]; ok && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = e.generation
	}
	e.conditions[c.Type] = c
}

// summarize derives Ready: the first condition that is False gives its reason, else the first that is Unknown, in the
// order ConfigValid, then the others by type. A condition that judged another generation than the served one counts as
// Unknown, so that nobody who waits for Ready is told too early. Ready is False when nothing is served.
func (e *entry) summarize(now time.Time) {
	ready := Condition{Type: Ready, Status: True, Reason: ReasonServing, ObservedGeneration: e.generation}
	ready.Message = fmt.Sprintf("generation %d is served", e.generation)
	judged := e.judged()
	if worst, ok := worst(judged); ok {
		ready.Status, ready.Reason, ready.Message = worst.Status, worst.Reason, worst.Type+": "+worst.Message
		if e.generation > 0 {
			ready.Message += fmt.Sprintf(" (generation %d is still served)", e.generation)
		}
	}
	if e.generation == 0 {
		ready.Status = False
	}
	e.put(ready, now)
	e.abnormal(Reconciling, now, judged, func(c Condition) bool {
		return !besides(c) && (c.Reason == ReasonPending || c.Reason == ReasonProgressing || c.Reason == ReasonStoreError)
	})
	e.abnormal(Stalled, now, judged, func(c Condition) bool {
		switch c.Reason {
		case ReasonInvalid, ReasonUnreadable, ReasonNamespaceChanged, ReasonUniqueViolation, ReasonIndexRefused:
			return c.Status == False
		}
		return false
	})
}

// abnormal derives a condition that is there only while it is True: with the first condition that is a case of it.
func (e *entry) abnormal(typ string, now time.Time, judged []Condition, is func(Condition) bool) {
	i := slices.IndexFunc(judged, is)
	if i < 0 {
		delete(e.conditions, typ)
		return
	}
	c := judged[i]
	e.put(Condition{Type: typ, Status: True, Reason: c.Reason, Message: c.Type + ": " + c.Message, ObservedGeneration: e.generation}, now)
}

// worst is the judged condition that Ready follows, if it is not all well.
func worst(judged []Condition) (worst Condition, ok bool) {
	for _, c := range judged {
		switch {
		case c.Status == True || besides(c):
		case c.Status == False:
			return c, true
		case !ok:
			worst, ok = c, true
		}
	}
	return worst, ok
}

// besides says that a condition does not count against Ready: requests are served as ever, or what is so was asked for.
func besides(c Condition) bool {
	switch c.Reason {
	case ReasonDrifted, ReasonStale, ReasonSnapshotFailed, ReasonPruneFailed:
		return true
	}
	return c.Type == EmbeddingReady || c.Type == SnapshotsVerified
}

// judged are the conditions that count, in their order, as they are for the served generation.
func (e *entry) judged() []Condition {
	switch valid, ok := e.conditions[ConfigValid]; {
	case !ok:
		return []Condition{{Type: ConfigValid, Status: Unknown, Reason: ReasonPending, Message: "not loaded yet"}}
	case e.generation == 0 && valid.Status == True:
		return []Condition{{Type: ConfigValid, Status: False, Reason: ReasonPending, Message: "valid, not served yet"}}
	}
	var out []Condition
	for _, c := range e.sorted() {
		switch c.Type {
		case Ready, OutOfDate, Reconciling, Stalled:
			continue
		}
		if c.Type != ConfigValid && c.ObservedGeneration != e.generation {
			c.Status, c.Reason = Unknown, ReasonProgressing
			c.Message = fmt.Sprintf("not judged for generation %d yet", e.generation)
		}
		out = append(out, c)
	}
	return out
}

func (e *entry) sorted() []Condition {
	rank := func(c Condition) int { return slices.Index([]string{ConfigValid, Ready}, c.Type) }
	return slices.SortedFunc(maps.Values(e.conditions), func(a, b Condition) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.Type, b.Type))
	})
}

func (e *entry) state() State {
	s := State{
		ObservedGeneration: e.generation,
		Revision:           e.revision,
		Conditions:         e.sorted(),
		Problems:           slices.Clone(e.problems),
	}
	if s.Problems == nil {
		s.Problems = []Problem{}
	}
	return s
}
