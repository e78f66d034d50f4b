package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

var errStop = errors.New("stop")

// txFixture is a running transaction.
type txFixture struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // the one that the function of the transaction was given
	tx  store.Tx
}

// transact runs fn in a transaction of the database.
func (f *fixture) transact(fn func(tx *txFixture) error) error {
	return f.db.Transact(f.t.Context(), func(ctx context.Context, tx store.Tx) error {
		return fn(&txFixture{t: f.t, ctx: ctx, tx: tx})
	})
}

// txCollection is a collection within a transaction.
type txCollection struct {
	*txFixture
	store.TxCollection
}

func (x *txFixture) in(name string) *txCollection {
	return &txCollection{txFixture: x, TxCollection: x.tx.Collection(name)}
}

// apply writes ops, and gives the first error.
func (c *txCollection) apply(ops ...store.Op) error {
	results, err := c.Write(c.ctx, ops, false)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// must applies ops, which have to succeed: not for documents that others write to, because a conflict ends fn there.
func (c *txCollection) must(ops ...store.Op) {
	c.t.Helper()
	if err := c.apply(ops...); err != nil {
		c.t.Errorf("Write in a transaction: %v", err)
	}
}

// sees checks what the transaction finds, by all ways of reading.
func (c *txCollection) sees(q store.Query, want string) {
	c.t.Helper()
	var ids []string
	err := c.Find(c.ctx, q, func(d bson.Raw) error {
		ids = append(ids, show(d.Lookup("_id")))
		return nil
	})
	if got := strings.Join(ids, " "); err != nil || got != want {
		c.t.Errorf("filter %v sort %v in the transaction: %q, %v, want %q", q.Filter.Raw(), q.Sort, got, err, want)
	}
	if len(q.After) > 0 || q.Skip > 0 {
		return
	}
	if n, err := c.Count(c.ctx, q.Filter, q.Limit); err != nil || int(n) != len(strings.Fields(want)) {
		c.t.Errorf("count of %v in the transaction: %d, %v", q.Filter.Raw(), n, err)
	}
}

func testTransactions(t *testing.T, s store.Store) {
	for _, c := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"commit", testCommit},
		{"abort leaves nothing", testAbort},
		{"it reads what it wrote", testOwnWrites},
		{"it reads one state", testTxSnapshot},
		{"a duplicate key ends it", testTxDuplicate},
		{"what is not found does not end it", testTxNotFound},
		{"an op that can't be applied ends it", testTxInvalid},
		{"unique values change hands", testTxUnique},
		{"every kind of op", testTxOps},
		{"a conflict is tried again", testTxRetried},
		{"a write outside waits", testTxOutsideWaits},
		{"limits", testTxLimits},
		{"counters", testTxCounters},
		{"transfers", testTransfers},
		{"crossing", testTxCrossing},
		{"one of many inserts", testTxRace},
		{"of nothing", func(f *fixture) {
			if err := f.transact(func(*txFixture) error { return nil }); err != nil {
				f.t.Error(err)
			}
			if err := f.transact(func(tx *txFixture) error { tx.in("none").sees(store.Query{}, ""); return nil }); err != nil {
				f.t.Error(err)
			}
			f.wantCollections()
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newFixture(t, s)) })
	}
}

func testCommit(f *fixture) {
	f.index(unique(on("a")))
	f.given(`{"_id":1,"a":1}`)
	err := f.transact(func(tx *txFixture) error {
		tx.in("things").must(insert(`{"_id":2,"a":2}`), remove(`1`))
		tx.in("new").must(insert(`{"_id":1,"a":1}`))
		if got := f.find(store.Query{Sort: sortBy("_id")}); got != "1" { // from outside
			f.t.Errorf("others see %s before the commit", got)
		}
		if n, err := f.collection("new").Count(f.t.Context(), nil, 0); err != nil || n != 0 {
			f.t.Errorf("others see %d new documents before the commit: %v", n, err)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.wantContents(`{"_id":2,"a":2}`)
	f.wantCollections("new", "things")
	f.collection("new").wantContents(`{"_id":1,"a":1}`)
	if got := f.find(store.Query{Filter: filter(`{"a":{"$gte":1}}`)}); got != "2" {
		f.t.Errorf("the index finds %s, want 2", got)
	}
}

func testAbort(f *fixture) {
	f.index(on("a"))
	f.given(`{"_id":1,"a":1}`)
	err := f.transact(func(tx *txFixture) error {
		tx.in("things").must(insert(`{"_id":2,"a":2}`), remove(`1`))
		tx.in("new").must(insert(`{"_id":1}`))
		return errStop
	})
	if !errors.Is(err, errStop) {
		f.t.Errorf("Transact gave %v, want the error of fn", err)
	}
	f.wantContents(`{"_id":1,"a":1}`)
	if n, err := f.collection("new").Count(f.t.Context(), nil, 0); err != nil || n != 0 {
		f.t.Errorf("%d documents in a collection of an aborted transaction: %v", n, err)
	}
	f.mustWrite(insert(`{"_id":2,"a":3}`), replace(`{"_id":1,"a":4}`)) // nothing is held
	if got := f.find(store.Query{Filter: filter(`{"a":{"$gte":2}}`), Sort: sortBy("a")}); got != "2 1" {
		f.t.Errorf("the index finds %s, want 2 1", got)
	}
}

// testOwnWrites reads in every way while documents that are stored and those only written mix.
func testOwnWrites(f *fixture) {
	for i := range 20 {
		f.given(fmt.Sprintf(`{"_id":%d,"a":%d,"b":"x"}`, i, i))
	}
	f.underIndexes(f.t, permutations("a", "b"), func(f *fixture) {
		err := f.transact(func(tx *txFixture) error {
			c := tx.in("things")
			c.must(
				remove(`3`), replace(`{"_id":5,"a":100,"b":"y"}`), insert(`{"_id":30,"a":4.5,"b":"y"}`), insert(`{"_id":31,"a":[2.5,50]}`),
				remove(`7`), insert(`{"_id":7,"a":6.5}`), insert(`{"_id":32}`), remove(`32`),
			)
			c.sees(store.Query{Filter: filter(`{"a":{"$gte":2,"$lt":8}}`), Sort: sortBy("a _id")}, "2 31 4 30 6 7")
			c.sees(store.Query{Filter: filter(`{"a":{"$gte":2,"$lt":8}}`), Sort: sortBy("-a _id")}, "31 7 6 30 4 2")
			c.sees(store.Query{Sort: sortBy("-a _id"), Limit: 4}, "5 31 19 18")
			c.sees(store.Query{Sort: sortBy("a _id"), Skip: 2, Limit: 3}, "2 31 4")
			c.sees(store.Query{Sort: sortBy("_id"), Limit: 6}, "0 1 2 4 5 6")
			c.sees(store.Query{Sort: sortBy("-_id"), Limit: 3}, "31 30 19")
			c.sees(store.Query{Filter: filter(`{"b":"y"}`), Sort: sortBy("_id")}, "5 30")
			c.sees(store.Query{Filter: filter(`{"a":{"$in":[3,4,5,100]}}`), Sort: sortBy("_id")}, "4 5")
			c.sees(store.Query{Filter: filter(`{"_id":{"$in":[3,5,7,30,32]}}`), Sort: sortBy("_id")}, "5 7 30")
			c.sees(store.Query{Filter: filter(`{"$or":[{"a":100},{"b":{"$exists":false}}]}`), Sort: sortBy("_id")}, "5 7 31")
			q := store.Query{Sort: sortBy("a _id"), Limit: 4}
			q.After = q.Sort.Key(doc(`{"_id":2,"a":2}`))
			c.sees(q, "31 4 30 6")
			c.sees(store.Query{Filter: filter(`{"a":7}`)}, "")
			values, err := c.Distinct(c.ctx, "b", nil)
			if err != nil || showDistinct(values) != "x y" {
				f.t.Errorf("distinct in the transaction: %s, %v", showDistinct(values), err)
			}
			if d, err := c.Get(c.ctx, value(`5`)); err != nil || !d.Lookup("a").Equal(value(`100`)) {
				f.t.Errorf("get in the transaction: %v, %v", d, err)
			}
			if d, err := c.Get(c.ctx, value(`3`)); !errors.Is(err, errs.ErrNotFound) {
				f.t.Errorf("get of a deleted document in the transaction: %v, %v", d, err)
			}
			return errStop
		})
		if !errors.Is(err, errStop) {
			f.t.Error(err)
		}
		if n, err := f.Count(f.t.Context(), nil, 0); err != nil || n != 20 {
			f.t.Errorf("%d documents after the abort: %v", n, err)
		}
	})
}

func testTxSnapshot(f *fixture) {
	f.given(`{"_id":1,"a":1}`)
	f.collection("other").given(`{"_id":1,"a":1}`)
	err := f.transact(func(tx *txFixture) error {
		tx.in("things").sees(store.Query{}, "1")
		f.mustWrite(insert(`{"_id":2}`)) // from outside
		f.collection("other").mustWrite(replace(`{"_id":1,"a":2}`), insert(`{"_id":2}`))
		tx.in("things").sees(store.Query{Sort: sortBy("_id")}, "1")
		tx.in("other").sees(store.Query{Filter: filter(`{"a":1}`)}, "1")
		tx.in("other").sees(store.Query{Sort: sortBy("_id")}, "1")
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
	err = f.transact(func(tx *txFixture) error {
		tx.in("things").sees(store.Query{Sort: sortBy("_id")}, "1 2")
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
}

func testTxDuplicate(f *fixture) {
	f.index(unique(on("a")))
	f.given(`{"_id":1,"a":1}`)
	var dup *store.DuplicateKeyError
	err := f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		c.must(insert(`{"_id":3,"a":3}`))
		if err := c.apply(insert(`{"_id":2,"a":1}`)); !errors.As(err, &dup) {
			f.t.Errorf("a taken value: %v", err)
		}
		if err := c.apply(insert(`{"_id":4,"a":4}`)); !errors.Is(err, store.ErrAborted) {
			f.t.Errorf("a write after the end: %v", err)
		}
		if _, err := c.Get(c.ctx, value(`1`)); !errors.Is(err, store.ErrAborted) {
			f.t.Errorf("a read after the end: %v", err)
		}
		return nil
	})
	if !errors.As(err, &dup) || dup.Index != "a" {
		f.t.Errorf("Transact gave %v, want the duplicate key", err)
	}
	f.wantContents(`{"_id":1,"a":1}`)
	err = f.transact(func(tx *txFixture) error { return tx.in("things").apply(insert(`{"_id":1,"a":9}`)) })
	if !errors.As(err, &dup) || dup.Index != "_id" {
		f.t.Errorf("Transact gave %v, want the duplicate id", err)
	}
}

func testTxNotFound(f *fixture) {
	f.given(`{"_id":1,"a":1}`)
	err := f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		for _, step := range []struct {
			op   store.Op
			want string
		}{
			{remove(`9`), "missing"},
			{replace(`{"_id":9}`), "missing"},
			{when(`{"a":2}`, remove(`1`)), "stale"},
			{by(`{"a":2}`, "", change(`{"$set":{"b":1}}`)), "ok"},
			{insert(`{"_id":2}`), "ok"},
		} {
			if got := outcome(c.apply(step.op)); got != step.want {
				f.t.Errorf("got %s, want %s", got, step.want)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
	f.wantContents(`{"_id":1,"a":1}`, `{"_id":2}`)

	// Of several ops that are to be written all or none, one that finds nothing does end it.
	err = f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		results, err := c.Write(c.ctx, []store.Op{insert(`{"_id":3}`), remove(`9`)}, true)
		if err != nil || outcome(results[0].Err) != "aborted" || outcome(results[1].Err) != "missing" {
			f.t.Errorf("an atomic write of which one op finds nothing: %v, %v", results, err)
		}
		if err := c.apply(insert(`{"_id":4}`)); !errors.Is(err, store.ErrAborted) {
			f.t.Errorf("a write after the end: %v", err)
		}
		return nil
	})
	if !errors.Is(err, errs.ErrNotFound) {
		f.t.Errorf("Transact gave %v", err)
	}
	f.wantContents(`{"_id":1,"a":1}`, `{"_id":2}`)
}

func testTxInvalid(f *fixture) {
	f.given(`{"_id":1,"a":"x"}`)
	err := f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		c.must(insert(`{"_id":2}`))
		if got := outcome(c.apply(store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$inc":{"a":1}}`)})); got != "invalid" {
			f.t.Errorf("got %s, want invalid", got)
		}
		if err := c.apply(insert(`{"_id":4}`)); !errors.Is(err, store.ErrAborted) {
			f.t.Errorf("a write after the end: %v", err)
		}
		return nil
	})
	if errs.KindOf(err) != errs.Invalid {
		f.t.Errorf("Transact gave %v", err)
	}
	f.wantContents(`{"_id":1,"a":"x"}`)
}

func testTxUnique(f *fixture) {
	f.index(unique(on("a")))
	f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`)
	err := f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		if err := c.apply(replace(`{"_id":1,"a":0}`), replace(`{"_id":2,"a":1}`), replace(`{"_id":1,"a":2}`), remove(`2`), insert(`{"_id":3,"a":1}`)); err != nil {
			return err
		}
		c.sees(store.Query{Filter: filter(`{"a":{"$lte":2}}`), Sort: sortBy("a")}, "3 1")
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
	f.wantContents(`{"_id":1,"a":2}`, `{"_id":3,"a":1}`)
}

func testTxOps(f *fixture) {
	f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":3}`)
	err := f.transact(func(tx *txFixture) error {
		results, err := tx.in("things").Write(tx.ctx, []store.Op{
			many(by(`{"a":{"$gte":2}}`, "", change(`{"$inc":{"a":10}}`))),
			returning(store.ReturnAfter, `{"a":1}`, by(`{}`, "-a", change(`{"$set":{"b":1}}`))),
			by(`{"_id":4}`, "", store.Op{Kind: store.Update, Update: update(`{"$set":{"a":4}}`), Upsert: true}),
			returning(store.ReturnBefore, "", by(`{"a":{"$lt":10}}`, "-a", store.Op{Kind: store.Delete})),
			by(`{"a":12}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"n":1}`)}),
		}, false)
		if err != nil {
			return err
		}
		for i, want := range []string{
			"ok 2/2", "ok 1/1 doc " + doc(`{"_id":3,"a":13}`).String(), "ok 0/0 upserted 4", "ok 1/1 doc " + doc(`{"_id":4,"a":4}`).String(), "ok 1/1",
		} {
			if got := result(results[i]); got != want {
				f.t.Errorf("op %d: got %s, want %s", i, got, want)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
	f.wantContents(`{"_id":1,"a":1}`, `{"_id":2,"n":1}`, `{"_id":3,"a":13,"b":1}`)
}

// testTxRetried changes a document that the transaction has read, before the transaction writes to it.
func testTxRetried(f *fixture) {
	f.given(`{"_id":1,"a":1}`, `{"_id":2,"a":0}`)
	runs := 0
	err := f.transact(func(tx *txFixture) error {
		runs++
		c := tx.in("things")
		d, err := c.Get(c.ctx, value(`1`))
		if err != nil {
			return err
		}
		if runs == 1 {
			f.mustWrite(replace(`{"_id":1,"a":5}`)) // from outside
		}
		if err := c.apply(insert(fmt.Sprintf(`{"_id":"run %d"}`, runs))); err != nil {
			return err
		}
		return c.apply(replace(fmt.Sprintf(`{"_id":1,"a":%d}`, d.Lookup("a").AsInt64()+1)))
	})
	if err != nil || runs != 2 {
		f.t.Errorf("%d runs, %v", runs, err)
	}
	f.wantContents(`{"_id":1,"a":6}`, `{"_id":2,"a":0}`, `{"_id":"run 2"}`)
}

// testTxOutsideWaits adds one from outside while a transaction that has doubled goes on.
func testTxOutsideWaits(f *fixture) {
	f.given(`{"_id":1,"a":1}`)
	inc := store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$inc":{"a":1}}`)}
	for _, atomic := range []bool{false, true} {
		f.mustWrite(replace(`{"_id":1,"a":1}`))
		var once sync.Once
		var outside errgroup.Group
		runs := 0
		err := f.transact(func(tx *txFixture) error {
			runs++
			c := tx.in("things")
			if err := c.apply(store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$mul":{"a":10}}`)}); err != nil {
				return err
			}
			once.Do(func() {
				outside.Go(func() error {
					results, err := f.Write(f.t.Context(), []store.Op{inc}, atomic)
					if err != nil {
						return err
					}
					return results[0].Err
				})
			})
			for i := range 20 {
				if err := c.apply(insert(fmt.Sprintf(`{"_id":"%v %d"}`, atomic, i))); err != nil {
					return err
				}
			}
			return c.apply(store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$inc":{"a":100}}`)})
		})
		if err := errors.Join(err, outside.Wait()); err != nil || runs != 1 {
			f.t.Errorf("atomic %v: %d runs, %v", atomic, runs, err)
		}
		if d, err := f.Get(f.t.Context(), value(`1`)); err != nil || d.Lookup("a").AsInt64() != 111 {
			f.t.Errorf("atomic %v: %v, %v, want a: 111", atomic, d, err)
		}
	}
}

func testTxLimits(f *fixture) {
	err := f.transact(func(tx *txFixture) error {
		c := tx.in("things")
		for i := range 20 {
			if err := c.apply(large(i, 0, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	if errs.KindOf(err) != errs.Limit {
		f.t.Errorf("20 MiB in a transaction: %v", err)
	}
	if n, err := f.Count(f.t.Context(), nil, 0); err != nil || n != 0 {
		f.t.Errorf("%d documents are left of it: %v", n, err)
	}
	err = f.transact(func(tx *txFixture) error {
		for i := range 12 {
			if err := tx.in("things").apply(large(i, 0, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	if n, countErr := f.Count(f.t.Context(), nil, 0); err != nil || countErr != nil || n != 12 {
		f.t.Errorf("12 MiB in a transaction: %v; %d documents, %v", err, n, countErr)
	}
}
