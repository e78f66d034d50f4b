package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/system"
)

// TestASecondReconcileChangesNothing runs every controller again over a project that is served, and over one whose files
// have become invalid: nothing is written, nothing is told, and no condition moves, nor its time.
func TestASecondReconcileChangesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), func(d *controllers.Deps) {
			d.Watch, d.Events = controllers.WatchReload, system.New(s, system.Options{Now: d.Now}).Events
		})
		served := w.withJobs(`{type: javascript, file: tick.js, cron: "@yearly"}`)
		_, id := w.serve(served)
		again := func(what string, fails string) {
			t.Helper()
			before, _ := w.Board.Get(id)
			told := w.told(id)
			s.take()
			for _, name := range []string{"project", "index", "job", "event"} {
				for range 2 {
					if err := w.reconcile(name, id); (err != nil) != (name == fails) {
						t.Fatalf("%s: %s: %v", what, name, err)
					}
				}
			}
			after, _ := w.Board.Get(id)
			diff(t, what+": writes", []string(nil), s.take())
			diff(t, what+": events", told, w.told(id))
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s: status (-want +got):\n%s", what, d)
			}
		}

		w.wantConditions(id, map[string]string{status.Ready: "True Serving", status.JobsScheduled: "True Scheduled"})
		w.wantTold(id, map[string]int{"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1, "Normal Scheduled x1": 1})
		again("served", "")

		w.edit(broken)
		w.wantConditions(id, map[string]string{status.ConfigValid: "False Invalid"})
		w.wantTold(id, map[string]int{
			"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1, "Normal Scheduled x1": 1, "Warning Invalid x1": 1,
		})
		again("broken files", "project")
	})
}
