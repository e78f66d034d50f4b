package embedding

import (
	"fmt"
	"strings"
	"time"
)

// GroupStatus is what the status endpoints tell of a group.
type GroupStatus struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Reference   string         `json:"reference"`
	State       State          `json:"state"`
	Error       string         `json:"error,omitempty"` // of its settings
	Sparse      bool           `json:"sparse"`
	Dimensions  int            `json:"dimensions,omitempty"`
	Golden      int            `json:"golden"` // texts of its golden file
	Members     []MemberStatus `json:"members"`
}

// MemberStatus is what the status endpoints tell of a member.
type MemberStatus struct {
	Name     string     `json:"name"`
	Type     string     `json:"type,omitempty"`
	Model    string     `json:"model,omitempty"`
	State    State      `json:"state"`
	Since    time.Time  `json:"since"`
	Breaker  Breaker    `json:"breaker"`
	Failures int        `json:"failures"`             // failed calls in a row
	RestsTo  *time.Time `json:"restsUntil,omitempty"` // it is not asked before
	Checked  *time.Time `json:"checkedAt,omitempty"`  // when its last verification ended
	Error    string     `json:"error,omitempty"`
}

// Breaker is the state of a member's circuit breaker.
type Breaker string

// The states of breakers. One is half-open while a verification decides whether it closes.
const (
	BreakerClosed   Breaker = "closed"
	BreakerOpen     Breaker = "open"
	BreakerHalfOpen Breaker = "half-open"
)

// Status tells how the group is. full has the full texts of errors.
func (g *Group) Status(full bool) GroupStatus {
	s := GroupStatus{
		Name: g.config.Name, Description: g.config.Description, Reference: g.Reference(), State: g.State(),
		Sparse: g.Sparse(), Dimensions: g.Dimensions(), Golden: len(g.proof.golden), Members: []MemberStatus{},
	}
	if g.broken != nil {
		s.Error = textOf(g.broken, full)
	}
	for _, m := range g.members {
		one := m.status(full)
		if g.broken != nil {
			one.State = Offline
		}
		s.Members = append(s.Members, one)
	}
	return s
}

// State is the group's: that of its best member. It is offline without a verified one.
func (g *Group) State() State {
	state := Offline
	if g.broken != nil {
		return state
	}
	for _, m := range g.members {
		switch m.State() {
		case Live:
			return Live
		case Degraded:
			state = Degraded
		case Quarantined, Offline: // not verified
		}
	}
	return state
}

func (m *member) status(full bool) MemberStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := MemberStatus{
		Name: m.name, Type: m.config.Type, Model: m.config.Model, State: m.state(), Since: m.since, Breaker: m.breaker(), Failures: m.failures,
		RestsTo: timeOf(m.until), Checked: timeOf(m.checked),
	}
	if m.until.Before(m.now()) {
		s.RestsTo = nil
	}
	switch {
	case m.broken != nil:
		s.Error = textOf(m.broken, full)
	case m.last != nil && (s.State != Live || m.failures > 0):
		s.Error = textOf(m.last, full)
	case s.State == Offline:
		s.Error = "it was not verified yet"
	}
	return s
}

// breaker needs the lock.
func (m *member) breaker() Breaker {
	switch {
	case m.open && m.checking:
		return BreakerHalfOpen
	case m.open || m.now().Before(m.until):
		return BreakerOpen
	}
	return BreakerClosed
}

// standingNow is what errors of the group tell of a member.
func (m *member) standingNow() (state State, rests time.Duration, last error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last = m.last
	if m.broken != nil {
		last = m.broken
	}
	return m.state(), max(0, m.until.Sub(m.now())), last
}

// textOf is an error as a status has it.
func textOf(err error, full bool) string {
	if full {
		return err.Error()
	}
	return publicText(err)
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// countText says how many there are of each state.
func countText(counts map[State]int) string {
	var parts []string
	for _, s := range []State{Live, Degraded, Quarantined, Offline} {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}
