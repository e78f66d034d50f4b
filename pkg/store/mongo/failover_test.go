package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestStepDown makes the primary step down again and again under writes and reads. None fails, and each write is
// applied once.
func TestStepDown(t *testing.T) {
	server, err := mongotest.Start(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED with a primary stepping down: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := open(t, server.URI)
	c := s.Database("stepdown").Collection("things")
	admin := admin(t, server.URI)

	const workers, each, stepDowns = 4, 60, 2
	g, ctx := errgroup.WithContext(t.Context())
	for w := range workers {
		g.Go(func() error {
			for i := range each {
				ops := []store.Op{{Kind: store.Insert, Doc: number(t, 2*(w*each+i))}, {Kind: store.Insert, Doc: number(t, 2*(w*each+i)+1)}}
				results, err := c.Write(ctx, ops, w%2 == 0)
				for k := range results {
					if results[k].Err != nil {
						err = results[k].Err // a repeated insert would be a duplicate
					}
				}
				if err != nil {
					return err
				}
				if _, err := c.Get(ctx, ops[1].Doc.Lookup("_id")); err != nil {
					return err // what was acknowledged is seen, whoever is primary
				}
				if w == 0 && i%(each/stepDowns) == each/stepDowns/2 {
					if err := stepDown(ctx, admin); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(t.Context(), nil, 0); err != nil || n != 2*workers*each {
		t.Errorf("%d documents (%v), want %d", n, err, 2*workers*each)
	}
}

func stepDown(ctx context.Context, admin *driver.Client) error {
	command := bson.D{{Key: "replSetStepDown", Value: 1}, {Key: "force", Value: true}}
	return admin.Database("admin").RunCommand(ctx, command).Err()
}

// TestStepDownUnderTransactionsAndFeed makes the primary step down, and cuts all connections, under transactions that
// count, changes of many documents, a view, and a Watch that has to tell of each change once and in order.
func TestStepDownUnderTransactionsAndFeed(t *testing.T) {
	server, err := mongotest.Start(t.Context(), mongotest.FailPoints())
	if err != nil {
		t.Skipf("NOT TESTED with a primary stepping down: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := open(t, server.URI)
	db := s.Database("stepdown")
	admin := admin(t, server.URI)
	const counts, rounds = 80, 6
	many := db.Collection("many")
	for i := range 50 {
		mustWrite(t, many, store.Op{Kind: store.Insert, Doc: number(t, i)})
	}
	mustWrite(t, db.Collection("count"), insertion(t, `{"_id":1,"n":0}`))
	view, err := db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()

	g, ctx := errgroup.WithContext(t.Context()) // the feed has no end of its own
	done := make(chan struct{})
	g.Go(func() error { // each commit puts the count into a document of its own, too
		defer close(done)
		for range counts {
			if err := db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
				n, err := amount(ctx, tx.Collection("count"))
				if err != nil {
					return err
				}
				if _, err := tx.Collection("count").Write(ctx, []store.Op{replacement(t, fmt.Sprintf(`{"_id":1,"n":%d}`, n+1))}, false); err != nil {
					return err
				}
				_, err = tx.Collection("log").Write(ctx, []store.Op{{Kind: store.Insert, Doc: number(t, int(n))}}, false)
				return err
			}); err != nil {
				return fmt.Errorf("transaction: %w", err)
			}
		}
		return nil
	})
	g.Go(func() error {
		for range 10 {
			op := update(t, "", `{"$inc":{"n":1}}`)
			op.Filter, op.Many = filter(t, `{"_id":{"$gte":0}}`), true
			rs, err := many.Write(ctx, []store.Op{op}, false)
			if err != nil {
				return fmt.Errorf("many: %w", err)
			}
			if got := result(rs[0]); got != "50 50" {
				return fmt.Errorf("many: %s", got)
			}
		}
		return nil
	})
	var logged []int32
	g.Go(func() error {
		err := db.Watch(ctx, store.Watch{After: view.Position(), Collections: []string{"log"}}, func(e store.Event) error {
			if logged = append(logged, e.ID.Int32()); len(logged) == counts {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			return fmt.Errorf("watch: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		for i := range rounds {
			if i%2 == 0 {
				if err := stepDown(ctx, admin); err != nil {
					return fmt.Errorf("stepping down: %w", err)
				}
			} else if err := cut(ctx, admin); err != nil {
				return fmt.Errorf("cutting connections: %w", err)
			}
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, n := range logged {
		if n != int32(i) {
			t.Fatalf("told %v", logged)
		}
	}
	if n, err := amount(t.Context(), db.Collection("count")); err != nil || n != counts {
		t.Errorf("counted to %d, %v", n, err)
	}
	if n, err := many.Count(t.Context(), filter(t, `{"n":10}`), 0); err != nil || n != 50 {
		t.Errorf("%d of 50 were incremented 10 times, %v", n, err)
	}
	if n, err := view.Collection("many").Count(t.Context(), filter(t, `{"n":null}`), 0); err != nil || n != 50 {
		t.Errorf("the view has %d of 50 as they were, %v", n, err)
	}
}

// cut makes the server close the connection at the next few commands, and forget to say that it has committed.
func cut(ctx context.Context, admin *driver.Client) error {
	return errors.Join(
		failCommand(ctx, admin, 1, bson.D{{Key: "closeConnection", Value: true}, {Key: "failCommands", Value: bson.A{
			"insert", "update", "find", "aggregate", "getMore",
		}}}),
		failCommand(ctx, admin, 1, bson.D{{Key: "failCommands", Value: bson.A{"commitTransaction"}}, {Key: "writeConcernError", Value: bson.D{
			{Key: "code", Value: 91}, {Key: "errmsg", Value: "on purpose"}, {Key: "errorLabels", Value: bson.A{"RetryableWriteError"}},
		}}}),
	)
}

func failCommand(ctx context.Context, admin *driver.Client, times int, data bson.D) error {
	err := admin.Database("admin").RunCommand(ctx, bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: times}}},
		{Key: "data", Value: data},
	}).Err()
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // for somebody to run into it: the next one takes its place
	return nil
}

// TestCutConnections cuts connections at several commands in a row, and interrupts commands that were done, without
// anybody having set a deadline. Calls that can be repeated are, and each change is done once.
func TestCutConnections(t *testing.T) {
	server, err := mongotest.Start(t.Context(), mongotest.FailPoints())
	if err != nil {
		t.Skipf("NOT TESTED with connections cut: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := open(t, server.URI)
	db, admin := s.Database("cuts"), admin(t, server.URI)
	c := db.Collection("c")
	const documents = 1200 // more than are changed in one step
	var ops []store.Op
	for i := range documents {
		ops = append(ops, insertion(t, fmt.Sprintf(`{"_id":%d,"n":0}`, i)))
	}
	mustWrite(t, c, ops...)
	mustWrite(t, db.Collection("e"), insertion(t, `{"_id":1}`))
	mustWrite(t, db.Collection("f"), insertion(t, `{"_id":1}`))
	everything := update(t, "", `{"$inc":{"n":1}}`)
	everything.Filter, everything.Many = filter(t, `{"n":{"$gte":0}}`), true
	returning := update(t, "5", `{"$inc":{"n":1}}`)
	returning.Return = store.ReturnAfter
	index := store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}}
	write := func(c store.Collection, atomic bool, ops ...store.Op) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			rs, err := c.Write(ctx, ops, atomic)
			for _, r := range rs {
				err = errors.Join(err, r.Err)
			}
			return err
		}
	}
	cutOff := bson.E{Key: "closeConnection", Value: true}
	interrupted := bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 11602}, {Key: "errmsg", Value: "on purpose"}}}
	for _, tt := range []struct {
		command string
		fault   bson.E
		call    func(ctx context.Context) error
	}{
		{"find", cutOff, func(ctx context.Context) error { _, err := c.Get(ctx, value(t, "7")); return err }},
		{"find", cutOff, func(ctx context.Context) error {
			return c.Find(ctx, store.Query{Limit: 3}, func(bson.Raw) error { return nil })
		}},
		{"aggregate", cutOff, func(ctx context.Context) error { _, err := c.Count(ctx, nil, 0); return err }},
		{"aggregate", cutOff, func(ctx context.Context) error { _, err := c.Stats(ctx); return err }},
		{"distinct", cutOff, func(ctx context.Context) error { _, err := c.Distinct(ctx, "n", nil); return err }},
		{"explain", cutOff, func(ctx context.Context) error { _, err := c.Explain(ctx, store.Query{}); return err }},
		{"validate", cutOff, func(ctx context.Context) error { return db.Validate(ctx, func(store.Problem) {}) }},
		{"hello", cutOff, s.Ping},
		{"listCollections", cutOff, func(ctx context.Context) error { _, err := db.CollectionNames(ctx); return err }},
		{"createIndexes", cutOff, func(ctx context.Context) error { return c.CreateIndex(ctx, index) }},
		{"listIndexes", cutOff, func(ctx context.Context) error { _, err := c.Indexes(ctx); return err }},
		{"dropIndexes", cutOff, func(ctx context.Context) error { return c.DropIndex(ctx, index.Name) }},
		{"insert", cutOff, write(db.Collection("d"), false, insertion(t, `{"_id":1,"n":0}`))},
		{"insert", cutOff, write(db.Collection("d"), false, insertion(t, `{"_id":2,"n":0}`), insertion(t, `{"_id":3,"n":0}`))},
		{"update", cutOff, write(c, false, update(t, "1", `{"$inc":{"n":1}}`))},
		{"update", cutOff, write(c, true, update(t, "2", `{"$inc":{"n":1}}`), update(t, "3", `{"$inc":{"n":1}}`))},
		{"commitTransaction", cutOff, write(c, true, update(t, "2", `{"$inc":{"n":1}}`), update(t, "3", `{"$inc":{"n":1}}`))},
		{"findAndModify", cutOff, write(c, false, returning)},
		{"find", cutOff, write(c, false, everything)},
		{"getMore", cutOff, write(c, false, everything)},
		{"update", cutOff, write(c, false, everything)},
		{"commitTransaction", cutOff, write(c, false, everything)},
		{"delete", cutOff, write(db.Collection("d"), false, deletion(t, "3"))},
		{"drop", cutOff, func(ctx context.Context) error { return db.DropCollection(ctx, "e") }},
		{"createIndexes", interrupted, func(ctx context.Context) error { return c.CreateIndex(ctx, index) }},
		{"dropIndexes", interrupted, func(ctx context.Context) error { return c.DropIndex(ctx, index.Name) }},
		{"drop", interrupted, func(ctx context.Context) error { return db.DropCollection(ctx, "f") }},
		{"commitTransaction", interrupted, write(c, true, update(t, "2", `{"$inc":{"n":1}}`), update(t, "3", `{"$inc":{"n":1}}`))},
	} {
		err := admin.Database("admin").RunCommand(t.Context(), bson.D{
			{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: 3}}},
			{Key: "data", Value: bson.D{tt.fault, {Key: "failCommands", Value: bson.A{tt.command}}}},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.call(t.Context()); err != nil {
			t.Errorf("%s, %s: %v", tt.command, tt.fault.Key, err)
		}
	}
	for id, n := range []int32{4, 5, 7, 7, 4, 5} {
		d, err := c.Get(t.Context(), value(t, strconv.Itoa(id)))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Lookup("n").Int32(); got != n {
			t.Errorf("document %d was incremented %d times, not %d", id, got, n)
		}
	}
	if n, err := c.Count(t.Context(), filter(t, `{"n":4}`), 0); err != nil || n != documents-4 {
		t.Errorf("%d of %d were incremented 4 times, %v", n, documents-4, err)
	}
	if names, err := db.CollectionNames(t.Context()); err != nil || len(names) != 2 {
		t.Errorf("left %v, %v", names, err)
	}
	if got := ids(t, db.Collection("d")); got != "1 2" {
		t.Errorf("left %s", got)
	}
}
