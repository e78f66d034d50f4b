package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// In the turmoil money goes to and fro between these collections, so that what they hold together stays the same.
const (
	accounts = 12 // in each
	funds    = 2 * accounts * 100
)

// TestR6Turmoil does everything at once to one store, closes it in the midst of it, and opens it again. All the time
// accounts hold what they held together, what an index answers is what a scan does, and a watcher that goes on from where
// it was is told of every change once and in order; and nothing hangs, or is left behind. TURMOIL is the number of rounds.
func TestR6Turmoil(t *testing.T) {
	rounds, seed := figure(t, "TURMOIL", 3, 1), seedOf(t)
	before := runtime.NumGoroutine()
	m := &turmoil{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), model: map[string]map[string]bool{},
		opts: embedded.Options{
			Dir: "/store", FS: vfs.NewMem(), Ballast: -1, MemTableSize: 256 << 10, SweepEvery: 5 * time.Millisecond,
			OnFatal: func(err error) { t.Errorf("the engine failed: %v", err) },
		},
	}
	for range rounds {
		m.round()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d events in order", m.events)
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

// eventually waits until ok, and fails with what everybody is doing if that takes too long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%s:\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

type turmoil struct {
	t    *testing.T
	r    *rand.Rand
	opts embedded.Options
	s    *embedded.Store
	db   store.Database

	after  store.Position             // what the watcher was told last
	model  map[string]map[string]bool // by collection, the _ids that there are by what it was told
	events int
}

// actor does one thing. r is its own.
type actor func(ctx context.Context, r *rand.Rand) error

func (m *turmoil) round() {
	m.s = open(m.t, m.opts)
	m.db = m.s.Database("db")
	m.begin()
	var wg sync.WaitGroup
	all := []actor{
		m.transfer, m.transfer, m.transfer, m.pair, m.touchAll, m.churn, m.churn, m.churn, m.change, m.change,
		m.look, m.look, m.otherDatabase, m.audit, m.checkpoint, m.watch,
	}
	for _, do := range all {
		r := rand.New(rand.NewPCG(m.r.Uint64(), 0))
		wg.Go(func() { m.act(do, r) })
	}
	time.Sleep(time.Duration(100+m.r.IntN(400)) * time.Millisecond)
	if err := m.s.Close(); err != nil {
		m.t.Errorf("Close: %v", err) // iterators that were left open show here
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	eventually(m.t, "the store is closed, and somebody hangs", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	m.check()
}

// begin sees that there is money, the first time.
func (m *turmoil) begin() {
	if m.after != nil {
		return
	}
	var err error
	if m.after, err = m.db.Position(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	for _, name := range []string{"left", "right"} {
		for i := range accounts {
			must(m.t, m.db.Collection(name), insert(m.t, bson.D{{Key: "_id", Value: i}, {Key: "balance", Value: 100}, {Key: "n", Value: i % 3}}))
		}
	}
}

// act does one thing over and over until the store closes. Some of the calls are cut short.
func (m *turmoil) act(do actor, r *rand.Rand) {
	for {
		ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
		if r.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		}
		err := do(ctx, r)
		cancel()
		switch {
		case errors.Is(err, store.ErrClosed):
			return
		case err != nil && ctx.Err() == nil:
			m.t.Error(err)
			return
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			m.t.Errorf("the context has ended: %v", err)
			return
		}
	}
}

func side(r *rand.Rand) string { return []string{"left", "right"}[r.IntN(2)] }

func increment(t *testing.T, id, by int) store.Op {
	t.Helper()
	return store.Op{Kind: store.Update, ID: value(t, id), Update: inc("balance", by)}
}

var errThinkAgain = errors.New("changed my mind")

// transfer moves money in a transaction, which now and then is given up.
func (m *turmoil) transfer(ctx context.Context, r *rand.Rand) error {
	from, to, i, j, n, giveUp := side(r), side(r), r.IntN(accounts), r.IntN(accounts), 1+r.IntN(5), r.IntN(5) == 0
	err := m.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		total, err := total(ctx, tx.Collection("left"), tx.Collection("right"))
		if err == nil && total != funds {
			m.t.Errorf("a transaction sees %d", total)
		}
		if err == nil {
			err = failed(tx.Collection(from).Write(ctx, []store.Op{increment(m.t, i, -n)}, true))
		}
		if err == nil && giveUp {
			err = errThinkAgain
		}
		if err == nil {
			err = failed(tx.Collection(to).Write(ctx, []store.Op{increment(m.t, j, n)}, true))
		}
		return err
	})
	if errors.Is(err, errThinkAgain) {
		return nil
	}
	return err
}

// pair moves money within one collection, in one atomic write.
func (m *turmoil) pair(ctx context.Context, r *rand.Rand) error {
	i, n := r.IntN(accounts), 1+r.IntN(5)
	ops := []store.Op{increment(m.t, i, -n), increment(m.t, (i+1)%accounts, n)}
	return failed(m.db.Collection(side(r)).Write(ctx, ops, true))
}

// touchAll changes all accounts but for their money.
func (m *turmoil) touchAll(ctx context.Context, r *rand.Rand) error {
	op := store.Op{Kind: store.Update, Many: true, Filter: mql.MustCompile(bson.D{{Key: "n", Value: r.IntN(3)}}), Update: inc("touched", 1)}
	return failed(m.db.Collection(side(r)).Write(ctx, []store.Op{op}, r.IntN(2) == 0))
}

// failed gives the first error of a write. A key that is taken and a document that is not there are none.
func failed(results []store.Result, err error) error {
	for _, r := range results {
		_, taken := errors.AsType[*store.DuplicateKeyError](r.Err)
		if r.Err != nil && !taken && !errors.Is(r.Err, errs.ErrNotFound) && !errors.Is(r.Err, store.ErrAborted) {
			return r.Err
		}
	}
	return err
}

func total(ctx context.Context, colls ...store.Reader) (sum int64, err error) {
	for _, c := range colls {
		err = errors.Join(err, c.Find(ctx, store.Query{}, func(doc bson.Raw) error {
			sum += doc.Lookup("balance").AsInt64()
			return nil
		}))
	}
	return sum, err
}

func churned(r *rand.Rand) string { return fmt.Sprint("churned", r.IntN(3)) }

// churn changes documents of collections that others drop and rename.
func (m *turmoil) churn(ctx context.Context, r *rand.Rand) error {
	var ops []store.Op
	for range 1 + r.IntN(20) {
		ops = append(ops, m.anyOp(r))
	}
	if r.IntN(3) == 0 {
		return taken(m.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			for _, op := range ops {
				results, err := tx.Collection(churned(r)).Write(ctx, []store.Op{op}, false)
				if err := failed(results, err); err != nil {
					return err
				}
				if results[0].Err != nil && !errors.Is(results[0].Err, errs.ErrNotFound) {
					return nil // it is over
				}
			}
			return nil
		}))
	}
	return failed(m.db.Collection(churned(r)).Write(ctx, ops, r.IntN(2) == 0))
}

// taken leaves out errors that say that a key is taken.
func taken(err error) error {
	if _, ok := errors.AsType[*store.DuplicateKeyError](err); ok {
		return nil
	}
	return err
}

func (m *turmoil) anyOp(r *rand.Rand) store.Op {
	id := r.IntN(200)
	doc := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: r.IntN(10)}, {Key: "u", Value: r.IntN(400)}, {Key: "tags", Value: bson.A{r.IntN(5), r.IntN(5)}}}
	if r.IntN(10) == 0 {
		doc = append(doc, bson.E{Key: "until", Value: time.Now().Add(-time.Hour)})
	}
	some := mql.MustCompile(bson.D{{Key: "n", Value: r.IntN(10)}})
	switch r.IntN(8) {
	case 0, 1, 2:
		return store.Op{Kind: store.Insert, Doc: raw(m.t, doc)}
	case 3:
		return store.Op{Kind: store.Replace, Doc: raw(m.t, doc), Upsert: true}
	case 4:
		return store.Op{Kind: store.Delete, ID: value(m.t, id)}
	case 5:
		return store.Op{Kind: store.Update, Filter: some, Many: true, Update: inc("n", 1)}
	case 6:
		return store.Op{Kind: store.Update, Filter: some, Sort: sortBy("u"), Update: inc("u", 1), Upsert: true}
	default:
		return store.Op{Kind: store.Delete, Filter: mql.MustCompile(bson.D{{Key: "u", Value: bson.D{{Key: "$lt", Value: r.IntN(50)}}}}), Many: true}
	}
}

// change drops, renames and indexes.
func (m *turmoil) change(ctx context.Context, r *rand.Rand) error {
	name := churned(r)
	if r.IntN(3) == 0 {
		name = side(r)
	}
	pool := []store.Index{index("n", "n"), index("u", "u", "n"), index("tags", "-tags", "n"), index("part", "u"), index("until", "until")}
	pool[1].Unique = name != "left" && name != "right"
	pool[3].Partial = mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 3}}}})
	pool[4].ExpireAfter = time.Second
	x := pool[r.IntN(len(pool))]
	var err error
	switch r.IntN(13) {
	case 0:
		err = m.db.DropCollection(ctx, churned(r))
	case 12:
		err = m.db.(store.Replacer).ReplaceCollections(ctx, []store.Rename{{From: "churned0", To: "churned1"}, {From: "churned2", To: "churned3"}}) //nolint:errcheck,forcetypeassert // it is one
	case 1:
		err = m.db.RenameCollection(ctx, churned(r), churned(r), r.IntN(2) == 0)
	case 2, 3, 4, 5:
		err = m.db.Collection(name).DropIndex(ctx, x.Name)
	default:
		err = m.db.Collection(name).CreateIndex(ctx, x)
	}
	_, violated := errors.AsType[*store.ViolationError](err)
	if violated || errors.Is(err, errs.ErrNotFound) || errs.KindOf(err) == errs.Conflict {
		return nil
	}
	return err
}

// look reads in a view. There indexes and scans have the same answers, and there is as much money as ever.
func (m *turmoil) look(ctx context.Context, r *rand.Rand) error {
	view, err := m.db.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	sum, err := total(ctx, view.Collection("left"), view.Collection("right"))
	if err != nil {
		return err
	}
	if sum != funds {
		m.t.Errorf("a view sees %d", sum)
	}
	field := []string{"n", "u", "tags"}[r.IntN(3)]
	filter := mql.MustCompile(bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: r.IntN(10)}}}})
	c := view.Collection(churned(r))
	var want, got []string
	err = c.Find(ctx, store.Query{}, func(doc bson.Raw) error {
		if filter.Match(doc) {
			want = append(want, doc.String())
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.Find(ctx, store.Query{Filter: filter}, func(doc bson.Raw) error {
		got = append(got, doc.String())
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		m.t.Errorf("%s: found %d of %d", field, len(got), len(want))
	}
	return nil
}

// otherDatabase fills a database and drops it.
func (m *turmoil) otherDatabase(ctx context.Context, r *rand.Rand) error {
	if r.IntN(10) == 0 {
		return m.s.DropDatabase(ctx, "other")
	}
	return failed(m.s.Database("other").Collection(churned(r)).Write(ctx, []store.Op{m.anyOp(r), m.anyOp(r)}, false))
}

// audit checks the store, and asks for what there is to know.
func (m *turmoil) audit(ctx context.Context, r *rand.Rand) error {
	c := m.db.Collection(churned(r))
	_, statsErr := c.Stats(ctx)
	_, distinctErr := c.Distinct(ctx, "tags", nil)
	_, namesErr := m.db.CollectionNames(ctx)
	time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	err := m.s.Validate(ctx, func(p store.Problem) { m.t.Errorf("beside writes: %+v", p) }, nil)
	return errors.Join(statsErr, distinctErr, namesErr, err)
}

// checkpoint makes a copy and looks into it.
func (m *turmoil) checkpoint(ctx context.Context, r *rand.Rand) error {
	time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	dir := fmt.Sprint("/copy-", r.Uint64())
	if err := m.s.Checkpoint(ctx, dir); err != nil {
		return err
	}
	opts := m.opts
	opts.Dir = dir
	copied, err := embedded.Open(context.WithoutCancel(ctx), opts)
	if err != nil {
		return err
	}
	sum, err := total(m.t.Context(), copied.Database("db").Collection("left"), copied.Database("db").Collection("right"))
	if err == nil && sum != funds {
		m.t.Errorf("a copy has %d", sum)
	}
	err = errors.Join(err, validate(m.t.Context(), copied), copied.Close(), m.opts.FS.RemoveAll(dir))
	if err != nil {
		m.t.Errorf("a copy: %v", err)
	}
	return nil
}

var errLookAway = errors.New("looks away")

// watch takes in events until it looks away for a moment.
func (m *turmoil) watch(ctx context.Context, r *rand.Rand) error {
	err := m.db.Watch(ctx, store.Watch{After: m.after, Documents: r.IntN(2) == 0}, func(e store.Event) error {
		m.take(e)
		if r.IntN(300) == 0 {
			return errLookAway
		}
		return nil
	})
	if errors.Is(err, errLookAway) {
		return nil
	}
	return err
}

func (m *turmoil) take(e store.Event) {
	m.events++
	m.after = slices.Clone(e.Position)
	if m.model[e.Collection] == nil {
		m.model[e.Collection] = map[string]bool{}
	}
	docs, id := m.model[e.Collection], e.ID.String()
	if e.Kind <= store.Deleted && docs[id] == (e.Kind == store.Inserted) {
		m.t.Errorf("event %d: %s of %s does not fit to those before: %+v", m.events, e.Collection, id, e)
	}
	switch e.Kind {
	case store.Inserted:
		docs[id] = true
	case store.Deleted:
		delete(docs, id)
	case store.Dropped:
		delete(m.model, e.Collection)
	case store.Renamed:
		m.model[e.To] = docs
		delete(m.model, e.Collection)
	case store.Updated:
	}
}

// check opens the store again and looks at what is there.
func (m *turmoil) check() {
	m.s = open(m.t, m.opts)
	m.db = m.s.Database("db")
	ctx := m.t.Context()
	// What was being built goes on, which is no change that anybody is told of; documents may still expire.
	view, err := m.db.View(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	if sum, err := total(ctx, view.Collection("left"), view.Collection("right")); err != nil || sum != funds {
		m.t.Errorf("there is %d afterwards, %v", sum, err)
	}
	m.catchUp(view)
	if err := view.Close(); err != nil {
		m.t.Error(err)
	}
	m.wantUnique()
	eventually(m.t, "something is left open", func() bool { return embedded.Snapshots(m.s) == 0 && embedded.Held(m.s) == 0 })
	validateAndClose(m.t, m.s)
}

// catchUp lets the watcher take in all up to a view, and checks that it has what is in there.
func (m *turmoil) catchUp(view store.View) {
	for !slices.Equal(m.after, view.Position()) {
		err := m.db.Watch(m.t.Context(), store.Watch{After: m.after}, func(e store.Event) error {
			m.take(e)
			if slices.Equal(m.after, view.Position()) {
				return errLookAway
			}
			return nil
		})
		if !errors.Is(err, errLookAway) {
			m.t.Fatal(err)
		}
	}
	names, err := view.CollectionNames(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	for name, docs := range m.model {
		if len(docs) > 0 && !slices.Contains(names, name) {
			m.t.Errorf("there is no %s, of which %d documents were told", name, len(docs))
		}
	}
	for _, name := range names {
		n := 0
		err := view.Collection(name).Find(m.t.Context(), store.Query{}, func(doc bson.Raw) error {
			n++
			if id := doc.Lookup("_id").String(); !m.model[name][id] {
				m.t.Errorf("%s/%s is there, and was not told", name, id)
			}
			return nil
		})
		if err != nil || n != len(m.model[name]) {
			m.t.Errorf("%s has %d documents, %d were told: %v", name, n, len(m.model[name]), err)
		}
	}
}

// wantUnique checks that what is unique is.
func (m *turmoil) wantUnique() {
	for i := range 3 {
		c := m.db.Collection(fmt.Sprint("churned", i))
		indexes, err := c.Indexes(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		if !slices.ContainsFunc(indexes, func(x store.Index) bool { return x.Unique }) {
			continue
		}
		seen := map[string]bool{}
		for _, doc := range find(m.t, c, store.Query{}) {
			key := fmt.Sprint(doc.Lookup("u"), doc.Lookup("n"))
			if seen[key] {
				m.t.Errorf("%v is there twice", key)
			}
			seen[key] = true
		}
	}
}
