package controllers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// field is the one field of the collection that is served.
func (w *world) field() string {
	w.Helper()
	p, err := w.Registry.Get("blog")
	if err != nil {
		return err.Error()
	}
	return p.Collections["articles"].Config.Fields[0].Name
}

func (w *world) wantServed(generation int64, field string) {
	w.Helper()
	w.eventuallyServed(generation)
	if got := w.field(); got != field {
		w.Errorf("generation %d has the field %s, want %s", generation, got, field)
	}
}

func (w *world) rollBack(id string, to int64) {
	w.Helper()
	if _, err := w.RollBack(w.Context(), id, to); err != nil {
		w.Fatal(err)
	}
}

// twoGenerations has blog served from title, then from headline, and gives the id of the registration.
func (w *world) twoGenerations() string {
	w.Helper()
	w.edit(config("blog", "title", ""))
	id := w.register()
	w.edit(config("blog", "headline", ""))
	w.eventuallyServed(2)
	return id
}

// An earlier generation is served on every instance, and after a restart, until the files change.
func TestRollback(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		a, b := newWorld(t, s, dir, nil), newWorld(t, s, dir, nil)
		id := a.twoGenerations()
		b.eventuallyServed(2)

		a.rollBack(id, 1)
		if g := a.served("blog"); g != 3 { // at once: RollBack has waited
			t.Errorf("generation %d is served", g)
		}
		b.wantServed(3, "title")
		c := newWorld(t, s, dir, nil) // started meanwhile
		for _, w := range []*world{a, b, c} {
			if err := w.reconcile("project", id); err != nil { // as a resync does
				t.Fatal(err)
			}
			w.wantServed(3, "title")
			w.wantConditions(id, map[string]string{
				status.Ready: "True Serving", status.ConfigValid: "True Loaded", status.OutOfDate: "True " + status.ReasonRolledBack,
			})
		}
		a.rollBack(id, 1) // again: nothing new
		if g := a.served("blog"); g != 3 {
			t.Errorf("generation %d is served", g)
		}

		a.edit(config("blog", "subtitle", ""))
		for _, w := range []*world{a, b, c} {
			w.wantServed(4, "subtitle")
			w.wantConditions(id, map[string]string{status.OutOfDate: "False UpToDate"})
		}
	})
}

// A reload of the same files ends a rollback, on every instance.
func TestAReloadEndsARollback(t *testing.T) {
	for _, mode := range []controllers.WatchMode{controllers.WatchReload, controllers.WatchNotify, controllers.WatchOff} {
		t.Run(string(mode), func(t *testing.T) {
			s, dir := newEmbedded(t), t.TempDir()
			a, b := newWorld(t, s, dir, watching(mode)), newWorld(t, s, dir, watching(mode))
			a.edit(config("blog", "title", ""))
			id := a.register()
			a.edit(config("blog", "headline", ""))
			if err := a.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			b.wantServed(2, "headline") // a reload reaches it
			a.rollBack(id, 1)
			b.wantServed(3, "title")
			if err := b.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			for _, w := range []*world{a, b} {
				w.wantServed(4, "headline")
				w.wantConditions(id, map[string]string{status.OutOfDate: "False UpToDate"})
			}
		})
	}
}

// Files that become what the rollback serves end it, without another generation.
func TestFilesThatFollowARollback(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	id := w.twoGenerations()
	w.rollBack(id, 1)
	w.edit(config("blog", "title", ""))
	w.wantConditions(id, map[string]string{status.OutOfDate: "False UpToDate"})
	w.wantServed(3, "title")
	w.edit(config("blog", "headline", "")) // those it was over: they have changed
	w.wantServed(4, "headline")
}

// Files that are broken, or gone, are no others: a rollback outlives them. One that is asked for over broken files ends when
// they are right again.
func TestRollbackAndBrokenFiles(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		w := newWorld(t, s, dir, nil)
		id := w.twoGenerations()
		w.rollBack(id, 1)
		w.edit(broken)
		w.wantConditions(id, map[string]string{status.ConfigValid: "False Invalid", status.OutOfDate: "True ChangedOnDisk"})
		w.wantServed(3, "title")
		newWorld(t, s, dir, nil).wantServed(3, "title")
		w.edit(config("blog", "headline", ""))
		w.wantConditions(id, map[string]string{status.ConfigValid: "True Loaded", status.OutOfDate: "True " + status.ReasonRolledBack})
		w.wantServed(3, "title")

		w.edit(config("blog", "subtitle", ""))
		w.wantServed(4, "subtitle")
		w.edit(broken)
		w.wantConditions(id, map[string]string{status.ConfigValid: "False Invalid"})
		w.rollBack(id, 2)
		w.wantServed(5, "headline")
		w.wantConditions(id, map[string]string{status.Ready: "False Invalid"})
		newWorld(t, s, dir, nil).wantServed(5, "headline")
		w.edit(config("blog", "subtitle", ""))
		w.wantServed(6, "subtitle")
	})
}

func TestRefusedRollbacks(t *testing.T) {
	t.Parallel()
	name := "title"
	w := newWorld(t, newEmbedded(t), t.TempDir(), func(d *controllers.Deps) {
		d.Env = func(string) (string, bool) { return name, name != "" }
	})
	w.edit(config("blog", "'${env:FIELD}'", ""))
	id := w.register()
	w.edit(config("blog", "headline", ""))
	w.eventuallyServed(2)
	if _, err := w.RollBack(t.Context(), id, 7); !errors.Is(err, system.ErrNoGeneration) || errs.KindOf(err) != errs.NotFound {
		t.Errorf("none: %v", err)
	}
	if _, err := w.RollBack(t.Context(), "650102030405060708090a0b", 1); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("no project: %v", err)
	}
	name = "" // what it refers to is no longer there
	var bad *project.ConfigError
	if _, err := w.RollBack(t.Context(), id, 1); !errors.As(err, &bad) || !strings.Contains(err.Error(), "FIELD") {
		t.Errorf("one that does not compile: %v", err)
	}
	if head, err := w.Generations.Head(t.Context(), id); head.Number != 2 || err != nil || w.served("blog") != 2 {
		t.Errorf("generation %d is the latest, %d is served, %v", head.Number, w.served("blog"), err)
	}
}

// An unchanged pass over a project that is rolled back writes nothing.
func TestARollbackIsIdempotent(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	id := w.twoGenerations()
	w.rollBack(id, 1)
	w.wantConditions(id, map[string]string{status.Ready: "True Serving"})
	before, _ := w.Registry.Get("blog")
	state, _ := w.Board.Get(id)
	w.store.take()
	for range 3 {
		if err := w.reconcile("project", id); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := w.Registry.Get("blog"); after != before {
		t.Error("it was swapped in again")
	}
	if calls := w.store.take(); len(calls) > 0 {
		t.Errorf("calls: %v", calls)
	}
	again, _ := w.Board.Get(id)
	diff(t, "state", state, again)
}

// Who had a generation served is in the history.
func TestHistory(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	id := w.twoGenerations()
	w.rollBack(id, 1)
	if err := w.Reload(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.ProjectsDir, "blog")); err != nil {
		t.Fatal(err)
	}
	head, err := w.Generations.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range head.History {
		got = append(got, g.By.Kind)
	}
	diff(t, "by", []string{"service", "files", "service", "service"}, got)
	w.rollBack(id, 1) // the directory need not be there
	w.wantServed(5, "title")
}
