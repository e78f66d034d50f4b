package controllers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/jobs"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// drift gives the differences of the project blog, without what may be done about them.
func (w *world) drift() []string {
	w.Helper()
	out := w.driftWhole()
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], "; ")
	}
	return out
}

// driftWhole gives the differences of the project blog, and fails when to ask for them writes anything.
func (w *world) driftWhole() []string {
	w.Helper()
	p, err := w.Registry.Get("blog")
	if err != nil {
		w.Fatal(err)
	}
	w.store.take()
	d, err := w.Drift(w.Context(), p)
	if err != nil {
		w.Fatal(err)
	}
	if calls := w.store.take(); len(calls) > 0 {
		w.Errorf("it wrote: %s", calls)
	}
	out := []string{}
	for _, it := range d.Items {
		out = append(out, it.Action+" "+it.Kind+" "+it.Object+": "+it.Detail)
	}
	return out
}

func TestDriftOfIndexesThatAreBeingBuilt(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(config("blog", "title", `{name: a, key: [title]}, {name: b, key: [-title]}`))
		coll := s.Database("svc_blog").Collection("articles")
		if err := coll.DropIndex(t.Context(), "svc_a"); err != nil {
			t.Fatal(err)
		}
		if err := coll.CreateIndex(t.Context(), index("mine", "k")); err != nil {
			t.Fatal(err)
		}
		begun, goOn := make(chan string), make(chan bool)
		s.mu.Lock()
		s.build = func(name string) {
			begun <- name
			<-goOn
		}
		s.mu.Unlock()
		done := make(chan error)
		go func() { done <- w.Manager.ReconcileNow(t.Context(), "index", id) }()
		if name := <-begun; name != "svc_a" {
			t.Errorf("%s is built", name)
		}
		d, err := w.Drift(t.Context(), p)
		goOn <- true
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		told := func(items []api.DriftItem) []string {
			out := []string{}
			for _, it := range items {
				out = append(out, it.Action+" "+it.Object)
			}
			return out
		}
		diff(t, "pending", []string{"missing articles/a"}, told(d.Pending))
		diff(t, "drift", []string{"unexpected articles/mine"}, told(d.Items))
		diff(t, "drift behind it", []string{"unexpected index articles/mine: made by other hands"}, w.drift())
	})
}

func TestDrift(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Watch = controllers.WatchOff })
		declared := config("blog", "title", `{name: a, key: [title]}, {name: b, key: [-title]}, {name: c, key: [createdAt]}`)
		_, id := w.serve(declared)
		diff(t, "drift", []string{}, w.drift())

		db := s.Database("svc_blog")
		coll := db.Collection("articles")
		for _, name := range []string{"svc_a", "svc_b", "svc_c"} {
			if err := coll.DropIndex(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		for _, ix := range []store.Index{index("svc_b", "n"), unique(index("svc_c", "createdAt")), index("svc_old", "m"), index("mine", "k")} {
			if err := coll.CreateIndex(t.Context(), ix); err != nil {
				t.Fatal(err)
			}
		}
		for _, ix := range []store.Index{index("svc_p", "n"), index("theirs", "m")} {
			if err := db.Collection("pages").CreateIndex(t.Context(), ix); err != nil {
				t.Fatal(err)
			}
		}
		const another = "the one in the store has another key, or is unique or sparse where it should not be, or the reverse"
		diff(t, "drift", []string{
			"missing index articles/a: declared, and not in the store",
			"differs index articles/b: " + another,
			"differs index articles/c: " + another,
			"unexpected index articles/old: no longer declared",
			"unexpected index articles/mine: made by other hands",
			"unexpected index pages/p: no longer declared",
		}, w.drift())

		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		diff(t, "drift behind a repair", []string{"unexpected index articles/mine: made by other hands"}, w.drift())
		if err := coll.DropIndex(t.Context(), "mine"); err != nil {
			t.Fatal(err)
		}

		file := filepath.Join(w.ProjectsDir, "blog", "project.yaml")
		write(t, file, config("blog", "name", ``))
		diff(t, "drift of other files", []string{"differs config blog: the files on disk are others than those that are served"}, w.drift())
		write(t, file, "namespace: [")
		if got := w.drift(); len(got) != 1 || !strings.HasPrefix(got[0], "differs config blog: the files on disk are not valid (") {
			t.Errorf("drift of a broken file: %q", got)
		}
		write(t, file, config("shop", "title", ``))
		diff(t, "drift of the files of another project", []string{
			"differs registry blog: the files name the project shop, this registration is for blog: register it by itself",
		}, w.drift())
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			t.Fatal(err)
		}
		diff(t, "drift of files that are gone", []string{
			"missing registry blog: configFile does not exist: give its path inside the service's projects directory, such as blog/project.yaml",
		}, w.drift())
		write(t, file, declared)
		diff(t, "drift in the end", []string{}, w.drift())
	})
}

// TestObserve has a project whose indexes are told of, and only made when somebody says so.
func TestObserve(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(config("blog", "title", `{name: a, key: [title]}, {name: u, key: [title, createdAt], unique: true}`) + "mode: observe\n")
		coll := s.Database("svc_blog").Collection("articles")
		w.wantConditions(id, map[string]string{status.IndexesConverged: "False Drifted"})
		if err := coll.CreateIndex(t.Context(), index("svc_old", "m")); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		state, _ := w.Board.Get(id)
		c, _ := state.Condition(status.IndexesConverged)
		diff(t, "message", "articles/a is missing, articles/u is missing, articles/old is unexpected; mode is observe: "+
			"svcctl index sync blog makes them as declared", c.Message)
		s.take()
		if err := w.Reload(t.Context(), id, true); err != nil { // which is no wish to have them made
			t.Fatal(err)
		}
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		diff(t, "calls", []string(nil), s.takeIndexCalls())

		for _, allow := range []api.Risk{"", api.RiskSafe} {
			if _, err := w.SyncIndexes(t.Context(), p, allow); errs.KindOf(err) != errs.Conflict || errs.From(err).Message != "nothing was changed: "+
				"to make the indexes as declared drops articles/old (slow); do it with allow=slow, or declare what is to stay" {
				t.Errorf("what drops is done with %q: %v", allow, err)
			}
		}
		diff(t, "calls of what is not allowed", []string(nil), s.takeIndexCalls())

		left, err := w.SyncIndexes(t.Context(), p, api.RiskSlow)
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
		diff(t, "calls", []string{"drop articles.svc_old", "create articles.svc_a", "create articles.svc_u"}, s.takeIndexCalls())
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		diff(t, "calls", []string(nil), s.takeIndexCalls())
		diff(t, "drift", []string{}, w.drift())
	})
}

// TestBuildsTellHowFarTheyAre has who waits for indexes see which one is being built. A repair that nobody waits for moves no condition.
func TestBuildsTellHowFarTheyAre(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		var mu sync.Mutex
		var told []string
		s.mu.Lock()
		s.build = func(string) {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range w.Registry.List() {
				st, _ := w.Board.Get(p.ID)
				c, _ := st.Condition(status.IndexesConverged)
				told = append(told, string(c.Status)+" "+c.Reason+": "+c.Message)
			}
		}
		s.mu.Unlock()
		took := func() []string {
			mu.Lock()
			defer mu.Unlock()
			out := told
			told = nil
			return out
		}
		p, id := w.serve(config("blog", "title", `{name: a, key: [title]}, {name: b, key: [-title]}`))
		want := []string{"Unknown Progressing: building articles/a (1 of 2)", "Unknown Progressing: building articles/b (2 of 2)"}
		diff(t, "told of a new generation", want, took())

		coll := s.Database("svc_blog").Collection("articles")
		drop := func() {
			t.Helper()
			for _, name := range []string{"svc_a", "svc_b"} {
				if err := coll.DropIndex(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		drop()
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		diff(t, "told of a repair", []string{"True Converged: 2 indexes", "True Converged: 2 indexes"}, took())
		drop()
		if _, err := w.SyncIndexes(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
		diff(t, "told of a sync", want, took())
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
	})
}

// TestSyncIsOfTheConfigThatWasAskedFor has another config served when a sync begins: nobody was asked about what that one drops.
func TestSyncIsOfTheConfigThatWasAskedFor(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Watch = controllers.WatchOff })
		const observe = "mode: observe\n"
		p, id := w.serve(config("blog", "title", `{name: a, key: [title]}, {name: u, key: [-title], unique: true}`) + observe)
		if _, err := w.SyncIndexes(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
		s.take()
		held, err := lease.New(s.Database(project.DatabaseName("blog")), "another", nil).Acquire(t.Context(), "indexes", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Database("svc_blog").Collection("articles").DropIndex(t.Context(), "svc_a"); err != nil {
			t.Fatal(err)
		}
		s.take()
		done := make(chan *api.Drift, 1)
		go func() {
			left, err := w.SyncIndexes(t.Context(), p, "")
			if err != nil {
				t.Error(err)
			}
			done <- left
		}()
		w.wantConditions(id, map[string]string{status.IndexesConverged: "Unknown Progressing"})
		write(t, filepath.Join(w.ProjectsDir, "blog", "project.yaml"), config("blog", "title", "")+observe)
		if err := w.Reload(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := <-done; left == nil || len(left.Items) != 1 || left.Items[0].Object != "articles/u" || left.Items[0].Risk != api.RiskBreaking {
			t.Errorf("%+v is left", left)
		}
		diff(t, "calls", []string(nil), s.takeIndexCalls())
	})
}

// TestDriftOfJobsThatAreLeft has a job suspended and then declared no more: what would keep one of that name from running is told
// until it is resumed. What is kept of others is none.
func TestDriftOfJobsThatAreLeft(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Watch = controllers.WatchOff })
		p, id := w.serve(w.withJobs(`{type: javascript, file: tick.js, cron: "@yearly"}, {type: javascript, name: tock, file: tick.js, cron: "@yearly"}`))
		w.wantConditions(id, map[string]string{status.JobsScheduled: "True Scheduled"})
		diff(t, "drift", []string{}, w.drift())
		for _, name := range []string{"tick", "tock"} {
			if err := w.Jobs.Suspend(t.Context(), p, name, operation.Actor{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Jobs.Resume(t.Context(), p, "tock"); err != nil {
			t.Fatal(err)
		}
		diff(t, "drift of a declared one", []string{"differs job tick: declared to run by its schedule, and suspended"}, w.drift())
		write(t, filepath.Join(w.ProjectsDir, "blog", "project.yaml"), config("blog", "title", ``))
		if err := w.Reload(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		diff(t, "drift", []string{"unexpected job tick: suspended, and no longer declared: a job that gets this name would not run"}, w.drift())
		if p = w.Registry.ByID(id); len(p.Jobs) > 0 {
			t.Fatal("the jobs are declared still")
		}
		if err := w.Jobs.Suspend(t.Context(), p, "tock", operation.Actor{}); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("one that is not declared is suspended: %v", err)
		}
		if err := w.Jobs.Resume(t.Context(), p, "tick"); err != nil {
			t.Fatal(err)
		}
		diff(t, "drift in the end", []string{}, w.drift())
		if err := w.Jobs.Resume(t.Context(), p, "tick"); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("it is resumed twice: %v", err)
		}
	})
}

// orphan is a file of media that no record names.
type orphan struct {
	dir, record string
	bytes       int64
}

type orphans []orphan

func (o *orphans) Orphans(ctx context.Context, _ *project.Project, found func(dir, record string, bytes int64) error) error {
	for _, f := range *o {
		if err := found(f.dir, f.record, f.bytes); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func TestDriftOfMedia(t *testing.T) {
	t.Parallel()
	files := &orphans{}
	w := newWorld(t, newEmbedded(t), t.TempDir(), func(d *controllers.Deps) { d.Media = files })
	_, id := w.serve(config("blog", "title", ``))
	diff(t, "drift", []string{}, w.drift())
	*files = orphans{{"up/elsewhere", "1", 7}, {"articles", "1", 10}, {"articles", "1", 20}, {"articles", "2", 30}}
	want := []string{
		"unexpected media articles: 3 files (60 bytes) that no record names, in the folders of 2 records; ",
		"unexpected media up/elsewhere: 1 file (7 bytes) that no record names, in the folders of 1 record; ",
	}
	told := func(next string) []string {
		var out []string
		for _, line := range want {
			out = append(out, line+next)
		}
		return out
	}
	diff(t, "drift", told("the next sweep removes them"), w.driftWhole())
	w.edit(config("blog", "title", ``) + "mode: observe\n")
	if err := w.Reload(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	diff(t, "drift of what is only watched", told("they are left alone as mode is observe"), w.driftWhole())
}
