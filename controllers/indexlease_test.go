package controllers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/status"
	"github.com/svcctl/svc/pkg/store/lease"
)

// TestIndexesAreBuiltByOneInstance has another instance be at a project's indexes: this one changes none, says so, and begins when the
// other one has finished, or is gone. What needs no change needs no lease.
func TestIndexesAreBuiltByOneInstance(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{true, false} {
		name, ttl := "the other one finishes", time.Hour
		if !released {
			name, ttl = "the other one is gone", shortLease
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, s *spy) {
				t.Helper()
				w := newWorld(t, s, t.TempDir(), nil)
				held, err := lease.New(s.Database(project.DatabaseName("blog")), "another", nil).Acquire(t.Context(), "indexes", ttl)
				if err != nil {
					t.Fatal(err)
				}
				const config = "namespace: blog\ncollections:\n  - {name: articles, fields: [{name: title, type: string, index: [unique]}], permissions: {public: {methods: {}}, user: {methods: {}}}}\n"
				write(t, w.ProjectsDir+"/blog/project.yaml", config)
				reg, err := w.Register(t.Context(), bson.D{{Key: "configFile", Value: "blog"}})
				if err != nil {
					t.Fatal(err)
				}
				id := reg.ID.Hex()
				if released {
					eventually(t, func() string {
						st, _ := w.Board.Get(id)
						if c, _ := st.Condition(status.IndexesConverged); c.Message != "another instance is at the indexes" {
							return "the condition says " + c.Message
						}
						return ""
					})
					if got := w.stored("articles"); len(got) > 0 {
						t.Errorf("there are %v, and another one has the lease", got)
					}
					if err := held.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				eventually(t, func() string {
					if c := w.condition(id, status.IndexesConverged); c != "True Converged" {
						return "the indexes are " + c
					}
					return ""
				})
				if got := w.stored("articles"); len(got) != 1 {
					t.Errorf("there are %v", got)
				}
				if err := held.Renew(t.Context()); err == nil {
					t.Error("the other one has the lease still")
				}
			})
		})
	}
}

// TestSyncWaitsForAnotherInstance has another instance be at the indexes that somebody wants made now: they are not told to be
// as declared before they are.
func TestSyncWaitsForAnotherInstance(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		p, id := w.serve(config("blog", "title", `{name: a, key: [title]}`) + "mode: observe\n")
		w.wantConditions(id, map[string]string{status.IndexesConverged: "False Drifted"})
		held, err := lease.New(s.Database(project.DatabaseName("blog")), "another", nil).Acquire(t.Context(), "indexes", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			left *api.Drift
			err  error
		}
		done := make(chan answer, 1)
		go func() {
			left, err := w.SyncIndexes(t.Context(), p, "")
			done <- answer{left, err}
		}()
		w.wantConditions(id, map[string]string{status.IndexesConverged: "Unknown Progressing"})
		select {
		case got := <-done:
			t.Errorf("it ended with %+v while another instance was at it", got)
		default:
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.SyncIndexes(ctx, p, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("one that is given up: %v", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.err != nil || len(got.left.Items)+len(got.left.Pending) > 0 {
			t.Errorf("it ended with %+v", got)
		}
		diff(t, "indexes", 1, len(w.stored("articles")))
	})
}

// shortLease is the time of a lease whose holder is gone.
const shortLease = 10 * time.Millisecond
