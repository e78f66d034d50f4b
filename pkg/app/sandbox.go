package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/assets"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/all"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/httpapi"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	searches "github.com/svcctl/svc/pkg/search/runs"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/system"
)

// SandboxOptions are what a Sandbox is made of. All members are required.
type SandboxOptions struct {
	Project *project.Project  // shared with other sandboxes; it is not changed
	Now     func() time.Time  // also what scripts see
	Env     schema.Env        // environment variables that scripts may read
	Answers http.RoundTripper // what answers http.fetch
	// Observe wraps what runs scripts, to see each run.
	Observe func(hooks.Engine) hooks.Engine
	Logger  *slog.Logger
}

// Sandbox is the service around one project, for the project's own tests: a store in memory, a clock that tests set, no
// network, and callers who are whoever the test says. It is for one goroutine.
type Sandbox struct {
	project *project.Project
	bare    *project.Project // without hooks, for fixtures
	store   store.Store
	engine  *script.Engine
	core    *core
	files   *sandboxFiles
	search  *sandboxSearch // nil: nothing is searched
	vectors *sandboxVectors
	door    *httpapi.Server
	ids     map[string]bool // of the records that came with one
}

// NewSandbox makes a sandbox. Close it.
func NewSandbox(ctx context.Context, o SandboxOptions) (*Sandbox, error) {
	st, err := embedded.Open(ctx, embedded.Options{InMemory: true, Now: o.Now})
	if err != nil {
		return nil, err
	}
	s := &Sandbox{project: o.Project, bare: withoutHooks(o.Project), store: st, vectors: &sandboxVectors{open: func() (*embedding.Groups, error) {
		return embedding.Open(ctx, embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "hash", Type: "hash"}}, Groups: []embedding.GroupConfig{{Name: "hash", Members: []string{"hash"}}},
		}, all.Types(), embedding.Options{})
	}}}
	s.engine = script.NewEngine(script.Options{Now: o.Now, Log: o.Logger})
	if err := s.wire(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// sandboxFiles are the files of a sandbox's records: in a folder of their own, which goes with it.
type sandboxFiles struct {
	dir     string
	images  *media.Images
	library *media.Library
}

// hasFiles says that records of a project can have files.
func hasFiles(p *project.Project) bool {
	for _, c := range p.Collections {
		if len(c.Uploads.Fields) > 0 {
			return true
		}
	}
	return false
}

func openSandboxFiles(ctx context.Context, o SandboxOptions) (f *sandboxFiles, err error) {
	f = &sandboxFiles{}
	if f.dir, err = os.MkdirTemp("", "svc-test-"); err != nil {
		return nil, fmt.Errorf("make a folder for the files of a test: %w", err)
	}
	f.images, err = media.OpenImages(ctx, filepath.Join(f.dir, "pictures"), media.ImagesOptions{Logger: o.Logger, Now: o.Now, MaxBytes: sandboxPictures})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.dir))
	}
	f.library = media.NewLibrary(filepath.Join(f.dir, "uploads"), media.Options{Logger: o.Logger, Now: o.Now, Images: f.images})
	return f, nil
}

func (f *sandboxFiles) close() error {
	return errors.Join(f.library.Close(), f.images.Close(), os.RemoveAll(f.dir))
}

// sandboxSearch has the search indexes of a sandbox: in a folder of their own, which goes with it.
type sandboxSearch struct {
	dir    string
	engine *engine.Engine
	groups *embedding.Groups
}

// sandboxGroups gives an embedding group for each that searches name: without a model, since a test asks nobody.
func sandboxGroups(ctx context.Context, p *project.Project) (*embedding.Groups, error) {
	config := embedding.Config{Providers: []embedding.ProviderConfig{{Name: "hash", Type: "hash"}}}
	named := map[string]bool{}
	for _, c := range p.Collections {
		for _, s := range c.Searches {
			if s.Mode == search.Vector && !named[s.Group] {
				named[s.Group] = true
				config.Groups = append(config.Groups, embedding.GroupConfig{Name: s.Group, Members: []string{"hash"}})
			}
		}
	}
	return embedding.Open(ctx, config, all.Types(), embedding.Options{})
}

// sandboxVectors are the embedding groups that the scripts of a sandbox name: whatever they are called, they are there, and give the
// vectors that those of searches have.
type sandboxVectors struct {
	open func() (*embedding.Groups, error)

	mu     sync.Mutex
	groups *embedding.Groups // nil: none was asked for
}

func (v *sandboxVectors) group(string) (*embedding.Group, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.groups == nil {
		var err error
		if v.groups, err = v.open(); err != nil {
			return nil, err
		}
	}
	return v.groups.Group("hash")
}

func (v *sandboxVectors) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.groups.Close() // nil has nothing to close
}

// openSandboxSearch opens the indexes of a project; nil: it has no searches.
func openSandboxSearch(ctx context.Context, st store.Store, o SandboxOptions) (s *sandboxSearch, err error) {
	searched := false
	for _, c := range o.Project.Collections {
		searched = searched || len(c.Searches) > 0
	}
	if !searched {
		return nil, nil //nolint:nilnil // nil is none
	}
	s = &sandboxSearch{}
	if s.dir, err = os.MkdirTemp("", "svc-test-"); err != nil {
		return nil, fmt.Errorf("make a folder for the search indexes of a test: %w", err)
	}
	if s.groups, err = sandboxGroups(ctx, o.Project); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	s.engine, err = engine.Open(ctx, engine.Options{Store: st, Dir: s.dir, Logger: o.Logger, Now: o.Now, Groups: s.groups, Alone: true})
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *sandboxSearch) of() *engine.Engine {
	if s == nil {
		return nil
	}
	return s.engine
}

// settle waits until all records can be found.
func (s *sandboxSearch) settle(ctx context.Context, p *project.Project) error {
	if s == nil {
		return nil
	}
	return s.engine.Settle(ctx, p)
}

func (s *sandboxSearch) close(ctx context.Context) (err error) {
	if s == nil {
		return nil
	}
	if s.engine != nil {
		err = s.engine.Close(context.WithoutCancel(ctx))
	}
	return errors.Join(err, s.groups.Close(), os.RemoveAll(s.dir))
}

const sandboxPictures = 64 << 20

func (s *Sandbox) wire(ctx context.Context, o SandboxOptions) error {
	registry, registerer := project.NewRegistry(), prometheus.NewRegistry()
	registry.Set(o.Project)
	logs := audit.New(audit.Options{Store: s.store, Now: o.Now, Logger: o.Logger, Holder: holder(), SystemDatabase: system.DatabaseName})
	models := system.New(s.store, system.Options{Now: o.Now, Audit: logs})
	modules := newModules(o.Now, nil, s.vectors.group)
	modules.answers = o.Answers
	var files *media.Library
	var err error
	if hasFiles(o.Project) {
		if s.files, err = openSandboxFiles(ctx, o); err != nil {
			return err
		}
		files = s.files.library
	}
	if s.search, err = openSandboxSearch(ctx, s.store, o); err != nil {
		return err
	}
	s.core, err = newCore(coreOptions{
		store: s.store, now: o.Now, env: o.Env, log: o.Logger, registerer: registerer, logs: logs, alone: true,
		engine: o.Observe(s.engine), files: files, search: s.search.of(), modules: modules.host,
	})
	if err == nil && s.search != nil {
		err = s.search.engine.Serve(o.Project)
	}
	if err != nil {
		return err
	}
	s.door, err = httpapi.New(httpapi.Config{
		Records: s.core.records, Actions: s.core.actions, System: models, Audit: logs, Registry: registry, Control: noControl{},
		Jobs: s.core.jobs, Searches: searches.New(s.search.of(), s.core.runs), Keys: s.core.keys, Assets: assets.New(o.Now, nil), Status: status.NewBoard(o.Now), Ready: func(context.Context, bool) []api.HealthCheck { return nil }, Shutdown: func() {},
		Logger: o.Logger, Registerer: registerer, Gatherer: registerer, MaxBodySize: sandboxBody, Authenticate: callerOf,
	})
	if err != nil {
		return err
	}
	return s.indexes(ctx)
}

const sandboxBody = 32 << 20

// indexes makes the indexes of the project: the unique ones refuse.
func (s *Sandbox) indexes(ctx context.Context) error {
	for _, c := range s.project.Collections {
		for _, declared := range c.Indexes {
			if !declared.Unique {
				continue // it would only be faster
			}
			ix := store.Index{Name: declared.Name, Unique: declared.Unique, Sparse: declared.Sparse}
			for _, k := range declared.Keys {
				ix.Keys = append(ix.Keys, store.IndexKey(k))
			}
			if err := s.collection(c.Name).CreateIndex(ctx, ix); err != nil {
				return fmt.Errorf("index %s of %s: %w", declared.Name, c.Name, err)
			}
		}
	}
	return nil
}

func (s *Sandbox) collection(name string) store.Collection {
	return s.store.Database(project.DatabaseName(s.project.Namespace)).Collection(name)
}

// withoutHooks is a project whose records are checked, and run nothing.
func withoutHooks(p *project.Project) *project.Project {
	out := *p
	out.Collections = maps.Clone(p.Collections)
	for name, c := range out.Collections {
		bare := *c
		bare.Hooks, bare.Audit = nil, nil
		out.Collections[name] = &bare
	}
	return &out
}

type callerKey struct{}

// callerOf gives whom the test has said to be.
func callerOf(ctx context.Context, _ auth.Credentials) (*access.Principal, error) {
	if who, ok := ctx.Value(callerKey{}).(*access.Principal); ok {
		return who, nil
	}
	return access.Anonymous(), nil
}

// Serve answers a request of a caller.
func (s *Sandbox) Serve(w http.ResponseWriter, r *http.Request, who *access.Principal) {
	if err := s.search.settle(r.Context(), s.project); err != nil { // it, or a script, may look for what was written before
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.door.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
}

// Insert creates a record as the service itself, checked like every other but without hooks, and gives its id: that of the record, if
// it has one.
func (s *Sandbox) Insert(ctx context.Context, collection string, doc bson.D) (id string, err error) {
	c := s.bare.Collections[collection]
	if c == nil {
		return "", errs.New(errs.NotFound, "collection_not_found", "the project has no collection %q", collection)
	}
	call := &records.Call{Project: s.bare, Collection: c, Principal: &access.Principal{Kind: access.KindService}}
	if i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == "id" }); i >= 0 {
		if call.NewID, err = s.ownID(collection, doc[i].Value); err != nil {
			return "", err
		}
		doc = slices.Delete(slices.Clone(doc), i, i+1)
	}
	w, err := s.core.records.Create(ctx, call, doc)
	return w.ID, err
}

// ownID gives the id that a record comes with, which no other one has.
func (s *Sandbox) ownID(collection string, value any) (func(int) bson.ObjectID, error) {
	text, _ := value.(string)
	id, err := bson.ObjectIDFromHex(text)
	if err != nil {
		return nil, errs.New(errs.Invalid, "bad_id", "id: must be 24 hex digits in quotes")
	}
	if s.ids[collection+text] {
		return nil, errs.New(errs.Invalid, "bad_id", "id: there is another record with %s", text)
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[collection+text] = true
	return func(int) bson.ObjectID { return id }, nil
}

// Records gives the records of a collection as they are stored, by id.
func (s *Sandbox) Records(ctx context.Context, collection string) (bson.A, error) {
	if s.project.Collections[collection] == nil {
		return nil, errs.New(errs.NotFound, "collection_not_found", "the project has no collection %q", collection)
	}
	list := bson.A{}
	err := s.collection(collection).Find(ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}}, func(raw bson.Raw) error {
		doc, err := document.ParseJSON(document.AppendJSON(nil, raw, nil))
		list = append(list, doc)
		return err
	})
	return list, err
}

// RunDue runs the jobs that are due, waits for them, and says when the next one is; zero: there is none.
func (s *Sandbox) RunDue(ctx context.Context) (next time.Time, err error) {
	if err := s.search.settle(ctx, s.project); err != nil {
		return time.Time{}, err
	}
	report, err := s.core.jobs.Pass(ctx, s.project)
	if err != nil {
		return time.Time{}, err
	}
	states, err := s.core.jobs.List(ctx, s.project)
	if err != nil {
		return time.Time{}, err
	}
	for _, st := range states {
		if st.Last == nil || !st.Last.Status.Active() {
			continue
		}
		ignore := func(operation.Event) error { return nil }
		if err := s.core.jobs.Follow(ctx, s.project, st.Job.Name, st.Last.ID, 0, ignore); err != nil {
			return time.Time{}, err
		}
	}
	return report.Next, nil
}

// Close ends what runs, and drops the store.
func (s *Sandbox) Close(ctx context.Context) error {
	if s.core != nil {
		ctx, cancel := context.WithCancel(ctx)
		cancel() // nothing is waited for that a test has not waited for
		s.core.runs.Close(ctx)
	}
	err := errors.Join(s.search.close(ctx), s.engine.Close(), s.vectors.close())
	if s.files != nil {
		err = errors.Join(err, s.files.close())
	}
	return errors.Join(err, s.store.Close())
}

// noControl is the control plane of a sandbox: there is none.
type noControl struct{}

var errNoControl = errs.New(errs.Unavailable, "not_in_tests", "this is not there in the tests of a project")

func (noControl) Register(context.Context, bson.D) (system.Project, error) {
	return system.Project{}, errNoControl
}

func (noControl) Update(context.Context, string, bson.D) (system.Project, error) {
	return system.Project{}, errNoControl
}
func (noControl) Unregister(context.Context, string) error               { return errNoControl }
func (noControl) Reload(context.Context, string, bool) error             { return errNoControl }
func (noControl) RollBack(context.Context, string, int64) (int64, error) { return 0, errNoControl }
func (noControl) ScheduleJobs(string) error                              { return nil }

// Founder is for restores, of which there are none.
func (noControl) Founder(string) snapshot.Founder { return nil }

func (noControl) ReloadPlanned(context.Context, string, string, api.Risk) error {
	return errNoControl
}

func (noControl) Plan(context.Context, string, *project.Bundle, bool) (*api.Plan, error) {
	return nil, errNoControl
}

func (noControl) SyncIndexes(context.Context, *project.Project, api.Risk) (*api.Drift, error) {
	return nil, errNoControl
}

func (noControl) Drift(context.Context, *project.Project) (*api.Drift, error) {
	return nil, errNoControl
}

func (noControl) Stats(context.Context, *project.Project, string) (api.CollectionStats, error) {
	return api.CollectionStats{}, errNoControl
}

func (noControl) Indexes(context.Context, *project.Project, string) ([]api.IndexDescription, error) {
	return nil, errNoControl
}
