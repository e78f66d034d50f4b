package due_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/due"
	"github.com/svcctl/svc/pkg/snapshot/runs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// world is a project in a store, and its folder, which all instances share.
type world struct {
	testing.TB

	store     store.Store
	clock     *teststore.Clock
	dir       string
	namespace string
	p         *project.Project
}

func newWorld(t testing.TB, s store.Store, start, profiles string) *world {
	t.Helper()
	w := &world{TB: t, store: s, dir: t.TempDir(), namespace: "shop" + strings.ToLower(crand.Text()[:8]), clock: teststore.NewClock(at(t, start))}
	w.p = w.load(profiles)
	t.Cleanup(func() {
		if err := s.DropDatabase(context.Background(), project.DatabaseName(w.namespace)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// load compiles a config with these profiles.
func (w *world) load(profiles string) *project.Project {
	w.Helper()
	text := "namespace: " + w.namespace + "\nsnapshots: [" + profiles + "]\n"
	if err := os.WriteFile(filepath.Join(w.dir, "project.yaml"), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	p, problems := project.Load(w.dir, "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		w.Fatal(problems)
	}
	return p
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// instance is one process that does what is due. It is a due.Runs of runs whose work is that of the snapshots that it has.
type instance struct {
	*due.Due
	*world

	all     *operation.Runs
	snaps   *snapshot.Snapshots
	metrics *prometheus.Registry
	active  sync.WaitGroup // runs that were begun here

	mu    sync.Mutex
	began []string                                          // what was started: kind, profile, slot
	fail  func(ctx context.Context, order runs.Start) error // instead of the work; nil, or what gives nil: it is done
}

func (w *world) instance(name string) *instance {
	w.Helper()
	i := &instance{world: w, metrics: prometheus.NewRegistry()}
	var err error
	i.all, err = operation.New(operation.Options{Store: w.store, Now: w.clock.Now, Registerer: i.metrics, Instance: name})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		i.all.Close(ctx)
	})
	i.snaps = snapshot.New(snapshot.Options{Store: w.store, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler), Holder: name})
	i.Due, err = due.New(due.Options{Store: w.store, Runs: i, Snapshots: i.snaps, Now: w.clock.Now, Registerer: i.metrics})
	if err != nil {
		w.Fatal(err)
	}
	i.OnEnded(func(string) { i.active.Done() })
	return i
}

// Start starts a run.
func (i *instance) Start(ctx context.Context, p *project.Project, what runs.Start) (*operation.Run, error) {
	spec := operation.Spec{
		Database: project.DatabaseName(p.Namespace), Kind: what.Kind, Name: what.Profile, ID: what.ID, Trigger: what.Trigger, Slot: what.Slot,
		Cancellable: true, Claim: what.Claim, Ended: what.Ended,
	}
	i.active.Add(1)
	run, err := i.all.Start(ctx, spec, func(ctx context.Context, _ *operation.Live) (operation.Outcome, error) {
		return operation.Outcome{}, i.work(ctx, p, what)
	})
	if err != nil {
		i.active.Done()
	} else {
		i.mu.Lock()
		i.began = append(i.began, fmt.Sprintf("%s %s %s", what.Kind, what.Profile, what.Slot.Format(time.RFC3339)))
		i.mu.Unlock()
	}
	return run, err
}

// Get gives a run.
func (i *instance) Get(ctx context.Context, p *project.Project, id string) (*operation.Run, error) {
	for _, kind := range []operation.Kind{operation.Snapshot, operation.Verify, operation.Drill, operation.Prune} {
		for _, profile := range p.Snapshots {
			run, err := i.all.Get(ctx, project.DatabaseName(p.Namespace), operation.Ref{Kind: kind, Name: profile.Name, ID: id})
			if !errors.Is(err, operation.ErrNotFound) {
				return run, err
			}
		}
	}
	return nil, operation.ErrNotFound
}

// Runs gives runs.
func (i *instance) Runs(ctx context.Context, p *project.Project, q operation.Query) (*operation.Page, error) {
	return i.all.List(ctx, project.DatabaseName(p.Namespace), q)
}

func (i *instance) failing(fn func(ctx context.Context, order runs.Start) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail = fn
}

func (i *instance) work(ctx context.Context, p *project.Project, what runs.Start) error {
	i.mu.Lock()
	fail := i.fail
	i.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, what); err != nil {
			return err
		}
	}
	switch what.Kind {
	case operation.Snapshot:
		profile, err := snapshot.ProfileOf(p, what.Profile)
		if err == nil {
			_, err = i.snaps.Create(ctx, p, profile, nil)
		}
		return err
	case operation.Verify:
		out, err := i.snaps.VerifyAll(ctx, p, what.Profile, what.Newest, snapshot.VerifyOptions{Sample: what.Sample})
		if err == nil {
			err = out.Err()
		}
		return err
	case operation.Prune:
		_, err := i.snaps.Prune(ctx, p, what.Profile, snapshot.PolicyOf(p, what.Profile), snapshot.PruneOptions{})
		return err
	case operation.Drill:
		out, err := i.snaps.Drill(ctx, p, i.snapshots(what.Profile)[0], nil)
		if err == nil && out.Problems > 0 {
			err = errs.New(errs.Conflict, runs.DrillDiffers, "%s", out.Found[0].Text)
		}
		return err
	default:
		return nil
	}
}

// pass looks at what is due, and waits for the end of what was begun by this instance.
func (i *instance) pass() due.Report {
	i.Helper()
	report, err := i.Pass(i.Context(), i.p)
	if err != nil {
		i.Fatal(err)
	}
	i.settle()
	return report
}

// settle waits for all runs that were begun here.
func (i *instance) settle() { i.active.Wait() }

// took gives what was begun since the last call.
func (i *instance) took() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := i.began
	i.began = nil
	return out
}

// passed lets time pass in steps, and looks after each.
func (i *instance) passed(total, step time.Duration) {
	i.Helper()
	for ; total > 0; total -= step {
		i.clock.Pass(step)
		i.pass()
	}
}

// standing is how a task stands by another look.
func (i *instance) standing(kind operation.Kind, profile string) due.Standing {
	i.Helper()
	report := i.pass()
	for _, s := range report.Tasks {
		if s.Kind == kind && s.Profile == profile {
			return s
		}
	}
	return due.Standing{}
}

// snapshots gives the ids of a profile's, the newest first.
func (i *instance) snapshots(profile string) []string {
	i.Helper()
	all, err := i.snaps.List(i.Context(), i.p)
	if err != nil {
		i.Fatal(err)
	}
	out := []string{}
	for _, info := range all {
		if info.Profile == profile {
			out = append(out, info.ID)
		}
	}
	return out
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
