package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
)

const broken = "namespace: blog\ncollections:\n  - name: articles\n    feilds: []\n"

func watching(mode controllers.WatchMode) func(*controllers.Deps) {
	return func(d *controllers.Deps) { d.Watch = mode }
}

// edit changes the file of the project blog in one step, so that nobody reads a part of it.
func (w *world) edit(content string) {
	w.Helper()
	path := filepath.Join(w.ProjectsDir, "blog", "project.yaml")
	next := filepath.Join(w.TempDir(), "project.yaml")
	write(w.T, next, content)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Rename(next, path)); err != nil {
		w.Fatal(err)
	}
}

// register registers the project blog and gives the id of the registration.
func (w *world) register() string {
	w.Helper()
	reg, err := w.Register(w.Context(), bson.D{{Key: "configFile", Value: "blog"}, {Key: "name", Value: "Blog"}})
	if err != nil {
		w.Fatal(err)
	}
	return reg.ID.Hex()
}

func TestRegistration(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", `{name: t, key: [title]}`))
	id := w.register()
	p, err := w.Registry.Get("blog") // at once: Register has waited
	if err != nil || p.ID != id || p.Generation != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	w.wantConditions(id, map[string]string{
		status.Ready: "True Serving", status.ConfigValid: "True Loaded", status.OutOfDate: "False UpToDate", status.IndexesConverged: "True Converged",
	})
	state, _ := w.Board.Get(id)
	if state.ObservedGeneration != 1 || state.Revision != p.Revision || len(state.Problems) != 0 {
		t.Errorf("state: %+v", state)
	}
	reg, err := w.Projects.ByNamespace(t.Context(), "blog")
	if err != nil || reg.ID.Hex() != id {
		t.Errorf("%+v, %v", reg, err)
	}

	if err := w.Unregister(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Board.Get(id); ok || w.served("blog") != 0 {
		t.Error("it is still served or on the board")
	}
	if err := w.Unregister(t.Context(), id); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if n, err := w.store.Database("svc").Collection("generations").Count(t.Context(), nil, 0); n != 0 || err != nil {
		t.Errorf("%d records of generations stay, %v", n, err)
	}
	if again := w.register(); again == id || w.served("blog") != 1 {
		t.Errorf("registered again: id %s, generation %d", again, w.served("blog"))
	}
}

func TestBadConfigsAreNotRecorded(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(broken)
	for file, want := range map[string]string{
		"blog": "invalid_config", "none": "config_not_found", "/etc/passwd": "config_outside", "": "validation_failed",
	} {
		w.store.take()
		_, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: file}})
		if err == nil || errs.From(err).Code != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
		var bad *project.ConfigError
		if errors.As(err, &bad) != (file == "blog") {
			t.Errorf("%s: %T", file, err)
		} else if bad != nil && (len(bad.Problems) == 0 || bad.Problems[0].Line == 0) {
			t.Errorf("%s: no place: %v", file, bad.Problems)
		}
		if calls := w.store.take(); len(calls) > 0 {
			t.Errorf("%s: the store was written: %v", file, calls)
		}
	}
	if all, err := w.Projects.All(t.Context()); len(all) != 0 || err != nil || len(w.Board.Keys()) > 0 {
		t.Errorf("%d registrations, %v, board %v", len(all), err, w.Board.Keys())
	}
}

func TestOneOfManyRegistersANamespace(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		worlds := []*world{newWorld(t, s, dir, nil), newWorld(t, s, dir, nil)}
		worlds[0].edit(config("blog", "title", ""))
		results := make(chan error, 8)
		var wg sync.WaitGroup
		for i := range cap(results) {
			wg.Go(func() {
				_, err := worlds[i%2].Register(t.Context(), bson.D{{Key: "configFile", Value: "blog/project.yaml"}})
				results <- err
			})
		}
		wg.Wait()
		close(results)
		succeeded := 0
		for err := range results {
			switch {
			case err == nil:
				succeeded++
			case errs.KindOf(err) != errs.Conflict:
				t.Errorf("got %v, want a conflict", err)
			}
		}
		if all, err := worlds[0].Projects.All(t.Context()); succeeded != 1 || len(all) != 1 || err != nil {
			t.Errorf("%d succeeded, %d are recorded, %v", succeeded, len(all), err)
		}
	})
}

func TestBrokenEditsDoNotInterruptService(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	good := config("blog", "title", "")
	w.edit(good)
	id := w.register()
	before, err := w.Registry.Get("blog")
	if err != nil {
		t.Fatal(err)
	}
	w.wantConditions(id, map[string]string{status.Ready: "True Serving"})

	w.edit(broken)
	w.wantConditions(id, map[string]string{ // seen by itself
		status.Ready: "False Invalid", status.ConfigValid: "False Invalid", status.OutOfDate: "True ChangedOnDisk",
	})
	diff(t, "problems", []string{"project.yaml:3:5 collections[0].permissions", "project.yaml:4:5 collections[0].feilds"}, w.problems(id))
	var bad *project.ConfigError
	if err := w.Reload(t.Context(), id, true); !errors.As(err, &bad) || errs.KindOf(err) != errs.Limit {
		t.Errorf("a reload: %v", err)
	}
	after, err := w.Registry.Get("blog")
	if err != nil || after != before {
		t.Errorf("what is served has changed: %v", err)
	}

	w.edit(good)
	w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.OutOfDate: "False UpToDate"})
	if after, _ := w.Registry.Get("blog"); after != before || len(w.problems(id)) > 0 {
		t.Errorf("the same files became another generation, or problems stay: %v", w.problems(id))
	}
	w.edit(config("blog", "headline", ""))
	w.eventuallyServed(2)
	if before.Generation != 1 {
		t.Error("a generation that was served has changed")
	}
}

func TestUnchangedFilesChangeNothing(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", `{name: t, key: [title]}`))
	id := w.register()
	w.wantConditions(id, map[string]string{status.Ready: "True Serving"})
	before, _ := w.Registry.Get("blog")
	state, _ := w.Board.Get(id)
	w.store.take()
	for range 3 {
		w.edit(config("blog", "title", `{name: t, key: [title]}`)) // written, but not changed
		if err := w.Reload(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := w.Registry.Get("blog"); after != before {
		t.Error("the same files were swapped in again")
	}
	if calls := w.store.take(); len(calls) > 0 {
		t.Errorf("calls: %v", calls)
	}
	again, _ := w.Board.Get(id)
	diff(t, "state", state, again)
}

func TestWatchModes(t *testing.T) {
	for _, mode := range []controllers.WatchMode{controllers.WatchReload, controllers.WatchNotify, controllers.WatchOff} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, newEmbedded(t), t.TempDir(), watching(mode))
			w.edit(config("blog", "title", ""))
			id := w.register()
			w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.OutOfDate: "False UpToDate"})

			w.edit(broken)
			valid, outOfDate := "False Invalid", "True ChangedOnDisk"
			if mode == controllers.WatchOff {
				valid, outOfDate = "True Loaded", "False UpToDate"
				if err := w.reconcile("project", id); err != nil { // as a resync does
					t.Fatal(err)
				}
			}
			w.wantConditions(id, map[string]string{status.ConfigValid: valid, status.OutOfDate: outOfDate})

			w.edit(config("blog", "headline", ""))
			if mode == controllers.WatchReload {
				w.eventuallyServed(2)
				return
			}
			if mode == controllers.WatchNotify {
				w.wantConditions(id, map[string]string{status.ConfigValid: "True Loaded", status.OutOfDate: "True ChangedOnDisk", status.Ready: "True Serving"})
			}
			if err := w.reconcile("project", id); err != nil {
				t.Fatal(err)
			}
			if g := w.served("blog"); g != 1 {
				t.Errorf("generation %d is served without a reload", g)
			}
			w.wantConditions(id, map[string]string{status.OutOfDate: outOfDate})
			if err := w.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			if g := w.served("blog"); g != 2 {
				t.Errorf("generation %d is served after a reload", g)
			}
			w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.OutOfDate: "False UpToDate"})
		})
	}
}

// A reload of broken files is answered and over: what comes later waits to be asked for again.
func TestRefusedReloadIsNotRemembered(t *testing.T) {
	for name, breakIt := range map[string]func(w *world){
		"invalid": func(w *world) { w.edit(broken) },
		"outside": func(w *world) {
			w.Helper()
			path := filepath.Join(w.ProjectsDir, "blog", "project.yaml")
			if err := errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newEmbedded(t), t.TempDir(), watching(controllers.WatchNotify))
			w.edit(config("blog", "title", ""))
			id := w.register()
			breakIt(w)
			if err := w.Reload(t.Context(), id, true); err == nil {
				t.Fatal("the reload succeeded")
			}
			if err := os.Remove(filepath.Join(w.ProjectsDir, "blog", "project.yaml")); err != nil {
				t.Fatal(err)
			}
			w.edit(config("blog", "headline", ""))
			w.wantConditions(id, map[string]string{status.ConfigValid: "True Loaded", status.OutOfDate: "True ChangedOnDisk"})
			if g := w.served("blog"); g != 1 {
				t.Errorf("generation %d is served", g)
			}
		})
	}
}

// A reload that fails for a reason of ours is tried again as what it was.
func TestReloadOutlivesAFailingStore(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), watching(controllers.WatchNotify))
	w.edit(config("blog", "title", ""))
	id := w.register()
	w.edit(config("blog", "headline", ""))
	w.store.failOn("generations", errs.New(errs.Unavailable, "down", "down"))
	if err := w.Reload(t.Context(), id, true); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
	if g := w.served("blog"); g != 1 {
		t.Errorf("generation %d is served", g)
	}
	w.store.failOn("generations", nil)
	w.eventuallyServed(2)
}

// A change of a registration that is stored has succeeded, whatever its files are by then.
func TestChangesOfRegistrationsOutliveTheirConfig(t *testing.T) {
	for name, breakIt := range map[string]func(dir string) error{
		"a link to outside": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink(t.TempDir(), dir))
		},
		"no file":      os.RemoveAll,
		"broken files": func(dir string) error { return os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(broken), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
			w.edit(config("blog", "title", ""))
			id := w.register()
			if err := breakIt(filepath.Join(w.ProjectsDir, "blog")); err != nil {
				t.Fatal(err)
			}
			reg, err := w.Update(t.Context(), id, bson.D{{Key: "description", Value: "new"}})
			if err != nil || reg.Description != "new" {
				t.Errorf("%+v, %v", reg, err)
			}
			if c := w.condition(id, status.ConfigValid); !strings.HasPrefix(c, "False ") {
				t.Errorf("ConfigValid is %s", c)
			}
			if err := w.Reload(t.Context(), id, true); err == nil {
				t.Error("a reload does not tell")
			}
		})
	}
}

// With the watch off, files are read when a reload asks for it only.
func TestWatchOffWatchesNothing(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), func(d *controllers.Deps) {
		d.Watch, d.Watcher = controllers.WatchOff, dirwatch.New(dirwatch.Options{Logger: d.Logger, Poll: 10 * time.Millisecond})
	})
	w.edit(config("blog", "title", ""))
	w.register()
	marker := t.TempDir()
	if err := w.Watcher.Watch("marker", marker); err != nil {
		t.Fatal(err)
	}
	w.edit(config("blog", "headline", ""))
	write(t, filepath.Join(marker, "m"), "")
	ctx, stop := context.WithCancel(t.Context())
	var reported []string
	err := w.Watcher.Start(ctx, func(key string) {
		reported = append(reported, key)
		if len(reported) > 1 { // by now, each tree has been looked at
			stop()
		}
		write(t, filepath.Join(marker, "m"), "again")
	})
	stop()
	diff(t, "reported", []string{"marker", "marker"}, reported)
	if err != nil {
		t.Error(err)
	}
}

func TestReloadLater(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), watching(controllers.WatchOff))
	w.edit(config("blog", "title", ""))
	id := w.register()
	w.edit(config("blog", "headline", ""))
	if err := w.Reload(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	w.eventuallyServed(2)
}

func TestChangedNamespaceIsRefused(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", ""))
	id := w.register()
	w.edit(config("shop", "title", ""))
	w.wantConditions(id, map[string]string{status.ConfigValid: "False NamespaceChanged"})
	if w.served("blog") != 1 || w.served("shop") != 0 {
		t.Error("what is served has changed")
	}
	if err := w.Reload(t.Context(), id, true); errs.From(err).Code != "namespace_changed" || !strings.Contains(errs.From(err).Message, "shop") {
		t.Errorf("a reload: %v", err)
	}
	w.edit(config("blog", "headline", ""))
	w.eventuallyServed(2)
}

func TestMissingFiles(t *testing.T) {
	// The pass at start may be what finds the directory missing; the watcher then sees it back before it has seen it go,
	// and a later pass repairs that.
	w := newWorld(t, newEmbedded(t), t.TempDir(), func(d *controllers.Deps) { d.Resync = time.Second })
	w.edit(config("blog", "title", ""))
	id := w.register()
	dir := filepath.Join(w.ProjectsDir, "blog")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	w.wantConditions(id, map[string]string{status.ConfigValid: "False Unreadable", status.OutOfDate: "True ChangedOnDisk"})
	if w.served("blog") != 1 {
		t.Error("it is not served any more")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.OutOfDate: "False UpToDate"})
	w.edit(config("blog", "headline", "")) // it is still watched
	w.eventuallyServed(2)
}

func TestDisabling(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", ""))
	id := w.register()
	update := func(member string, value any) error {
		_, err := w.Update(t.Context(), id, bson.D{{Key: member, Value: value}})
		return err
	}
	if err := update("enabled", false); err != nil {
		t.Fatal(err)
	}
	if w.served("blog") != 0 {
		t.Error("it is still served")
	}
	w.wantConditions(id, map[string]string{
		status.Ready: "False Disabled", status.ConfigValid: "Unknown Disabled", status.OutOfDate: "", status.IndexesConverged: "",
	})
	w.edit(broken) // nobody looks
	if err := w.reconcile("project", id); err != nil {
		t.Fatal(err)
	}
	if err := update("enabled", true); err != nil { // the registration stands, whatever the files say
		t.Fatal(err)
	}
	w.wantConditions(id, map[string]string{ // the last good generation is back
		status.Ready: "False Invalid", status.ConfigValid: "False Invalid", status.OutOfDate: "True ChangedOnDisk",
	})
	w.eventuallyServed(1)
	w.edit(config("blog", "title", "")) // and is watched again
	w.wantConditions(id, map[string]string{status.Ready: "True Serving"})
}

func TestAnotherConfigFile(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	w.edit(config("blog", "title", ""))
	id := w.register()
	write(t, filepath.Join(w.ProjectsDir, "new", "project.yaml"), config("blog", "headline", ""))
	write(t, filepath.Join(w.ProjectsDir, "shop", "project.yaml"), config("shop", "headline", ""))
	for file, want := range map[string]string{"none": "config_not_found", "shop": "validation_failed"} {
		if _, err := w.Update(t.Context(), id, bson.D{{Key: "configFile", Value: file}}); errs.From(err).Code != want {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := w.Update(t.Context(), id, bson.D{{Key: "configFile", Value: "new"}}); err != nil {
		t.Fatal(err)
	}
	if g := w.served("blog"); g != 2 {
		t.Errorf("generation %d is served", g)
	}
	write(t, filepath.Join(w.ProjectsDir, "new", "project.yaml"), config("blog", "subtitle", ""))
	w.eventuallyServed(3)
}

func TestGenerationsOutliveInstances(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		a := newWorld(t, s, dir, nil)
		a.edit(config("blog", "title", ""))
		id := a.register()
		a.edit(config("blog", "headline", ""))
		a.eventuallyServed(2)

		b := newWorld(t, s, dir, nil) // another instance, or the same one after a restart
		if g := b.served("blog"); g != 2 {
			t.Errorf("generation %d is served at start, want 2", g)
		}
		b.wantConditions(id, map[string]string{status.Ready: "True Serving"})
		a.edit(config("blog", "subtitle", "")) // both see it
		a.eventuallyServed(3)
		b.eventuallyServed(3)

		a.edit(config("blog", "title", "")) // files that were served before are a generation of their own
		a.eventuallyServed(4)
		b.eventuallyServed(4)
	})
}

func TestRegistrationsReachOtherInstances(t *testing.T) {
	s, dir := newEmbedded(t), t.TempDir()
	resync := func(d *controllers.Deps) { d.Resync = 10 * time.Millisecond }
	a, b := newWorld(t, s, dir, resync), newWorld(t, s, dir, resync)
	a.edit(config("blog", "title", ""))
	for range 5 { // each time under an id of its own, while b may still serve the one before
		id := a.register()
		eventually(t, func() string {
			if p, err := b.Registry.Get("blog"); err != nil || p.ID != id {
				return fmt.Sprint("not served: ", err)
			}
			return ""
		})
		if err := a.Unregister(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	b.eventuallyServed(0)
	eventually(t, func() string { return strings.Join(b.Board.Keys(), " ") })
}

func TestStartWithWhatCannotBeServed(t *testing.T) {
	s, dir := newEmbedded(t), t.TempDir()
	a := newWorld(t, s, dir, nil)
	a.edit(config("blog", "title", ""))
	id := a.register()
	write(t, filepath.Join(dir, "shop", "project.yaml"), config("shop", "title", ""))
	if _, err := a.Register(t.Context(), bson.D{{Key: "configFile", Value: "shop"}}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []controllers.WatchMode{controllers.WatchReload, controllers.WatchNotify, controllers.WatchOff} {
		a.edit(broken)
		b := newWorld(t, s, dir, func(d *controllers.Deps) { d.Watch, d.Resync = mode, 10*time.Millisecond })
		if b.served("blog") != 1 || b.served("shop") != 1 { // what was served last, and what never broke
			t.Errorf("%s: generations %d and %d are served", mode, b.served("blog"), b.served("shop"))
		}
		b.wantConditions(id, map[string]string{
			status.Ready: "False Invalid", status.ConfigValid: "False Invalid", status.OutOfDate: "True ChangedOnDisk",
		})
		a.edit(config("blog", "title", ""))
		if mode == controllers.WatchOff { // files are read on a call only
			if err := b.Reload(t.Context(), id, true); err != nil {
				t.Error(err)
			}
		}
		b.wantConditions(id, map[string]string{status.Ready: "True Serving", status.OutOfDate: "False UpToDate"})
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "blog", "project.yaml"), config("blog", "'${env:FIELD}'", ""))
	env := func(name string) (string, bool) { return "title", name == "FIELD" }
	p, err := controllers.Check(&project.Loader{Env: env}, dir, "blog")
	if err != nil || p.Namespace != "blog" || len(p.Collections) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	var bad *project.ConfigError
	if _, err := controllers.Check(&project.Loader{Env: func(string) (string, bool) { return "", false }}, dir, "blog"); !errors.As(err, &bad) ||
		!strings.Contains(err.Error(), "project.yaml:6:16") || !strings.Contains(err.Error(), "FIELD") {
		t.Errorf("got %v", err)
	}
	if _, err := controllers.Check(&project.Loader{Env: env}, dir, "none"); errs.From(err).Code != "config_not_found" {
		t.Errorf("got %v", err)
	}
}

func TestTwoControlPlanesOnOneManager(t *testing.T) {
	w := newWorld(t, newEmbedded(t), t.TempDir(), nil)
	if _, err := controllers.New(w.Deps); err == nil {
		t.Error("a second one was added to a running manager")
	}
}

// A broken config interrupts no service, not even when the service starts with it.
func TestARestartWithBrokenFilesServesTheLastGoodGeneration(t *testing.T) {
	s, dir := newEmbedded(t), t.TempDir()
	before := newWorld(t, s, dir, nil)
	before.edit(config("blog", "title", ""))
	id := before.register()
	before.edit(broken)

	after := newWorld(t, s, dir, nil)
	if err := after.ServeRegistered(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := after.Registry.Get("blog")
	if err != nil || p.Generation != 1 || p.Collections["articles"] == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	after.wantConditions(id, map[string]string{
		status.Ready: "False Invalid", status.ConfigValid: "False Invalid", status.OutOfDate: "True ChangedOnDisk",
	})
	if len(after.problems(id)) == 0 {
		t.Error("nothing says what is wrong with the files")
	}
	after.edit(config("blog", "subtitle", ""))
	after.eventuallyServed(2)
}

// A store that can be read and not written, such as for the minute that the last write of an instance that was killed takes to
// end, keeps a start from new files, not from what was served last.
func TestAStartThatCannotWriteServesTheLastGeneration(t *testing.T) {
	s, dir := newEmbedded(t), t.TempDir()
	before := newWorld(t, s, dir, watching(controllers.WatchOff))
	before.edit(config("blog", "title", ""))
	before.register()
	before.edit(config("blog", "headline", ""))

	s.failOn("write generations", errs.New(errs.Unavailable, "down", "down"))
	after := newWorld(t, s, dir, nil)
	if p, err := after.Registry.Get("blog"); err != nil || p.Generation != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	s.failOn("write generations", nil)
	after.eventuallyServed(2)
}
