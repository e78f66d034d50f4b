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
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestIndexesReadBack makes indexes of every kind: they are listed as they were made, and made again without an error.
func TestIndexesReadBack(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	on := func(paths ...string) (keys []store.IndexKey) {
		for _, p := range paths {
			path, desc := strings.CutPrefix(p, "-")
			keys = append(keys, store.IndexKey{Path: path, Desc: desc})
		}
		return keys
	}
	indexes := []store.Index{
		{Name: "a", Keys: on("a")},
		{Name: "b expiring", Keys: on("b"), ExpireAfter: time.Hour},
		{Name: "c partial", Keys: on("a", "-b"), Partial: filter(t, `{"$or":[{"a":{"$gte":1,"$lt":5}},{"b":{"$in":["x",null]}},{"c":{"$exists":true}}]}`)},
		{Name: "d partial unique", Keys: on("d"), Unique: true, Partial: filter(t, `{"d":{"$type":["string","number"]},"e":1}`)},
		{Name: "e partial expiring", Keys: on("e"), ExpireAfter: time.Second, Partial: filter(t, `{"f":{"$gt":{"$date":"2026-01-02T03:04:05Z"}}}`)},
		{Name: "f sparse", Keys: on("-f", "g"), Sparse: true},
		{Name: "g unique", Keys: on("g", "h.i"), Unique: true},
	}
	for range 2 {
		for _, index := range indexes {
			if err := c.CreateIndex(t.Context(), index); err != nil {
				t.Errorf("%s: %v", index.Name, err)
			}
		}
	}
	got, err := c.Indexes(t.Context())
	if err != nil || len(got) != len(indexes) {
		t.Fatalf("%d indexes: %+v, %v", len(got), got, err)
	}
	for i := range indexes {
		if !got[i].Equal(indexes[i]) {
			t.Errorf("made %+v with %v, listed as %+v with %v", indexes[i], indexes[i].Partial.Raw(), got[i], got[i].Partial.Raw())
		}
	}
	other := indexes[3]
	other.Partial = filter(t, `{"e":2}`)
	if err := c.CreateIndex(t.Context(), other); outcome(err) != "index_exists" {
		t.Errorf("another partial filter: %v", err)
	}
	for _, bad := range []store.Index{
		{Name: "_id_x", Keys: on("a")},
		{Name: "x", Keys: on("a", "b"), ExpireAfter: time.Hour},
		{Name: "x", Keys: on("a"), ExpireAfter: time.Millisecond},
		{Name: "x", Keys: on("a"), ExpireAfter: -time.Second},
		{Name: "x", Keys: on("a"), Sparse: true, Partial: filter(t, `{"e":2}`)},
		{Name: "x", Keys: on("a"), Partial: filter(t, `{"e":{"$ne":2}}`)},
		{Name: "x"},
		{Keys: on("a")},
	} {
		if err := c.CreateIndex(t.Context(), bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestPartialUnique lets only the documents in the index violate it.
func TestPartialUnique(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	for i := range 6 {
		mustWrite(t, c, insertion(t, fmt.Sprintf(`{"_id":%d,"n":1,"live":%v}`, i, i > 3)))
	}
	index := store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}, Unique: true, Partial: filter(t, `{"live":true}`)}
	var violation *store.ViolationError
	if err := c.CreateIndex(t.Context(), index); !errors.As(err, &violation) || fmt.Sprint(violation.IDs) != `[{"$numberInt":"4"} {"$numberInt":"5"}]` {
		t.Errorf("got %v (%+v)", err, violation)
	}
	mustWrite(t, c, deletion(t, "5"))
	if err := c.CreateIndex(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	rs := written(t, c, false, update(t, "1", `{"$set":{"live":true}}`), insertion(t, `{"_id":7,"n":1}`))
	if result(rs[0]) != "0 0 dup n" || result(rs[1]) != "0 0" {
		t.Errorf("%s, %s", result(rs[0]), result(rs[1]))
	}
}

// TestForeignIndexesAreNotListed makes indexes that the port does not have.
func TestForeignIndexesAreNotListed(t *testing.T) {
	t.Parallel()
	uri := mongotest.URI(t)
	s := open(t, uri)
	name := "test_" + bson.NewObjectID().Hex()
	t.Cleanup(func() { _ = s.DropDatabase(context.WithoutCancel(t.Context()), name) })
	admin := admin(t, uri)
	foreign := []driver.IndexModel{
		{Keys: bson.D{{Key: "t", Value: "text"}}},
		{Keys: bson.D{{Key: "h", Value: "hashed"}}},
		{Keys: bson.D{{Key: "c", Value: 1}}, Options: options.Index().SetCollation(&options.Collation{Locale: "de"})},
		{Keys: bson.D{{Key: "p", Value: 1}}, Options: options.Index().SetPartialFilterExpression(
			bson.D{{Key: "p", Value: bson.D{{Key: "$geoWithin", Value: bson.D{{Key: "$centerSphere", Value: bson.A{bson.A{1, 1}, 1}}}}}}})},
		{Keys: bson.D{{Key: "w.$**", Value: 1}}},
	}
	if _, err := admin.Database(name).Collection("c").Indexes().CreateMany(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Database(name).Collection("c").Indexes(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("listed %+v, %v", got, err)
	}
}

// admin gives a client of the driver, for what the port does not do.
func admin(t *testing.T, uri string) *driver.Client {
	t.Helper()
	client, err := driver.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return client
}

// TestExpiry waits for the server to delete documents, which the feed tells of.
func TestExpiry(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the server looks once a minute")
	}
	uri := mongotest.URI(t)
	s := open(t, uri)
	db := databaseOn(t, s)
	c := db.Collection("c")
	if err := c.CreateIndex(t.Context(), store.Index{Name: "at", Keys: []store.IndexKey{{Path: "at"}}, ExpireAfter: time.Second}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, c, insertion(t, `{"_id":1,"at":{"$date":"2020-01-01T00:00:00Z"}}`), insertion(t, `{"_id":2,"at":"text"}`),
		insertion(t, `{"_id":3,"at":{"$date":"2120-01-01T00:00:00Z"}}`))
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err = db.Watch(ctx, store.Watch{After: start}, func(e store.Event) error {
		if got := told(e); got != "- c 1" {
			t.Errorf("told %s", got)
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("Watch: %v", err)
	}
	if got := ids(t, c); got != "2 3" {
		t.Errorf("left %s", got)
	}
}

// TestCreateIndexGivenUp ends the context of builds at different times. What is left behind is either a whole index, if
// nobody was told otherwise, or nothing.
func TestCreateIndexGivenUp(t *testing.T) {
	t.Parallel()
	uri := mongotest.URI(t)
	s := open(t, uri)
	name := "test_" + bson.NewObjectID().Hex()
	t.Cleanup(func() { _ = s.DropDatabase(context.WithoutCancel(t.Context()), name) })
	foreign := admin(t, uri).Database(name).Collection("c")
	for batch := range 20 {
		var docs []bson.D
		for i := range 5000 {
			docs = append(docs, bson.D{{Key: "_id", Value: batch*5000 + i}, {Key: "n", Value: (batch * 5000 * i) % 7919}})
		}
		if _, err := foreign.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Database(name).Collection("c")
	index := store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}}
	for _, after := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		for how, start := range map[string]func() (context.Context, context.CancelFunc){
			"deadline": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), after) },
			"cancel": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := start()
			err := c.CreateIndex(ctx, index)
			cancel()
			got, listErr := c.Indexes(t.Context())
			if listErr != nil || (err == nil) != (len(got) == 1) {
				t.Errorf("%s after %v: %v, and then there are %+v, %v", how, after, err, got, listErr)
			}
			if err := c.DropIndex(t.Context(), index.Name); err != nil {
				t.Error(err)
			}
		}
	}
}
