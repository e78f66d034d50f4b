package app

import (
	"context"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
)

// For tests.
var (
	CacheFor    = cacheFor
	MemTableFor = memTableFor
	Memory      = memory
)

// Store is what it keeps everything in.
func (a *App) Store() store.Store { return a.store }

// TakeAll takes a snapshot of everything that a project has.
func (a *App) TakeAll(ctx context.Context, namespace string) (snapshot.Info, error) {
	p, err := a.registry.Get(namespace)
	if err != nil {
		return snapshot.Info{}, err
	}
	return a.taken.Create(ctx, p, snapshot.Profile{Name: "all", Media: true, Mode: snapshot.JSON}, nil)
}

// RestoreAll restores a snapshot.
func (a *App) RestoreAll(ctx context.Context, namespace, id string, o snapshot.RestoreOptions) (snapshot.RestoreResult, error) {
	p, err := a.registry.Get(namespace)
	if err != nil {
		return snapshot.RestoreResult{}, err
	}
	return a.taken.Restore(ctx, p, id, p, o, nil)
}

// Abandoned is what the barrier asks of the restore of an instance that is gone.
func (a *App) Abandoned(ctx context.Context, database string) error {
	return a.abandoned(ctx, database)
}
