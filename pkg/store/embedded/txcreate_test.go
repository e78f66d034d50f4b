package embedded_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// creator gives a collection that can be made in a transaction.
func creator(t *testing.T, tx store.Tx, name string) store.TxCreator {
	t.Helper()
	c, ok := tx.Collection(name).(store.TxCreator)
	if !ok {
		t.Fatal("the embedded store makes no collections in transactions")
	}
	return c
}

// TestCreateInTransaction makes collections and indexes, which are there with the commit and survive a restart.
func TestCreateInTransaction(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	s := start(t, embedded.Options{Dir: dir})
	db := s.Database("db")
	byA, unique := index("a", "a"), index("u", "u")
	unique.Unique = true
	err := db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		c := creator(t, tx, "things")
		if err := errors.Join(creator(t, tx, "empty").Create(ctx), c.CreateIndex(ctx, byA), c.CreateIndex(ctx, unique), c.CreateIndex(ctx, byA)); err != nil {
			return err
		}
		if err := c.Create(ctx); !errors.Is(err, store.ErrCollectionExists) {
			t.Errorf("twice: %v", err)
		}
		to := tx.Collection("things")
		err := store.WriteAll(ctx, to, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, 2}}, {Key: "u", Value: 1}}),
			insert(t, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: 2}, {Key: "u", Value: 2}}))
		if err := c.CreateIndex(ctx, index("late", "b")); !errors.Is(err, store.ErrCollectionExists) {
			t.Errorf("an index behind documents: %v", err)
		}
		if n, err := to.Count(ctx, nil, 0); n != 2 || err != nil {
			t.Errorf("the transaction sees %d documents, %v", n, err)
		}
		if names, err := db.CollectionNames(ctx); len(names) != 0 || err != nil {
			t.Errorf("before the commit others see %v, %v", names, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	validateAndClose(t, s)
	s = open(t, embedded.Options{Dir: dir})
	if names, err := s.Database("db").CollectionNames(ctx); !slices.Equal(names, []string{"empty", "things"}) || err != nil {
		t.Errorf("there are the collections %v, %v", names, err)
	}
	indexes, err := collection(s).Indexes(ctx)
	if err != nil || len(indexes) != 2 || !indexes[0].Equal(byA) || !indexes[1].Equal(unique) {
		t.Errorf("there are the indexes %v, %v", indexes, err)
	}
	filter, err := mql.Compile(bson.D{{Key: "a", Value: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := collection(s).Explain(ctx, store.Query{Filter: filter}); err != nil || !slices.Contains(e.Indexes, "a") {
		t.Errorf("it is found by %+v, %v", e, err)
	}
	if docs := find(t, collection(s), store.Query{Filter: filter}); len(docs) != 2 {
		t.Errorf("found %v", docs)
	}
	results, err := collection(s).Write(ctx, []store.Op{insert(t, bson.D{{Key: "_id", Value: 3}, {Key: "u", Value: 2}})}, false)
	if dup := (*store.DuplicateKeyError)(nil); err != nil || !errors.As(results[0].Err, &dup) {
		t.Errorf("a key that is taken: %v, %v", results, err)
	}
}

// TestNothingCreated makes collections in transactions that come to nothing.
func TestNothingCreated(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, embedded.Options{InMemory: true}), t.Context()
	db := s.Database("db")
	unique := index("u", "u")
	unique.Unique = true
	given := errs.New(errs.Invalid, "given_up", "given up")
	err := db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		return errors.Join(creator(t, tx, "things").CreateIndex(ctx, unique), given)
	})
	if !errors.Is(err, given) {
		t.Errorf("given up: %v", err)
	}
	err = db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := creator(t, tx, "things").CreateIndex(ctx, unique); err != nil {
			return err
		}
		return store.WriteAll(ctx, tx.Collection("things"), insert(t, bson.D{{Key: "_id", Value: 1}}), insert(t, bson.D{{Key: "_id", Value: 2}}))
	})
	if dup := (*store.DuplicateKeyError)(nil); !errors.As(err, &dup) {
		t.Errorf("one key twice: %v", err)
	}
	if names, err := db.CollectionNames(ctx); len(names) != 0 || err != nil {
		t.Errorf("there are %v, %v", names, err)
	}
	tries := 0
	err = db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		tries++
		if err := creator(t, tx, "things").Create(ctx); err != nil {
			return err
		}
		must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 1}})) // somebody else makes it meanwhile
		return nil
	})
	if !errors.Is(err, store.ErrCollectionExists) || tries != 2 {
		t.Errorf("made by another one meanwhile: %v, after %d tries", err, tries)
	}
	err = db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		return creator(t, tx, "things").CreateIndex(ctx, unique)
	})
	if !errors.Is(err, store.ErrCollectionExists) {
		t.Errorf("an index on what there is: %v", err)
	}
}
