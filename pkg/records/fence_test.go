package records_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
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

// TestFenceThatLoses has the write of a run's record come between each transaction's beginning and its fence, once: the
// transactions run again, with a fence each time, and the script notices nothing.
func TestFenceThatLoses(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w, _ := scripted(t, s, `return null`)
		runs := s.Database(w.database()).Collection("runs")
		record, err := document.Marshal(bson.D{{Key: "_id", Value: "run"}, {Key: "beat", Value: int64(0)}})
		if err != nil {
			t.Fatal(err)
		}
		id := record.Lookup("_id")
		write := func(ctx context.Context, to store.Writer, op store.Op) error {
			results, err := to.Write(ctx, []store.Op{op}, true)
			if err == nil {
				err = results[0].Err
			}
			return err
		}
		beat := store.Op{Kind: store.Update, ID: id, Update: mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "beat", Value: int64(1)}}}})}
		if err := write(t.Context(), runs, store.Op{Kind: store.Insert, Doc: record}); err != nil {
			t.Fatal(err)
		}
		fences := 0
		host := w.service.Host(w.project, records.Caller{Fence: func(ctx context.Context, tx store.Tx) error {
			if _, err := tx.Collection("runs").Get(ctx, id); err != nil { // from here on it sees the record as it is now
				return err
			}
			if fences++; fences%2 == 1 {
				if err := write(ctx, runs, beat); err != nil {
					return err
				}
			}
			return write(ctx, tx.Collection("runs"), beat)
		}}, "job.js")
		defer host.Close()
		items := bson.D{{Key: "collection", Value: "items"}}
		if _, err := host.Call(t.Context(), "db.insert", bson.A{items, doc(t, `{"title": "a"}`)}); err != nil || fences != 2 {
			t.Errorf("%d fences, %v", fences, err)
		}
		tx, err := host.Call(t.Context(), "db.begin", nil)
		if err != nil || fences != 4 {
			t.Fatalf("%d fences, %v", fences, err)
		}
		within := bson.D{{Key: "collection", Value: "items"}, {Key: "tx", Value: tx}}
		if _, err := host.Call(t.Context(), "db.insert", bson.A{within, doc(t, `{"title": "b"}`)}); err != nil {
			t.Error(err)
		}
		if again, err := host.Call(t.Context(), "db.commit", bson.A{tx}); err != nil || again != false {
			t.Errorf("again %v, %v", again, err)
		}
		if n, err := w.collection("items").Count(t.Context(), nil, 0); err != nil || n != 2 {
			t.Errorf("%d records (%v)", n, err)
		}
	})
}
