package embedding

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// State is what a member is, and what a group is by its members.
type State string

// The states of members. A group is as good as its best member, and offline when none was verified.
const (
	Live        State = "live"        // it answers
	Degraded    State = "degraded"    // its breaker is open after failed calls; it rests
	Quarantined State = "quarantined" // its vectors are not those of the group
	Offline     State = "offline"     // it was not verified yet, or its settings can't work
)

const (
	maxFailures  = 5                // failed calls in a row that open the breaker
	firstPause   = time.Second      // after an answer that asks for a pause without saying how long; doubled each time
	longestPause = 10 * time.Minute // whatever the provider says
)

// standing is what verification found.
type standing uint8

const (
	unverified standing = iota // it could not be asked yet
	verified
	deviating
)

// member is a provider within a group: whether it may be asked, and what became of the calls so far.
type member struct {
	name     string
	config   ProviderConfig
	provider Provider // nil when its settings can't work
	now      func() time.Time
	cooldown time.Duration
	log      *slog.Logger
	anchor   *anchor // of the group
	group    string
	called   func(Call) // nil: nobody is told

	mu       sync.Mutex
	broken   error // its settings can't work
	standing standing
	failures int       // failed calls in a row
	open     bool      // the breaker; only a verification closes it
	until    time.Time // it rests until then
	pauses   int       // answers in a row that asked for a pause
	checking bool      // a verification is under way
	checked  time.Time // when the last one ended
	last     error     // why it is not live, or what the last failed call said
	since    time.Time // when it became what it is
	shown    State     // what the log was told
}

// state needs the lock.
func (m *member) state() State {
	switch {
	case m.broken != nil || m.standing == unverified:
		return Offline
	case m.standing == deviating:
		return Quarantined
	case m.open || m.now().Before(m.until):
		return Degraded
	}
	return Live
}

// State says what the member is now.
func (m *member) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state()
}

// call asks for vectors of texts that have their prefixes, and remembers how that went.
func (m *member) call(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	attempt, cancel := context.WithTimeout(ctx, m.config.Timeout())
	defer cancel()
	began := m.now()
	vectors, err := m.provider.Embed(attempt, texts, kind)
	took := m.now().Sub(began)
	if err == nil {
		err = m.accept(vectors, len(texts))
	} else if ctx.Err() == nil && attempt.Err() != nil && codeOf(err) != CodeTimeout {
		err = TimedOut(m.name, err)
	}
	slow := took > m.config.slow()*time.Duration(max(1, len(texts)))
	m.ended(err, slow, ctx.Err() != nil)
	if m.called != nil {
		m.called(Call{Group: m.group, Member: m.name, Kind: kind, Texts: len(texts), Took: took, Outcome: outcome(ctx, err)})
	}
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// outcome is how metrics name what became of a call.
func outcome(ctx context.Context, err error) string {
	if err == nil {
		return "ok"
	}
	if ctx.Err() != nil {
		return "canceled"
	}
	code, ok := strings.CutPrefix(codeOf(err), "embedding_")
	if !ok {
		return "failed"
	}
	return code
}

// accept checks an answer, and normalizes its vectors in place.
func (m *member) accept(vectors []Vector, n int) error {
	if len(vectors) != n {
		return Garbage(m.name, fmt.Errorf("%d vectors for %d texts", len(vectors), n))
	}
	dimensions := m.anchor.dimensions()
	if dimensions == 0 && n > 0 { // not known before a first verification: those of one answer are of one length at least
		dimensions = len(vectors[0].Dense)
	}
	for i, v := range vectors {
		v, err := normalized(v, m.config.Sparse, dimensions)
		if err != nil && codeOf(err) != codeDeviates {
			err = Garbage(m.name, err)
		}
		if err != nil {
			return err
		}
		vectors[i] = v
	}
	return nil
}

// ended takes in how a call ended. A call that its caller gave up says something about the member only if it took long.
func (m *member) ended(err error, slow, gaveUp bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.tell()
	switch {
	case gaveUp && !slow:
		return
	case err == nil && !slow:
		m.failures, m.pauses = 0, 0
		return
	case err == nil || gaveUp:
		m.last = errs.New(errs.Timeout, CodeTimeout, "the embedding provider %s is slower than its slowThreshold", m.name)
	case codeOf(err) == CodeRefused: // the text's fault
		return
	case codeOf(err) == CodeThrottled:
		m.last = err
		m.pause(errs.From(err).RetryAfter)
		return
	default:
		m.last = err
	}
	m.failures++
	if m.failures >= maxFailures && !m.open {
		m.trip()
	}
}

// pause rests as long as the provider asked for. It says nothing about its vectors, so that no verification is needed.
func (m *member) pause(asked time.Duration) {
	if asked <= 0 {
		asked = min(m.cooldown, firstPause<<min(m.pauses, 10))
	}
	m.pauses++
	m.rest(min(asked, longestPause))
}

// rest has nothing asked of the member for a time, or for longer if that was said before.
func (m *member) rest(d time.Duration) {
	if until := m.now().Add(d); until.After(m.until) {
		m.until = until
	}
}

// trip opens the breaker.
func (m *member) trip() {
	m.open = true
	m.rest(m.cooldown)
}

// tell logs a change of state. It needs the lock.
func (m *member) tell() {
	state := m.state()
	if state == m.shown {
		return
	}
	m.shown, m.since = state, m.now()
	if state == Live {
		m.log.Info("an embedding member is live", "member", m.name)
		return
	}
	m.log.Warn("an embedding member is not live", "member", m.name, "state", state, "error", m.last)
}
