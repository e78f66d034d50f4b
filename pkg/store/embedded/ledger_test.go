package embedded_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// key names a document, state has the version of each one that exists, below 0 if it has expired and may be gone.
type (
	key struct {
		coll string
		id   int64
	}
	state map[key]int64
)

// effect is what a step makes of one document; version 0 is none.
type effect struct {
	Coll    string
	ID      int64
	Version int64 // below 0: the document may go by itself from then on
}

// step is what a writer does in one go: all of it or nothing, or, if it is loose, each effect by itself.
type step struct {
	Effects []effect
	Loose   bool `json:",omitempty"`
}

func (s state) apply(e effect) {
	if e.Version == 0 {
		delete(s, key{e.Coll, e.ID})
	} else {
		s[key{e.Coll, e.ID}] = e.Version
	}
}

// allows says whether found is s, but for what has expired.
func (s state) allows(found state) bool {
	for k, v := range s {
		if f, ok := found[k]; f != v && (ok || v > 0) {
			return false
		}
	}
	for k := range found {
		if s[k] == 0 {
			return false
		}
	}
	return true
}

// journal is the history of one writer, which does one step at a time on documents of its own.
type journal struct {
	base    state // before the first step
	steps   []step
	settled int // steps whose outcome the writer knows
}

// ledger has the journals of all writers.
type ledger struct {
	mu       sync.Mutex
	journals []*journal
	acked    int // steps, since the beginning
}

func newLedger(writers int) *ledger {
	l := &ledger{}
	for range writers {
		l.journals = append(l.journals, &journal{base: state{}})
	}
	return l
}

// try notes that writer w begins a step; settle that it knows the outcome: applied, or nothing done.
func (l *ledger) try(w int, s step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journals[w].steps = append(l.journals[w].steps, s)
}

func (l *ledger) settle(w int, applied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.journals[w]
	if !applied {
		j.steps[j.settled] = step{}
	}
	j.settled++
	l.acked++
}

// settled says how many steps of each writer are settled.
func (l *ledger) settledSteps() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []int
	for _, j := range l.journals {
		out = append(out, j.settled)
	}
	return out
}

// clone copies the ledger, for what goes on with another store.
func (l *ledger) clone() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &ledger{acked: l.acked}
	for _, j := range l.journals {
		out.journals = append(out.journals, &journal{base: maps.Clone(j.base), steps: slices.Clone(j.steps), settled: j.settled})
	}
	return out
}

// resolve checks that what a crash left of each writer's documents is one of the states that its history allows: that
// behind all steps that were settled before the crash (more may have been since), and some that were tried. The histories
// then go on from there.
func (l *ledger) resolve(found state, settled []int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var problems []string
	for w, j := range l.journals {
		own := state{}
		for k, v := range found {
			if k.id/idsPerWriter == int64(w) {
				own[k] = v
			}
		}
		if problem := j.check(own, settled[w]); problem != "" {
			problems = append(problems, fmt.Sprintf("writer %d: %s", w, problem))
		}
		l.journals[w] = &journal{base: own}
	}
	for k := range found {
		if k.id/idsPerWriter >= int64(len(l.journals)) {
			problems = append(problems, fmt.Sprintf("nobody wrote %v", k))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func (j *journal) check(found state, settled int) (problem string) {
	at := maps.Clone(j.base)
	for i, s := range j.steps {
		if i >= settled && (at.allows(found) || (s.Loose && between(at, s, found))) {
			return ""
		}
		if i == settled {
			problem = fmt.Sprintf("after %d settled steps of %d, wanted and found differ in%s;", settled, len(j.steps), differences(at, found))
		}
		if i >= settled {
			problem += fmt.Sprintf(" then tried %+v", s)
		}
		for _, e := range s.Effects {
			at.apply(e)
		}
	}
	switch {
	case at.allows(found):
		return ""
	case problem == "":
		return fmt.Sprintf("after all %d steps, wanted and found differ in%s", len(j.steps), differences(at, found))
	default:
		return problem
	}
}

// between says whether found is before with any part of a loose step.
func between(before state, s step, found state) bool {
	at := maps.Clone(before)
	for _, e := range s.Effects {
		if k := (key{e.Coll, e.ID}); found[k] == e.Version {
			at.apply(e)
		}
	}
	return at.allows(found)
}

func differences(want, found state) string {
	var b strings.Builder
	for k, v := range want {
		if found[k] != v {
			fmt.Fprintf(&b, " %s/%d (%d, %d)", k.coll, k.id, v, found[k])
		}
	}
	for k, v := range found {
		if _, ok := want[k]; !ok {
			fmt.Fprintf(&b, " %s/%d (0, %d)", k.coll, k.id, v)
		}
	}
	return b.String()
}

// figure gives how often a test does what it does: what the environment says (CUTS=5000, say), else a number for make
// test and a smaller one for -short.
func figure(tb testing.TB, name string, normal, short int) int {
	tb.Helper()
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	if testing.Short() || raceDetector { // which takes ten times as long
		return short
	}
	return normal
}

// TestLedger shows that the ledger's check finds what it is for.
func TestLedger(t *testing.T) {
	history := func() *ledger {
		l := newLedger(1)
		l.try(0, step{Effects: []effect{{"a", 1, 10}, {"a", 2, 10}}})
		l.settle(0, true)
		l.try(0, step{Effects: []effect{{"a", 9, 11}}})
		l.settle(0, false)
		l.try(0, step{Effects: []effect{{"a", 1, 12}, {"b", 1, 12}}})
		l.settle(0, true)
		l.try(0, step{Effects: []effect{{"a", 1, 13}, {"a", 2, 0}}})
		return l
	}
	both := state{{"a", 1}: 10, {"a", 2}: 10}
	for name, tc := range map[string]struct {
		found   state
		settled int
		loose   bool
		ok      bool
	}{
		"last acknowledged":       {found: state{{"a", 1}: 12, {"b", 1}: 12, {"a", 2}: 10}, settled: 3, ok: true},
		"what was tried":          {found: state{{"a", 1}: 13, {"b", 1}: 12}, settled: 3, ok: true},
		"acknowledged after it":   {found: both, settled: 1, ok: true},
		"lost":                    {found: both, settled: 3},
		"all lost":                {found: state{}, settled: 1},
		"before the first":        {found: state{}, settled: 0, ok: true},
		"half a batch":            {found: state{{"a", 1}: 13, {"b", 1}: 12, {"a", 2}: 10}, settled: 3},
		"half of what is loose":   {found: state{{"a", 1}: 13, {"b", 1}: 12, {"a", 2}: 10}, settled: 3, loose: true, ok: true},
		"refused but there":       {found: state{{"a", 1}: 10, {"a", 2}: 10, {"a", 9}: 11}, settled: 1},
		"never written":           {found: state{{"a", 1}: 12, {"b", 1}: 12, {"a", 2}: 10, {"c", 3}: 1}, settled: 3},
		"somebody else's":         {found: state{{"a", 1}: 12, {"b", 1}: 12, {"a", 2}: 10, {"c", idsPerWriter}: 1}, settled: 3},
		"unknown version, loose":  {found: state{{"a", 1}: 14, {"b", 1}: 12, {"a", 2}: 10}, settled: 3, loose: true},
		"half of one that isn't":  {found: state{{"a", 1}: 12, {"a", 2}: 10}, settled: 1},
		"deleted without a trace": {found: state{{"b", 1}: 12, {"a", 2}: 10}, settled: 3},
	} {
		l := history()
		l.journals[0].steps[3].Loose = tc.loose
		if err := l.resolve(tc.found, []int{tc.settled}); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
