package controllers_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// serve registers the project blog with that config, and returns when its indexes have been looked at.
func (w *world) serve(config string) (p *project.Project, id string) {
	w.Helper()
	write(w.T, filepath.Join(w.ProjectsDir, "blog", "project.yaml"), config)
	w.store.take()
	reg, err := w.Register(w.Context(), bson.D{{Key: "configFile", Value: "blog"}})
	if err != nil {
		w.Fatal(err)
	}
	if p, err = w.Registry.Get("blog"); err != nil {
		w.Fatal(err)
	}
	eventually(w.T, func() string {
		if c := w.condition(reg.ID.Hex(), status.IndexesConverged); c == "Unknown Progressing" {
			return "the indexes are " + c
		}
		return ""
	})
	return p, reg.ID.Hex()
}

func index(name string, keys ...string) store.Index {
	ix := store.Index{Name: name}
	for _, k := range keys {
		path, desc := strings.CutPrefix(k, "-")
		ix.Keys = append(ix.Keys, store.IndexKey{Path: path, Desc: desc})
	}
	return ix
}

func unique(ix store.Index) store.Index {
	ix.Unique = true
	return ix
}

func sparse(ix store.Index) store.Index {
	ix.Sparse = true
	return ix
}

func TestIndexesConverge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		actual  []store.Index
		desired string
		calls   []string
		want    []store.Index
	}{
		{"nothing", nil, ``, nil, nil},
		{
			"create", nil, `{name: t, key: [title]}, {key: [-title]}`,
			[]string{"create articles.svc_t", "create articles.svc_title_-1"},
			[]store.Index{index("svc_t", "title"), index("svc_title_-1", "-title")},
		},
		{
			"create unique and sparse", nil, `{name: t, key: [title], unique: true, sparse: true}`,
			[]string{"create articles.svc_t"},
			[]store.Index{unique(sparse(index("svc_t", "title")))},
		},
		{
			"there",
			[]store.Index{unique(index("svc_t", "title", "-createdAt"))},
			`{name: t, key: [title, -createdAt], unique: true}`, nil,
			[]store.Index{unique(index("svc_t", "title", "-createdAt"))},
		},
		{
			"other keys",
			[]store.Index{index("svc_t", "title")},
			`{name: t, key: [title, createdAt]}`,
			[]string{"create articles.svc_t~c21c97b7", "drop articles.svc_t"},
			[]store.Index{index("svc_t~c21c97b7", "title", "createdAt")},
		},
		{
			"other keys once more",
			[]store.Index{index("svc_t~a1102021", "-title")},
			`{name: t, key: [title, createdAt]}`,
			[]string{"create articles.svc_t", "drop articles.svc_t~a1102021"},
			[]store.Index{index("svc_t", "title", "createdAt")},
		},
		{
			"successor ready, old one still there",
			[]store.Index{index("svc_t", "title"), index("svc_t~c21c97b7", "title", "createdAt")},
			`{name: t, key: [title, createdAt]}`,
			[]string{"drop articles.svc_t"},
			[]store.Index{index("svc_t~c21c97b7", "title", "createdAt")},
		},
		{
			"undeclared under its second name",
			[]store.Index{index("svc_t~a1102021", "-title")},
			``,
			[]string{"drop articles.svc_t~a1102021"},
			nil,
		},
		{
			"other order of keys",
			[]store.Index{index("svc_t", "title", "createdAt")},
			`{name: t, key: [createdAt, title]}`,
			[]string{"create articles.svc_t~cf1e6bdd", "drop articles.svc_t"},
			[]store.Index{index("svc_t~cf1e6bdd", "createdAt", "title")},
		},
		{
			"other direction",
			[]store.Index{index("svc_t", "title")},
			`{name: t, key: [-title]}`,
			[]string{"create articles.svc_t~a1102021", "drop articles.svc_t"},
			[]store.Index{index("svc_t~a1102021", "-title")},
		},
		{
			"unique now",
			[]store.Index{index("svc_t", "title")},
			`{name: t, key: [title], unique: true}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"},
			[]store.Index{unique(index("svc_t", "title"))},
		},
		{
			"no longer unique",
			[]store.Index{unique(index("svc_t", "title"))},
			`{name: t, key: [title]}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"},
			[]store.Index{index("svc_t", "title")},
		},
		{
			"sparse now",
			[]store.Index{index("svc_t", "title")},
			`{name: t, key: [title], sparse: true}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"},
			[]store.Index{sparse(index("svc_t", "title"))},
		},
		{
			"renamed",
			[]store.Index{index("svc_a", "title")},
			`{name: b, key: [title]}`,
			nil,
			[]store.Index{index("svc_a", "title")},
		},
		{
			"names swapped",
			[]store.Index{index("svc_a", "title"), index("svc_b", "createdAt")},
			`{name: a, key: [createdAt]}, {name: b, key: [title]}`,
			nil,
			[]store.Index{index("svc_a", "title"), index("svc_b", "createdAt")},
		},
		{
			"renamed, and its name taken",
			[]store.Index{index("svc_a", "title")},
			`{name: b, key: [title], renamedFrom: c}, {name: a, key: [createdAt]}`,
			[]string{"create articles.svc_a~1fa8e931"},
			[]store.Index{index("svc_a", "title"), index("svc_a~1fa8e931", "createdAt")},
		},
		{
			"undeclared",
			[]store.Index{index("svc_a", "title"), index("svc_b", "createdAt")},
			`{name: b, key: [createdAt]}`,
			[]string{"drop articles.svc_a"},
			[]store.Index{index("svc_b", "createdAt")},
		},
		{
			"foreign",
			[]store.Index{unique(index("mine", "title")), index("svctwo", "createdAt")},
			`{name: b, key: [-title]}`,
			[]string{"create articles.svc_b"},
			[]store.Index{unique(index("mine", "title")), index("svc_b", "-title"), index("svctwo", "createdAt")},
		},
		{"foreign, nothing declared", []store.Index{index("mine", "title")}, ``, nil, []store.Index{index("mine", "title")}},
		{
			"foreign with the same keys",
			[]store.Index{index("mine", "title")},
			`{name: t, key: [title], unique: true}`,
			[]string{"create articles.svc_t"},
			[]store.Index{index("mine", "title"), unique(index("svc_t", "title"))},
		},
		{
			"foreign and equal",
			[]store.Index{unique(index("mine", "title"))},
			`{name: t, key: [title], unique: true}`, nil,
			[]store.Index{unique(index("mine", "title"))},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *spy) {
				t.Helper()
				w := newWorld(t, s, t.TempDir(), nil)
				coll := s.Database("svc_blog").Collection("articles")
				for _, ix := range tc.actual {
					if err := coll.CreateIndex(t.Context(), ix); err != nil {
						t.Fatal(err)
					}
				}
				_, id := w.serve(config("blog", "title", tc.desired))
				for _, calls := range [][]string{tc.calls, nil} { // the second run finds nothing to do
					diff(t, "calls", calls, s.takeIndexCalls())
					got, err := coll.Indexes(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" {
						t.Errorf("indexes (-want +got):\n%s", d)
					}
					w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
					if err := w.reconcile("index", id); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// states gives "name state" for each index, and the message where there is one.
func (w *world) states(p *project.Project) []string {
	w.Helper()
	list, err := w.Indexes(w.Context(), p, "articles")
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, ix := range list {
		line := ix.Name + " " + strings.Join(ix.Key, ",") + " " + ix.State
		if ix.Message != "" {
			line += ": " + ix.Message
		}
		out = append(out, line)
	}
	return out
}

func insert(t *testing.T, c store.Collection, docs ...bson.D) (ids []bson.ObjectID) {
	t.Helper()
	var ops []store.Op
	for _, d := range docs {
		oid := bson.NewObjectID()
		ids = append(ids, oid)
		raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: oid}}, d...))
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
	}
	if _, err := c.Write(t.Context(), ops, true); err != nil {
		t.Fatal(err)
	}
	return ids
}

func remove(t *testing.T, c store.Collection, oid bson.ObjectID) {
	t.Helper()
	typ, data, err := bson.MarshalValue(oid)
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.Write(t.Context(), []store.Op{{Kind: store.Delete, ID: bson.RawValue{Type: typ, Value: data}}}, true)
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
}

func TestRecordsThatViolateAnIndex(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		now, log := teststore.NewClock(time.Now()), &logLines{}
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Now, d.Logger = now.Now, slog.New(slog.NewTextHandler(log, nil)) })
		coll := s.Database("svc_blog").Collection("articles")
		ids := insert(t, coll, bson.D{{Key: "title", Value: "a"}}, bson.D{{Key: "title", Value: "b"}}, bson.D{{Key: "title", Value: "a"}})
		violated := config("blog", "title", `{name: t, key: [title], unique: true}, {name: z, key: [-title]}`)
		p, id := w.serve(violated)
		why := "records share a value of the unique index on title, such as " + ids[0].Hex() + ", " + ids[2].Hex()
		diff(t, "calls", []string{"create articles.svc_t", "create articles.svc_z"}, s.takeIndexCalls())
		// It is not tried again before its time, which doubles up to an hour.
		for _, minutes := range []int{5, 10, 20, 40, 60, 60} {
			wait := time.Duration(minutes) * time.Minute
			for _, step := range []struct {
				pass  time.Duration
				calls []string
			}{{wait - time.Second, nil}, {time.Second, []string{"create articles.svc_t"}}} {
				now.Pass(step.pass)
				if err := w.reconcile("index", id); err != nil {
					t.Fatal(err)
				}
				diff(t, fmt.Sprintf("calls within %d minutes", minutes), step.calls, s.takeIndexCalls())
				w.wantConditions(id, map[string]string{status.IndexesConverged: "False UniqueViolation"})
				state, _ := w.Board.Get(id)
				c, _ := state.Condition(status.IndexesConverged)
				diff(t, "message", "articles: "+why, c.Message)
				diff(t, "indexes", []string{"t title failed: " + why, "z -title ready"}, w.states(p))
			}
		}
		if w.count("index", "requeue_after") < 12 || w.count("index", "success") > 0 {
			t.Error("not every run asked to be run again")
		}
		diff(t, "warnings", 1, log.count("index can't be built"))
		diff(t, "built", 1, log.count("indexes built"))
		diff(t, "starts of builds", 0, log.count("is being built"))

		// A reload tries it at once, and so does another generation.
		for _, tryIt := range []func() error{
			func() error { return w.Reload(t.Context(), id, true) },
			func() error { return w.Reload(t.Context(), id, false) },
			func() error { w.edit(violated + "\n"); return nil },
		} {
			if err := tryIt(); err != nil {
				t.Fatal(err)
			}
			var calls []string
			eventually(t, func() string {
				calls = append(calls, s.takeIndexCalls()...)
				return cmp.Diff([]string{"create articles.svc_t"}, calls)
			})
			w.wantConditions(id, map[string]string{status.IndexesConverged: "False UniqueViolation"})
		}
		diff(t, "warnings", 1, log.count("index can't be built"))

		remove(t, coll, ids[2])
		if err := w.Reload(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		diff(t, "indexes", []string{"t title ready", "z -title ready"}, w.states(p))
	})
}

// What an index was declared as before goes on until records let its successor be built.
func TestARefusedIndexLeavesItsPredecessor(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		coll := s.Database("svc_blog").Collection("articles")
		ids := insert(t, coll, bson.D{{Key: "title", Value: "a"}, {Key: "n", Value: 1}}, bson.D{{Key: "title", Value: "b"}, {Key: "n", Value: 1}})
		old := unique(index("svc_t", "title"))
		if err := coll.CreateIndex(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		p, id := w.serve(strings.Replace(config("blog", "title", `{name: t, key: [n], unique: true}`), "type: string}", "type: string}\n      - {name: n, type: number}", 1))
		w.wantConditions(id, map[string]string{status.IndexesConverged: "False UniqueViolation"})
		diff(t, "indexes", []store.Index{old}, w.stored("articles"))
		diff(t, "described", []string{"t n failed: records share a value of the unique index on n, such as " + ids[0].Hex() + ", " + ids[1].Hex()}, w.states(p))

		remove(t, coll, ids[1])
		if err := w.Reload(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		got := w.stored("articles")
		if len(got) != 1 || !strings.HasPrefix(got[0].Name, "svc_t~") || got[0].Keys[0].Path != "n" || !got[0].Unique {
			t.Errorf("indexes: %+v", got)
		}
		diff(t, "described", []string{"t n ready"}, w.states(p))
	})
}

// Collections that are no longer declared keep their records, without indexes that slow their writes down or refuse some.
func TestIndexesOfUndeclaredCollectionsGo(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		coll := s.Database("svc_blog").Collection("pages")
		insert(t, coll, bson.D{{Key: "title", Value: "a"}})
		for _, ix := range []store.Index{unique(index("svc_t", "title")), index("svc_u~01234567", "n"), index("mine", "createdAt")} {
			if err := coll.CreateIndex(t.Context(), ix); err != nil {
				t.Fatal(err)
			}
		}
		_, id := w.serve(config("blog", "title", `{name: t, key: [title]}`))
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		diff(t, "calls", []string{"create articles.svc_t", "drop pages.svc_t", "drop pages.svc_u~01234567"}, s.takeIndexCalls())
		diff(t, "indexes", []store.Index{index("mine", "createdAt")}, w.stored("pages"))
		if n, err := coll.Count(t.Context(), nil, 0); n != 1 || err != nil {
			t.Errorf("%d records, %v", n, err)
		}
	})
}

// stored gives the indexes of a collection of the project blog.
func (w *world) stored(collection string) []store.Index {
	w.Helper()
	got, err := w.Store.Database("svc_blog").Collection(collection).Indexes(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return got
}

// count gives how many runs of a controller ended with a result.
func (w *world) count(name, result string) float64 {
	w.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "svc_reconcile_total" && labels["controller"] == name && labels["result"] == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestRecordsThatNoIndexCanHold(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		coll := s.Database("svc_blog").Collection("articles")
		insert(t, coll, bson.D{{Key: "title", Value: bson.A{1, 2}}, {Key: "createdBy", Value: bson.A{1, 2}}})
		_, id := w.serve(config("blog", "title", `{name: t, key: [title, createdBy]}, {name: u, key: [title]}`))
		w.wantConditions(id, map[string]string{status.IndexesConverged: "False IndexRefused"})
		diff(t, "calls", []string{"create articles.svc_t", "create articles.svc_u"}, s.takeIndexCalls()[:2])
	})
}

func TestForeignIndexesAreTold(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		coll := s.Database("svc_blog").Collection("articles")
		for _, ix := range []store.Index{index("equal", "title"), index("other", "createdAt")} {
			if err := coll.CreateIndex(t.Context(), ix); err != nil {
				t.Fatal(err)
			}
		}
		p, id := w.serve(config("blog", "title", `{name: t, key: [title]}`))
		diff(t, "indexes", []string{
			"t title ready: the index equal, made by other hands, does its work", "equal title foreign", "other createdAt foreign",
		}, w.states(p))
		if _, err := w.Indexes(t.Context(), p, "none"); !errors.Is(err, errs.ErrCollectionNotFound) {
			t.Errorf("of no collection: %v", err)
		}
		if err := coll.DropIndex(t.Context(), "equal"); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		diff(t, "indexes", []string{"t title ready", "other createdAt foreign"}, w.states(p))
	})
}

func TestAFailingStoreHoldsUpOneCollectionOnly(t *testing.T) {
	s := newEmbedded(t)
	w := newWorld(t, s, t.TempDir(), nil)
	both := strings.ReplaceAll(config("blog", "title", `{name: t, key: [title]}`), "namespace: blog\ncollections:\n", "")
	s.failOn("articles", errs.New(errs.Unavailable, "down", "down"))
	_, id := w.serve("namespace: blog\ncollections:\n" + both + strings.Replace(both, "articles", "pages", 1))
	if err := w.reconcile("index", id); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
	w.wantConditions(id, map[string]string{status.IndexesConverged: "False StoreError"})
	s.failOn("articles", nil)
	w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"}) // it is tried again by itself
	diff(t, "calls", []string{"create pages.svc_t", "create articles.svc_t"}, s.takeIndexCalls())
}

func TestIndexesOfProjectsThatAreNotServed(t *testing.T) {
	s := newEmbedded(t)
	w := newWorld(t, s, t.TempDir(), nil)
	s.take()
	if err := w.reconcile("index", "none"); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Board.Get("none"); ok || len(s.take()) > 0 {
		t.Error("something was done")
	}
}
