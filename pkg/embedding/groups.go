package embedding

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Options are what groups need beside their settings.
type Options struct {
	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	groups := &Groups{byName: map[string]*Group{}, cancel: cancel}
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
		groups.running.Go(func() { g.run(ctx, config.CheckInterval) })
	}
	return groups, nil
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
		return nil, Misconfigured("embedding provider %s: there is no type %q", config.Name, config.Type)
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

// Group gives the group of a name.
func (g *Groups) Group(name string) (*Group, error) {
	group, ok := g.byName[name]
	if !ok {
		return nil, errs.New(errs.Unavailable, CodeOffline, "the embedding group %s is offline: it is not in embedding.groups of the service's settings", name)
	}
	return group, nil
}

// Status tells of every group, in the order of the settings. full has the full texts of errors, which may hold what
// providers said: addresses, and parts of texts.
func (g *Groups) Status(full bool) []GroupStatus {
	out := make([]GroupStatus, len(g.list))
	for i, group := range g.list {
		out[i] = group.Status(full)
	}
	return out
}

// Close ends the verifications and lets go of the providers. Calls that are under way should have ended.
func (g *Groups) Close() error {
	g.cancel()
	g.running.Wait()
	var all error
	for _, p := range g.providers {
		all = errors.Join(all, p.Close())
	}
	return all
}
