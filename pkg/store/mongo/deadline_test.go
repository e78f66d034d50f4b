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

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestServerStopsWorking ends the contexts of slow reads, by a deadline and by cancel. The server does not go on.
func TestServerStopsWorking(t *testing.T) {
	t.Parallel()
	uri := mongotest.URI(t)
	admin := admin(t, uri)
	mark := "svc-test-" + bson.NewObjectID().Hex()
	s, err := mongo.Open(t.Context(), mongo.Options{URI: uri, AppName: mark})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db := databaseOn(t, s)
	c := db.Collection("c")
	mustWrite(t, c, slowDocuments(t)...)
	slow := slowFilter(t)
	reads := map[string]func(ctx context.Context) error{
		"find": func(ctx context.Context) error {
			return c.Find(ctx, store.Query{Filter: slow}, func(bson.Raw) error { return nil })
		},
		"count": func(ctx context.Context) error {
			_, err := c.Count(ctx, slow, 0)
			return err
		},
		"distinct": func(ctx context.Context) error {
			_, err := c.Distinct(ctx, "s", slow)
			return err
		},
		"aggregate": func(ctx context.Context) error {
			p, err := pipeline.Compile(bson.A{bson.D{{Key: "$match", Value: slow.Raw()}}, bson.D{{Key: "$count", Value: "n"}}}, pipeline.Options{})
			if err != nil {
				return err
			}
			return c.Aggregate(ctx, p, store.AggregateOptions{}, func(bson.Raw) error { return nil })
		},
		"facet": func(ctx context.Context) error {
			p, err := pipeline.Facets(slow, []string{"_id"}, 10)
			if err != nil {
				return err
			}
			return c.Aggregate(ctx, p, store.AggregateOptions{}, func(bson.Raw) error { return nil })
		},
		"lookup": func(ctx context.Context) error {
			p, err := pipeline.Compile(bson.A{bson.D{{Key: "$lookup", Value: bson.D{
				{Key: "from", Value: "c"},
				{Key: "localField", Value: "none"},
				{Key: "foreignField", Value: "none"},
				{Key: "as", Value: "x"},
				{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: slow.Raw()}}}},
			}}}}, pipeline.Options{Stages: pipeline.Scripts})
			if err != nil {
				return err
			}
			return c.Aggregate(ctx, p, store.AggregateOptions{}, func(bson.Raw) error { return nil })
		},
		"update": func(ctx context.Context) error {
			op := update(t, "", `{"$set":{"n":1}}`)
			op.Filter = slow
			_, err := c.Write(ctx, []store.Op{op}, false)
			return err
		},
		"update many": func(ctx context.Context) error {
			op := update(t, "", `{"$set":{"n":1}}`)
			op.Filter, op.Many = slow, true
			_, err := c.Write(ctx, []store.Op{op}, false)
			return err
		},
	}
	for name, read := range reads {
		life, giveUp := context.WithCancel(t.Context())
		given := make(chan struct{})
		go func() {
			defer close(given)
			for life.Err() == nil && working(t, admin, mark) == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			giveUp()
		}()
		if err := read(life); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, given up: %v", name, err)
		}
		giveUp() // also if it ended by itself
		<-given
		waitUntilIdle(t, admin, mark, name+", given up")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, out of time: %v", name, err)
		}
		cancel()
		waitUntilIdle(t, admin, mark, name+", out of time")
	}
}

// slowFilter looks at slowDocuments for minutes.
func slowFilter(t *testing.T) *mql.Filter {
	t.Helper()
	return filter(t, `{"s":{"$regex":"(a|b|ab)*(b|a|ba)*(ab|a|b)*c$"}}`)
}

func slowDocuments(t *testing.T) []store.Op {
	t.Helper()
	var ops []store.Op
	for i := range 3000 {
		ops = append(ops, insertion(t, fmt.Sprintf(`{"_id":"slow %d","s":%q}`, i, strings.Repeat("ab", 500))))
	}
	return ops
}

func waitUntilIdle(t *testing.T, admin *driver.Client, mark, what string) {
	t.Helper()
	start := time.Now()
	for working(t, admin, mark) > 0 {
		if time.Since(start) > 30*time.Second { // a query of minutes
			t.Fatalf("%s: the server goes on", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%s: stopped after %v", what, time.Since(start))
}

// working counts what the server does for clients that call themselves mark.
func working(t *testing.T, admin *driver.Client, mark string) int {
	t.Helper()
	cursor, err := admin.Database("admin").Aggregate(t.Context(), bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{}}},
		bson.D{{Key: "$match", Value: bson.D{
			{Key: "appName", Value: mark},
			{Key: "active", Value: true},
			{Key: "op", Value: bson.D{{Key: "$ne", Value: "none"}}},
			{Key: "command.hello", Value: bson.D{{Key: "$exists", Value: false}}},
			{Key: "command.isMaster", Value: bson.D{{Key: "$exists", Value: false}}},
		}}},
	})
	if err != nil {
		t.Error(err)
		return 0
	}
	var found []bson.D
	if err := cursor.All(t.Context(), &found); err != nil {
		t.Error(err)
	}
	return len(found)
}
