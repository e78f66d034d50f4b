package controllers_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

func (w *world) told(id string) []string {
	w.Helper()
	events, err := w.models.Events.List(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s x%d", e.Type, e.Reason, e.Count))
	}
	return out
}

// wantTold waits for events, whatever the order in which those of several concerns come.
func (w *world) wantTold(id string, want map[string]int) {
	w.Helper()
	eventually(w.T, func() string {
		got := map[string]int{}
		for _, e := range w.told(id) {
			got[e]++
		}
		return cmp.Diff(want, got)
	})
}

// What changes is told once, whichever instances find it; what stays is not told again.
func TestEventsOfAProject(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		dir := t.TempDir()
		telling := func(d *controllers.Deps) { d.Events = system.New(s, system.Options{Now: d.Now}).Events }
		a, b := newWorld(t, s, dir, telling), newWorld(t, s, dir, telling)
		a.edit(config("blog", "title", ""))
		id := a.register()
		want := map[string]int{"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1}
		a.wantTold(id, want)
		b.eventuallyServed(1)

		a.edit(broken)
		for _, w := range []*world{a, b} {
			w.wantConditions(id, map[string]string{status.ConfigValid: "False Invalid"})
		}
		want["Warning Invalid x1"] = 1
		a.wantTold(id, want)

		a.edit(config("blog", "headline", ""))
		for _, w := range []*world{a, b} {
			w.eventuallyServed(2)
		}
		want["Normal Loaded x1"], want["Normal Serving x1"] = 1, 2
		a.wantTold(id, want)

		a.rollBack(id, 1)
		b.eventuallyServed(3)
		want["Normal RolledBack x1"] = 1
		a.wantTold(id, want)

		for _, enabled := range []bool{false, true} {
			if _, err := a.Update(t.Context(), id, bson.D{{Key: "enabled", Value: enabled}}); err != nil {
				t.Fatal(err)
			}
			if !enabled {
				want["Normal Disabled x1"] = 1
				a.wantTold(id, want)
			}
		}
		delete(want, "Normal Enabled x1")
		want["Normal Enabled x2"] = 1
		a.wantTold(id, want)

		c := newWorld(t, s, dir, telling) // a restart
		c.wantConditions(id, map[string]string{status.Ready: "True Serving"})
		s.take()
		for _, w := range []*world{a, b, c} { // passes over what has not changed
			for _, name := range []string{"project", "index", "job", "event"} {
				if err := w.reconcile(name, id); err != nil {
					t.Fatal(err)
				}
			}
		}
		if calls := s.take(); len(calls) > 0 {
			t.Errorf("calls: %v", calls)
		}
		a.wantTold(id, want)

		if err := a.Unregister(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b.eventuallyServed(0)
		a.wantTold(id, map[string]int{})
	})
}

// How searches stand and how their vectors do are told once each, however often they are looked at.
func TestEventsOfSearches(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) { d.Events = system.New(s, system.Options{Now: d.Now}).Events })
		_, id := w.serve(searched("    search: [{name: main, mode: text, fields: [title]}, {name: means, mode: vector, vector: {group: texts, fields: [title]}}]\n"))
		w.wantConditions(id, map[string]string{status.SearchReady: "True Indexed", status.EmbeddingReady: "False GroupOffline"})
		for range 3 {
			if err := w.reconcile("search", id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Update(t.Context(), id, bson.D{{Key: "enabled", Value: false}}); err != nil { // which is told behind all of it
			t.Fatal(err)
		}
		w.wantTold(id, map[string]int{
			"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1, "Normal Indexed x1": 1, "Warning GroupOffline x1": 1, "Normal Disabled x1": 1,
		})
	})
}
