package app

import (
	"context"
	"errors"
	"sync"
	"time"
)

// closeTime is how long the search indexes may take to be written at the end. What is not is read from the feed again.
const closeTime = 10 * time.Second

// shutdown has Run end.
func (a *App) shutdown() {
	select {
	case a.stop <- struct{}{}:
	default: // somebody else has asked
	}
}

// Run serves until ctx ends or a caller of the API has it stop, then finishes what is in flight within the grace time and releases everything.
func (a *App) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	tidy, stopTidying := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTidying()
	managed, served, tidied := make(chan error, 1), make(chan error, 2), sync.WaitGroup{}
	tidied.Go(func() { a.logs.Run(tidy, a.databases) })
	tidied.Go(func() { a.runs.Run(tidy, a.databases) })
	tidied.Go(func() { a.sweeper.run(work) })
	tidied.Go(func() { a.taken.Run(tidy, a.registry.List) })
	if a.barrier != nil {
		tidied.Go(func() { a.barrier.Run(tidy) })
	}
	go func() { managed <- a.manager.Start(work) }()
	go func() { served <- a.server.Serve(a.listener) }()
	mongoServed := a.serveMongo(served)

	var err error
	select {
	case <-ctx.Done():
	case <-a.stop:
	case err = <-served: // the listener broke
	}
	a.stopping.Store(true)
	if err == nil && a.cfg.ShutdownDelay > 0 {
		a.cfg.Logger.InfoContext(ctx, "stopping, requests are still taken", "for", a.cfg.ShutdownDelay.String())
		select {
		case <-time.After(a.cfg.ShutdownDelay):
		case err = <-served:
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.ShutdownGrace)
	defer cancel()
	if shutdownErr := a.server.Shutdown(grace); shutdownErr != nil {
		a.cfg.Logger.WarnContext(ctx, "requests were cut off at the end of the grace time", "error", shutdownErr)
		err = errors.Join(err, a.server.Close())
	}
	err = errors.Join(err, a.stopMongo(grace, mongoServed))
	a.auth.Close(grace)
	stopWork() // no job is started any more
	err = errors.Join(err, <-managed)
	a.runs.Close(grace)
	a.snapshots.Close()
	stopTidying()
	tidied.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime) // the grace is for requests, and may be over
	defer cancel()
	return errors.Join(err, a.search.Close(closing), a.engine.Close(), a.groups.Close(), a.closeFiles(), a.store.Close(), a.closeTracer(ctx))
}
