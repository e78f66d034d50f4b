package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/traced"
	"github.com/svcctl/svc/pkg/tracing"
)

// Tracing is the settings of traces.
type Tracing = tracing.Config

// flushTime is how long the collector may take at the end for the spans that wait.
const flushTime = 5 * time.Second

// openTracer puts spans around the store, and the ids of traces into the log, if there are to be any. The gate goes before that.
func (a *App) openTracer(registerer prometheus.Registerer) (err error) {
	a.tracer, err = tracing.New(tracing.Options{
		Config: a.cfg.Tracing, Version: a.cfg.Version, Instance: holder(), Logger: a.cfg.Logger, Registerer: registerer,
	})
	if err != nil {
		return err
	}
	if a.tracer != nil {
		a.cfg.Logger = slog.New(tracing.LogHandler(a.cfg.Logger.Handler()))
	}
	a.store = traced.New(a.opened, a.tracer)
	a.gate = gate.New(a.store)
	return nil
}

// closeTracer hands over the spans that wait, until ctx or the time for that is over.
func (a *App) closeTracer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	return a.tracer.Close(ctx)
}
