package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestNothingStaysOpen stops reads, feeds and transactions in the middle, by an error of the caller and by the end of its
// context, and asks the server what is left of them.
func TestNothingStaysOpen(t *testing.T) {
	t.Parallel()
	server, err := mongotest.Start(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED on a server of its own: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	admin := admin(t, server.URI)
	db := open(t, server.URI).Database("leaks")
	c := db.Collection("c")
	text := strings.Repeat("x", 10<<10)
	var ops []store.Op
	for i := range 1500 { // more than one answer of the server holds
		ops = append(ops, insertion(t, fmt.Sprintf(`{"_id":%d,"s":%q}`, i, text)))
	}
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, c, ops...)
	view, err := db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	many := update(t, "", `{"$set":{"n":1}}`)
	many.Filter, many.Many = filter(t, `{}`), true

	// Each is stopped by stop at about its tenth document.
	for name, run := range map[string]func(ctx context.Context, stop func() error) error{
		"find": func(ctx context.Context, stop func() error) error {
			return c.Find(ctx, store.Query{}, func(bson.Raw) error { return stop() })
		},
		"view": func(ctx context.Context, stop func() error) error {
			return view.Collection("c").Find(ctx, store.Query{}, func(bson.Raw) error { return stop() })
		},
		"watch": func(ctx context.Context, stop func() error) error {
			return db.Watch(ctx, store.Watch{After: start, Documents: true}, func(store.Event) error { return stop() })
		},
		"transaction": func(ctx context.Context, stop func() error) error {
			return db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				if _, err := one(tx.Collection("c").Write(ctx, []store.Op{update(t, "1", `{"$inc":{"n":1}}`)}, false)); err != nil {
					return err
				}
				return tx.Collection("c").Find(ctx, store.Query{}, func(bson.Raw) error { return stop() })
			})
		},
		"many": func(ctx context.Context, stop func() error) error {
			var g errgroup.Group
			g.Go(func() error {
				time.Sleep(20 * time.Millisecond)
				for range 10 {
					_ = stop()
				}
				return nil
			})
			_, err := c.Write(ctx, []store.Op{many}, false)
			return errors.Join(err, g.Wait())
		},
	} {
		for range 5 {
			n := 0
			err := run(t.Context(), func() error {
				if n++; n == 10 {
					return errEnough
				}
				return nil
			})
			if name != "many" && !errors.Is(err, errEnough) {
				t.Errorf("%s: %v", name, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			n = 0
			err = run(ctx, func() error {
				if n++; n == 10 {
					cancel()
				}
				return nil
			})
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && name != "many" {
				t.Errorf("%s, given up: %v", name, err)
			}
		}
		waitUntilClosed(t, admin, name)
	}
}

// waitUntilClosed waits until the server has neither cursors nor transactions open.
func waitUntilClosed(t *testing.T, admin *driver.Client, what string) {
	t.Helper()
	for giveUp := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		status, err := admin.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Raw()
		if err != nil {
			t.Fatal(err)
		}
		cursors, _ := status.Lookup("metrics", "cursor", "open", "total").AsInt64OK()
		transactions, ok := status.Lookup("transactions", "currentOpen").AsInt64OK()
		if cursors == 0 && transactions == 0 && ok {
			return
		}
		if time.Now().After(giveUp) {
			t.Errorf("%s: %d cursors and %d transactions are open", what, cursors, transactions)
			return
		}
	}
}

// TestFewConnections uses more callers than connections. They wait for each other, as long as their time lasts.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	uri := mongotest.URI(t)
	s := open(t, uri+"&maxPoolSize=2")
	db := databaseOn(t, s)
	c := db.Collection("c")
	mustWrite(t, c, insertion(t, `{"_id":1,"n":0}`))
	var g errgroup.Group
	for range 50 {
		g.Go(func() error {
			_, err := one(c.Write(t.Context(), []store.Op{update(t, "1", `{"$inc":{"n":1}}`)}, false))
			return err
		})
		g.Go(func() error {
			return db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := one(tx.Collection("c").Write(ctx, []store.Op{update(t, "1", `{"$inc":{"n":1}}`)}, false))
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := amount(t.Context(), c); err != nil || n != 100 {
		t.Errorf("counted %d, %v", n, err)
	}
	// All connections are busy for longer than a caller has time.
	mustWrite(t, c, slowDocuments(t)...)
	var reads errgroup.Group
	life, end := context.WithCancel(t.Context())
	for range 2 {
		reads.Go(func() error {
			_, err := c.Count(life, slowFilter(t), 0)
			return err
		})
	}
	time.Sleep(200 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, value(t, `1`))
	if kind := errs.KindOf(err); err != nil && kind != errs.Unavailable && kind != errs.Timeout || err == nil {
		t.Errorf("with all connections busy: %v", err)
	}
	end()
	if err := reads.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("a slow read: %v", err)
	}
	if _, err := c.Get(t.Context(), value(t, `1`)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
