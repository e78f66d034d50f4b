package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestR6Metamorphic does one random list of operations to a store in memory, and to some of which the options are others,
// that are closed and opened in between, and copied. All have to answer alike. LISTS is the number of lists.
// storetest/differ holds the embedded store against MongoDB in a like way.
func TestR6Metamorphic(t *testing.T) {
	lists, seed := figure(t, "LISTS", 3, 1), seedOf(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range lists {
		variants := []*variant{newVariant(t, embedded.Options{InMemory: true}, nil)}
		for range 2 {
			variants = append(variants, newVariant(t, embedded.Options{
				Dir: "/store", FS: vfs.NewMem(), Ballast: -1,
				MemTableSize: 256 << (10 + r.UintN(6)), CacheSize: 1 << (20 + r.UintN(5)),
			}, rand.New(rand.NewPCG(r.Uint64(), 0))))
		}
		ops := r.Uint64()
		for i := range 1000 {
			var texts []string
			for _, v := range variants {
				// Each makes the same operation of the same random numbers.
				texts = append(texts, v.do(rand.New(rand.NewPCG(ops, uint64(i)))))
			}
			for j, text := range texts {
				if text != texts[0] {
					t.Fatalf("operation %d, variant %d\n%s\nin memory\n%s", i, j, text, texts[0])
				}
			}
		}
		for _, v := range variants {
			validateAndClose(t, v.s)
		}
	}
}

// variant is a store that the operations are done to.
type variant struct {
	t    *testing.T
	opts embedded.Options
	r    *rand.Rand // for what only this one does; nil: nothing
	s    *embedded.Store
	n    int // copies
}

func newVariant(t *testing.T, opts embedded.Options, r *rand.Rand) *variant {
	t.Helper()
	return &variant{t: t, opts: opts, r: r, s: start(t, opts)}
}

// disturb closes and opens the store, or looks at it through a copy or without the right to write.
func (v *variant) disturb() {
	if v.r == nil || v.r.IntN(30) > 0 {
		return
	}
	before := v.state(v.s)
	var other *embedded.Store
	switch v.r.IntN(4) {
	case 0:
		dir := fmt.Sprint("/copy", v.n)
		v.n++
		if err := v.s.Checkpoint(v.t.Context(), dir); err != nil {
			v.t.Fatal(err)
		}
		opts := v.opts
		opts.Dir = dir
		other = start(v.t, opts)
	case 1:
		validateAndClose(v.t, v.s)
		opts := v.opts
		opts.ReadOnly = true
		other = start(v.t, opts)
	default:
		validateAndClose(v.t, v.s)
		v.s = start(v.t, v.opts)
	}
	if other == nil {
		other = v.s
	}
	if after := v.state(other); after != before {
		v.t.Fatalf("before\n%s\nafter\n%s", before, after)
	}
	if other != v.s {
		validateAndClose(v.t, other)
	}
	if _, err := v.s.Database("db").CollectionNames(v.t.Context()); err != nil { // it was closed to be read
		v.s = start(v.t, v.opts)
	}
}

// state is everything in a store.
func (v *variant) state(s *embedded.Store) string {
	var b strings.Builder
	db := s.Database("db")
	names, err := db.CollectionNames(v.t.Context())
	fmt.Fprintln(&b, names, err)
	for _, name := range names {
		indexes, err := db.Collection(name).Indexes(v.t.Context())
		for _, x := range indexes {
			fmt.Fprintln(&b, x.Name, x.Keys, x.Unique, x.Sparse, x.Partial.Raw())
		}
		fmt.Fprintln(&b, name, err)
		for _, doc := range find(v.t, db.Collection(name), store.Query{Sort: sortBy("_id")}) {
			fmt.Fprintln(&b, doc)
		}
	}
	return b.String()
}

// do does one operation and tells how it went.
func (v *variant) do(r *rand.Rand) string {
	v.disturb()
	ctx, db := v.t.Context(), v.s.Database("db")
	c := db.Collection(anyName(r))
	switch n := r.IntN(20); n {
	case 0:
		x := anyIndex(r)
		return fmt.Sprint("create index ", x.Name, " ", said(c.CreateIndex(ctx, x)))
	case 1:
		return "drop index " + said(c.DropIndex(ctx, anyIndex(r).Name))
	case 2:
		from, to, replace := anyName(r), anyName(r), r.IntN(2) == 0
		if from == to || r.IntN(3) > 0 {
			return ""
		}
		return "rename " + said(db.RenameCollection(ctx, from, to, replace))
	case 3:
		if r.IntN(10) > 0 {
			return ""
		}
		return "drop " + said(db.DropCollection(ctx, anyName(r)))
	case 4, 5:
		return v.transact(ctx, db, r)
	case 6, 7, 8:
		return query(ctx, c, r)
	case 9:
		values, err := c.Distinct(ctx, mqltest.Path(r), mql.MustCompile(mqltest.Filter(r)))
		return fmt.Sprint("distinct ", len(values), said(err))
	default:
		ops := anyOps(r)
		results, err := c.Write(ctx, ops, n%2 == 0)
		return outcome(results, err)
	}
}

func anyName(r *rand.Rand) string { return []string{"one", "two", "three"}[r.IntN(3)] }

func anyIndex(r *rand.Rand) store.Index {
	paths := []string{"a", "-b", "a.b", "b.c", "c", "a.0"}
	i := r.IntN(len(paths))
	x := index(fmt.Sprint("x", i), paths[i])
	if r.IntN(3) == 0 {
		x = index("c_then_a", "c", "a")
	}
	x.Unique, x.Sparse = r.IntN(8) == 0, r.IntN(3) == 0
	if !x.Sparse && r.IntN(3) == 0 {
		x.Partial = mql.MustCompile(mqltest.PartialFilter(r))
	}
	return x
}

func anyOps(r *rand.Rand) []store.Op {
	var ops []store.Op
	for range 1 + r.IntN(4) {
		ops = append(ops, anyOp(r))
	}
	return ops
}

// anyOp makes an op whose outcome does not depend on the time or on chance.
func anyOp(r *rand.Rand) store.Op {
	id := int32(r.IntN(30))
	doc, err := bson.Marshal(mqltest.Doc(r, id))
	if err != nil {
		panic(err)
	}
	op := store.Op{Kind: store.OpKind(1 + r.IntN(4))}
	if op.Kind == store.Update {
		op.Update = anyUpdate(r)
	}
	switch way := r.IntN(4); {
	case op.Kind == store.Insert || (op.Kind == store.Replace && r.IntN(2) == 0):
		op.Doc = doc
	case way < 2:
		op.ID = bson.Raw(doc).Lookup("_id")
		if op.Kind == store.Replace {
			op.Doc = doc
		}
	case way == 2: // that one, or a new one
		op.Filter = mql.MustCompile(bson.D{{Key: "_id", Value: id}})
		if op.Kind == store.Replace {
			op.Doc = doc
		}
		op.Upsert = op.Kind != store.Delete && r.IntN(2) == 0
	default:
		op.Filter = mql.MustCompile(mqltest.Filter(r))
		op.Many = op.Kind != store.Replace && r.IntN(2) == 0
		if op.Kind == store.Replace {
			op.Doc = doc
		}
		if !op.Many {
			op.Sort = sortBy([]string{"a", "-b", "c"}[r.IntN(3)], "_id")
		}
	}
	if !op.Many && op.Kind != store.Insert {
		op.Return = store.Returning(r.IntN(3))
	}
	return op
}

func anyUpdate(r *rand.Rand) *mql.Update {
	for {
		doc, arrayFilters := mqltest.Update(r)
		u, err := mql.CompileUpdate(doc, arrayFilters)
		if err == nil && u.Raw().Lookup("$currentDate").Type == 0 {
			return u
		}
	}
}

func (v *variant) transact(ctx context.Context, db store.Database, r *rand.Rand) string {
	var b strings.Builder
	abort := r.IntN(4) == 0
	steps := make([][]store.Op, 1+r.IntN(3))
	names := make([]string, len(steps))
	for i := range steps {
		steps[i], names[i] = anyOps(r), anyName(r)
	}
	err := db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		b.Reset()
		for i, ops := range steps {
			results, err := tx.Collection(names[i]).Write(ctx, ops, false)
			b.WriteString(outcome(results, err))
			if err != nil {
				return err
			}
			n, err := tx.Collection(names[i]).Count(ctx, nil, 0)
			fmt.Fprint(&b, n, said(err))
		}
		if abort {
			return errChangedMind
		}
		return nil
	})
	if errors.Is(err, errChangedMind) {
		err = nil
	}
	return "transaction " + b.String() + said(err)
}

func query(ctx context.Context, c store.Collection, r *rand.Rand) string {
	q := store.Query{
		Filter: mql.MustCompile(mqltest.Filter(r)), Sort: sortBy([]string{"a", "-a.b", "b", "-c", "_id"}[r.IntN(5)]),
		Skip: int64(r.IntN(5)), Limit: int64(r.IntN(20)),
	}
	if q.Sort[0].Path != "_id" {
		q.Sort = append(q.Sort, sortBy("_id")...)
	}
	if r.IntN(3) == 0 {
		q.Project = mql.MustCompileProjection(bson.D{{Key: "a.b", Value: 1}, {Key: "c", Value: 1}})
	}
	var b strings.Builder
	err := c.Find(ctx, q, func(doc bson.Raw) error {
		fmt.Fprintln(&b, doc)
		return nil
	})
	n, countErr := c.Count(ctx, q.Filter, q.Limit)
	return fmt.Sprint("find ", b.String(), said(err), n, said(countErr))
}

// outcome is a write's results as text.
func outcome(results []store.Result, err error) string {
	var b strings.Builder
	for _, res := range results {
		fmt.Fprintln(&b, res.Matched, res.Modified, res.Upserted, res.Doc, said(res.Err))
	}
	return b.String() + said(err)
}

// said is an error as a caller can tell it from others.
func said(err error) string {
	var e *errs.Error
	var dup *store.DuplicateKeyError
	var violated *store.ViolationError
	switch {
	case err == nil:
		return " ok"
	case errors.As(err, &dup), errors.As(err, &violated):
		return err.Error()
	case errors.As(err, &e):
		return fmt.Sprint(" ", e.Kind, e.Code)
	default:
		return err.Error()
	}
}
