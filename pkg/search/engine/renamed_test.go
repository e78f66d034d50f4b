package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// rename gives a config of articles in which fields have names with renamedFrom, of the one that is served.
func (w *world) rename(collections string) *project.Project {
	w.t.Helper()
	p := w.load(w.project.Namespace, collections)
	there := func(string, string) (bool, error) { return true, nil }
	var err error
	if w.names, err = w.names.Resolve(p, w.project, there); err != nil {
		w.t.Fatal(err)
	}
	p.Generation = w.project.Generation + 1
	return p
}

func (w *world) serve(p *project.Project) {
	w.t.Helper()
	w.project = p
	if err := w.engine.Serve(p); err != nil {
		w.t.Fatal(err)
	}
}

// topics is articles whose titles are called topics, which are in the same order among the others.
var topics = strings.NewReplacer("name: title,", "name: topic, renamedFrom: title,", "[title", "[topic", "{title:", "{topic:").Replace(articles)

// noted is articles with one field more, which is not searched.
var noted = strings.Replace(articles, "      - {name: status, type: string}", "      - {name: status, type: string}\n      - {name: note, type: string}", 1)

// TestRenamedFieldOfFilter is about row S7: a filter stands for other records once its field has another name, and for the ones of before once
// that has its own again.
func TestRenamedFieldOfFilter(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, noted)
		w.put("articles", doc(1, "tags", bson.A{"word"}, "status", "published"), doc(2, "tags", bson.A{"word"}, "status", "draft"))
		w.settle()
		published := seeing(bson.D{{Key: "status", Value: "published"}})
		noDraft := seeing(bson.D{{Key: "status", Value: bson.D{{Key: "$ne", Value: "draft"}}}})
		check := func() {
			t.Helper()
			w.finds("articles", "main", "word", []int{1}, published)
			w.finds("articles", "main", "word", []int{1}, noDraft)
		}
		check()
		names := engine.IndexNames(w.engine)
		w.serve(w.rename(strings.ReplaceAll(noted, "name: status,", "name: state, renamedFrom: status,")))
		for n, status := range []string{"published", "draft"} { // by another program, as they are stored
			w.write("articles", doc(1+n, "tags", bson.A{"word"}, "status", status, "body", "snow"))
		}
		w.soon("main", "+snow", []int{1, 2})
		w.serve(w.rename(noted))
		check()
		if got := engine.IndexNames(w.engine); !slices.Equal(got, names) {
			t.Fatalf("other indexes: %q for %q", got, names)
		}

		noted := seeing(bson.D{{Key: "note", Value: bson.D{{Key: "$ne", Value: "draft"}}}})
		w.finds("articles", "main", "word", []int{1, 2}, noted)
		w.serve(w.rename(strings.Replace(articles, "name: status,", "name: note, renamedFrom: status,", 1))) // in the place of the one of before
		w.finds("articles", "main", "word", []int{1}, noted)
	})
}

// TestRenamedUnderAQuery is about row S7: who began to ask before a field had another name can't name it, and so neither hide it nor hold records
// against it.
func TestRenamedUnderAQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "secret", "body", "known"))
	w.settle()
	before := w.project.Collections["articles"]
	words, err := search.Parse("secret")
	if err != nil {
		t.Fatal(err)
	}
	q := engine.Query{Project: w.project, Collection: before, Search: before.Search("main"), Text: "secret", Words: words, Hidden: document.NewPathSet("title")}
	look := func() (int, error) {
		r, err := w.engine.Search(t.Context(), q)
		if err != nil {
			return 0, err
		}
		return r.Len(), r.Close()
	}
	if n, err := look(); err != nil || n != 0 {
		t.Fatalf("%d are found by what is hidden, %v", n, err)
	}
	w.serve(w.rename(topics))
	if n, err := look(); !errors.Is(err, engine.ErrBuilding) {
		t.Errorf("%d are found by what was hidden, %v", n, err)
	}
}

// TestRenamedWhileMade has fields get other names while an index is made of all records: it has all of them.
func TestRenamedWhileMade(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		l := &paged{Store: s, reached: make(chan struct{}), on: make(chan struct{})}
		l.left.Store(1 << 30)
		w := newWorld(t, l, articles)
		var docs []bson.D
		for n := range 600 {
			docs = append(docs, doc(n, "title", "red fox", "body", "grey wolf"))
		}
		w.put("articles", docs...)
		w.settle()
		l.left.Store(1)
		p, made := w.project, make(chan error, 1)
		go func() {
			made <- w.engine.Regenerate(t.Context(), p, p.Collections["articles"], "main", func(string, string, int64, int64) {})
		}()
		<-l.reached
		w.serve(w.rename(topics))
		close(l.on)
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		if got, err := w.look("articles", "main", "+fox"); err != nil || len(got) != 600 {
			t.Errorf("%d of 600 are found, %v", len(got), err)
		}
	})
}

// paged is a store whose reads of all records, page by page, wait before the one after left more until on is closed.
type paged struct {
	store.Store
	left        atomic.Int64
	reached, on chan struct{}
}

func (s *paged) Database(name string) store.Database { return pagedDatabase{s.Store.Database(name), s} }

type pagedDatabase struct {
	store.Database
	s *paged
}

func (d pagedDatabase) Collection(name string) store.Collection {
	return pagedCollection{d.Database.Collection(name), d.s}
}

type pagedCollection struct {
	store.Collection
	s *paged
}

func (c pagedCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if q.Limit == 256 && c.s.left.Add(-1) == -1 {
		close(c.s.reached)
		select {
		case <-c.s.on:
		case <-ctx.Done():
		}
	}
	return c.Collection.Find(ctx, q, fn)
}
