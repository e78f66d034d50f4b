package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// transact runs fn on the collection of the tests in a transaction.
func transact(ctx context.Context, s *embedded.Store, fn func(ctx context.Context, c store.TxCollection) error) error {
	return s.Database("db").Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		return fn(ctx, tx.Collection("things"))
	})
}

// add increments a document by its _id.
func add(tb testing.TB, ctx context.Context, w store.Writer, id any, by int) error {
	tb.Helper()
	_, err := one(ctx, w, store.Op{Kind: store.Update, ID: value(tb, id), Update: inc("n", by)})
	return err
}

// number is what add has made of document 1.
func number(ctx context.Context, tb testing.TB, r store.Reader) int64 {
	tb.Helper()
	d, err := r.Get(ctx, value(tb, 1))
	if err != nil {
		tb.Errorf("the document: %v", err)
		return -1
	}
	return d.Lookup("n").AsInt64()
}

// wantIdle checks that no transaction has left anything behind.
func wantIdle(t *testing.T, s *embedded.Store) {
	t.Helper()
	if n := embedded.Held(s); n != 0 {
		t.Errorf("%d documents and keys are still held", n)
	}
	if n := embedded.Snapshots(s); n != 0 {
		t.Errorf("%d snapshots are still open", n)
	}
}

// A write outside waits for the transaction that has its document or its unique key, and nobody else waits with it.
func TestWritesWaitForTransactions(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	unique := index("u", "u")
	unique.Unique = true
	createIndex(t, c, unique)
	for _, commit := range []bool{true, false} {
		for name, w := range map[string]struct {
			op   store.Op
			many bool
			want func(err error) bool
		}{
			"by id":     {op: store.Op{Kind: store.Update, ID: value(t, 1), Update: inc("n", 1)}, want: func(err error) bool { return err == nil }},
			"by filter": {op: store.Op{Kind: store.Update, Filter: where("u", "one"), Update: inc("n", 1)}, want: func(err error) bool { return err == nil }},
			"many":      {op: store.Op{Kind: store.Update, Filter: where("u", "one"), Many: true, Update: inc("n", 1)}, want: func(err error) bool { return err == nil }},
			"unique key": {op: insert(t, bson.D{{Key: "_id", Value: 9}, {Key: "u", Value: "new"}}), want: func(err error) bool {
				var dup *store.DuplicateKeyError
				return errors.As(err, &dup) == commit
			}},
			"same _id": {op: insert(t, bson.D{{Key: "_id", Value: 3}, {Key: "u", Value: "three"}}), want: func(err error) bool {
				var dup *store.DuplicateKeyError
				return errors.As(err, &dup) == commit
			}},
		} {
			for _, atomic := range []bool{false, true} {
				must(t, c, store.Op{Kind: store.Delete, Filter: where("_id", bson.D{{Key: "$gte", Value: 0}}), Many: true})
				must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: "one"}, {Key: "n", Value: 0}}),
					insert(t, bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: "two"}, {Key: "n", Value: 0}}))
				result := make(chan error, 1)
				err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
					if err := errors.Join(add(t, ctx, tx, 1, 10)); err != nil {
						return err
					}
					if _, err := one(ctx, tx, insert(t, bson.D{{Key: "_id", Value: 3}, {Key: "u", Value: "new"}})); err != nil {
						return err
					}
					go func() {
						results, err := c.Write(t.Context(), []store.Op{w.op}, atomic)
						if err == nil {
							err = results[0].Err
						}
						result <- err
					}()
					embedded.WaitForWaiting(s, 1)
					if err := add(t, t.Context(), c, 2, 1); err != nil { // of another document
						return err
					}
					if !commit {
						return errs.ErrDenied
					}
					return nil
				})
				if commit != (err == nil) {
					t.Fatalf("%s: %v", name, err)
				}
				if err := <-result; !w.want(err) {
					t.Errorf("%s, atomic %v, commit %v: %v", name, atomic, commit, err)
				}
				if n := number(t.Context(), t, c); w.op.Kind == store.Update && (n == 11) != commit {
					t.Errorf("%s, atomic %v, commit %v: n is %d", name, atomic, commit, n)
				}
				wantIdle(t, s)
			}
		}
	}
}

// A write that waits ends with its context.
func TestWaitEndsWithContext(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}))
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		if err := add(t, ctx, tx, 1, 1); err != nil {
			return err
		}
		outside, cancel := context.WithCancel(t.Context())
		go func() {
			embedded.WaitForWaiting(s, 1)
			cancel()
		}()
		if err := add(t, outside, c, 1, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("the write that waited: %v", err)
		}
		return nil
	})
	if n := number(t.Context(), t, c); err != nil || n != 1 {
		t.Errorf("n is %d, %v", n, err)
	}
}

// The second of two transactions that write to one document is run again, whoever of them began first.
func TestLoserRunsAgain(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}), insert(t, bson.D{{Key: "_id", Value: 2}, {Key: "n", Value: 0}}))
	for name, first := range map[string]func() error{
		"another transaction": func() error {
			return transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error { return add(t, ctx, tx, 1, 10) })
		},
		"a write outside": func() error { return add(t, t.Context(), c, 1, 10) },
		"an index": func() error {
			return errors.Join(add(t, t.Context(), c, 1, 10), c.CreateIndex(t.Context(), index("n", "n")))
		},
		"an index that goes": func() error { return errors.Join(add(t, t.Context(), c, 1, 10), c.DropIndex(t.Context(), "n")) },
		"the collection's move": func() error {
			return errors.Join(add(t, t.Context(), c, 1, 10), s.Database("db").RenameCollection(t.Context(), "things", "moved", false),
				s.Database("db").RenameCollection(t.Context(), "moved", "things", false))
		},
	} {
		before := number(t.Context(), t, c)
		runs := 0
		err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
			runs++
			n := number(ctx, t, tx)
			if runs == 1 {
				if err := first(); err != nil {
					return err
				}
				if again := number(ctx, t, tx); again != n {
					t.Errorf("%s: read %d, then %d", name, n, again)
				}
			}
			// What was read decides what is written: were it not the last state, an increment would be lost.
			_, err := one(ctx, tx, store.Op{Kind: store.Update, ID: value(t, 1), Update: setTo("n", n+1)})
			if err != nil && runs > 1 {
				t.Errorf("%s: %v", name, err)
			}
			return nil // even if the write failed
		})
		if n := number(t.Context(), t, c); err != nil || runs != 2 || n != before+11 {
			t.Errorf("%s: %d runs, n went from %d to %d, %v", name, runs, before, n, err)
		}
		wantIdle(t, s)
	}
}

// A transaction that loses all the time gives up.
func TestTransactionGivesUp(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	embedded.SetLimits(s, embedded.Limits{Patience: 20 * time.Millisecond})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}))
	runs := 0
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		if err := add(t, ctx, tx, 1, 1); err != nil {
			return err
		}
		err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
			runs++
			return add(t, ctx, tx, 1, 10)
		})
		if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.Code != "busy" {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if n := number(t.Context(), t, c); err != nil || n != 1 || runs == 0 {
		t.Errorf("%d runs, n is %d, %v", runs, n, err)
	}
	wantIdle(t, s)
}

// A transaction that takes too long lets go of what it holds though its function still runs.
func TestTransactionExpires(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	embedded.SetLimits(s, embedded.Limits{Transaction: 20 * time.Millisecond})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}))
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		if err := add(t, ctx, tx, 1, 1); err != nil && errs.KindOf(err) != errs.Limit { // a slow machine may be late
			return err
		}
		if err := add(t, t.Context(), c, 1, 10); err != nil { // what fn must not do: it waits for this very transaction
			t.Errorf("the write that waited: %v", err)
		}
		<-ctx.Done()
		for name, err := range map[string]error{"write": add(t, ctx, tx, 2, 1), "read": tx.Find(ctx, store.Query{}, func(bson.Raw) error { return nil })} {
			if errs.KindOf(err) != errs.Limit {
				t.Errorf("a %s in a transaction that is over: %v", name, err)
			}
		}
		return nil
	})
	if n := number(t.Context(), t, c); errs.KindOf(err) != errs.Limit || n != 10 {
		t.Errorf("n is %d, %v", n, err)
	}
	wantIdle(t, s)
}

func TestTransactionSize(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	pad := strings.Repeat("x", 1<<20)
	written := 0
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		for i := range 20 {
			if _, err := one(ctx, tx, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: pad}})); err != nil {
				return err
			}
			written++
		}
		return nil
	})
	if errs.KindOf(err) != errs.Limit || written < 14 || written > 16 {
		t.Errorf("after %d MiB: %v", written, err)
	}
	// The same document over and over takes its room once.
	err = transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		for i := range 40 {
			op := store.Op{Kind: store.Replace, Doc: raw(t, bson.D{{Key: "_id", Value: 1}, {Key: "i", Value: i}, {Key: "pad", Value: pad}}), Upsert: true}
			if _, err := one(ctx, tx, op); err != nil {
				return err
			}
		}
		return nil
	})
	if n, countErr := collection(s).Count(t.Context(), nil, 0); err != nil || countErr != nil || n != 1 {
		t.Errorf("%d documents, %v, %v", n, err, countErr)
	}
	wantIdle(t, s)
}

// What counts is the bytes of the documents as the transaction leaves them, up to the limit to the byte, and not those
// that were there before.
func TestTransactionSizeBoundary(t *testing.T) {
	const limit = 16 << 20
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("n", "n"))
	sized := func(id, n, size int) bson.Raw { // a document of a size
		doc := func(pad int) bson.Raw {
			return raw(t, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: n}, {Key: "pad", Value: strings.Repeat("x", pad)}})
		}
		return doc(size - len(doc(0)))
	}
	for _, tt := range []struct {
		name  string
		sizes []int
		ok    bool
	}{
		{"one of the limit", []int{limit}, true},
		{"two of the limit", []int{limit - 1<<20, 1 << 20}, true},
		{"one byte more", []int{limit - 1<<20, 1<<20 + 1}, false},
	} {
		for round := range 3 { // inserted, replaced, and each one twice
			err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
				for i, size := range tt.sizes {
					for n := range 1 + round/2 {
						op := store.Op{Kind: store.Replace, Doc: sized(i, round+n, size), Upsert: true}
						if _, err := one(ctx, tx, op); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if tt.ok != (err == nil) || err != nil && errs.KindOf(err) != errs.Limit {
				t.Errorf("%s, round %d: %v", tt.name, round, err)
			}
		}
	}
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		for i := range 2 {
			if _, err := one(ctx, tx, store.Op{Kind: store.Delete, ID: value(t, i)}); err != nil {
				return err
			}
			if n, err := tx.Count(ctx, nil, 0); err != nil || n != int64(1-i) {
				t.Errorf("%d documents are left, %v", n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantIdle(t, s)
	validateAndClose(t, s)
}

func TestTransactionPanics(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	func() {
		defer func() {
			if r := recover(); r != "on purpose" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
			if _, err := one(ctx, tx, insert(t, bson.D{{Key: "_id", Value: 1}})); err != nil {
				t.Error(err)
			}
			panic("on purpose")
		})
		t.Error("no panic")
	}()
	wantIdle(t, s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}}))
}

// A transaction must not be used after its end, and fails if it is.
func TestTransactionAfterItsEnd(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	var late store.TxCollection
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		late = tx
		_, err := one(ctx, tx, insert(t, bson.D{{Key: "_id", Value: 1}}))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Get(t.Context(), value(t, 1)); err == nil {
		t.Error("a read after the end")
	}
	if _, err := late.Write(t.Context(), []store.Op{insert(t, bson.D{{Key: "_id", Value: 2}})}, false); err == nil {
		t.Error("a write after the end")
	}
}

// Close does not wait for what a transaction might still do.
func TestCloseCutsTransactionsShort(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}))
	closed := make(chan error, 1)
	err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
		if err := add(t, ctx, tx, 1, 1); err != nil {
			return err
		}
		waited := make(chan error, 1)
		go func() { waited <- add(t, t.Context(), c, 1, 1) }()
		embedded.WaitForWaiting(s, 1)
		go func() { closed <- s.Close() }()
		<-ctx.Done()
		if err := <-waited; errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a write that waited: %v", err)
		}
		return add(t, ctx, tx, 1, 1)
	})
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// Transfers between accounts keep their sum, in every transaction that reads all of them, and no update is lost: of each
// account, the versions that committed transactions read and wrote form one chain.
func TestTransactionHistory(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	unique := index("owner", "owner")
	unique.Unique = true
	createIndex(t, c, unique)
	createIndex(t, c, index("n", "n"))
	const accounts, workers, transfers = 6, 8, 60
	for i := range accounts {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "owner", Value: i}, {Key: "n", Value: 100}, {Key: "version", Value: 0}}))
	}
	type step struct{ account, read int64 }
	histories := make([][]step, workers)
	var runs atomic.Int64
	var g errgroup.Group
	for w := range workers {
		r := rand.New(rand.NewPCG(7, uint64(w)))
		g.Go(func() error {
			for range transfers {
				from, to := r.IntN(accounts), r.IntN(accounts-1)
				if to >= from {
					to++
				}
				var steps []step
				err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
					runs.Add(1)
					steps = steps[:0]
					owners := [2]bson.RawValue{}
					for i, id := range []int{from, to} {
						d, err := tx.Get(ctx, value(t, id))
						if err != nil {
							return err
						}
						steps = append(steps, step{account: int64(id), read: d.Lookup("version").AsInt64()})
						owners[i] = d.Lookup("owner")
						change := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1 - 2*(1-i)}, {Key: "version", Value: 1}}}, {Key: "$unset", Value: bson.D{{Key: "owner", Value: ""}}}}
						if i == 1 {
							change = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}, {Key: "version", Value: 1}}}, {Key: "$set", Value: bson.D{{Key: "owner", Value: owners[0]}}}}
						}
						if _, err := one(ctx, tx, store.Op{Kind: store.Update, ID: value(t, id), Update: update(change)}); err != nil {
							return err
						}
					}
					// The two have now changed owners, which are unique.
					_, err := one(ctx, tx, store.Op{Kind: store.Update, ID: value(t, from), Update: setTo("owner", owners[1])})
					return errors.Join(err, sumIs(ctx, tx, accounts, 100*accounts))
				})
				if err != nil {
					return err
				}
				histories[w] = append(histories[w], steps...)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	read := map[step]bool{}
	for _, h := range histories {
		for _, st := range h {
			if read[st] {
				t.Errorf("two transactions wrote to version %d of account %d", st.read, st.account)
			}
			read[st] = true
		}
	}
	for i := range int64(accounts) {
		d, err := c.Get(t.Context(), value(t, i))
		if err != nil {
			t.Fatal(err)
		}
		last := d.Lookup("version").AsInt64()
		for v := range last {
			if !read[step{account: i, read: v}] {
				t.Errorf("nobody wrote to version %d of account %d", v, i)
			}
		}
		if read[step{account: i, read: last}] {
			t.Errorf("the write to version %d of account %d is lost", last, i)
		}
	}
	if err := sumIs(t.Context(), c, accounts, 100*accounts); err != nil {
		t.Error(err)
	}
	t.Logf("%d runs for %d transfers", runs.Load(), workers*transfers)
	wantIdle(t, s)
}

func sumIs(ctx context.Context, r store.Reader, docs, want int64) error {
	var sum, n int64
	err := r.Find(ctx, store.Query{Sort: sortBy("n", "_id")}, func(d bson.Raw) error {
		n++
		sum += d.Lookup("n").AsInt64()
		return nil
	})
	if err == nil && (sum != want || n != docs) {
		err = fmt.Errorf("%d documents have %d, want %d and %d", n, sum, docs, want)
	}
	return err
}

// Atomic writes that search run as transactions: those before them are seen, and either all are applied or none.
func TestAtomicSearches(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	const docs, workers, times = 150, 4, 10
	for i := range docs {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 0}}))
	}
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for i := range times {
				results, err := c.Write(t.Context(), []store.Op{
					insert(t, bson.D{{Key: "_id", Value: fmt.Sprintf("%d/%d", w, i)}, {Key: "n", Value: i + w}}),
					{Kind: store.Update, Filter: where("n", bson.D{{Key: "$exists", Value: true}}), Many: true, Update: inc("n", 1)},
					{Kind: store.Delete, ID: value(t, fmt.Sprintf("%d/%d", w, i)), If: where("n", i+w+1)},
				}, true)
				if err != nil || results[0].Err != nil || results[1].Modified != docs+1 || results[2].Err != nil {
					return fmt.Errorf("%+v, %w", results, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(t.Context(), where("n", workers*times), 0); n != docs || err != nil {
		t.Errorf("%d of %d documents have all increments, %v", n, docs, err)
	}
	wantIdle(t, s)
}
