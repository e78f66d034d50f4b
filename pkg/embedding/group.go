package embedding

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Group gives vectors by whichever of its members can.
type Group struct {
	config     GroupConfig
	now        func() time.Time
	members    []*member
	proof      verification
	anchor     *anchor
	configured ProviderConfig // of the first member, which says what the vectors are
	broken     error          // the settings can't work
	recheck    bool           // there is no interval of checks: members that rested are verified when they are wanted
	due        chan struct{}  // asks for a check of what rested
	ready      chan struct{}  // closed when a member was verified, or all were tried
	readied    sync.Once
	gone       chan struct{} // closed when nothing verifies any more
	turn       atomic.Uint64 // of batches that are spread

	mu    sync.Mutex
	asked chan struct{} // closed when the check that was asked for has ended; nil: none was
}

// newGroup puts a group together. What is wrong with it is in its status, and keeps it offline.
func newGroup(config GroupConfig, all Config, providers map[string]made, options Options) *Group {
	g := &Group{
		config: config, now: options.Now, broken: config.check(), recheck: all.CheckInterval == 0, anchor: &anchor{},
		due: make(chan struct{}, 1), ready: make(chan struct{}), gone: make(chan struct{}),
	}
	log := options.Log.With("group", config.Name)
	for _, name := range config.Members {
		m := &member{
			name: name, now: options.Now, cooldown: all.CooldownAfterUnhealthy, log: log, anchor: g.anchor, shown: Offline, since: options.Now(),
			called: options.Called, group: config.Name,
		}
		p, ok := providers[name]
		if !ok {
			p.err = Misconfigured("there is no embedding provider %s: add it to embedding.providers", name)
			g.broken = cmp.Or(g.broken, p.err)
		}
		m.config, m.provider, m.broken = p.config, p.provider, p.err
		g.members = append(g.members, m)
	}
	if len(g.members) > 0 {
		g.configured = g.members[0].config
	}
	dimensions := cmp.Or(g.configured.Dimensions, firstLength(g.members))
	golden, err := readGolden(all.GoldenPath, config.Name, g.configured.Sparse, dimensions)
	g.anchor.length = dimensions
	if dimensions == 0 && len(golden) > 0 {
		g.anchor.length = len(golden[0].vector.Dense)
	}
	g.proof = verification{probe: cmp.Or(config.Health.Text, defaultProbe), golden: golden}
	if g.broken == nil {
		g.broken = err
	}
	if g.broken == nil {
		g.broken = g.disagreement()
	}
	if g.broken != nil {
		log.Error("an embedding group is offline", "error", g.broken)
	}
	return g
}

// firstLength is what the first member that knows says of its vectors' length.
func firstLength(members []*member) int {
	for _, m := range members {
		if m.broken == nil && m.provider.Dimensions() != 0 {
			return m.provider.Dimensions()
		}
	}
	return 0
}

// disagreement is an error when members can't have the same vectors, or nothing shows that they have.
func (g *Group) disagreement() error {
	for _, m := range g.members[1:] {
		one, other := g.configured, m.config
		for _, c := range []struct {
			key  string
			same bool
		}{
			{"dimensions", one.Dimensions == other.Dimensions || one.Dimensions == 0 || other.Dimensions == 0},
			{"sparse", one.Sparse == other.Sparse},
			{"documentPrefix", one.DocumentPrefix == other.DocumentPrefix},
			{"queryPrefix", one.QueryPrefix == other.QueryPrefix},
			{"revision", one.Revision == other.Revision},
		} {
			if !c.same {
				return Misconfigured("its members %s and %s differ in %s, so their vectors can't be compared", g.members[0].name, m.name, c.key)
			}
		}
		if one.model() != other.model() && len(g.proof.golden) == 0 {
			return Misconfigured("its members %s and %s have different models: give the group a golden file, which shows that their vectors are the same",
				g.members[0].name, m.name)
		}
	}
	return nil
}

// Name is the group's name in the settings.
func (g *Group) Name() string { return g.config.Name }

// Sparse says which form the vectors have.
func (g *Group) Sparse() bool { return g.configured.Sparse }

// Dimensions is the length of dense vectors; 0 while neither the settings nor a member told it.
func (g *Group) Dimensions() int { return g.anchor.dimensions() }

// Reference names the vectors that the group gives, by its first member's settings: model, dimensions, prefixes, revision.
// It doesn't depend on what is online. Vectors of another reference have nothing to do with these.
func (g *Group) Reference() string { return g.configured.reference() }

// run verifies the members now, and whenever it is time, until ctx ends.
func (g *Group) run(ctx context.Context, checkInterval time.Duration) {
	defer close(g.gone)
	if g.broken != nil {
		g.readied.Do(func() { close(g.ready) })
		return
	}
	g.check(ctx, true)
	g.readied.Do(func() { close(g.ready) })
	checks, probes := newTicker(checkInterval), newTicker(g.config.Health.Interval)
	defer checks.stop()
	defer probes.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-checks.c:
			g.check(ctx, true)
		case <-g.due:
			g.mu.Lock()
			asked := g.asked
			g.asked = nil
			g.mu.Unlock()
			g.check(ctx, false)
			close(asked)
		case <-probes.c:
			g.probe(ctx)
		}
	}
}

// check verifies the members whose time it is, side by side.
func (g *Group) check(ctx context.Context, again bool) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, m := range g.members {
		if !m.begin(again) {
			continue
		}
		all.Go(func() {
			m.verify(ctx, g.proof)
			if m.State() == Live {
				g.readied.Do(func() { close(g.ready) })
			}
		})
	}
}

// probe asks the live members for the vector of the health text. Only the breaker looks at how it goes.
func (g *Group) probe(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, m := range g.live() {
		all.Go(func() {
			_, _ = m.call(ctx, []string{m.config.DocumentPrefix + g.proof.probe}, Document) // the member keeps the error
		})
	}
}

// live gives the members that may be asked, the preferred first.
func (g *Group) live() []*member {
	return slices.DeleteFunc(slices.Clone(g.members), func(m *member) bool { return m.State() != Live })
}

// usable gives the members to ask, after the first verification. Where checks have no interval, a member that has rested
// is verified now if there is no other, and beside the call otherwise.
func (g *Group) usable(ctx context.Context) ([]*member, error) {
	if g.broken != nil {
		return nil, g.offline(nil)
	}
	if ctx.Err() != nil {
		return nil, g.gaveUp(ctx, nil)
	}
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil, g.gaveUp(ctx, nil)
	}
	live := g.live()
	if g.recheck && slices.ContainsFunc(g.members, func(m *member) bool { return m.isDue(false) }) {
		ended := g.ask()
		if len(live) == 0 {
			select {
			case <-ended:
			case <-g.gone:
			case <-ctx.Done():
				return nil, g.gaveUp(ctx, nil)
			}
			live = g.live()
		}
	}
	if len(live) == 0 {
		return nil, g.offline(nil)
	}
	return live, nil
}

// ask has the members that rested verified. The channel is closed when that was done.
func (g *Group) ask() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked == nil {
		g.asked = make(chan struct{})
		g.due <- struct{}{} // it has room: each is taken together with what asked for it
	}
	return g.asked
}

// Err is the error that calls have for now, if none of the members can be asked; nil also while it is not known yet.
func (g *Group) Err() error {
	select {
	case <-g.ready:
	default:
		return nil
	}
	if g.broken != nil || len(g.live()) == 0 {
		return g.offline(nil)
	}
	return nil
}

// ended is what calls of members failed with: the end of their time is not that of who asked the group.
func ended(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return errors.New(cause.Error()) //nolint:err113 // the text is for the log
	}
	return cause
}

// offline is the error of a group that gives nothing now. cause is what the last members that were asked said.
func (g *Group) offline(cause error) error {
	if g.broken != nil {
		return errs.New(errs.Unavailable, CodeOffline, "the embedding group %s is offline: %s", g.config.Name, publicText(g.broken)).With(g.broken)
	}
	counts := map[State]int{}
	var retry time.Duration
	for _, m := range g.members {
		state, wait, last := m.standingNow()
		counts[state]++
		cause = cmp.Or(cause, last)
		if wait > 0 && (retry == 0 || wait < retry) {
			retry = wait
		}
	}
	e := errs.New(errs.Unavailable, CodeOffline, "the embedding group %s is offline: none of its members answers (%s); svcctl embedding status says why",
		g.config.Name, countText(counts)).With(ended(cause))
	e.RetryAfter = retry
	return e
}
