package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// tenant is one project's shelves, and what tells them of changes: one reading of the store's feed for all of them.
type tenant struct {
	e         *Engine
	namespace string
	database  string
	db        store.Database
	leases    *lease.Leases
	ctx       context.Context //nolint:containedctx // of what works for all of its shelves; cancel ends it
	cancel    context.CancelFunc

	serving sync.Mutex // one Serve at a time
	ended   bool       // guarded by serving

	mu        sync.Mutex
	shelves   map[string]*shelf // by the name that the store has for the collection
	served    *project.Project
	whole     bool                 // nothing failed of that
	epochs    map[epochKey]int64   // see epoch.go
	embedders map[string]*embedder // by reference
	count     int64                // of the places in the feed that were told; of stamps
	stop      context.CancelFunc   // of the feed's reader; nil: there is none
	stopped   chan struct{}        // closed when it has ended
}

func newTenant(e *Engine, namespace string) *tenant {
	name := project.DatabaseName(namespace)
	db := e.o.Store.Database(name)
	t := &tenant{
		e: e, namespace: namespace, database: name, db: db, leases: lease.New(db, e.o.Holder, nil),
		shelves: map[string]*shelf{}, embedders: map[string]*embedder{},
	}
	t.ctx, t.cancel = context.WithCancel(e.ctx)
	return t
}

func (t *tenant) all() []*shelf {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.shelves))
}

// shelf gives that of a collection if it serves a generation that is not older.
func (t *tenant) shelf(p *project.Project, c *project.Collection) *shelf {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served == nil || t.served != p && older(t.served, p) {
		return nil
	}
	return t.shelves[c.StoredName()]
}

// serve has the shelves be those of a generation. Who is told of what is served knows which of two registrations it is.
func (t *tenant) serve(p *project.Project, told bool) error {
	t.serving.Lock()
	defer t.serving.Unlock()
	if t.ended {
		return errs.ErrProjectNotFound
	}
	t.mu.Lock()
	served := t.served
	t.mu.Unlock()
	if served != nil && served != p && older(p, served) && (!told || served.ID == p.ID) { // a request of an older one
		return nil
	}
	wanted, err := t.readEpochs(t.e.ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	same := served == p && t.whole && maps.Equal(wanted, t.epochs)
	t.epochs = wanted
	t.mu.Unlock()
	if same {
		return nil
	}
	want := searchedIn(p)
	var all []error
	added := false
	for stored, c := range want {
		t.mu.Lock()
		s := t.shelves[stored]
		t.mu.Unlock()
		if s == nil {
			s, added = newShelf(t, stored), true
			t.mu.Lock()
			t.shelves[stored] = s
			t.mu.Unlock()
		}
		all = append(all, s.serve(p, c)) // what fails is tried again when it is served the next time
	}
	gone := false
	for _, s := range t.all() {
		if want[s.stored] == nil {
			t.mu.Lock()
			delete(t.shelves, s.stored)
			t.mu.Unlock()
			gone = true
			all = append(all, s.end())
		}
	}
	all = append(all, t.e.drop(t.database, func(n indexName) bool { return want[n.stored] == nil }))
	if added || gone {
		t.follow()
	}
	err = errors.Join(all...)
	t.mu.Lock()
	t.served, t.whole = p, err == nil
	t.mu.Unlock()
	return err
}

// end stops everything and drops the indexes.
func (t *tenant) end() error {
	t.serving.Lock()
	defer t.serving.Unlock()
	if t.ended {
		return nil
	}
	t.ended = true
	t.cancel()
	t.quiet()
	shelves := t.all()
	t.mu.Lock()
	t.served, t.shelves = nil, map[string]*shelf{} // nobody waits for them any more
	t.mu.Unlock()
	var all []error
	for _, s := range shelves {
		all = append(all, s.end())
	}
	all = append(all, t.e.drop(t.database, func(indexName) bool { return true }))
	t.e.mu.Lock()
	delete(t.e.tenants, t.namespace)
	t.e.mu.Unlock()
	return errors.Join(all...)
}

// registration is the id of the one that is served.
func (t *tenant) registration() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served == nil {
		return ""
	}
	return t.served.ID
}

// older says whether a config is one of before: of the same registration, or of another, whose ids ascend.
func older(p, than *project.Project) bool {
	if p.ID != than.ID {
		return p.ID < than.ID
	}
	return p.Generation < than.Generation
}

// quiet ends the reader of the feed.
func (t *tenant) quiet() {
	t.mu.Lock()
	stop, stopped := t.stop, t.stopped
	t.stop = nil
	t.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}

// follow begins to read the feed for the shelves that there are, from where the one that is farthest behind stands.
func (t *tenant) follow() {
	t.quiet()
	ctx, cancel := context.WithCancel(t.e.ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.shelves) == 0 {
		cancel()
		return
	}
	t.stop, t.stopped = cancel, make(chan struct{})
	done := t.stopped
	if !t.e.goes(func() {
		defer close(done)
		t.read(ctx)
	}) {
		close(done)
	}
}

// Times between two tries of what has failed.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 15 * time.Second
)

// read reads the feed until ctx ends.
func (t *tenant) read(ctx context.Context) {
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		began := t.e.o.Now()
		err := t.readOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrHistoryLost):
			t.e.o.Logger.WarnContext(ctx, "the search indexes are too old to go on; they are made anew", "namespace", t.namespace)
			for _, s := range t.all() {
				s.lose()
			}
			continue
		case t.e.o.Now().Sub(began) > longestRetry:
			wait = firstRetry
		}
		t.e.o.Logger.WarnContext(ctx, "the search indexes can't follow the changes of records; that is tried again",
			"namespace", t.namespace, "error", err)
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// readOnce reads the feed until it fails.
func (t *tenant) readOnce(ctx context.Context) error {
	shelves, names := map[string]*shelf{}, []string{}
	for _, s := range t.all() {
		shelves[s.stored] = s
		names = append(names, s.stored)
	}
	after, err := t.farthestBehind(ctx)
	if err != nil {
		return err
	}
	for _, s := range shelves {
		s.following(after)
	}
	return t.db.Watch(ctx, store.Watch{After: after.Feed, Collections: names, Fields: versionFields, Gather: gather, OnIdle: func(p store.Position) error {
		at := t.stamp(p)
		for _, s := range shelves {
			s.reached(at)
		}
		return nil
	}}, func(e store.Event) error {
		at := t.stamp(e.Position)
		if e.Kind == store.Dropped || e.Kind == store.Renamed {
			for _, name := range []string{e.Collection, e.To} {
				if s := shelves[name]; s != nil {
					s.replaced(at)
				}
			}
			return nil
		}
		id, ok := e.ID.ObjectIDOK()
		if s := shelves[e.Collection]; ok && s != nil { // anything else is no record
			s.changed(id, e, at)
		}
		return nil
	})
}

// A stamp is a place in the feed. Places can't be compared, but those that one instance has read one after the other have ascending
// counts, over restarts, too.
type stamp struct {
	Count int64          `bson:"count"`
	Feed  store.Position `bson:"feed"`
}

func (t *tenant) stamp(p store.Position) *stamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	return &stamp{t.count, slices.Clone(p)}
}

// counted has stamps that are given from now on be behind one of before.
func (t *tenant) counted(at *stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at != nil {
		t.count = max(t.count, at.Count)
	}
}

// farthestBehind gives the place in the feed of the index that is farthest behind, or where the feed is now if there is none.
func (t *tenant) farthestBehind(ctx context.Context) (*stamp, error) {
	var oldest *stamp
	for _, s := range t.all() {
		if at := s.oldest(); at != nil && (oldest == nil || at.Count < oldest.Count) {
			oldest = at
		}
	}
	if oldest != nil {
		return oldest, nil
	}
	p, err := t.db.Position(ctx)
	if err != nil {
		return nil, err
	}
	return t.stamp(p), nil
}
