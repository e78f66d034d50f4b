package embedding

import (
	"context"
	"fmt"
	"sync"

	"github.com/svcctl/svc/pkg/errs"
)

// MinCosine is how near a vector has to be to the one that is expected. What differs less comes from the order of sums on
// other hardware.
const MinCosine = 0.999

// anchor is what the members of a group have in common beyond their settings: the vector that the first of them to be
// verified gave for the probe, which every other has to give as well, and the same one later.
type anchor struct {
	mu     sync.Mutex
	length int // of dense vectors, 0 while unknown
	probe  Vector
}

func (a *anchor) dimensions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.length
}

// hold compares a probe with the first one, which it may be itself.
func (a *anchor) hold(probe Vector) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.probe.IsZero() {
		a.probe, a.length = probe, len(probe.Dense)
		return nil
	}
	return compare("the probe's vector is not the one that the group gave first", a.probe, probe)
}

// compare is an error when two vectors are not the same. what is public.
func compare(what string, want, got Vector) error {
	if isEmpty(want) && isEmpty(got) {
		return nil
	}
	if cosine := Cosine(want, got); cosine < MinCosine {
		return deviates(fmt.Sprintf("%s: cosine %.4f is below %v", what, cosine, MinCosine))
	}
	return nil
}

func isEmpty(v Vector) bool { return len(v.Dense) == 0 && len(v.Sparse) == 0 }

// verification is what a member of a group has to show.
type verification struct {
	probe  string
	golden []goldenText
	brief  bool // the probe only
}

// isDue says whether the member may be verified now. again has live ones verified, too, and quarantined ones.
func (m *member) isDue(again bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.due(again)
}

// due needs the lock.
func (m *member) due(again bool) bool {
	if m.broken != nil || m.checking || m.now().Before(m.until) {
		return false
	}
	return again || m.standing != deviating && m.state() != Live
}

// begin is isDue, and keeps others from doing the same.
func (m *member) begin(again bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.due(again) {
		return false
	}
	m.checking = true
	return true
}

// verify asks the member what the verification says, and takes in what it finds. Call it after begin.
func (m *member) verify(ctx context.Context, v verification) {
	m.mu.Lock()
	wasOpen := m.open
	if m.state() == Live { // the texts that cost are for those that come back
		v = verification{probe: v.probe, brief: true}
	}
	m.mu.Unlock()
	err := m.show(ctx, v)

	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.tell()
	m.checking, m.checked = false, m.now()
	switch {
	case err == nil && m.open && (!wasOpen || m.failures > 0): // right, but it opened meanwhile, or is as slow as before
		m.standing = verified
		m.trip()
	case err == nil:
		m.standing, m.open, m.last = verified, false, nil
	case codeOf(err) == codeDeviates:
		m.standing, m.open, m.failures, m.last = deviating, false, 0, err
	case ctx.Err() != nil: // it was given up
	case m.open: // still
		m.last = err
		m.trip()
	case m.standing == unverified:
		m.last = err
		m.rest(m.cooldown)
	default: // the breaker counts its calls
		m.last = err
	}
}

// show runs the calls of a verification.
func (m *member) show(ctx context.Context, v verification) error {
	if n := m.provider.Dimensions(); n != 0 && m.config.Dimensions != 0 && n != m.config.Dimensions {
		return deviates(fmt.Sprintf("the model has %d dimensions instead of %d", n, m.config.Dimensions))
	}
	alone, err := m.call(ctx, []string{m.config.DocumentPrefix + v.probe}, Document)
	if err != nil {
		return m.whole(err)
	}
	for _, kind := range []Kind{Document, Query} {
		if v.brief {
			break
		}
		if err := m.showKind(ctx, v, kind, alone[0]); err != nil {
			return m.whole(err)
		}
	}
	return m.anchor.hold(alone[0])
}

// showKind asks for the golden texts of a kind, and with the documents for the probe again.
func (m *member) showKind(ctx context.Context, v verification, kind Kind, probe Vector) error {
	var texts []string
	var want []Vector
	prefix := m.config.QueryPrefix
	if kind == Document {
		prefix = m.config.DocumentPrefix
		texts, want = append(texts, prefix+v.probe), append(want, probe)
	}
	for _, g := range v.golden {
		if g.kind() == kind {
			texts, want = append(texts, prefix+g.Text), append(want, g.vector)
		}
	}
	for begin := 0; begin < len(texts); begin += BatchSize {
		end := min(begin+BatchSize, len(texts))
		got, err := m.call(ctx, texts[begin:end], kind)
		if err != nil {
			return err
		}
		for i, g := range got {
			what := "the vector of a golden text deviates"
			if kind == Document && begin+i == 0 {
				what = "the same text has two vectors"
			}
			if err := compare(what, want[begin+i], g); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole says that a refusal of the probe is one of all there is: these texts are in order.
func (m *member) whole(err error) error {
	if codeOf(err) != CodeRefused {
		return err
	}
	refused := errs.From(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures++
	if m.failures >= maxFailures && !m.open {
		m.trip()
	}
	return Failed(m.name, "refuses every text: look at its model and dimensions", refused.Cause)
}
