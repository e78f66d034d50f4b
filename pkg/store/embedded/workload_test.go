package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// idsPerWriter is how many _ids a writer of the workload has: writer w has those from w*idsPerWriter on.
const idsPerWriter = 1000

// recorder is told of a writer's steps: a ledger, or a pipe to one.
type recorder interface {
	try(w int, s step)
	settle(w int, applied bool)
}

// worker is one writer of the workload. It changes documents of its own at random, in a collection that all share and in
// some that it drops and renames, one step at a time, until a call fails.
type worker struct {
	tb      testing.TB
	r       *rand.Rand
	db      store.Database
	rec     recorder
	number  int
	cur     state // what the store has
	version int64 // of the last step
}

// newWorker goes on from a state; generation makes its versions other ones than those of the workers before it.
func newWorker(tb testing.TB, db store.Database, rec recorder, number int, cur state, seed uint64, generation int) *worker {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	return &worker{tb: tb, r: r, db: db, rec: rec, number: number, cur: cur, version: int64(generation) * 1_000_000}
}

// run does steps until ctx ends or the store fails, which it says.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refused is the error of a step that the store refused whole, as it should.
var errRefused = errors.New("refused")

// step does one step. Its error is that of the store as a whole.
func (w *worker) step(ctx context.Context) error {
	w.version++
	kinds := w.kinds()
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := w.r.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n >= 0 {
			continue
		}
		s, do := k.plan()
		if do == nil { // nothing to do it on
			return nil
		}
		w.rec.try(w.number, s)
		err := do(ctx)
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		w.rec.settle(w.number, err == nil)
		if err == nil {
			for _, e := range s.Effects {
				w.cur.apply(e)
			}
		}
		return nil
	}
	return nil
}

// kind is a kind of step. Its plan says what the step is to do and how; nil if there is nothing to do it on.
type kind struct {
	weight int
	plan   func() (step, func(context.Context) error)
}

func (w *worker) kinds() []kind {
	return []kind{
		{6, w.single},
		{6, w.atomic},
		{4, w.loose},
		{1, w.bulk},
		{3, w.refused},
		{1, w.drop},
		{6, w.change},
		{3, w.many},
		{6, w.transaction},
		{4, w.mortal},
		{2, w.rename},
	}
}

// Collections: one that all share, and two names for the worker's own, of which one is used at a time.
const shared = "things"

func (w *worker) own() string {
	first, second := fmt.Sprint("own", w.number), fmt.Sprint("also", w.number)
	for k := range w.cur {
		if k.coll == second {
			return second
		}
	}
	return first
}

func (w *worker) anyCollection() string {
	if w.r.IntN(3) == 0 {
		return w.own()
	}
	return shared
}

// someIDs gives n different _ids. They are few, so that steps meet the documents of others before them.
func (w *worker) someIDs(n int) []int64 {
	var ids []int64
	for _, i := range w.r.Perm(12)[:n] {
		ids = append(ids, int64(w.number*idsPerWriter+i))
	}
	return ids
}

// ops makes an op for each id that is possible in the present state, and its effect.
func (w *worker) ops(coll string, ids []int64) (ops []store.Op, effects []effect) {
	for _, id := range ids {
		e := effect{Coll: coll, ID: id, Version: w.version}
		switch exists := w.cur[key{coll, id}] != 0; {
		case !exists:
			ops = append(ops, store.Op{Kind: store.Insert, Doc: w.doc(id, w.version)})
		case w.r.IntN(3) == 0:
			e.Version = 0
			ops = append(ops, store.Op{Kind: store.Delete, ID: value(w.tb, id)})
		default:
			ops = append(ops, store.Op{Kind: store.Replace, Doc: w.doc(id, w.version)})
		}
		effects = append(effects, e)
	}
	return ops, effects
}

// doc is what a document is in a version.
func (w *worker) doc(id, version int64) bson.Raw {
	d := bson.D{{Key: "_id", Value: id}, {Key: "v", Value: version}, {Key: "n", Value: version % 5}, {Key: "u", Value: fmt.Sprint("u", id)}}
	if version%3 == 0 {
		d = append(d, bson.E{Key: "tags", Value: bson.A{version % 5, id % 7}})
	}
	return raw(w.tb, append(d, bson.E{Key: "pad", Value: padding(version)}))
}

// padding is as long as it is to tell torn documents, and for files to fill up.
func padding(version int64) string { return fmt.Sprintf("%*d", 1+version*7919%1500, version) }

// write applies ops that must all succeed.
func (w *worker) write(coll string, ops []store.Op, atomic bool) func(context.Context) error {
	return func(ctx context.Context) error {
		results, err := w.db.Collection(coll).Write(ctx, ops, atomic)
		for i, r := range results {
			if r.Err != nil {
				w.tb.Errorf("writer %d, %s, op %d of %d: %v", w.number, coll, i, len(ops), r.Err)
			}
		}
		return err
	}
}

func (w *worker) single() (step, func(context.Context) error) {
	coll := w.anyCollection()
	ops, effects := w.ops(coll, w.someIDs(1))
	return step{Effects: effects}, w.write(coll, ops, w.r.IntN(2) == 0)
}

func (w *worker) atomic() (step, func(context.Context) error) {
	coll := w.anyCollection()
	ops, effects := w.ops(coll, w.someIDs(2+w.r.IntN(4)))
	return step{Effects: effects}, w.write(coll, ops, true)
}

func (w *worker) loose() (step, func(context.Context) error) {
	coll := w.anyCollection()
	ops, effects := w.ops(coll, w.someIDs(2+w.r.IntN(10)))
	return step{Effects: effects, Loose: true}, w.write(coll, ops, false)
}

// bulk writes more than fits into one batch of the store.
func (w *worker) bulk() (step, func(context.Context) error) {
	var ids []int64
	for i := range 130 {
		ids = append(ids, int64(w.number*idsPerWriter+100+i))
	}
	coll := w.own()
	ops, effects := w.ops(coll, ids)
	atomic := w.r.IntN(2) == 0
	return step{Effects: effects, Loose: !atomic}, w.write(coll, ops, atomic)
}

// refused is an atomic write of which one op can't be done: none of it may be there.
func (w *worker) refused() (step, func(context.Context) error) {
	coll := w.anyCollection()
	var taken []int64
	ids := w.someIDs(4)
	for _, id := range ids {
		if w.cur[key{coll, id}] != 0 {
			taken = append(taken, id)
		}
	}
	if len(taken) == 0 {
		return step{}, nil
	}
	ops, _ := w.ops(coll, ids)
	bad := w.r.IntN(len(ops) + 1)
	ops = append(ops[:bad:bad], append([]store.Op{{Kind: store.Insert, Doc: w.doc(taken[0], w.version)}}, ops[bad:]...)...)
	// If the document is deleted in the same write, its insert behind that is fine.
	for _, op := range ops[:bad] {
		if op.Kind == store.Delete {
			return step{}, nil
		}
	}
	return step{}, func(ctx context.Context) error {
		results, err := w.db.Collection(coll).Write(ctx, ops, true)
		if err != nil {
			return err
		}
		if _, ok := errors.AsType[*store.DuplicateKeyError](results[bad].Err); !ok {
			w.tb.Errorf("an insert of a document that exists: %+v", results)
		}
		return errRefused
	}
}

func (w *worker) drop() (step, func(context.Context) error) {
	coll := w.own()
	return step{Effects: w.emptied(coll)}, func(ctx context.Context) error { return w.db.DropCollection(ctx, coll) }
}

func (w *worker) emptied(coll string) (effects []effect) {
	for k := range w.cur {
		if k.coll == coll {
			effects = append(effects, effect{Coll: k.coll, ID: k.id})
		}
	}
	return effects
}

// isOurs says whether a collection is of the workload.
func isOurs(coll string) bool {
	return coll == shared || strings.HasPrefix(coll, "own") || strings.HasPrefix(coll, "also")
}

// contents reads all documents of the workload, and checks that each is whole.
func contents(tb testing.TB, db store.Database) state {
	tb.Helper()
	found, err := readContents(tb, db)
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func readContents(tb testing.TB, db store.Database) (state, error) {
	tb.Helper()
	names, err := db.CollectionNames(tb.Context())
	if err != nil {
		return nil, err
	}
	found := state{}
	for _, name := range names {
		if !isOurs(name) {
			continue
		}
		err := db.Collection(name).Find(tb.Context(), store.Query{}, func(doc bson.Raw) error {
			id, version := doc.Lookup("_id").AsInt64(), doc.Lookup("v").AsInt64()
			if pad, _ := doc.Lookup("pad").StringValueOK(); pad != padding(version) || doc.Lookup("n").AsInt64() != version%5 {
				tb.Errorf("%s/%d is torn: %v", name, id, doc)
			}
			if mortal, _ := doc.Lookup("mortal").BooleanOK(); mortal {
				version = -version
			}
			found[key{name, id}] = version
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return found, nil
}
