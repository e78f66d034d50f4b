package app

import (
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/plan"
	"github.com/svcctl/svc/pkg/schema"
)

// MCP is the settings of the endpoint for agents.
type MCP = httpapi.MCP

// Config is what the service is told by its settings. docs/settings.md describes each one. New checks it.
type Config struct {
	Host           string // listen address
	Port           int    // 0: any free one, for tests
	MaxBodySize    int64
	MaxImport      int64 // bytes of an archive of a snapshot, unpacked; 0: archive.DefaultLimits
	AdminHosts     []string
	Fronts         map[string]string
	TrustedProxies []netip.Prefix
	MetricsPublic  bool
	MCP            MCP // the endpoint for agents

	AdminToken string // "": generated, in <DataDir>/admin.token
	// AdminUser and AdminPassword are of the user that is made when there is none; "": none is made.
	AdminUser, AdminPassword string

	JWTSecret []byte // empty: generated, in the store
	JWTTTL    time.Duration

	PATDefaultTTL, PATMaxTTL time.Duration // 0: no end

	StoreURI string // "": embedded:<DataDir>/store
	// MongoListen is the address of the MongoDB endpoint of the embedded store; "": there is none. CheckMongoListen checks it.
	MongoListen   string
	MongoReadOnly bool          // it refuses writes
	MongoMaxTime  time.Duration // of a read by it that does not say; 0: as long as it takes
	CacheSize     int64         // bytes of the embedded store's data that are kept in memory; 0: by the memory there is
	SweepAfter    time.Duration // how old a file that no record names is when it is swept; 0: DefaultSweepAfter
	PictureCache  int64         // bytes on the disk of pictures that filters made; 0: DefaultPictureCache
	PictureMemory int64         // bytes that filters of pictures take at once; 0: DefaultPictureMemory
	DataDir       string
	ProjectsDir   string
	Watch         controllers.WatchMode
	Resync        time.Duration // how often all registrations are looked at again; 0: controllers.DefaultResync
	ShutdownDelay time.Duration // how long requests are still taken once it is to stop and is not ready any more
	ShutdownGrace time.Duration // how long those in flight may take then
	// AuditRetention is how long entries about the service itself are kept in the audit log; 0: for ever.
	AuditRetention time.Duration

	Tracing Tracing // traces of OpenTelemetry; off by default

	// SmallVectors has searches keep their vectors in memory by a byte for each dimension.
	SmallVectors bool
	// Embedding is what makes vectors of texts; none by default.
	Embedding embedding.Config

	Version string
	Logger  *slog.Logger
	Now     func() time.Time
	Env     schema.Env // environment variables that configs may refer to
	// SecretFiles are the files that settings were read from and configs may not read.
	SecretFiles []string
	// WorkerCommand is the command line of a process that runs scripts apart; nil: all run in this one.
	WorkerCommand []string
	Judge         plan.Judge      // asks golden queries for plans; nil: they count as if they failed
	OnFatal       func(err error) // the embedded store can't go on; the process should log and exit

	// PasswordCost is that of password hashes, for tests, which make many. No setting has it: zero is auth.DefaultParams.
	PasswordCost auth.Params
	// SnapshotFault is asked before each operation on the files of snapshots, as folder.Fault, for tests. No setting has it.
	SnapshotFault func(op, name string) error
	// HashCommand starts a process that runs auth.ServeHash, for each password hash. Empty: hashes are made in this one.
	HashCommand []string
}

// CheckAdminHosts says what is wrong with AdminHosts, for whoever set it.
func (cfg Config) CheckAdminHosts() error { return httpapi.CheckHosts(cfg.AdminHosts, nil) }

// CheckFronts says what is wrong with Fronts, for whoever set it.
func (cfg Config) CheckFronts() error { return httpapi.CheckHosts(cfg.AdminHosts, cfg.Fronts) }

// newHasher makes what hashes passwords. Logins leave cores for the rest.
func (cfg *Config) newHasher() *auth.Hasher {
	cost, parallel := cfg.PasswordCost, max(1, runtime.GOMAXPROCS(0)/2)
	if cost == (auth.Params{}) {
		cost = auth.DefaultParams()
	}
	if len(cfg.HashCommand) == 0 {
		return auth.NewHasher(cost, parallel)
	}
	return auth.NewProcessHasher(cost, parallel, cfg.HashCommand, cfg.Logger)
}
