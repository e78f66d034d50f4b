package controllers_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/project"
)

// TestR9AnyEvents is row R9 of the fault list: whether the events of changed files are lost, come again and again, or late and in
// any order, in the end each project is served as its files are.
func TestR9AnyEvents(t *testing.T) {
	names := []string{"blog", "desk", "shop"}
	for mode, tc := range map[string]struct {
		resync  time.Duration
		deliver func(w *world, changed []string) // the keys of all changes, in their order
	}{
		"lost": {10 * time.Millisecond, func(*world, []string) {}},
		"again and again": {time.Hour, func(w *world, changed []string) {
			for _, id := range changed {
				for range 5 {
					if err := w.Manager.Trigger("project", id); err != nil {
						w.Error(err)
					}
				}
			}
		}},
		"in any order, some lost": {50 * time.Millisecond, func(w *world, changed []string) {
			rand.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
			for _, id := range changed[:len(changed)/2] {
				if err := w.Manager.Trigger("project", id); err != nil {
					w.Error(err)
				}
			}
		}},
	} {
		t.Run(mode, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *spy) {
				dir := t.TempDir()
				file := func(name string) string { return filepath.Join(dir, name, "project.yaml") }
				for _, name := range names {
					write(t, file(name), config(name, "title", ""))
				}
				w := newWorld(t, s, dir, func(d *controllers.Deps) {
					d.Resync = tc.resync
					d.Watcher = dirwatch.New(dirwatch.Options{ // tells of nothing
						Logger: slog.New(slog.DiscardHandler), Debounce: time.Hour, MaxDelay: time.Hour, Poll: time.Hour,
					})
				})
				ids := map[string]string{}
				for _, name := range names {
					reg, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: name}})
					if err != nil {
						t.Fatal(err)
					}
					ids[name] = reg.ID.Hex()
				}
				var changed []string
				for n := range 20 {
					name := names[n%2]
					content := config(name, fmt.Sprint("field", n), "")
					if rand.IntN(3) == 0 {
						content = "namespace: [half"
					}
					write(t, file(name), content)
					changed = append(changed, ids[name])
				}
				write(t, file("blog"), config("blog", "last", ""))
				write(t, file("desk"), "namespace: [half")
				if err := os.RemoveAll(filepath.Dir(file("shop"))); err != nil {
					t.Fatal(err)
				}
				tc.deliver(w, append(changed, ids["blog"], ids["desk"], ids["shop"]))
				loader := &project.Loader{Env: func(string) (string, bool) { return "", false }, Scripts: project.NewScripts(nil)}
				want, err := controllers.Check(loader, dir, "blog")
				if err != nil {
					t.Fatal(err)
				}
				w.wantConditions(ids["desk"], map[string]string{"ConfigValid": "False Invalid", "OutOfDate": "True ChangedOnDisk"})
				w.wantConditions(ids["shop"], map[string]string{"ConfigValid": "False Unreadable", "OutOfDate": "True ChangedOnDisk"})
				w.wantConditions(ids["blog"], map[string]string{"ConfigValid": "True Loaded", "OutOfDate": "False UpToDate", "Ready": "True Serving"})
				eventually(t, func() string {
					p, err := w.Registry.Get("blog")
					if err != nil {
						return err.Error()
					}
					if p.Revision != want.Revision {
						return "blog is not served as its files are"
					}
					if st, _ := w.Board.Get(ids["blog"]); st.ObservedGeneration != p.Generation {
						return fmt.Sprintf("observed generation %d of %d", st.ObservedGeneration, p.Generation)
					}
					return ""
				})
				if w.served("desk") == 0 || w.served("shop") != 1 {
					t.Errorf("the last good ones are not served: %d, %d", w.served("desk"), w.served("shop"))
				}
			})
		})
	}
}
