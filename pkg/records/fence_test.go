package records_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestFencedScript has a script whose run is fenced write in every way, while it may, and when another has taken over.
func TestFencedScript(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w, _ := scripted(t, s, `return null`)
		lost := errs.New(errs.Conflict, "run_lost", "taken over")
		var mu sync.Mutex
		fences, over := 0, false
		host := w.service.Host(w.project, records.Caller{Fence: func(context.Context, store.Tx) error {
			mu.Lock()
			defer mu.Unlock()
			if fences++; over {
				return lost
			}
			return nil
		}}, "job.js")
		defer host.Close()
		items := bson.D{{Key: "collection", Value: "items"}}
		record := func(title string) bson.D { return bson.D{{Key: "title", Value: title}} }
		call := func(op string, args ...any) (any, error) { return host.Call(t.Context(), "db."+op, bson.A(args)) }
		titles := func() int64 {
			t.Helper()
			n, err := w.service.Count(t.Context(), w.call("alice"), query.Where{})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, op := range []func() error{
			func() error { _, err := call("insert", items, record("a")); return err },
			func() error {
				_, err := call("update", items, record("a"), bson.D{{Key: "n", Value: int64(1)}})
				return err
			},
			func() error { _, err := call("delete", items, record("a")); return err },
			func() error {
				tx, err := call("begin")
				if err != nil {
					return err
				}
				in := append(items, bson.E{Key: "tx", Value: tx}) //nolint:gocritic // items stays as it is
				if _, err := call("insert", in, record("b")); err != nil {
					return err
				}
				_, err = call("commit", tx)
				return err
			},
		} {
			before := fences
			over = false
			if err := op(); err != nil || fences == before {
				t.Errorf("the write failed, or was not fenced: %v", err)
			}
			there := titles()
			over = true
			if err := op(); !errors.Is(err, lost) {
				t.Errorf("a write of who has been taken over: %v", err)
			}
			if n := titles(); n != there {
				t.Errorf("%d records, there were %d", n, there)
			}
		}
		before := fences
		if _, err := call("find", items, bson.D{}); err != nil || fences != before {
			t.Errorf("a read was fenced, or failed: %v", err)
		}

		// Many at once go one after the other.
		over = false
		var all sync.WaitGroup
		was := titles()
		for range 20 {
			all.Go(func() {
				if _, err := call("insert", items, record("c")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := titles(); n != was+20 {
			t.Errorf("%d records of 20 inserts", n-was)
		}
	})
}
