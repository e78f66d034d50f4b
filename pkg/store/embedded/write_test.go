package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func update(change bson.D) *mql.Update { return mql.MustCompileUpdate(change) }

// setTo and inc are updates of one field.
func setTo(path string, v any) *mql.Update {
	return update(bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}})
}

func inc(path string, by int) *mql.Update {
	return update(bson.D{{Key: "$inc", Value: bson.D{{Key: path, Value: by}}}})
}

// where is a filter for one field.
func where(path string, v any) *mql.Filter { return mql.MustCompile(bson.D{{Key: path, Value: v}}) }

// one applies a single op and gives its result.
func one(ctx context.Context, w store.Writer, op store.Op) (store.Result, error) {
	results, err := w.Write(ctx, []store.Op{op}, false)
	if err != nil {
		return store.Result{}, err
	}
	return results[0], results[0].Err
}

// A write to many documents that moves them forward in the very index it finds them by must meet each once.
func TestManyMeetsEachDocumentOnce(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	for _, atomic := range []bool{false, true} {
		c := s.Database("db").Collection(fmt.Sprint("atomic-", atomic))
		createIndex(t, c, index("n", "n"))
		createIndex(t, c, index("l", "l"))
		const docs = 450
		for i := range docs {
			must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "l", Value: bson.A{i, i + 1}}}))
		}
		for _, path := range []string{"n", "l"} { // by an index of one key a document, and of several
			op := store.Op{
				Kind: store.Update, Filter: where(path, bson.D{{Key: "$gte", Value: 0}}), Many: true,
				Update: update(bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 100}, {Key: "l.0", Value: 1000}, {Key: "times", Value: 1}}}}),
			}
			results, err := c.Write(t.Context(), []store.Op{op}, atomic)
			if err != nil || results[0].Err != nil || results[0].Matched != docs || results[0].Modified != docs {
				t.Errorf("%s, atomic %v: %+v, %v", path, atomic, results, err)
			}
		}
		if n, err := c.Count(t.Context(), where("times", 2), 0); n != docs || err != nil {
			t.Errorf("atomic %v: %d documents were met twice, %v", atomic, n, err)
		}
	}
}

// Of a write to many, those before the one that fails are written and counted, unless it is atomic.
func TestManyStopsWhereItFails(t *testing.T) {
	for _, atomic := range []bool{false, true} {
		c := collection(open(t, embedded.Options{InMemory: true}))
		for i := range 250 {
			n := any(1)
			if i == 230 {
				n = "text"
			}
			must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: n}}))
		}
		op := store.Op{Kind: store.Update, Filter: mql.MustCompile(bson.D{}), Many: true, Update: inc("n", 1)}
		results, err := c.Write(t.Context(), []store.Op{op}, atomic)
		if err != nil || errs.KindOf(results[0].Err) != errs.Invalid {
			t.Fatalf("atomic %v: %v, %v", atomic, results, err)
		}
		want := int64(230)
		if !atomic && results[0].Modified != want {
			t.Errorf("%d are counted, want %d", results[0].Modified, want)
		}
		if atomic {
			want = 0
		}
		if n, err := c.Count(t.Context(), where("n", 2), 0); n != want || err != nil {
			t.Errorf("atomic %v: %d documents are written, want %d: %v", atomic, n, want, err)
		}
	}
}

// While exactly one document matches at any time, which one changes all the time: a write to it always finds it.
func TestOneIsFoundThoughItMoves(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("here", "here"))
	for i := range 3 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "here", Value: i == 0}}))
	}
	var stop atomic.Bool
	var movers, writers errgroup.Group
	for range 2 {
		movers.Go(func() error {
			for i := 0; !stop.Load(); i++ {
				from, to := i%3, (i+1)%3
				away := store.Op{Kind: store.Update, ID: value(t, from), If: where("here", true), Update: setTo("here", false)}
				results, err := c.Write(t.Context(), []store.Op{away, {Kind: store.Update, ID: value(t, to), Update: setTo("here", true)}}, true)
				if err != nil || results[0].Err != nil && !errors.Is(results[0].Err, store.ErrStale) {
					return fmt.Errorf("moving: %v, %w", results, err)
				}
			}
			return nil
		})
	}
	const workers, times = 8, 100
	for range workers {
		writers.Go(func() error {
			for range times {
				r, err := one(t.Context(), c, store.Op{Kind: store.Update, Filter: where("here", true), Update: inc("n", 1)})
				if err != nil || r.Matched != 1 {
					return fmt.Errorf("%+v, %w", r, err)
				}
			}
			return nil
		})
	}
	err := writers.Wait()
	stop.Store(true)
	if err := errors.Join(err, movers.Wait()); err != nil {
		t.Error(err)
	}
	total := int64(0)
	for _, d := range find(t, c, store.Query{}) {
		n, _ := d.Lookup("n").AsInt64OK()
		total += n
	}
	if total != workers*times {
		t.Errorf("%d writes are left of %d", total, workers*times)
	}
}

// Of many upserts of one unique key one inserts, whether the key is the _id or another; the others find its document.
func TestUpsertRace(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	unique := index("u", "u")
	unique.Unique = true
	createIndex(t, c, unique)
	const racers, rounds = 64, 10
	for round := range rounds {
		for _, path := range []string{"_id", "u"} {
			key := fmt.Sprintf("%s %d", path, round)
			var inserted, matched atomic.Int64
			var g sync.WaitGroup
			for range racers {
				g.Go(func() {
					op := store.Op{Kind: store.Update, Filter: where(path, key), Upsert: true, Update: update(bson.D{
						{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}},
					})}
					if path == "_id" {
						op.Update = update(bson.D{
							{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "$setOnInsert", Value: bson.D{{Key: "u", Value: key}}},
						})
					}
					r, err := one(t.Context(), c, op)
					if err != nil {
						t.Error(err)
					}
					matched.Add(r.Matched)
					if r.Upserted.Type != 0 {
						inserted.Add(1)
					}
				})
			}
			g.Wait()
			if inserted.Load() != 1 || matched.Load() != racers-1 {
				t.Errorf("%s: %d inserted, %d matched", key, inserted.Load(), matched.Load())
			}
			if docs := find(t, c, store.Query{Filter: where(path, key)}); len(docs) != 1 || docs[0].Lookup("n").AsInt64() != racers {
				t.Errorf("%s: %v", key, docs)
			}
		}
	}
}

// Stored documents begin with their _id, and have the time in place of empty timestamps.
func TestStoredForm(t *testing.T) {
	c := collection(open(t, embedded.Options{InMemory: true}))
	empty := bson.Timestamp{}
	must(t, c,
		insert(t, bson.D{{Key: "a", Value: 1}, {Key: "t", Value: empty}, {Key: "_id", Value: 1}, {Key: "o", Value: bson.D{{Key: "t", Value: empty}}}}),
		insert(t, bson.D{{Key: "_id", Value: empty}, {Key: "t", Value: empty}}),
		store.Op{Kind: store.Insert, Doc: raw(t, bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: 2}})},
		store.Op{Kind: store.Replace, Doc: raw(t, bson.D{{Key: "t", Value: empty}, {Key: "_id", Value: 2}})},
	)
	var last uint64
	for i, d := range find(t, c, store.Query{Sort: sortBy("t")}) {
		elements, err := d.Elements()
		if err != nil || elements[0].Key() != "_id" {
			t.Errorf("document %d: %v, %v", i, d, err)
		}
		sec, inc := d.Lookup("t").Timestamp()
		if now := uint64(sec)<<32 | uint64(inc); now <= last || sec == 0 {
			t.Errorf("document %d: the timestamp is %d %d", i, sec, inc)
		} else {
			last = now
		}
		if v := d.Lookup("o", "t"); v.Type != 0 && !v.Equal(value(t, empty)) {
			t.Errorf("a timestamp inside: %v", v)
		}
	}
	if _, err := c.Get(t.Context(), value(t, empty)); err != nil {
		t.Errorf("an _id that is an empty timestamp: %v", err)
	}
}

// What does not go together is refused, one op for itself.
func TestBadOps(t *testing.T) {
	c := collection(open(t, embedded.Options{InMemory: true}))
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 1}}))
	doc, id, all, u := raw(t, bson.D{{Key: "_id", Value: 1}}), value(t, 1), mql.MustCompile(bson.D{}), setTo("a", 1)
	for name, op := range map[string]store.Op{
		"no kind":                 {ID: id},
		"unknown kind":            {Kind: 9, ID: id},
		"update without one":      {Kind: store.Update, ID: id},
		"update of a delete":      {Kind: store.Delete, ID: id, Update: u},
		"insert by filter":        {Kind: store.Insert, Doc: doc, Filter: all},
		"insert with a condition": {Kind: store.Insert, Doc: doc, If: all},
		"filter and condition":    {Kind: store.Delete, Filter: all, If: all},
		"many by id":              {Kind: store.Delete, ID: id, Many: true},
		"order by id":             {Kind: store.Delete, ID: id, Sort: sortBy("n")},
		"replace many":            {Kind: store.Replace, Doc: doc, Filter: all, Many: true},
		"many in order":           {Kind: store.Delete, Filter: all, Many: true, Sort: sortBy("n")},
		"return many":             {Kind: store.Delete, Filter: all, Many: true, Return: store.ReturnBefore},
		"upsert of a delete":      {Kind: store.Delete, ID: id, Upsert: true},
		"upsert with a condition": {Kind: store.Update, ID: id, Update: u, If: all, Upsert: true},
		"upsert many":             {Kind: store.Update, Filter: all, Update: u, Many: true, Upsert: true},
		"after a delete":          {Kind: store.Delete, ID: id, Return: store.ReturnAfter},
		"update by no id":         {Kind: store.Update, Update: u},
		"replace without an id":   {Kind: store.Replace, Doc: raw(t, bson.D{{Key: "a", Value: 1}})},
		"replace with another id": {Kind: store.Replace, Filter: where("n", 1), Doc: raw(t, bson.D{{Key: "_id", Value: 2}})},
		"replace with a bad id":   {Kind: store.Replace, Filter: where("n", 1), Doc: raw(t, bson.D{{Key: "_id", Value: bson.A{}}})},
		"an upsert with a bad id": {Kind: store.Update, Filter: where("n", 9), Upsert: true, Update: setTo("_id", bson.A{1})},
		"bytes that are no BSON":  {Kind: store.Insert, Doc: bson.Raw{1, 2, 3}},
	} {
		results, err := c.Write(t.Context(), []store.Op{op, {Kind: store.Update, ID: id, Update: inc("times", 1)}}, false)
		if err != nil || errs.KindOf(results[0].Err) != errs.Invalid || results[1].Err != nil {
			t.Errorf("%s: %+v, %v", name, results, err)
		}
		results, err = c.Write(t.Context(), []store.Op{{Kind: store.Update, ID: id, Update: inc("never", 1)}, op}, true)
		if err != nil || errs.KindOf(results[1].Err) != errs.Invalid || !errors.Is(results[0].Err, store.ErrAborted) {
			t.Errorf("%s, atomic: %+v, %v", name, results, err)
		}
	}
	if n, err := c.Count(t.Context(), where("never", bson.D{{Key: "$exists", Value: true}}), 0); n != 0 || err != nil {
		t.Errorf("an op of a refused write was applied: %d, %v", n, err)
	}
}

// A failing op that would have made the collection leaves none behind.
func TestRefusedInsertMakesNoCollection(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	r, err := one(t.Context(), c, store.Op{Kind: store.Update, ID: value(t, 1), Upsert: true, Update: setTo("_id", 2)})
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("%+v, %v", r, err)
	}
	results, err := c.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 1}}), {Kind: store.Delete, ID: value(t, 2)}}, true)
	if err != nil || !errors.Is(results[1].Err, errs.ErrNotFound) {
		t.Errorf("%+v, %v", results, err)
	}
	if names, err := s.Database("db").CollectionNames(t.Context()); len(names) > 0 || err != nil {
		t.Errorf("collections %v, %v", names, err)
	}
}

// The caller owns what a write returns, and the store keeps nothing of what it is given.
func TestWriteOwnership(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	given := raw(t, bson.D{{Key: "_id", Value: "id"}, {Key: "a", Value: "text"}})
	want := bson.Raw(append([]byte(nil), given...))
	check := func(name string, w store.TxCollection, ctx context.Context) {
		op := store.Op{Kind: store.Replace, Doc: given, Upsert: true, Return: store.ReturnAfter}
		r, err := one(ctx, w, op)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, b := range [][]byte{given, r.Doc, r.Upserted.Value} {
			for i := range b {
				b[i] ^= 0xff
			}
		}
		copy(given, want)
		if d, err := w.Get(ctx, want.Lookup("_id")); err != nil || string(d) != string(want) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	check("plain", collection(s), t.Context())
	err := s.Database("db").Transact(t.Context(), func(ctx context.Context, tx store.Tx) error {
		check("transaction", tx.Collection("others"), ctx)
		return nil
	})
	if d, getErr := s.Database("db").Collection("others").Get(t.Context(), want.Lookup("_id")); err != nil || getErr != nil || string(d) != string(want) {
		t.Errorf("committed: %v, %v, %v", d, err, getErr)
	}
}
