package embedded_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func object(t *testing.T, json string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	return d
}

func compact(t *testing.T, doc bson.Raw) string {
	t.Helper()
	if doc == nil {
		return "-"
	}
	out, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// behind gives the events of the next n changes behind a position.
func behind(t *testing.T, db store.Database, at store.Position, n int) (events []store.Event) {
	t.Helper()
	enough := errors.New("enough")
	err := db.Watch(t.Context(), store.Watch{After: at}, func(e store.Event) error {
		if events = append(events, e); len(events) == n {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return events
}

func patch(t *testing.T, id any, change string) store.Op {
	t.Helper()
	return store.Op{Kind: store.Update, ID: value(t, id), Update: update(object(t, change))}
}

// TestFeedTellsUpdates has the feed say what updates have changed.
func TestFeedTellsUpdates(t *testing.T) {
	t.Parallel()
	s := open(t, embedded.Options{InMemory: true})
	db, c := s.Database("db"), collection(s)
	for _, x := range []struct{ doc, change, updated, removed, truncated string }{
		{`{"a":1}`, `{"$set":{"a":2,"b":3}}`, `{"a":2,"b":3}`, `[]`, `[]`},
		{`{"a":1,"b":2,"c":3,"d":4}`, `{"$unset":{"b":"","d":""}}`, `{}`, `["b","d"]`, `[]`},
		{`{"a":1,"b":2}`, `{"$rename":{"a":"z"},"$inc":{"b":1}}`, `{"b":3,"z":1}`, `["a"]`, `[]`},
		{`{"o":{"x":{"y":1,"z":2},"w":"this one stays as it is"}}`, `{"$set":{"o.x.y":5},"$unset":{"o.x.z":""}}`, `{"o.x.y":5}`, `["o.x.z"]`, `[]`},
		{`{"l":["a longer element",{"n":1},3]}`, `{"$push":{"l":4}}`, `{"l.3":4}`, `[]`, `[]`},
		{`{"l":["a longer element",{"n":1,"m":"and another one"},3]}`, `{"$inc":{"l.1.n":1}}`, `{"l.1.n":2}`, `[]`, `[]`},
		{`{"l":["a longer element, and longer still",2,3,4]}`, `{"$pop":{"l":1}}`, `{}`, `[]`, `[{"field":"l","newSize":3}]`},
		{`{"l":[1,2,3]}`, `{"$pop":{"l":-1}}`, `{"l":[2,3]}`, `[]`, `[]`},
		{`{"l":[1]}`, `{"$set":{"l":{"a":1}}}`, `{"l":{"a":1}}`, `[]`, `[]`},
	} {
		must(t, c, store.Op{Kind: store.Replace, Doc: raw(t, append(bson.D{{Key: "_id", Value: 1}}, object(t, x.doc)...)), ID: value(t, 1), Upsert: true})
		at, err := db.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		must(t, c, patch(t, 1, x.change))
		e := behind(t, db, at, 1)[0]
		want := `{"updatedFields":` + x.updated + `,"removedFields":` + x.removed + `,"truncatedArrays":` + x.truncated + `}`
		if got := compact(t, e.Update); got != want {
			t.Errorf("%s of %s: %s, want %s", x.change, x.doc, got, want)
		}
	}
}

// TestImages has the feed keep what documents were and became, also of what transactions do, and after a restart.
func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.Options{Dir: dir})
	keeper := func(s *embedded.Store) store.ImageKeeper {
		k, ok := collection(s).(store.ImageKeeper)
		if !ok {
			t.Fatal("the embedded store keeps no images")
		}
		return k
	}
	if err := keeper(s).KeepImages(t.Context(), true); err == nil {
		t.Error("of a collection that does not exist")
	}
	must(t, collection(s), insert(t, object(t, `{"_id":1,"a":1}`)), insert(t, object(t, `{"_id":2,"a":1}`)))
	if err := keeper(s).KeepImages(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	validateAndClose(t, s)
	s = open(t, embedded.Options{Dir: dir})
	if keeps, err := keeper(s).KeepsImages(t.Context()); !keeps || err != nil {
		t.Errorf("after a restart: %v, %v", keeps, err)
	}
	db, c := s.Database("db"), collection(s)
	at, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(t, c, patch(t, 1, `{"$set":{"a":2}}`), store.Op{Kind: store.Replace, Doc: raw(t, object(t, `{"_id":1,"b":1}`))})
	err = db.Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return store.WriteAll(ctx, tx.Collection("things"), patch(t, 2, `{"$set":{"a":2}}`), patch(t, 2, `{"$set":{"b":3}}`), store.Op{Kind: store.Delete, ID: value(t, 1)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper(s).KeepImages(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	must(t, c, store.Op{Kind: store.Delete, ID: value(t, 2)})
	for i, want := range [][3]string{
		{`{"updatedFields":{"a":2},"removedFields":[],"truncatedArrays":[]}`, `{"_id":1,"a":1}`, `{"_id":1,"a":2}`},
		{`-`, `{"_id":1,"a":2}`, `{"_id":1,"b":1}`},
		{`{"updatedFields":{"a":2,"b":3},"removedFields":[],"truncatedArrays":[]}`, `{"_id":2,"a":1}`, `{"_id":2,"a":2,"b":3}`},
		{`-`, `{"_id":1,"b":1}`, `-`},
		{`-`, `-`, `-`},
	} {
		e := behind(t, db, at, 1)[0]
		at = e.Position
		if got := [3]string{compact(t, e.Update), compact(t, e.Before), compact(t, e.After)}; got != want {
			t.Errorf("event %d is %v, want %v", i, got, want)
		}
	}
}
