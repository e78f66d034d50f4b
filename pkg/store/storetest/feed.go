package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
)

// feedTimeout ends a test whose feed has stopped.
const feedTimeout = time.Minute

// position gives the feed's end.
func (f *fixture) position() store.Position {
	f.t.Helper()
	p, err := f.db.Position(f.t.Context())
	if err != nil {
		f.t.Fatalf("Position: %v", err)
	}
	if len(p) == 0 {
		f.t.Fatal("the feed's end has no position")
	}
	return p
}

// events gives all changes between a position and now. It writes a document to the collection "marker" to know when now
// is.
func (f *fixture) events(after store.Position, w store.Watch) []store.Event {
	f.t.Helper()
	mark := bson.NewObjectID()
	f.collection("marker").mustWrite(insert(fmt.Sprintf(`{"_id":{"$oid":%q}}`, mark.Hex())))
	w.After = after
	if len(w.Collections) > 0 {
		w.Collections = append(slices.Clone(w.Collections), "marker")
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), feedTimeout)
	defer cancel()
	var events []store.Event
	err := f.db.Watch(ctx, w, func(e store.Event) error {
		if e.Collection == "marker" && e.Kind == store.Inserted {
			if id, ok := e.ID.ObjectIDOK(); ok && id == mark {
				return errStop
			}
			return nil // of a call before
		}
		events = append(events, cloneEvent(e))
		return nil
	})
	if !errors.Is(err, errStop) {
		f.t.Fatalf("Watch: %v, after %d events:\n%s", err, len(events), showEvents(events))
	}
	return events
}

// cloneEvent copies what is valid during the call only.
func cloneEvent(e store.Event) store.Event {
	e.Position, e.Doc = bytes.Clone(e.Position), bytes.Clone(e.Doc)
	e.ID.Value = bytes.Clone(e.ID.Value)
	return e
}

func showEvents(events []store.Event) string {
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = showEvent(e)
	}
	return strings.Join(lines, "\n")
}

func showEvent(e store.Event) string {
	kind := map[store.EventKind]string{
		store.Inserted: "inserted", store.Updated: "updated", store.Deleted: "deleted", store.Dropped: "dropped", store.Renamed: "renamed",
	}[e.Kind]
	text := e.Collection + " " + kind
	if e.ID.Type != 0 {
		text += " " + show(e.ID)
	}
	if e.To != "" {
		text += " to " + e.To
	}
	if e.Doc != nil {
		text += " doc " + e.Doc.String()
	}
	return text
}

// wantEvents compares the changes since a position.
func (f *fixture) wantEvents(after store.Position, w store.Watch, want ...string) {
	f.t.Helper()
	if got := showEvents(f.events(after, w)); got != strings.Join(want, "\n") {
		f.t.Errorf("events:\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func testFeed(t *testing.T, s store.Store) {
	for _, c := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"every kind of write", testFeedWrites},
		{"what changes nothing is not told", testFeedNothing},
		{"going on from each position", testFeedResume},
		{"some collections", testFeedCollections},
		{"with documents", testFeedDocuments},
		{"with fields", testFeedFields},
		{"drop and rename", testFeedDrop},
		{"a dropped database", testFeedDropDatabase},
		{"transactions", testFeedTransactions},
		{"databases are apart", testFeedApart},
		{"from now on", testFeedNow},
		{"idle", testFeedIdle},
		{"ends with its context", testFeedCancel},
		{"order under concurrent writes", testFeedOrder},
		{"a consumer with its position", testFeedConsumer},
		{"the time", func(f *fixture) {
			after := f.position()
			f.given(`{"_id":1}`)
			for _, e := range f.events(after, store.Watch{}) {
				if d := time.Since(e.Time); d > time.Hour || d < -time.Hour {
					f.t.Errorf("the event is of %v", e.Time)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newFixture(t, s)) })
	}
}

func testFeedWrites(f *fixture) {
	f.given(`{"_id":"before"}`)
	after := f.position()
	f.mustWrite(
		insert(`{"_id":1,"a":1}`), insert(`{"_id":"x"}`), replace(`{"_id":1,"a":2}`), remove(`"x"`),
		store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$inc":{"a":1}}`)},
		by(`{"_id":2}`, "", store.Op{Kind: store.Update, Update: update(`{"$set":{"a":3}}`), Upsert: true}),
		store.Op{Kind: store.Replace, Doc: doc(`{"_id":3,"a":3}`), Upsert: true},
		by(`{"a":3}`, "_id", store.Op{Kind: store.Delete}),
		returning(store.ReturnBefore, "", by(`{"a":3}`, "-_id", change(`{"$set":{"b":1}}`))),
	)
	f.write(true, insert(`{"_id":10}`), insert(`{"_id":11}`), remove(`10`))
	want := []string{
		"things inserted 1", "things inserted x", "things updated 1", "things deleted x", "things updated 1", "things inserted 2",
		"things inserted 3", "things deleted 1", "things updated 3", "things inserted 10", "things inserted 11", "things deleted 10",
	}
	f.wantEvents(after, store.Watch{}, want...)
	f.wantEvents(after, store.Watch{}, want...)

	after = f.position()
	f.mustWrite(many(by(`{"a":3}`, "", change(`{"$inc":{"a":1}}`))))
	events := f.events(after, store.Watch{})
	slices.SortFunc(events, func(a, b store.Event) int { return strings.Compare(showEvent(a), showEvent(b)) })
	if got := showEvents(events); got != "things updated 2\nthings updated 3" {
		f.t.Errorf("events of an update of many:\n%s", got)
	}
}

func testFeedNothing(f *fixture) {
	f.index(unique(on("a")))
	f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
	after := f.position()
	f.write(
		false,
		replace(`{"_id":1,"a":1}`), change1(`{"$set":{"a":1}}`), change1(`{"$max":{"a":0}}`), change1(`{"$unset":{"b":""}}`), remove(`9`),
		insert(`{"_id":1}`), replace(`{"_id":1,"a":2}`), when(`{"a":5}`, remove(`1`)), change1(`{"$push":{"a":1}}`),
		store.Op{Kind: store.Replace, Doc: doc(`{"_id":1,"a":1}`), Upsert: true}, many(by(`{}`, "", change(`{"$unset":{"z":""}}`))),
	)
	f.write(true, insert(`{"_id":3}`), remove(`9`))
	f.index(on("b"))
	f.drop(on("b"))
	if err := f.transact(func(tx *txFixture) error { _ = tx.in("things").apply(insert(`{"_id":4}`)); return errStop }); !errors.Is(err, errStop) {
		f.t.Error(err)
	}
	f.wantEvents(after, store.Watch{})
	f.mustWrite(replace(`{"_id":1,"a":1.0}`)) // equal, and yet a change
	f.wantEvents(after, store.Watch{}, "things updated 1")
}

func change1(u string) store.Op {
	return store.Op{Kind: store.Update, ID: value(`1`), Update: update(u)}
}

func testFeedResume(f *fixture) {
	first := f.position()
	for i := range 6 {
		f.given(fmt.Sprintf(`{"_id":%d}`, i))
	}
	if err := f.transact(func(tx *txFixture) error {
		return errors.Join(tx.in("things").apply(remove(`0`), remove(`1`)), tx.in("other").apply(insert(`{"_id":0}`)), tx.in("things").apply(remove(`2`)))
	}); err != nil {
		f.t.Fatal(err)
	}
	f.mustWrite(insert(`{"_id":6}`))
	all := f.events(first, store.Watch{})
	if len(all) != 11 {
		f.t.Fatalf("%d events, want 11:\n%s", len(all), showEvents(all))
	}
	for i, e := range all {
		if got, want := showEvents(f.events(e.Position, store.Watch{})), showEvents(all[i+1:]); got != want {
			f.t.Errorf("behind event %d (%s):\n%s\nwant\n%s", i, showEvent(e), got, want)
		}
	}
}

func testFeedCollections(f *fixture) {
	after := f.position()
	for i, name := range []string{"a", "a.b", "things", "ab", "a"} {
		f.collection(name).given(fmt.Sprintf(`{"_id":%d}`, i))
	}
	f.wantEvents(after, store.Watch{Collections: []string{"a"}}, "a inserted 0", "a inserted 4")
	f.wantEvents(after, store.Watch{Collections: []string{"a.b", "ab", "none"}}, "a.b inserted 1", "ab inserted 3")
}

func testFeedDocuments(f *fixture) {
	after := f.position()
	f.given(`{"_id":1,"a":1}`, `{"_id":2}`)
	f.mustWrite(change1(`{"$set":{"b":2}}`), remove(`2`))
	now := " doc " + doc(`{"_id":1,"a":1,"b":2}`).String()
	events := f.events(after, store.Watch{Documents: true})
	if len(events) != 4 {
		f.t.Fatalf("events:\n%s", showEvents(events))
	}
	if got := showEvent(events[2]); got != "things updated 1"+now {
		f.t.Errorf("got %s", got)
	}
	if got := showEvent(events[3]); got != "things deleted 2" {
		f.t.Errorf("got %s", got)
	}
	// What an insert tells may be the document as it was, too.
	for i, id := range []string{"1", "2"} {
		if got := events[i]; show(got.ID) != id || got.Doc != nil && show(got.Doc.Lookup("_id")) != id {
			f.t.Errorf("event %d: %s", i, showEvent(got))
		}
	}
	for _, e := range f.events(after, store.Watch{}) {
		if e.Doc != nil {
			f.t.Errorf("a document that was not asked for: %s", showEvent(e))
		}
	}
}

func testFeedDrop(f *fixture) {
	f.given(`{"_id":1}`)
	f.collection("other").given(`{"_id":1}`)
	after := f.position()
	f.rename("things", "new", false)
	f.collection("new").mustWrite(insert(`{"_id":2}`))
	f.rename("other", "new", true)
	if err := f.db.DropCollection(f.t.Context(), "new"); err != nil {
		f.t.Fatal(err)
	}
	if err := f.db.DropCollection(f.t.Context(), "none"); err != nil {
		f.t.Fatal(err)
	}
	f.collection("new").given(`{"_id":3}`)
	f.wantEvents(after, store.Watch{}, "things renamed to new", "new inserted 2", "other renamed to new", "new dropped", "new inserted 3")
	f.wantEvents(
		after, store.Watch{Collections: []string{"new"}},
		"things renamed to new", "new inserted 2", "other renamed to new", "new dropped", "new inserted 3",
	)
	f.wantEvents(after, store.Watch{Collections: []string{"things"}}, "things renamed to new")
}

func testFeedDropDatabase(f *fixture) {
	f.given(`{"_id":1}`)
	f.collection("other").given(`{"_id":1}`)
	f.collection("svc.hidden").given(`{"_id":1}`)
	name := databaseName(f.t, f.store)
	db := f.store.Database(name)
	g := &fixture{t: f.t, store: f.store, db: db, Collection: db.Collection("things")}
	g.given(`{"_id":1}`)
	g.collection("other").given(`{"_id":1}`)
	after := g.position()
	g.mustWrite(insert(`{"_id":2}`))
	if err := f.store.DropDatabase(f.t.Context(), name); err != nil {
		f.t.Fatal(err)
	}
	g.given(`{"_id":3}`)
	events := g.events(after, store.Watch{})
	if len(events) == 4 {
		slices.SortFunc(events[1:3], func(a, b store.Event) int { return strings.Compare(a.Collection, b.Collection) })
	}
	if got := showEvents(events); got != "things inserted 2\nother dropped\nthings dropped\nthings inserted 3" {
		f.t.Errorf("events:\n%s", got)
	}
}

func testFeedTransactions(f *fixture) {
	after := f.position()
	var outside sync.Once
	err := f.transact(func(tx *txFixture) error {
		if err := tx.in("things").apply(insert(`{"_id":1}`)); err != nil {
			return err
		}
		outside.Do(func() { f.collection("other").mustWrite(insert(`{"_id":"outside"}`)) }) // once: this may be tried again
		return errors.Join(tx.in("other").apply(insert(`{"_id":2}`)), tx.in("things").apply(replace(`{"_id":1,"a":1}`), insert(`{"_id":3}`), remove(`3`)))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.mustWrite(insert(`{"_id":4}`))
	// In the order of the commits. Of what a transaction does several times to a document, the sum may be told.
	events := f.events(after, store.Watch{})
	if len(events) < 4 || showEvent(events[0]) != "other inserted outside" || showEvent(events[len(events)-1]) != "things inserted 4" {
		f.t.Errorf("events:\n%s", showEvents(events))
	}
	for _, want := range []string{"things inserted 1", "other inserted 2"} {
		if !slices.ContainsFunc(events, func(e store.Event) bool { return showEvent(e) == want }) {
			f.t.Errorf("without %s:\n%s", want, showEvents(events))
		}
	}
}

func testFeedApart(f *fixture) {
	other := newFixture(f.t, f.store)
	after, otherAfter := f.position(), other.position()
	other.given(`{"_id":1}`)
	f.given(`{"_id":2}`)
	f.wantEvents(after, store.Watch{}, "things inserted 2")
	other.wantEvents(otherAfter, store.Watch{}, "things inserted 1")
}

// testFeedNow watches without a position. When it begins is known only from what it tells.
func testFeedNow(f *fixture) {
	f.given(`{"_id":"before"}`)
	ctx, cancel := context.WithTimeout(f.t.Context(), feedTimeout)
	defer cancel()
	var told atomic.Bool
	g, ctx := errgroup.WithContext(ctx) // the feed has no end of its own
	g.Go(func() error {
		for i := 0; !told.Load() && ctx.Err() == nil; i++ {
			if err := f.apply(insert(fmt.Sprintf(`{"_id":%d}`, i)), false); err != nil {
				return err
			}
		}
		return nil
	})
	err := f.db.Watch(ctx, store.Watch{}, func(e store.Event) error {
		told.Store(true)
		if show(e.ID) == "before" {
			f.t.Error("a change from before is told")
		}
		return errStop
	})
	cancel() // the writer
	if writeErr := g.Wait(); writeErr != nil {
		f.t.Errorf("writing: %v", writeErr)
	}
	if !errors.Is(err, errStop) {
		f.t.Errorf("Watch: %v", err)
	}
}

func testFeedIdle(f *fixture) {
	after := f.position()
	f.given(`{"_id":1}`, `{"_id":2}`)
	ctx, cancel := context.WithTimeout(f.t.Context(), feedTimeout)
	defer cancel()
	told := 0
	var idle store.Position
	w := store.Watch{After: after, OnIdle: func(p store.Position) error {
		if told < 2 {
			return nil // it may come before what is to be told is there
		}
		idle = bytes.Clone(p)
		return errStop
	}}
	if err := f.db.Watch(ctx, w, func(store.Event) error { told++; return nil }); !errors.Is(err, errStop) || told != 2 {
		f.t.Fatalf("Watch: %v, after %d events", err, told)
	}
	f.given(`{"_id":3}`)
	f.wantEvents(idle, store.Watch{}, "things inserted 3")
}

func testFeedCancel(f *fixture) {
	after := f.position()
	f.given(`{"_id":1}`)
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	err := f.db.Watch(ctx, store.Watch{After: after}, func(store.Event) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		f.t.Errorf("Watch: %v", err)
	}
	errOwn := errors.New("of the caller")
	if err := f.db.Watch(f.t.Context(), store.Watch{After: after}, func(store.Event) error { return errOwn }); !errors.Is(err, errOwn) {
		f.t.Errorf("Watch: %v, want the error of fn", err)
	}
}

// testFeedFields asks for fields of what is written: as they were left, or as they are by then.
func testFeedFields(f *fixture) {
	after := f.position()
	f.given(`{"_id":1,"a":1,"b":1}`, `{"_id":2,"a":1}`)
	f.mustWrite(change1(`{"$set":{"a":2}}`), replace(`{"_id":1,"a":3,"b":2}`), remove(`2`))
	events := f.events(after, store.Watch{Fields: []string{"a", "none"}})
	if len(events) != 5 {
		f.t.Fatalf("events:\n%s", showEvents(events))
	}
	for i, left := range []int64{1, 1, 2, 3} {
		e := events[i]
		gone := i == 1 // by now
		switch a, err := e.Fields.LookupErr("a"); {
		case err == nil && (a.AsInt64() == left || a.AsInt64() == 3 && !gone):
		case err != nil && gone:
		default:
			f.t.Errorf("event %d has %s", i, e.Fields)
		}
		if _, err := e.Fields.LookupErr("none"); err == nil || e.Doc != nil {
			f.t.Errorf("event %d has what was not asked for: %s", i, showEvent(e))
		}
	}
	if events[4].Fields != nil {
		f.t.Errorf("a document that is gone has %s", events[4].Fields)
	}
}
