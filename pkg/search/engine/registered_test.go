package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestRegisteredAnew serves a namespace that was registered anew, whose generations begin again: its searches are those of the new
// config, and requests from before bring nothing of the old one back.
func TestRegisteredAnew(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		w.project.ID, w.project.Generation = "a", 6
		if err := w.engine.Serve(w.project); err != nil {
			t.Fatal(err)
		}
		w.put("articles", doc(1, "title", "red fox"))
		w.soon("main", "fox", []int{1})
		before := w.project
		again := func(id, name string) {
			w.project = w.load(before.Namespace, strings.ReplaceAll(articles, "main", name))
			w.project.ID, w.project.Generation = id, 1
			if err := w.engine.Serve(w.project); err != nil {
				t.Fatal(err)
			}
			w.soon(name, "fox", []int{1})
		}
		again("b", "other")
		again("0", "third") // another instance registered it, whose clock is behind
		if err := w.engine.Forget(before.Namespace); err != nil {
			t.Fatal(err)
		}
		w.put("articles", doc(1, "title", "red fox"))
		if _, err := w.look("articles", "third", "fox"); !errors.Is(err, errs.ErrProjectNotFound) {
			t.Errorf("a search of a project that is served no more: %v", err)
		}
		if names := engine.IndexNames(w.engine); len(names) != 0 {
			t.Errorf("indexes of a project that is served no more: %q", names)
		}
		again("c", "fourth")
	})
}

// TestSearchWhileItsConfigGoes has a search be asked whose collection has none any more by then: it is told so at once.
func TestSearchWhileItsConfigGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "red fox"))
	w.soon("main", "fox", []int{1})
	c := w.project.Collections["articles"]
	words, err := search.Parse("fox")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // of a request
	defer cancel()
	q := engine.Query{Project: w.project, Collection: c, Search: c.Search("main"), Text: "fox", Words: words}
	err = engine.SearchLate(ctx, w.engine, q, func() {
		if err := w.engine.Forget(w.project.Namespace); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, engine.ErrBuilding) || ctx.Err() != nil {
		t.Errorf("%v, and its time: %v", err, ctx.Err())
	}
}
