package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
	"github.com/svcctl/svc/pkg/store/mongo"
)

// ledger is one client that does one thing again and again, and what it knows of it.
type ledger struct {
	name  string
	step  func(ctx context.Context, n int) error
	check func(ctx context.Context, done, tried int64) error // holds it against what is stored

	done, tried atomic.Int64
}

const group = 20 // documents that are changed together

// newAttack gives an attack on a new database with all its clients.
func newAttack(t *testing.T, s *mongo.Store) *attack {
	t.Helper()
	db := s.Database("attack")
	a := &attack{t: t, unknown: map[string]int{}}
	a.life, a.stop = context.WithCancel(t.Context())
	counts := db.Collection("counts")
	for _, id := range []string{"by id", "by filter", "give", "transaction", "lease"} {
		mustWrite(t, counts, insertion(t, fmt.Sprintf(`{"_id":%q,"k":%[1]q,"n":0}`, id)))
	}
	for i := range group {
		mustWrite(t, db.Collection("many"), insertion(t, fmt.Sprintf(`{"_id":%d,"n":0}`, i)))
		mustWrite(t, db.Collection("both"), insertion(t, fmt.Sprintf(`{"_id":%d,"n":0}`, i)))
	}
	if err := db.Collection("unique").CreateIndex(t.Context(), store.Index{Name: "u", Keys: []store.IndexKey{{Path: "u"}}, Unique: true}); err != nil {
		t.Fatal(err)
	}
	after, err := db.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.watched = &watched{db: db, at: after, updates: map[string]int64{}}
	a.ledgers = []*ledger{
		counting(t, counts, "by id", func(*store.Op) {}),
		counting(t, counts, "by filter", func(o *store.Op) { o.Filter, o.ID = filter(t, `{"k":"by filter"}`), bson.RawValue{} }),
		counting(t, counts, "give", func(o *store.Op) { o.Return = store.ReturnAfter }),
		countingMany(t, db.Collection("many")),
		countingBoth(t, db.Collection("both")),
		upserting(t, db.Collection("unique")),
		inserting(t, db.Collection("inserts")),
		transacting(t, db),
		leasing(t, db),
		building(t, db.Collection("indexed")),
		viewing(db),
	}
	return a
}

func one(rs []store.Result, err error) (store.Result, error) {
	if err != nil {
		return store.Result{}, err
	}
	return rs[0], rs[0].Err
}

func number64(ctx context.Context, c store.Reader, id bson.RawValue) (int64, error) {
	d, err := c.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	n, _ := d.Lookup("n").AsInt64OK()
	return n, nil
}

// counting counts up one document, and reads what it has counted.
func counting(t *testing.T, c store.Collection, id string, change func(*store.Op)) *ledger {
	t.Helper()
	op := update(t, fmt.Sprintf("%q", id), `{"$inc":{"n":1}}`)
	key := op.ID
	change(&op)
	var last int64
	return &ledger{name: "count " + id, step: func(ctx context.Context, _ int) error {
		r, err := one(c.Write(ctx, []store.Op{op}, false))
		if err != nil {
			return err
		}
		if r.Matched != 1 || r.Modified != 1 {
			t.Errorf("count %s: %s", id, result(r))
		}
		now := last + 1
		if op.Return == store.ReturnAfter {
			if now, _ = r.Doc.Lookup("n").AsInt64OK(); now <= last {
				t.Errorf("count %s: %d after %d", id, now, last)
			}
		}
		last = now
		return nil
	}, check: func(ctx context.Context, done, tried int64) error {
		n, err := number64(ctx, c, key)
		return errors.Join(err, between("the count", n, done, tried))
	}}
}

// countingMany counts up a group of documents by one op.
func countingMany(t *testing.T, c store.Collection) *ledger {
	t.Helper()
	op := update(t, "", `{"$inc":{"n":1}}`)
	op.Filter, op.Many = filter(t, `{"n":{"$gte":0}}`), true
	return &ledger{name: "count many", step: func(ctx context.Context, n int) error {
		r, err := one(c.Write(ctx, []store.Op{op}, n%2 == 0))
		if err == nil && r.Matched != group {
			t.Errorf("count many: %s", result(r))
		}
		return err
	}, check: eachBetween(t, c)}
}

func eachBetween(t *testing.T, c store.Collection) func(ctx context.Context, done, tried int64) error {
	t.Helper()
	return func(ctx context.Context, done, tried int64) error {
		var all []error
		for i := range group {
			n, err := number64(ctx, c, value(t, strconv.Itoa(i)))
			all = append(all, err, between(fmt.Sprint("the count of ", i), n, done, tried))
		}
		return errors.Join(all...)
	}
}

// countingBoth counts up a group of documents by an atomic write, together.
func countingBoth(t *testing.T, c store.Collection) *ledger {
	t.Helper()
	var ops []store.Op
	for i := range group {
		ops = append(ops, update(t, strconv.Itoa(i), `{"$inc":{"n":1}}`))
	}
	each := eachBetween(t, c)
	return &ledger{name: "count together", step: func(ctx context.Context, _ int) error {
		_, err := one(c.Write(ctx, ops, true))
		return err
	}, check: func(ctx context.Context, done, tried int64) error {
		values, err := c.Distinct(ctx, "n", nil)
		if len(values) != 1 {
			err = errors.Join(err, fmt.Errorf("the counts are %v", values))
		}
		return errors.Join(err, each(ctx, done, tried))
	}}
}

// upserting counts in a document that it makes itself, ten times each.
func upserting(t *testing.T, c store.Collection) *ledger {
	t.Helper()
	return &ledger{name: "upsert", step: func(ctx context.Context, n int) error {
		op := update(t, "", `{"$inc":{"n":1}}`)
		op.Filter, op.Upsert = filter(t, fmt.Sprintf(`{"u":%d}`, n/10)), true
		_, err := one(c.Write(ctx, []store.Op{op}, false))
		return err
	}, check: func(ctx context.Context, done, tried int64) error {
		var sum int64
		err := c.Find(ctx, store.Query{}, func(d bson.Raw) error {
			n, _ := d.Lookup("n").AsInt64OK()
			sum += n
			return nil
		})
		return errors.Join(err, between("the sum", sum, done, tried))
	}}
}

// inserting inserts two documents at once, and then reads them.
func inserting(t *testing.T, c store.Collection) *ledger {
	t.Helper()
	var known []int
	return &ledger{name: "insert", step: func(ctx context.Context, n int) error {
		ops := []store.Op{{Kind: store.Insert, Doc: number(t, 2*n)}, {Kind: store.Insert, Doc: number(t, 2*n+1)}}
		rs, err := c.Write(ctx, ops, false)
		if err != nil {
			return err
		}
		for _, r := range rs {
			if r.Err != nil { // a repeated insert would be a duplicate
				t.Errorf("insert: %v", r.Err)
			}
		}
		known = append(known, 2*n, 2*n+1)
		if _, err = c.Get(ctx, ops[1].Doc.Lookup("_id")); errors.Is(err, errs.ErrNotFound) {
			t.Errorf("inserted %d, and don't see it", 2*n+1) // whoever is primary
			return nil
		}
		return err
	}, check: func(ctx context.Context, _, _ int64) error {
		there := map[int32]bool{}
		err := c.Find(ctx, store.Query{}, func(d bson.Raw) error {
			there[d.Lookup("_id").Int32()] = true
			return nil
		})
		for _, id := range known {
			if !there[int32(id)] {
				err = errors.Join(err, fmt.Errorf("%d is lost", id))
			}
		}
		return err
	}}
}

// transacting counts in one collection what it logs in another one.
func transacting(t *testing.T, db store.Database) *ledger {
	t.Helper()
	id := value(t, `"transaction"`)
	return &ledger{name: "transaction", step: func(ctx context.Context, _ int) error {
		return db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			n, err := number64(ctx, tx.Collection("counts"), id)
			if err != nil {
				return err
			}
			op := replacement(t, fmt.Sprintf(`{"_id":"transaction","n":%d}`, n+1))
			if _, err := one(tx.Collection("counts").Write(ctx, []store.Op{op}, false)); err != nil {
				return err
			}
			_, err = one(tx.Collection("log").Write(ctx, []store.Op{{Kind: store.Insert, Doc: number(t, int(n))}}, false))
			return err
		})
	}, check: func(ctx context.Context, done, tried int64) error {
		n, err := number64(ctx, db.Collection("counts"), id)
		logged, logErr := db.Collection("log").Count(ctx, nil, 0)
		if logged != n {
			logErr = errors.Join(logErr, fmt.Errorf("%d are logged, %d counted", logged, n))
		}
		return errors.Join(err, logErr, between("the count", n, done, tried))
	}}
}

// leasing takes a lease, under two names in turn, and logs its token in a transaction of the holder.
func leasing(t *testing.T, db store.Database) *ledger {
	t.Helper()
	leases := []*lease.Leases{lease.New(db, "one", nil), lease.New(db, "two", nil)}
	return &ledger{name: "lease", step: func(ctx context.Context, n int) error {
		held, err := leases[n%2].Acquire(ctx, "work", 500*time.Millisecond)
		if errors.Is(err, lease.ErrHeld) { // by an attempt whose outcome is unknown
			time.Sleep(50 * time.Millisecond)
			return errs.New(errs.Unavailable, "held", "held")
		}
		if err != nil {
			return err
		}
		err = db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			if err := held.Fence(ctx, tx); err != nil {
				return err
			}
			op := insertion(t, fmt.Sprintf(`{"_id":{"$numberLong":"%d"}}`, held.Token()))
			_, err := one(tx.Collection("tokens").Write(ctx, []store.Op{op}, false))
			return err
		})
		if errors.Is(err, lease.ErrLost) {
			return errs.New(errs.Unavailable, "lost", "lost")
		}
		return errors.Join(err, held.Release(ctx))
	}, check: func(ctx context.Context, done, tried int64) error {
		n, err := db.Collection("tokens").Count(ctx, nil, 0)
		return errors.Join(err, between("the number of tokens", n, done, tried))
	}}
}

// building builds and drops an index.
func building(t *testing.T, c store.Collection) *ledger {
	t.Helper()
	index := store.Index{Name: "n", Keys: []store.IndexKey{{Path: "n"}}}
	return &ledger{name: "index", step: func(ctx context.Context, n int) error {
		op := store.Op{Kind: store.Update, Filter: filter(t, `{"_id":1}`), Upsert: true, Update: mql.MustCompileUpdate(object(t, `{"$inc":{"n":1}}`))}
		if _, err := one(c.Write(ctx, []store.Op{op}, false)); err != nil {
			return err
		}
		if n%2 == 0 {
			return c.CreateIndex(ctx, index)
		}
		return c.DropIndex(ctx, index.Name)
	}, check: func(ctx context.Context, _, _ int64) error {
		if err := c.CreateIndex(ctx, index); err != nil {
			return err
		}
		all, err := c.Indexes(ctx)
		if len(all) != 1 {
			err = errors.Join(err, fmt.Errorf("the indexes are %v", all))
		}
		return err
	}}
}

// viewing reads one state of what a transaction writes together.
func viewing(db store.Database) *ledger {
	return &ledger{name: "view", step: func(ctx context.Context, _ int) error {
		view, err := db.View(ctx)
		if err != nil {
			return err
		}
		defer view.Close()
		logged, err := view.Collection("log").Count(ctx, nil, 0)
		if err != nil {
			return err
		}
		var n int64
		err = view.Collection("counts").Find(ctx, store.Query{Filter: mql.MustCompile(bson.D{{Key: "_id", Value: "transaction"}})}, func(d bson.Raw) error {
			n, _ = d.Lookup("n").AsInt64OK()
			return nil
		})
		if err == nil && n != logged {
			return fmt.Errorf("the view has %d logged and %d counted", logged, n)
		}
		return err
	}, check: func(context.Context, int64, int64) error { return nil }}
}

// watched follows the feed, from where it was whenever that breaks.
type watched struct {
	db store.Database
	at store.Position

	mu      sync.Mutex
	logged  []int32
	tokens  []int64
	updates map[string]int64 // by collection and id
	wrong   []error
}

func (w *watched) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.db.Watch(ctx, store.Watch{After: w.at}, func(e store.Event) error {
			w.note(e)
			return nil
		})
		if kind := errs.KindOf(err); ctx.Err() == nil && kind != errs.Unavailable {
			w.wrong = append(w.wrong, err)
			return
		}
	}
}

func (w *watched) note(e store.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = e.Position
	switch e.Collection {
	case "log":
		w.logged = append(w.logged, e.ID.Int32())
	case "tokens":
		w.tokens = append(w.tokens, e.ID.Int64())
	case "counts", "many", "both":
		w.updates[e.Collection+" "+name(e.ID)]++
	}
}

// check reads the rest of the feed, and compares it with what is stored.
func (w *watched) check(ctx context.Context) error {
	end := errors.New("end")
	err := w.db.Watch(ctx, store.Watch{After: w.at, OnIdle: func(store.Position) error { return end }}, func(e store.Event) error {
		w.note(e)
		return nil
	})
	if !errors.Is(err, end) {
		return err
	}
	for i, n := range w.logged {
		if n != int32(i) {
			w.wrong = append(w.wrong, fmt.Errorf("log %d comes at %d", n, i))
			break
		}
	}
	for i := 1; i < len(w.tokens); i++ {
		if w.tokens[i] <= w.tokens[i-1] {
			w.wrong = append(w.wrong, fmt.Errorf("token %d comes behind %d", w.tokens[i], w.tokens[i-1]))
		}
	}
	if n, err := w.db.Collection("log").Count(ctx, nil, 0); n != int64(len(w.logged)) {
		w.wrong = append(w.wrong, fmt.Errorf("%d logged, %d told, %w", n, len(w.logged), err))
	}
	for _, c := range []string{"counts", "many", "both"} {
		err := w.db.Collection(c).Find(ctx, store.Query{}, func(d bson.Raw) error {
			key := c + " " + name(d.Lookup("_id"))
			if n, _ := d.Lookup("n").AsInt64OK(); n != w.updates[key] {
				w.wrong = append(w.wrong, fmt.Errorf("%s is %d, after %d events", key, n, w.updates[key]))
			}
			return nil
		})
		w.wrong = append(w.wrong, err)
	}
	return errors.Join(w.wrong...)
}
