package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
)

// testTxCounters reads, adds and writes from many sides.
func testTxCounters(f *fixture) {
	const workers, steps = 6, 12
	f.given(`{"_id":1,"n":0}`)
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for range steps {
				err := f.transact(func(tx *txFixture) error {
					c := tx.in("things")
					d, err := c.Get(c.ctx, value(`1`))
					if err != nil {
						return err
					}
					return c.apply(replace(fmt.Sprintf(`{"_id":1,"n":%d}`, d.Lookup("n").AsInt64()+1)))
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.wantContents(fmt.Sprintf(`{"_id":1,"n":%d}`, workers*steps))
}

// testTransfers moves amounts between accounts of two collections while views and transactions sum them up.
func testTransfers(f *fixture) {
	const accounts, workers, steps, amount = 8, 4, 25, 100
	names := []string{"left", "right"}
	for _, name := range names {
		for i := range accounts {
			f.collection(name).given(fmt.Sprintf(`{"_id":%d,"n":%d}`, i, amount))
		}
	}
	add := func(id, n int) store.Op {
		return store.Op{Kind: store.Update, ID: value(strconv.Itoa(id)), Update: update(fmt.Sprintf(`{"$inc":{"n":%d}}`, n))}
	}
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for i := range steps {
				from, to := (w+i)%accounts, (w*3+i*5)%accounts
				err := f.transact(func(tx *txFixture) error {
					if err := tx.in(names[i%2]).apply(add(from, -7)); err != nil {
						return err
					}
					return tx.in(names[w%2]).apply(add(to, 7))
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	sum := func(ctx context.Context, readers ...store.Reader) error {
		total := int64(0)
		for _, r := range readers {
			if err := r.Find(ctx, store.Query{}, func(d bson.Raw) error { total += d.Lookup("n").AsInt64(); return nil }); err != nil {
				return err
			}
		}
		if total != 2*accounts*amount {
			f.t.Errorf("the sum is %d, want %d", total, 2*accounts*amount)
		}
		return nil
	}
	g.Go(func() error {
		for range steps {
			v, err := f.db.View(f.t.Context())
			if err != nil {
				return err
			}
			if err := errors.Join(sum(f.t.Context(), v.Collection("left"), v.Collection("right")), v.Close()); err != nil {
				return err
			}
			err = f.transact(func(tx *txFixture) error { return sum(tx.ctx, tx.in("left"), tx.in("right")) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
}

// testTxCrossing writes to two documents in opposite orders: all transactions come through.
func testTxCrossing(f *fixture) {
	f.given(`{"_id":1,"n":0}`, `{"_id":2,"n":0}`)
	var g errgroup.Group
	for w := range 4 {
		g.Go(func() error {
			for range 8 {
				err := f.transact(func(tx *txFixture) error {
					for i := range 2 {
						id := value(strconv.Itoa(1 + (i+w)%2))
						if err := tx.in("things").apply(store.Op{Kind: store.Update, ID: id, Update: update(`{"$inc":{"n":1}}`)}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.wantContents(`{"_id":1,"n":32}`, `{"_id":2,"n":32}`)
}

// testTxRace inserts one unique value from transactions and from outside: one of them has it.
func testTxRace(f *fixture) {
	f.index(unique(on("u")))
	f.race(5, 8, "dup u[u]", func(round, i int) error {
		op := insert(fmt.Sprintf(`{"_id":"%d/%d","u":%d}`, round, i, round))
		if i%2 == 0 {
			return f.transact(func(tx *txFixture) error { return tx.in("things").apply(op) })
		}
		return f.apply(op, false)
	})
}
