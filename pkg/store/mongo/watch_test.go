package mongo_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// told prints an event as in "+ things 1".
func told(e store.Event) string {
	text := map[store.EventKind]string{
		store.Inserted: "+", store.Updated: "~", store.Deleted: "-", store.Dropped: "drop", store.Renamed: "rename",
	}[e.Kind] + " " + e.Collection
	if e.To != "" {
		text += " to " + e.To
	}
	if e.ID.Type != 0 {
		text += " " + name(e.ID)
	}
	if e.Doc != nil {
		text += " " + e.Doc.Lookup("n").String()
	}
	return text
}

func TestWatch(t *testing.T) {
	t.Parallel()
	s, db := database(t)
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, b := db.Collection("a"), db.Collection("b")
	mustWrite(t, a, insertion(t, `{"_id":1,"n":1}`), insertion(t, `{"_id":2,"n":2}`), replacement(t, `{"_id":1,"n":11}`))
	mustWrite(t, a, replacement(t, `{"_id":1,"n":11}`)) // nothing changes
	mustWrite(t, db.Collection("svc.positions"), insertion(t, `{"_id":9}`))
	mustWrite(t, b, insertion(t, `{"_id":"x"}`))
	if err := db.Transact(t.Context(), func(_ context.Context, tx store.Tx) error {
		mustWrite(t, tx.Collection("a"), insertion(t, `{"_id":3,"n":3}`), deletion(t, "2"))
		mustWrite(t, tx.Collection("b"), insertion(t, `{"_id":"y"}`))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		db.RenameCollection(t.Context(), "b", "c", false),
		db.DropCollection(t.Context(), "c"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"+ a 1", "+ a 2", "~ a 1", "+ b x", "+ a 3", "- a 2", "+ b y", "rename b to c", "drop c"}
	all := events(t, db, store.Watch{After: start})
	if got := list(all); !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	for i, e := range all {
		if e.Time.IsZero() || time.Since(e.Time).Abs() > time.Hour {
			t.Errorf("event %d is of %v", i, e.Time)
		}
		if got := list(events(t, db, store.Watch{After: e.Position})); !slices.Equal(got, want[i+1:]) {
			t.Errorf("behind event %d: %q, want %q", i, got, want[i+1:])
		}
	}
	got := list(events(t, db, store.Watch{After: start, Collections: []string{"b", "c"}, Documents: true}))
	if want := []string{"+ b x", "+ b y", "rename b to c", "drop c"}; !slices.Equal(got, want) {
		t.Errorf("of b and c: %q, want %q", got, want)
	}
	got = list(events(t, db, store.Watch{After: start, Collections: []string{"a"}, Documents: true}))
	if want := []string{
		`+ a 1 {"$numberInt":"11"}`, "+ a 2", `~ a 1 {"$numberInt":"11"}`, `+ a 3 {"$numberInt":"3"}`, "- a 2",
	}; !slices.Equal(got, want) {
		t.Errorf("with documents: %q, want %q", got, want)
	}
	other := databaseOn(t, s)
	for name, position := range map[string]store.Position{
		"of another database": all[0].Position, "cut": all[0].Position[:5], "empty": {}, "garbage": store.Position("garbage that is long"),
		"a token that is none": append(slices.Clone(all[0].Position[:10]), 5, 0, 0, 0, 0),
		"a token of garbage":   append(slices.Clone(all[0].Position[:10]), doc(t, `{"_data":"82zz"}`)...),
	} {
		watched := other
		if strings.HasPrefix(name, "a token") {
			watched = db
		}
		err := watched.Watch(t.Context(), store.Watch{After: position}, func(store.Event) error { return nil })
		if errs.KindOf(err) != errs.Invalid {
			t.Errorf("a position %s: %v", name, err)
		}
	}
}

func list(all []store.Event) []string {
	texts := []string{}
	for _, e := range all {
		texts = append(texts, told(e))
	}
	return texts
}

// TestWatchOutlivesItsDatabase drops the database under a Watch, and more than once.
func TestWatchOutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	s := open(t, mongotest.URI(t))
	dbName := "test_" + bson.NewObjectID().Hex()
	db := s.Database(dbName)
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	rounds := 0
	err = db.Watch(t.Context(), store.Watch{After: start, OnIdle: func(store.Position) error {
		if rounds++; rounds > 3 {
			return errEnough
		}
		mustWrite(t, db.Collection("a"), store.Op{Kind: store.Insert, Doc: number(t, rounds)})
		return s.DropDatabase(t.Context(), dbName)
	}}, func(e store.Event) error {
		all = append(all, told(e))
		return nil
	})
	if want := []string{"+ a 1", "drop a", "+ a 2", "drop a", "+ a 3", "drop a"}; !errors.Is(err, errEnough) || !slices.Equal(all, want) {
		t.Errorf("told %q, want %q; %v", all, want, err)
	}
}

func TestWatchGivesBackErrors(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	start, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db.Collection("a"), insertion(t, `{"_id":1}`))
	own := errors.New("own")
	if err := db.Watch(t.Context(), store.Watch{After: start}, func(store.Event) error { return own }); !errors.Is(err, own) {
		t.Errorf("fn's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = db.Watch(ctx, store.Watch{After: start}, func(store.Event) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
