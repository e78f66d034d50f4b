package controllers_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store"
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
		{"create", nil, `{name: t, key: [title]}, {key: [-title]}`, []string{"create articles.svc_t", "create articles.svc_title_-1"},
			[]store.Index{index("svc_t", "title"), index("svc_title_-1", "-title")}},
		{"create unique and sparse", nil, `{name: t, key: [title], unique: true, sparse: true}`, []string{"create articles.svc_t"},
			[]store.Index{unique(sparse(index("svc_t", "title")))}},
		{"there", []store.Index{unique(index("svc_t", "title", "-createdAt"))}, `{name: t, key: [title, -createdAt], unique: true}`, nil,
			[]store.Index{unique(index("svc_t", "title", "-createdAt"))}},
		{"other keys", []store.Index{index("svc_t", "title")}, `{name: t, key: [title, createdAt]}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{index("svc_t", "title", "createdAt")}},
		{"other order of keys", []store.Index{index("svc_t", "title", "createdAt")}, `{name: t, key: [createdAt, title]}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{index("svc_t", "createdAt", "title")}},
		{"other direction", []store.Index{index("svc_t", "title")}, `{name: t, key: [-title]}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{index("svc_t", "-title")}},
		{"unique now", []store.Index{index("svc_t", "title")}, `{name: t, key: [title], unique: true}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{unique(index("svc_t", "title"))}},
		{"no longer unique", []store.Index{unique(index("svc_t", "title"))}, `{name: t, key: [title]}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{index("svc_t", "title")}},
		{"sparse now", []store.Index{index("svc_t", "title")}, `{name: t, key: [title], sparse: true}`,
			[]string{"drop articles.svc_t", "create articles.svc_t"}, []store.Index{sparse(index("svc_t", "title"))}},
		{"renamed", []store.Index{index("svc_a", "title")}, `{name: b, key: [title]}`,
			[]string{"drop articles.svc_a", "create articles.svc_b"}, []store.Index{index("svc_b", "title")}},
		{"names swapped", []store.Index{index("svc_a", "title"), index("svc_b", "createdAt")}, `{name: a, key: [createdAt]}, {name: b, key: [title]}`,
			[]string{"drop articles.svc_a", "drop articles.svc_b", "create articles.svc_a", "create articles.svc_b"},
			[]store.Index{index("svc_a", "createdAt"), index("svc_b", "title")}},
		{"undeclared", []store.Index{index("svc_a", "title"), index("svc_b", "createdAt")}, `{name: b, key: [createdAt]}`,
			[]string{"drop articles.svc_a"}, []store.Index{index("svc_b", "createdAt")}},
		{"foreign", []store.Index{unique(index("mine", "title")), index("svctwo", "createdAt")}, `{name: b, key: [-title]}`,
			[]string{"create articles.svc_b"}, []store.Index{unique(index("mine", "title")), index("svc_b", "-title"), index("svctwo", "createdAt")}},
		{"foreign, nothing declared", []store.Index{index("mine", "title")}, ``, nil, []store.Index{index("mine", "title")}},
		{"foreign with the same keys", []store.Index{index("mine", "title")}, `{name: t, key: [title], unique: true}`,
			[]string{"create articles.svc_t"}, []store.Index{index("mine", "title"), unique(index("svc_t", "title"))}},
		{"foreign and equal", []store.Index{unique(index("mine", "title"))}, `{name: t, key: [title], unique: true}`, nil,
			[]store.Index{unique(index("mine", "title"))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *spy) {
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
		w := newWorld(t, s, t.TempDir(), nil)
		coll := s.Database("svc_blog").Collection("articles")
		ids := insert(t, coll, bson.D{{Key: "title", Value: "a"}}, bson.D{{Key: "title", Value: "b"}}, bson.D{{Key: "title", Value: "a"}})
		p, id := w.serve(config("blog", "title", `{name: t, key: [title], unique: true}, {name: z, key: [-title]}`))
		why := "records share a value of the unique index on title, such as " + ids[0].Hex() + ", " + ids[2].Hex()
		calls := []string{"create articles.svc_t", "create articles.svc_z"}
		for range 2 { // it is tried again each time
			if d := cmp.Diff(calls, s.takeIndexCalls()[:len(calls)]); d != "" {
				t.Error(d)
			}
			calls = calls[:1]
			w.wantConditions(id, map[string]string{status.IndexesConverged: "False UniqueViolation"})
			state, _ := w.Board.Get(id)
			c, _ := state.Condition(status.IndexesConverged)
			diff(t, "message", "articles: "+why, c.Message)
			diff(t, "indexes", []string{"t title failed: " + why, "z -title ready"}, w.states(p))
			if err := w.reconcile("index", id); err != nil {
				t.Fatal(err)
			}
		}
		if w.count("index", "requeue_after") < 3 || w.count("index", "success") > 0 {
			t.Error("not every run asked to be run again")
		}

		remove(t, coll, ids[2])
		if err := w.reconcile("index", id); err != nil {
			t.Fatal(err)
		}
		w.wantConditions(id, map[string]string{status.IndexesConverged: "True Converged"})
		diff(t, "indexes", []string{"t title ready", "z -title ready"}, w.states(p))
	})
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
