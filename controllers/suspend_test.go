package controllers_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/status"
)

// suspend suspends the project blog, or resumes it.
func (w *world) suspend(id string, suspended bool) {
	w.Helper()
	if _, err := w.Update(w.Context(), id, bson.D{{Key: "suspended", Value: suspended}}); err != nil {
		w.Fatal(err)
	}
}

// TestSuspend keeps a project as it is over changes of its files, reloads, indexes made by other hands, a rollback and restarts,
// on two instances, one of which has been told not to watch files.
func TestSuspend(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		a := newWorld(t, s, dir, nil)
		b := newWorld(t, s, dir, func(d *controllers.Deps) { d.Watch = controllers.WatchOff })
		first, second := config("blog", "title", `{name: t, key: [title]}`), config("blog", "headline", "")
		a.edit(first)
		id := a.register()
		b.eventuallyServed(1)
		a.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})

		a.suspend(id, true)
		a.suspend(id, true) // changes nothing
		suspended := map[string]string{
			status.Ready: "True Serving", status.OutOfDate: "Unknown Suspended", status.IndexesConverged: "True Converged",
		}
		both := func(want map[string]string) {
			t.Helper()
			a.wantConditions(id, want)
			b.wantConditions(id, want)
		}
		both(suspended)
		a.edit(second)
		for _, w := range []*world{a, b} {
			for _, reload := range []func() error{
				func() error { return w.Reload(t.Context(), id, true) },
				func() error { return w.Reload(t.Context(), id, false) },
				func() error { return w.ReloadPlanned(t.Context(), id, "", "destructive") },
			} {
				if err := reload(); errs.KindOf(err) != errs.Conflict || errs.From(err).Code != "suspended" {
					t.Errorf("a reload of a suspended project: %v", err)
				}
			}
			if err := w.reconcile("project", id); err != nil {
				t.Fatal(err)
			}
			diff(t, "served", int64(1), w.served("blog"))
		}
		coll := s.Database("svc_blog").Collection("articles")
		if err := errors.Join(coll.DropIndex(t.Context(), "svc_t"), coll.CreateIndex(t.Context(), index("svc_x", "x"))); err != nil {
			t.Fatal(err)
		}
		s.take()
		for _, w := range []*world{a, b} {
			if err := w.reconcile("index", id); err != nil {
				t.Fatal(err)
			}
		}
		diff(t, "calls", []string(nil), s.takeIndexCalls())
		suspended[status.IndexesConverged] = "False Drifted"
		both(suspended)

		c := newWorld(t, s, dir, nil) // a restart
		c.wantConditions(id, suspended)
		diff(t, "served behind a restart", int64(1), c.served("blog"))

		a.suspend(id, false)
		for _, w := range []*world{a, b, c} {
			w.eventuallyServed(2)
			w.wantConditions(id, map[string]string{
				status.Ready: "True Serving", status.OutOfDate: "False UpToDate", status.IndexesConverged: "True Converged",
			})
		}
		indexes, err := coll.Indexes(t.Context())
		if err != nil || len(indexes) > 0 {
			t.Errorf("the indexes are %v, %v", indexes, err)
		}

		a.suspend(id, true)
		a.rollBack(id, 1)
		b.eventuallyServed(3)
		c.eventuallyServed(3)
		a.suspend(id, false)
		for _, w := range []*world{a, b, c} {
			w.eventuallyServed(4)
		}
	})
}

// TestSuspendWhatWasNeverServed registers what is suspended from the beginning.
func TestSuspendWhatWasNeverServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", ""))
	reg, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: "blog"}, {Key: "suspended", Value: true}})
	if err != nil {
		t.Fatal(err)
	}
	id := reg.ID.Hex()
	w.wantConditions(id, map[string]string{status.Ready: "False Suspended", status.ConfigValid: "Unknown Suspended"})
	w.suspend(id, false)
	w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.ConfigValid: "True Loaded"})
}

// TestBehindLeavesIndexesAlone has an instance whose files are older than those that another one serves: it must not take away the
// indexes that the newer config declares, nor bring back what that has dropped.
func TestBehindLeavesIndexesAlone(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		a := newWorld(t, s, t.TempDir(), nil)
		a.edit(config("blog", "title", `{name: a, key: [title]}`))
		id := a.register()
		a.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		b := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) {
			write(t, filepath.Join(d.ProjectsDir, "blog", "project.yaml"), config("blog", "title", `{name: a, key: [title]}`))
		})
		b.eventuallyServed(1)
		a.edit(config("blog", "title", `{name: b, key: [-title]}`))
		a.eventuallyServed(2)
		b.wantConditions(id, map[string]string{status.OutOfDate: "True Behind"})
		a.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		s.take()
		if err := b.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		diff(t, "calls", []string(nil), s.takeIndexCalls())
		b.wantConditions(id, map[string]string{status.IndexesConverged: "False Drifted"})
		p, err := b.Registry.Get("blog")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.SyncIndexes(t.Context(), p, api.RiskDestructive); err != nil { // not even for somebody who asks for it here
			t.Fatal(err)
		}
		diff(t, "calls", []string(nil), s.takeIndexCalls())
	})
}
