package controllers_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/system"
)

// A restore that was left, and has been ended, is told to the project whose records it was about, and to the one whose run it was; nobody is told where neither is registered.
func TestEventsOfRestoresThatWereLeft(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, newEmbedded(t), dir, func(d *controllers.Deps) { d.Events = system.New(d.Store, system.Options{Now: d.Now}).Events })
	ids := map[string]string{}
	for _, name := range []string{"blog", "copy"} {
		write(t, filepath.Join(dir, name, "project.yaml"), config(name, "title", ""))
		reg, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: name}})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = reg.ID.Hex()
	}
	of := func(namespace, run string, forward bool) snapshot.Ended {
		e := snapshot.Ended{Project: &project.Project{Namespace: namespace}, Run: snapshot.Run{Namespace: run, ID: "run"}, Snapshot: "snap", Forward: forward}
		if forward {
			e.Safety = "safety"
		}
		return e
	}
	w.RestoreEnded(t.Context(), of("blog", "blog", true))
	w.RestoreEnded(t.Context(), of("copy", "blog", false))
	w.RestoreEnded(t.Context(), of("gone", "gone", false))
	begun := map[string]int{"Normal Enabled x1": 1, "Normal Serving x1": 1, "Normal Converged x1": 1, "Warning RestoreUndone x1": 1}
	w.wantTold(ids["copy"], begun)
	begun["Normal Restored x1"] = 1
	w.wantTold(ids["blog"], begun)
	events, err := w.models.Events.List(t.Context(), ids["blog"])
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range events {
		if strings.HasPrefix(e.Reason, "Restore") {
			said = append(said, e.Object+": "+e.Message)
		}
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"snapshot/snap: a restore that was left", "the snapshot safety has what was before", "restore into copy: ", "as they were before"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said: %s", want, all)
		}
	}
}
