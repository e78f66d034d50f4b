package controllers_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/store"
)

// drift gives the differences of the project blog, and fails when to ask for them writes anything.
func (w *world) drift() []string {
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
		detail, _, _ := strings.Cut(it.Detail, "; ")
		out = append(out, it.Action+" "+it.Kind+" "+it.Object+": "+detail)
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
		write(t, file, declared)
		diff(t, "drift in the end", []string{}, w.drift())
	})
}
