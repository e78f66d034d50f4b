package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

func TestView(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	for _, name := range []string{"kept", "dropped", "remade", "moved", "target", "svc.hidden"} {
		mustWrite(t, db.Collection(name), insertion(t, `{"_id":"old","l":[3,1,2]}`))
	}
	v, err := db.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db.Collection("kept"), insertion(t, `{"_id":"new"}`), replacement(t, `{"_id":"old"}`))
	if err := db.Collection("kept").CreateIndex(t.Context(), store.Index{Name: "l", Keys: []store.IndexKey{{Path: "l"}}}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		db.DropCollection(t.Context(), "dropped"), db.DropCollection(t.Context(), "remade"),
		db.RenameCollection(t.Context(), "moved", "target", true),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, db.Collection("remade"), insertion(t, `{"_id":"new"}`))
	mustWrite(t, db.Collection("late"), insertion(t, `{"_id":"new"}`))

	kept := v.Collection("kept")
	if got := ids(t, kept); got != "old" {
		t.Errorf("finds %s", got)
	}
	if n, err := kept.Count(t.Context(), filter(t, `{"l":{"$gte":1}}`), 0); n != 1 || err != nil {
		t.Errorf("counts %d, %v", n, err)
	}
	if values, err := kept.Distinct(t.Context(), "l", nil); fmt.Sprint(values) != `[{"$numberInt":"1"} {"$numberInt":"2"} {"$numberInt":"3"}]` || err != nil {
		t.Errorf("Distinct: %v, %v", values, err)
	}
	if d, err := kept.Get(t.Context(), value(t, `"old"`)); err != nil || d.Lookup("l").Type != bson.TypeArray {
		t.Errorf("Get: %v, %v", d, err)
	}
	if _, err := kept.Get(t.Context(), value(t, `"new"`)); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("Get of what came later: %v", err)
	}
	for _, gone := range []string{"dropped", "remade", "moved", "target"} { // never as if they were empty
		if n, err := v.Collection(gone).Count(t.Context(), nil, 0); outcome(err) != "view_expired" {
			t.Errorf("%s has %d, %v", gone, n, err)
		}
	}
	if got := ids(t, v.Collection("late")) + ids(t, v.Collection("never")); got != "" {
		t.Errorf("collections that were not there have %s", got)
	}
	names, err := v.CollectionNames(t.Context())
	if want := []string{"dropped", "kept", "moved", "remade", "target"}; !slices.Equal(names, want) || err != nil {
		t.Errorf("names %v, %v", names, err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if _, err := kept.Count(t.Context(), nil, 0); outcome(err) != "view_closed" {
		t.Errorf("a read of a closed view: %v", err)
	}
}

// TestViewAndFeedMeet opens views while documents are inserted: a document is either in the view or in the feed behind
// its position, and never in both.
func TestViewAndFeedMeet(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	const n = 200
	done := make(chan error, 1)
	go func() {
		for i := range n {
			if _, err := c.Write(t.Context(), []store.Op{{Kind: store.Insert, Doc: number(t, i)}}, false); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var views []store.View
	for range 5 {
		v, err := db.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		seen := map[int32]int{}
		if err := v.Collection("c").Find(t.Context(), store.Query{}, func(d bson.Raw) error {
			seen[d.Lookup("_id").Int32()]++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		inView := len(seen)
		for _, e := range events(t, db, store.Watch{After: v.Position()}) {
			seen[e.ID.Int32()]++
		}
		for i := range int32(n) {
			if seen[i] != 1 {
				t.Errorf("document %d comes %d times with %d in the view", i, seen[i], inView)
			}
		}
		_ = v.Close()
	}
}

var errEnough = errors.New("enough")

// events gives what a Watch tells up to its first rest.
func events(t *testing.T, db store.Database, w store.Watch) (all []store.Event) {
	t.Helper()
	w.OnIdle = func(store.Position) error { return errEnough }
	err := db.Watch(t.Context(), w, func(e store.Event) error {
		all = append(all, e)
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatalf("Watch: %v", err)
	}
	return all
}

func TestCloseEndsViewsAndWatch(t *testing.T) {
	t.Parallel()
	s := open(t, mongotest.URI(t))
	watched := s.Database("closing")
	v, err := watched.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	idle := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- watched.Watch(context.WithoutCancel(t.Context()), store.Watch{OnIdle: func(store.Position) error {
			idle <- struct{}{}
			return nil
		}}, func(store.Event) error { return nil })
	}()
	select {
	case <-idle:
	case err := <-ended:
		t.Fatalf("Watch: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; errs.KindOf(err) != errs.Unavailable {
		t.Errorf("Watch: %v", err)
	}
	if _, err := v.CollectionNames(t.Context()); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a view of a closed store: %v", err)
	}
}
