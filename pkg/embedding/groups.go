package embedding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Options are what groups need beside their settings.
type Options struct {
	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now

	Called func(Call) // is told of every call of a member, for metrics; nil: nobody is. It must not block
}

// Call is what became of a call of a member.
type Call struct {
	Group, Member string
	Kind          Kind
	Texts         int
	Took          time.Duration
	Outcome       string // ok, or what an error's code says: refused, throttled, timeout, failed, garbage, deviates; canceled, when its caller gave up
}

// Groups are the embedding groups of a service. They own the providers, and a goroutine each that verifies their members.
type Groups struct {
	list      []*Group
	byName    map[string]*Group
	providers []Provider
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// Open makes the groups of the settings, and begins to verify their members; it waits for no provider. ctx gives values
// only: the groups work until Close.
func Open(ctx context.Context, config Config, types Types, options Options) (*Groups, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	config.CooldownAfterUnhealthy = cmp.Or(config.CooldownAfterUnhealthy, DefaultCooldown)
	groups, _ := assemble(config, types, options)
	ctx, groups.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, g := range groups.list {
		groups.running.Go(func() { g.run(ctx, config.CheckInterval) })
	}
	return groups, nil
}

// Problems gives what is wrong with each provider and group of settings whose Check is well, without asking anybody.
func Problems(config Config, types Types) (all []error) {
	groups, providers := assemble(config, types, Options{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	for _, p := range config.Providers {
		if err := providers[p.Name].err; err != nil {
			all = append(all, err)
		}
	}
	for _, g := range groups.list {
		if g.broken != nil {
			all = append(all, fmt.Errorf("embedding group %s: %w", g.Name(), g.broken))
		}
	}
	for _, p := range groups.providers {
		if err := p.Close(); err != nil {
			all = append(all, err)
		}
	}
	return all
}

// assemble makes the groups of settings; nothing runs yet.
func assemble(config Config, types Types, options Options) (*Groups, map[string]made) {
	groups := &Groups{byName: map[string]*Group{}}
	all := map[string]made{}
	for _, p := range config.Providers {
		provider, err := makeProvider(p, types)
		if err == nil {
			groups.providers = append(groups.providers, provider)
		}
		all[p.Name] = made{p, provider, err}
	}
	for _, c := range config.Groups {
		g := newGroup(c, config, all, options)
		groups.list, groups.byName[c.Name] = append(groups.list, g), g
	}
	return groups, all
}

// made is a provider, or why there is none.
type made struct {
	config   ProviderConfig
	provider Provider
	err      error
}

func makeProvider(config ProviderConfig, types Types) (Provider, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	open, ok := types[config.Type]
	if !ok {
		return nil, Misconfigured("embedding provider %s: there is no type %q: it is one of %s", config.Name, config.Type, strings.Join(slices.Sorted(maps.Keys(types)), ", "))
	}
	provider, err := open(config)
	if err != nil {
		return nil, err
	}
	if provider.Sparse() != config.Sparse {
		return nil, errors.Join(Misconfigured("embedding provider %s: sparse is %t, and its vectors are the other form", config.Name, config.Sparse), provider.Close())
	}
	return provider, nil
}

// Group gives the group of a name; the error of one that is not there is that of a group that is offline. A nil *Groups has none.
func (g *Groups) Group(name string) (*Group, error) {
	var group *Group
	ok := false
	if g != nil {
		group, ok = g.byName[name]
	}
	if !ok {
		return nil, errs.New(errs.Unavailable, CodeOffline, "the embedding group %s is offline: it is not in embedding.groups of the service's settings", name)
	}
	return group, nil
}

// Of gives the first group of a reference; nil: there is none. A nil *Groups has none.
func (g *Groups) Of(reference string) *Group {
	if g == nil {
		return nil
	}
	for _, one := range g.list {
		if one.Reference() == reference {
			return one
		}
	}
	return nil
}

// Status tells of every group, in the order of the settings. full has the full texts of errors, which may hold what
// providers said: addresses, and parts of texts.
func (g *Groups) Status(full bool) []GroupStatus {
	if g == nil {
		return nil
	}
	out := make([]GroupStatus, len(g.list))
	for i, group := range g.list {
		out[i] = group.Status(full)
	}
	return out
}

// Close ends the verifications and lets go of the providers. Calls that are under way should have ended.
func (g *Groups) Close() error {
	if g == nil {
		return nil
	}
	g.cancel()
	g.running.Wait()
	var all error
	for _, p := range g.providers {
		all = errors.Join(all, p.Close())
	}
	return all
}
