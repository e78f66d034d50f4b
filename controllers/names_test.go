package controllers_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
)

// called is config, with another name for its collection.
func called(name, renamedFrom, indexes string) string {
	text := strings.Replace(config("blog", "title", indexes), "name: articles", "name: "+name, 1)
	if renamedFrom != "" {
		text = strings.Replace(text, "    fields:", "    renamedFrom: "+renamedFrom+"\n    fields:", 1)
	}
	return text
}

// counted gives how many records an instance has in a collection; -1: it does not serve that.
func (w *world) counted(name string) int64 {
	w.Helper()
	p, err := w.Registry.Get("blog")
	if err != nil || p.Collections[name] == nil {
		return -1
	}
	n, err := w.store.Database("svc_blog").Collection(p.Collections[name].StoredName()).Count(w.Context(), nil, 0)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// A collection keeps its indexes under another name: none is built or dropped.
func TestIndexesOfARenamedCollection(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), watching(controllers.WatchOff))
		w.edit(called("articles", "", uniqueTitle))
		id := w.register()
		w.insert("a", "b")
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		s.take()
		for _, c := range [][2]string{{"posts", "articles"}, {"posts", ""}, {"articles", "posts"}} {
			w.edit(called(c[0], c[1], uniqueTitle))
			if err := w.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile("index", id); err != nil {
				t.Fatal(err)
			}
			diff(t, "calls", []string(nil), s.takeIndexCalls())
			if n := w.counted(c[0]); n != 2 {
				t.Errorf("%s has %d records", c[0], n)
			}
			p, err := w.Registry.Get("blog")
			if err != nil {
				t.Fatal(err)
			}
			stats, err := w.Stats(t.Context(), p, c[0])
			if err != nil || stats.Records != 2 || stats.Name != c[0] {
				t.Errorf("%+v, %v", stats, err)
			}
			list, err := w.Indexes(t.Context(), p, c[0])
			if err != nil || len(list) != 1 || list[0].State != "ready" {
				t.Errorf("%+v, %v", list, err)
			}
		}
	})
}

// Whichever step of a rename the store fails at, or the instance ends at, the records are in reach under the one name or the other, and
// the next try or start goes on.
func TestRenameGoesOn(t *testing.T) {
	failure := errs.New(errs.Unavailable, "store_unavailable", "the store is away")
	for _, at := range []string{"svc.names", "write svc.names"} {
		for _, restart := range []bool{false, true} {
			onStores(t, func(t *testing.T, s *spy) {
				t.Helper()
				dir := t.TempDir()
				w := newWorld(t, s, dir, watching(controllers.WatchOff))
				w.edit(called("articles", "", ""))
				id := w.register()
				w.insert("a", "b")
				s.failOn(at, failure)
				w.edit(called("posts", "articles", ""))
				if err := w.Reload(t.Context(), id, true); !errors.Is(err, failure) {
					t.Errorf("%s: %v", at, err)
				}
				if n := w.counted("articles"); n != 2 || w.served("blog") != 1 {
					t.Errorf("%s: meanwhile there are %d records, generation %d", at, n, w.served("blog"))
				}
				w.insert("c") // by who has the name before
				s.failOn(at, nil)
				if restart {
					w = newWorld(t, s, dir, nil)
				} else if err := w.Reload(t.Context(), id, true); err != nil {
					t.Error(err)
				}
				if n := w.counted("posts"); n != 3 || w.served("blog") != 2 {
					t.Errorf("%s: there are %d records, generation %d", at, n, w.served("blog"))
				}
				if err := w.Unregister(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				w.register() // the names go with the records, not with the registration
				if n := w.counted("posts"); n != 3 {
					t.Errorf("%s: registered again, there are %d records", at, n)
				}
			})
		}
	}
}

// Instances that rename at once agree on where the records are.
func TestRenameAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		var all []*world
		for range 4 {
			all = append(all, newWorld(t, s, dir, nil))
		}
		all[0].edit(called("articles", "", ""))
		all[0].register()
		for _, w := range all {
			w.eventuallyServed(1)
		}
		all[0].insert("a", "b")
		for i, c := range [][2]string{{"posts", "articles"}, {"stories", "posts"}, {"articles", "stories"}} {
			all[0].edit(called(c[0], c[1], ""))
			for _, w := range all {
				w.eventuallyServed(int64(i + 2))
				if n := w.counted(c[0]); n != 2 {
					t.Errorf("%s has %d records", c[0], n)
				}
			}
		}
	})
}

// What a plan tells of a rename: how many records come along, and how many of an earlier config's are covered by them.
func TestPlanOfARename(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), watching(controllers.WatchOff))
		w.edit(called("articles", "", ""))
		id := w.register()
		w.insert("a", "b")
		w.edit(called("posts", "articles", ""))
		detail := "was articles; its records, indexes and files come along; records: 2"
		p := w.plan(id, nil)
		if it := p.Items[0]; it.Kind != "collection" || it.Object != "posts" || it.Action != "rename" || it.Risk != "safe" || it.Detail != detail {
			t.Errorf("%+v", p.Items)
		}
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteAll(t.Context(), s.Database("svc_blog").Collection("posts"), store.Op{Kind: store.Insert, Doc: raw}); err != nil {
			t.Fatal(err)
		}
		covering := w.plan(id, nil)
		detail += "; out of reach are then those that the store has by the new name from an earlier config: 1"
		if it := covering.Items[0]; it.Risk != "destructive" || it.Detail != detail || covering.Hash != p.Hash {
			t.Errorf("%+v", covering)
		}
		err = w.ReloadPlanned(t.Context(), id, covering.Hash, "breaking")
		w.wantRefused(err, "plan_above_risk", 1)
		if err := w.ReloadPlanned(t.Context(), id, covering.Hash, "destructive"); err != nil || w.counted("posts") != 2 {
			t.Errorf("%v, %d records", err, w.counted("posts"))
		}
		if after := w.plan(id, nil); !after.Empty {
			t.Errorf("afterwards: %+v", after.Items)
		}
	})
}

// An index that is renamed stays as it is, unless its key changes, too.
func TestRenamedIndex(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), watching(controllers.WatchOff))
		w.edit(called("articles", "", uniqueTitle))
		id := w.register()
		w.insert("a", "b")
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		s.take()
		for _, step := range []struct {
			indexes, name string
			calls         []string
		}{
			{"{name: u, key: [title], unique: true, renamedFrom: t}", "u", nil},
			{"{name: u, key: [title], unique: true}", "u", nil},
			{"{name: v, key: [title], unique: true}", "v", nil},
			{"{name: w, key: ['-title'], renamedFrom: v}", "w", []string{"drop articles.svc_t", "create articles.svc_w"}},
		} {
			w.edit(called("articles", "", step.indexes))
			if err := w.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile("index", id); err != nil {
				t.Fatal(err)
			}
			diff(t, step.indexes, step.calls, s.takeIndexCalls())
			w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
			p, err := w.Registry.Get("blog")
			if err != nil {
				t.Fatal(err)
			}
			list, err := w.Indexes(t.Context(), p, "articles")
			if err != nil || len(list) != 1 || list[0].Name != step.name || list[0].State != "ready" {
				t.Errorf("%s: %+v, %v", step.indexes, list, err)
			}
			stats, err := w.Stats(t.Context(), p, "articles")
			if err != nil || len(stats.Indexes) != 1 || stats.Indexes[0].Name != step.name {
				t.Errorf("%s: %+v, %v", step.indexes, stats.Indexes, err)
			}
		}
	})
}

// A generation in which two collections had their own records that have one's by now is not served again: nothing changes.
func TestRollbackOverARename(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), watching(controllers.WatchOff))
		both := called("articles", "", "") + "  - {name: posts, fields: [{name: title, type: string}], permissions: {public: {methods: {}}, user: {methods: {}}}}\n"
		w.edit(both)
		id := w.register()
		w.insert("a", "b")
		for _, c := range [][2]string{{"articles", ""}, {"posts", "articles"}} {
			w.edit(called(c[0], c[1], ""))
			if err := w.Reload(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.RollBack(t.Context(), id, 1)
		w.wantRefused(err, "collection_renamed", 3)
		if n := w.counted("posts"); n != 2 {
			t.Errorf("there are %d records", n)
		}
		w.rollBack(id, 2)
		if n := w.counted("articles"); n != 2 {
			t.Errorf("rolled back, there are %d records", n)
		}
	})
}
