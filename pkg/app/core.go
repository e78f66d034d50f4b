package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/snapshot"
	snapshots "github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/tracing"
)

// core is what does the work of projects, whoever loads them: records and runs, and the scripts in both.
type core struct {
	runs      *operation.Runs
	taken     *snapshot.Snapshots // what there is
	snapshots *snapshots.Service  // and what is done with it, as runs
	records   *records.Service
	jobs      *jobs.Jobs
	actions   *actions.Service
	keys      *idempotency.Keys
}

type coreOptions struct {
	store      store.Store
	gate       *gate.Gate                                  // before store, for those who use records; nil: nobody shuts it
	shuts      snapshot.Gate                               // has all instances shut theirs
	replaced   func(p *project.Project)                    // see snapshot.Options
	left       func(ctx context.Context, e snapshot.Ended) // see snapshot.Options
	changed    func(p *project.Project)                    // see snapshot.Options
	now        func() time.Time
	env        schema.Env
	log        *slog.Logger
	registerer prometheus.Registerer
	tracer     *tracing.Tracer // nil: nothing is traced
	logs       *audit.Logs
	version    string
	alone      bool // no other process works on the store
	engine     hooks.Engine
	files      *media.Library
	search     *engine.Engine
	modules    func(p *project.Project) script.Host // what scripts reach beside records
	fault      func(op, name string) error          // see Config.SnapshotFault
}

// holder names this process among those that share the store; "": it has the store to itself.
func (o *coreOptions) holder() string {
	if o.alone {
		return ""
	}
	return holder()
}

func newCore(o coreOptions) (*core, error) {
	runs, err := operation.New(operation.Options{
		Store: o.store, Now: o.now, Registerer: o.registerer, Logger: o.log, Tracer: o.tracer, Instance: holder(), Alone: o.alone,
	})
	if err != nil {
		return nil, err
	}
	runner, err := hooks.New(hooks.Options{Engine: o.engine, Host: o.modules, Env: o.env, Log: o.log, Registerer: o.registerer})
	if err != nil {
		return nil, err
	}
	var used store.Store = o.store
	var moment func(context.Context) context.Context
	if o.gate != nil {
		used, moment = o.gate, o.gate.Moment
	}
	service := records.New(used, o.now, o.logs, runner, o.files)
	service.Searching(o.search)
	if o.search != nil {
		o.search.Scripted(runner)
	}
	due, err := jobs.New(jobs.Options{
		Store: o.store, Runs: runs, Now: o.now, Registerer: o.registerer, Logger: o.log,
		Runner: &jobRunner{engine: o.engine, records: service, hooks: runner, log: o.log, moment: moment},
	})
	if err != nil {
		return nil, err
	}
	var busy func(database string) bool
	if o.gate != nil {
		busy = o.gate.Busy
	}
	var taking *snapshots.Service
	taken := snapshot.New(snapshot.Options{
		Store: o.store, Media: o.files, Holder: o.holder(), Version: o.version, Now: o.now, Logger: o.log, Fault: o.fault, Gate: o.shuts, Busy: busy, Replaced: o.replaced, Changed: o.changed,
		Ended: func(ctx context.Context, e snapshot.Ended) error { return taking.Ended(ctx, e) },
		Left:  o.left,
	})
	taking = snapshots.New(taken, runs, o.log)
	keys := idempotency.New(idempotency.Options{Store: o.store, Now: o.now, Alone: o.alone})
	return &core{runs: runs, taken: taken, snapshots: taking, records: service, jobs: due, keys: keys, actions: actions.New(actions.Options{
		Engine: o.engine, Runs: runs, Audit: o.logs, Env: runner.Env, Now: o.now, Log: o.log,
		Host: func(c *actions.Call, file string, run *operation.Live) script.RunHost {
			by := records.Caller{Principal: c.Principal, Request: c.Request, Again: c.Again}
			if run != nil {
				by.Fence = run.Fence
			}
			return service.Host(c.Project, by, file)
		},
	})}, nil
}
