package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
)

// Options of an Engine. All are required but those that name a default.
type Options struct {
	Store store.Store
	// Dir is the directory of the indexes; it comes into being. Where another instance uses it, this one has Dir-2, and so on.
	Dir    string
	Logger *slog.Logger
	Now    func() time.Time
	// Groups give the vectors of searches of mode vector; nil: none can be searched.
	Groups *embedding.Groups
	// SmallVectors keeps vectors in memory by a byte for each dimension.
	SmallVectors bool
	// Holder names this instance in leases; "": it draws a name.
	Holder string
	// Alone says that no other instance has the store, so that leases are not needed.
	Alone bool
	// Registerer takes the metrics; nil: there are none.
	Registerer prometheus.Registerer
	// Retries are the times after which a record is tried again whose script failed; nil: a second, 10 and 60.
	Retries []time.Duration
	// Builds is how many indexes are made at once; 0: 2.
	Builds int
}

// Engine has the indexes of all projects. It is safe for concurrent use.
type Engine struct {
	o        Options
	db       *index.DB
	ctx      context.Context //nolint:containedctx // of all that works behind; Close ends it
	stop     context.CancelFunc
	work     sync.WaitGroup
	patience time.Duration // of a write: see patience
	worn     atomic.Int64  // see worn
	gather   atomic.Int64  // see gather

	scripts  Scripts // see Scripted
	metrics  *metrics
	asked    recall        // vectors of what was looked for
	building chan struct{} // has room for those that are made at once

	renewing sync.Mutex

	mu      sync.Mutex
	tenants map[string]*tenant // by namespace
	// forgotten are the registrations of projects that were forgotten, by namespace: a request from before does not bring them back.
	forgotten map[string]string
	closed    bool
}

// Errors of searches.
var (
	// ErrBuilding is for a search whose first index is being made.
	ErrBuilding = &errs.Error{
		Kind: errs.Unavailable, Code: "search_building", RetryAfter: time.Second,
		Message: "the search index is being made: try again in a moment",
	}
	errClosed = errs.New(errs.Unavailable, "stopping", "the service is stopping: try again in a moment")
)

// defaultBuilds is how many indexes are made at once: each takes memory and, at times, more than one core.
const defaultBuilds = 2

// momentForBuilding is how long a search waits for its first index: that of a small collection is made by then.
const momentForBuilding = 2 * time.Second

// flushEvery is how long what is in memory alone stays so: what a crash takes is read from the feed again.
const flushEvery = 5 * time.Second

// Open opens the indexes of a directory. What is damaged there is made anew.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Builds <= 0 {
		o.Builds = defaultBuilds
	}
	if o.Holder == "" {
		o.Holder = rand.Text()
	}
	if o.Retries == nil {
		o.Retries = retries
	}
	db, err := openIndexes(o)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, db: db, metrics: newMetrics(), patience: patience, building: make(chan struct{}, o.Builds), tenants: map[string]*tenant{}, forgotten: map[string]string{}}
	e.worn.Store(worn)
	e.gather.Store(int64(gather))
	e.ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.metrics.register(o.Registerer, e.counts); err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	e.goes(e.flush)
	e.goes(e.sweeps)
	return e, nil
}

// maxInstances is how many instances can have their indexes beside each other.
const maxInstances = 64

// openIndexes opens the indexes of this instance: instances that share a data directory have one each.
func openIndexes(o Options) (db *index.DB, err error) {
	for i := range maxInstances {
		dir := o.Dir
		if i > 0 {
			dir += "-" + strconv.Itoa(i+1)
		}
		if db, err = index.Open(index.Options{Dir: dir, Logger: o.Logger, SmallVectors: o.SmallVectors}); !errors.Is(err, index.ErrInUse) {
			return db, err
		}
	}
	return nil, err
}

// goes runs fn behind, unless the engine is closed. Close waits for it.
func (e *Engine) goes(fn func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.work.Go(fn)
	}
	return !e.closed
}

// Close ends all work and keeps what has been done. ctx bounds how long that may take.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.work.Wait()
	return e.db.Close(ctx)
}

// flush writes to the disk what has come, every now and then.
func (e *Engine) flush() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		if err := e.db.Flush(e.ctx); err != nil && e.ctx.Err() == nil {
			e.o.Logger.WarnContext(e.ctx, "the search index can't be written; that is tried again", "error", err)
			e.renew(err)
		}
	}
}

// renew has all indexes be made anew if an error says that they are damaged.
func (e *Engine) renew(err error) {
	if !errors.Is(err, index.ErrDamaged) {
		return
	}
	e.renewing.Lock()
	defer e.renewing.Unlock()
	if e.db.Flush(e.ctx) == nil { // somebody else has done it
		return
	}
	if err := e.db.Renew(e.ctx); err != nil {
		e.o.Logger.ErrorContext(e.ctx, "the search index is damaged, and can't be made anew", "error", err)
		return
	}
	for _, t := range e.all() {
		for _, s := range t.all() {
			s.renew()
		}
	}
}

func (e *Engine) all() []*tenant {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*tenant, 0, len(e.tenants))
	for _, t := range e.tenants {
		out = append(out, t)
	}
	return out
}

// Serve has the searches of a project be as its config declares them, and nothing else be kept of it. It does not wait: what has to be
// made is made behind. Serving the same generation again changes nothing.
func (e *Engine) Serve(p *project.Project) error {
	e.mu.Lock()
	delete(e.forgotten, p.Namespace)
	e.mu.Unlock()
	t, err := e.tenant(p, len(searchedIn(p)) > 0)
	if err != nil {
		return err
	}
	if t == nil { // it may have had searches when this instance was stopped
		return e.drop(project.DatabaseName(p.Namespace), func(indexName) bool { return true })
	}
	if err = t.serve(p, true); errors.Is(err, errs.ErrProjectNotFound) { // it has ended meanwhile
		return e.Serve(p)
	}
	return err
}

// Forget stops the searches of a project that is served no more, and drops their indexes.
func (e *Engine) Forget(namespace string) error {
	e.mu.Lock()
	t := e.tenants[namespace]
	e.mu.Unlock()
	if t == nil {
		return e.drop(project.DatabaseName(namespace), func(indexName) bool { return true })
	}
	id := t.registration()
	e.mu.Lock()
	e.forgotten[namespace] = id
	e.mu.Unlock()
	return t.end()
}

// tenant gives what there is of a project, and makes it if it has searches.
func (e *Engine) tenant(p *project.Project, searched bool) (*tenant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	t := e.tenants[p.Namespace]
	if id, ok := e.forgotten[p.Namespace]; t == nil && ok && id == p.ID { // a request from before
		return nil, errs.ErrProjectNotFound
	}
	if t == nil && searched {
		t = newTenant(e, p.Namespace)
		e.tenants[p.Namespace] = t
	}
	return t, nil
}

// searchedIn gives the collections of a project that have an index, by the name that the store has for them.
func searchedIn(p *project.Project) map[string]*project.Collection {
	out := map[string]*project.Collection{}
	for _, c := range p.Collections {
		if indexed(c) {
			out[c.StoredName()] = c
		}
	}
	return out
}

// shelf gives that of a collection, as a project has it, which is served from now on if it was not yet.
func (e *Engine) shelf(p *project.Project, c *project.Collection) (*shelf, error) {
	t, err := e.tenant(p, true)
	if err != nil {
		return nil, err
	}
	if s := t.shelf(p, c); s != nil {
		return s, nil
	}
	if err := t.serve(p, false); err != nil {
		return nil, err
	}
	if s := t.shelf(p, c); s != nil {
		return s, nil
	}
	return nil, ErrBuilding
}

// Settle waits until all that was written can be found, by searches of mode vector, too, and no index is being made: for tests of
// projects, whose requests follow each other at once.
func (e *Engine) Settle(ctx context.Context, p *project.Project) error {
	tick := time.NewTicker(settleLook)
	defer tick.Stop()
	for !e.settled(p) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

const settleLook = 2 * time.Millisecond

func (e *Engine) settled(p *project.Project) bool {
	for _, c := range searchedIn(p) {
		q := e.Queue(p, c)
		if q.Pending+q.InFlight > 0 || len(q.Searches) == 0 ||
			slices.ContainsFunc(q.Searches, func(s SearchStatus) bool { return s.State == Building || s.State == Rebuilding }) {
			return false
		}
	}
	return true
}

// patience is how long a write waits until its records can be found: it is done, whatever becomes of the index.
const patience = 5 * time.Second

// worn is how many versions of records that were replaced an index has at least before it is made anew for them.
const worn = 1 << 16

// drop drops the indexes of a database that which says yes to.
func (e *Engine) drop(database string, which func(n indexName) bool) error {
	var all []error
	for _, name := range e.db.Names() {
		if n, ok := parseName(name); !ok || n.database == database && which(n) {
			all = append(all, e.db.Drop(name))
		}
	}
	return errors.Join(all...)
}
