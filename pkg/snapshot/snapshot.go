package snapshot

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/lease"
)

// Options are what Snapshots need of their surroundings.
type Options struct {
	Store   store.Store
	Media   *media.Library // nil: no record has files
	Holder  string         // names this process among those that share the store; "": it has the store to itself
	Version string         // of the program; for manifests
	Now     func() time.Time
	Logger  *slog.Logger
	Fault   folder.Fault // of what is done to snapshots on the disk; nil but in tests

	Gate Gate // keeps others from records that a restore replaces; nil: there are none
	// Busy says that somebody writes to a database right now, or did a moment ago; nil: nobody ever does.
	Busy func(database string) bool
	// Replaced is told of a restore into p when it is done. Which collections are others, the feed of the store tells. It may be nil, and
	// must not wait for long.
	Replaced func(p *project.Project)
	// Ended is told how a restore has ended that has changed something, before what is noted of that is removed: so it may be told again, and what it fails with is
	// tried again. A restore of another process that has begun to change something ends with it, too. It may be nil.
	Ended func(ctx context.Context, e Ended) error
	// Left is told of a restore that another process has left, or this one by a failure, when it has ended and nothing is noted of it any more. It may be nil, and must not
	// wait for long.
	Left func(ctx context.Context, e Ended)
	// Changed is told when a snapshot of p was taken by hand or has come in, when one is found damaged, or whole, or was checked for the first time, and when one goes that was damaged or that somebody has deleted. It may be
	// nil, and must not wait.
	Changed func(p *project.Project)
}

// Snapshots are those of all projects. Its methods can be called at the same time; of those that make or delete snapshots of one
// project one goes on at a time, of all processes that share the store, and others are refused (ErrBusy).
type Snapshots struct {
	o Options

	mu     sync.Mutex
	busy   map[string]bool          // by namespace and what is done
	leases map[string]*lease.Leases // by namespace
	used   map[string]int           // by namespace and path of a snapshot: who reads it
	going  map[string]bool          // likewise: it is being removed
	stuck  map[string]gate.Shut     // by namespace: projects with a restore that is decided, and not done
	ours   map[string]string        // by namespace: the restore of this process that goes on, which has ended those that others had left

	states sync.Mutex // see lockStates
}

// New makes it.
func New(o Options) *Snapshots {
	return &Snapshots{o: o, busy: map[string]bool{}, leases: map[string]*lease.Leases{}, used: map[string]int{}, stuck: map[string]gate.Shut{}, ours: map[string]string{}, going: map[string]bool{}}
}

// ErrBusy says that another snapshot of the project is being made or deleted.
var ErrBusy = errs.NewBusy("snapshots_busy",
	"another snapshot of the project is being taken, restored or deleted: try again when that has ended")

const (
	leaseName = "snapshots"
	leaseTime = 15 * time.Second
)

// alone runs fn while nobody else makes, deletes or restores snapshots of a namespace.
func (s *Snapshots) alone(ctx context.Context, namespace string, fn func(ctx context.Context) error) error {
	return s.aloneIn(ctx, namespace, leaseName, fn)
}

// aloneIn runs fn while nobody else runs one by that name for a namespace.
func (s *Snapshots) aloneIn(ctx context.Context, namespace, name string, fn func(ctx context.Context) error) error {
	what := namespace + " " + name
	s.mu.Lock()
	if s.busy[what] {
		s.mu.Unlock()
		return ErrBusy
	}
	s.busy[what] = true
	leases := s.leasesOf(namespace)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, what)
	}()
	if leases == nil {
		return fn(ctx)
	}
	err := leases.Hold(ctx, name, leaseTime, func(ctx context.Context, _ *lease.Lease) error { return fn(ctx) })
	if e := errs.From(err); e != nil && e.Code == lease.ErrHeld.Code {
		busy := *ErrBusy
		busy.RetryAfter, busy.Cause = e.RetryAfter, err
		return &busy
	}
	return err
}

// leasesOf are those by which this process is alone among others; nil: it is anyway. mu is held.
func (s *Snapshots) leasesOf(namespace string) *lease.Leases {
	leases := s.leases[namespace]
	if leases == nil && s.o.Holder != "" {
		leases = lease.New(s.o.Store.Database(project.DatabaseName(namespace)), s.o.Holder, nil)
		s.leases[namespace] = leases
	}
	return leases
}

// use notes that a snapshot is read, so that it is not removed meanwhile by this process. It fails for one that is being removed.
func (s *Snapshots) use(path string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.going[path] {
		return nil, false
	}
	s.used[path]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.used[path]--; s.used[path] == 0 {
			delete(s.used, path)
		}
	}, true
}

// seize has nobody begin to read a snapshot any more. It fails for one that is read.
func (s *Snapshots) seize(path string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[path] > 0 || s.going[path] {
		return nil, false
	}
	s.going[path] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.going, path)
	}, true
}

// changed tells that what is to be said of a project's snapshots may be something else.
func (s *Snapshots) changed(p *project.Project) {
	if s.o.Changed != nil {
		s.o.Changed(p)
	}
}

// folder opens the folder of a project's snapshots. With make it is made; else it may be fs.ErrNotExist.
func (s *Snapshots) folder(p *project.Project, make bool) (*folder.Folder, error) {
	if p.Dir == "" || p.SnapshotDir == "" {
		return nil, ErrNoFolder
	}
	dir := filepath.Join(p.Dir, filepath.FromSlash(p.SnapshotDir))
	if make {
		f, err := folder.Open(dir, s.o.Fault)
		if err != nil {
			return nil, unwritten(err, "open the folder of snapshots")
		}
		return f, nil
	}
	return folder.OpenExisting(dir, s.o.Fault)
}

// Mode is the form in which records are exported.
type Mode string

// The modes of a Profile.
const (
	JSON Mode = "json" // lines of Extended JSON
	DB   Mode = "db"   // BSON, as mongorestore reads it
	Both Mode = "both"
)

// Profile says what a snapshot has.
type Profile struct {
	Name    string
	Only    []string // collections; none: all that there are
	Without []string // collections that are left out of all
	Media   bool     // files of records
	Dedup   bool     // exports and config that have not changed are links to those of the snapshot before
	Mode    Mode
}

// ProfileOf gives a profile of the project's config by its name; errs.NotFound if there is none.
func ProfileOf(p *project.Project, name string) (Profile, error) {
	i := slices.IndexFunc(p.Config.Snapshots, func(s *schema.Snapshot) bool { return s.Name == name })
	if i < 0 {
		return Profile{}, UnknownProfile(name)
	}
	c := p.Config.Snapshots[i]
	out := Profile{Name: c.Name, Media: c.IncludeMedia, Dedup: c.CollectionDedup, Mode: Mode(c.Mode)}
	for _, col := range c.Collections { // of either kind: the config's check sees to that
		if col.Mode == "exclude" {
			out.Without = append(out.Without, col.Name)
		} else {
			out.Only = append(out.Only, col.Name)
		}
	}
	return out, nil
}

// UnknownProfile says that there is no profile of that name.
func UnknownProfile(name string) error {
	return errs.New(errs.NotFound, "profile_not_found", "the project has no snapshot profile %.80q: the key snapshots of its config declares them", name)
}

// takes says whether a collection is in its snapshots.
func (p *Profile) takes(name string) bool {
	return (len(p.Only) == 0 || slices.Contains(p.Only, name)) && !slices.Contains(p.Without, name)
}
