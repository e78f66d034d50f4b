package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestChangesOfCollectionsUnderWrites lets two instances build differing indexes under one name, unique ones over
// duplicates, drop, and rename with replacement, while both write, alone and in transactions. Calls succeed, or fail with
// what the port has for that; nothing fails as a defect of the service would.
func TestChangesOfCollectionsUnderWrites(t *testing.T) {
	t.Parallel()
	uri := mongotest.URI(t)
	dbName := "test_" + bson.NewObjectID().Hex()
	first := open(t, uri)
	db := first.Database(dbName)
	t.Cleanup(func() { _ = first.DropDatabase(context.WithoutCancel(t.Context()), dbName) })
	dbs := []store.Database{db, open(t, uri).Database(dbName)}
	var mu sync.Mutex
	met := map[string]int{}
	note := func(what string, err error) {
		var dup *store.DuplicateKeyError
		var violation *store.ViolationError
		kind := errs.KindOf(err)
		fine := err == nil || errors.As(err, &dup) || errors.As(err, &violation) || errors.Is(err, errs.ErrNotFound) ||
			errors.Is(err, store.ErrIndexExists) || errors.Is(err, store.ErrCollectionExists) || kind == errs.Unavailable
		mu.Lock()
		defer mu.Unlock()
		if !fine {
			t.Errorf("%s: %v (%v)", what, err, kind)
		}
		if err != nil {
			met[what+": "+errs.From(err).Code]++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var g errgroup.Group
	loop := func(what string, fn func(n int) error) {
		g.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				note(what, fn(n))
			}
			return nil
		})
	}
	for i, db := range dbs {
		c := db.Collection("c")
		loop("write", func(n int) error {
			_, err := one(c.Write(t.Context(), []store.Op{insertion(t, fmt.Sprintf(`{"_id":"%d %d","u":%d}`, i, n, n%20))}, false))
			return err
		})
		loop("write many", func(n int) error {
			op := update(t, "", `{"$inc":{"n":1}}`)
			op.Filter, op.Many = filter(t, `{"u":{"$lt":5}}`), true
			_, err := one(c.Write(t.Context(), []store.Op{op}, n%2 == 0))
			return err
		})
		loop("transaction", func(n int) error {
			return db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
				for _, name := range []string{"c", "d"} {
					if _, err := one(tx.Collection(name).Write(ctx, []store.Op{insertion(t, fmt.Sprintf(`{"_id":"tx %d %d","u":%d}`, i, n, n))}, false)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		loop("index", func(n int) error {
			index := store.Index{Name: "x", Keys: []store.IndexKey{{Path: []string{"u", "n"}[(i+n)%2]}}, Unique: n%3 == 0}
			return c.CreateIndex(t.Context(), index)
		})
		loop("drop index", func(int) error { return c.DropIndex(t.Context(), "x") })
		loop("read", func(int) error {
			_, err := c.Count(t.Context(), filter(t, `{"u":3}`), 0)
			return err
		})
	}
	loop("rename", func(n int) error {
		time.Sleep(20 * time.Millisecond)
		return db.RenameCollection(t.Context(), "c", "d", n%2 == 0)
	})
	loop("drop", func(int) error {
		time.Sleep(50 * time.Millisecond)
		return db.DropCollection(t.Context(), "c")
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("met %v", met)
	if err := db.Validate(t.Context(), func(p store.Problem) { t.Errorf("%+v", p) }); err != nil {
		t.Error(err)
	}
}
