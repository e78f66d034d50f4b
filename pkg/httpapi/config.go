package httpapi

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/actions"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	searches "github.com/svcctl/svc/pkg/search/runs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
	"github.com/svcctl/svc/pkg/tracing"
)

// Control is what this door asks of the control plane. controllers.Control implements it.
type Control interface {
	Registrations
	Reloads
	Convergence
}

// Registrations is which projects there are.
type Registrations interface {
	// Register loads a config file, records the registration and waits until its project is served.
	Register(ctx context.Context, body bson.D) (system.Project, error)
	// Update changes a registration and waits until that shows.
	Update(ctx context.Context, id string, body bson.D) (system.Project, error)
	// Unregister ends a registration. The data stays.
	Unregister(ctx context.Context, id string) error
	// Founder makes projects of an org ("": of none), which snapshots are restored into.
	Founder(org string) snapshot.Founder
}

// Reloads is which config a project is served from.
type Reloads interface {
	// Reload loads a project's files again. With wait it returns when the new generation is served, or the error
	// that its config has.
	Reload(ctx context.Context, id string, wait bool) error
	// ReloadPlanned is a Reload that is waited for, and refused if it would change something else than the plan with that
	// hash, or has a greater risk than is allowed; either may be empty.
	ReloadPlanned(ctx context.Context, id, hash string, allow api.Risk) error
	// Plan tells what a reload would change, with the files on disk or those of a bundle. Without counting, no
	// records are looked at.
	Plan(ctx context.Context, id string, bundle *project.Bundle, counting bool) (*api.Plan, error)
	// RollBack serves an earlier generation of a project again, and returns when it is served, with the number that it has now.
	RollBack(ctx context.Context, id string, generation int64) (int64, error)
}

// Convergence is how far what there is follows what is served.
type Convergence interface {
	// Drift tells where what a project declares and what there is differ, and changes nothing.
	Drift(ctx context.Context, p *project.Project) (*api.Drift, error)
	// ScheduleJobs has a project's jobs looked at now.
	ScheduleJobs(id string) error
	// Indexes tells of each index of a collection, declared or found, how it stands.
	Indexes(ctx context.Context, p *project.Project, collection string) ([]api.IndexDescription, error)
	// SyncIndexes makes a project's indexes as they are declared, also where its mode is to observe, and tells of those that
	// are not. Nothing is changed if that drops indexes whose loss is above the
	// risk that is allowed; "": if it drops any.
	SyncIndexes(ctx context.Context, p *project.Project, allow api.Risk) (*api.Drift, error)
	// Stats tells how large a collection and its indexes are.
	Stats(ctx context.Context, p *project.Project, collection string) (api.CollectionStats, error)
}

// Config is what the door serves. All members are required unless they say otherwise.
type Config struct {
	Records    *records.Service
	Actions    *actions.Service
	Registry   *project.Registry
	Auth       *auth.Auth
	System     *system.System
	Audit      *audit.Logs
	Control    Control
	Jobs       *jobs.Jobs
	Searches   *searches.Service
	Snapshots  *runs.Service
	Keys       *idempotency.Keys
	Assets     *assets.Assets
	Embedding  *embedding.Groups // nil: there are none
	Status     *status.Board
	Ready      func(ctx context.Context, names bool) []api.HealthCheck // how the parts of the service are, with the names of projects or without
	Shutdown   func()                                                  // has the service stop, and doesn't wait for it
	Logger     *slog.Logger
	Now        func() time.Time // nil: time.Now
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	Tracer     *tracing.Tracer // nil: nothing is traced
	Version    string

	// Authenticate says who sent credentials, in the place of Auth, for the tests of a project; nil: Auth does.
	Authenticate func(ctx context.Context, c auth.Credentials) (*access.Principal, error)

	// Moment, if set, gives the context of a request whose reads and writes are to be of one state of the records. Routes that take long have none, but for
	// calls of actions.
	Moment func(ctx context.Context) context.Context

	MaxBodySize    int64             // bytes of a request body, the ceiling for every project
	MaxImport      int64             // bytes of an archive of a snapshot, unpacked; 0: snapshot's own limit
	BodyMemory     int64             // bytes of bodies that are kept in memory at once, of all requests; 0: any
	AdminHosts     []string          // host names of the admin front
	Fronts         map[string]string // host name of a site's front -> namespace
	TrustedProxies []netip.Prefix    // whose Forwarded, or else X-Forwarded-For, is believed
	MetricsPublic  bool              // whether /metrics needs no credential beyond loopback

	MCP MCP // the endpoint for agents
}
