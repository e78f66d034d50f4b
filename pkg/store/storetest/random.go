package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store"
)

const (
	randomDocs    = 60
	randomQueries = 150 // in each round
	randomBatches = 40  // in each round
)

// rounds gives how many rounds a random test does: one with -short, two, or the number in SOAK.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil { // the setting of whoever runs the tests
		return n
	}
	if testing.Short() {
		return 1
	}
	return 2
}

// newRand logs the seed of a random test; SEED repeats one.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("to repeat: SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// testRandomQueries compares what a store finds under random indexes with what package mql says about each document.
func testRandomQueries(t *testing.T, s store.Store) {
	r := newRand(t)
	for range rounds() {
		f := newFixture(t, s)
		docs := f.randomDocuments(r)
		indexes := f.randomIndexes(r, anyIndex())
		for range randomQueries {
			q, text := randomQuery(r, docs)
			if diff := cmp.Diff(expected(docs, q), strings.Fields(f.find(q))); diff != "" {
				t.Fatalf("%s with indexes %v (-mql +store):\n%s", text, indexes, diff)
			}
			want := len(expected(docs, store.Query{Filter: q.Filter, Limit: q.Limit}))
			if n, err := f.Count(t.Context(), q.Filter, q.Limit); err != nil || n != int64(want) {
				t.Fatalf("count of %s with indexes %v: %d, %v, want %d", text, indexes, n, err, want)
			}
		}
	}
}

// randomDocuments fills the collection.
func (f *fixture) randomDocuments(r *rand.Rand) []bson.Raw {
	f.t.Helper()
	docs := make([]bson.Raw, randomDocs)
	ops := make([]store.Op, randomDocs)
	for i := range docs {
		docs[i] = randomDocument(r, i)
		ops[i] = store.Op{Kind: store.Insert, Doc: docs[i]}
	}
	f.mustWrite(ops...)
	return docs
}

// randomDocument makes a document that every index takes.
func randomDocument(r *rand.Rand, id int) bson.Raw {
	raw, err := bson.Marshal(mqltest.OneList(mqltest.Doc(r, int32(id))))
	if err != nil {
		panic(err)
	}
	return raw
}

// anyIndex names indexes, as on does, that take what randomDocument makes.
func anyIndex() []string {
	return append(simpleIndex(), "x b", "a b", "b -a", "-a.b b.c", "c a")
}

// simpleIndex names those that take any document.
func simpleIndex() []string {
	return []string{"a", "-a", "b", "a.b", "-a.b", "b.c", "a.b.c", "c", "a _id", "-a _id", "a.b -_id", "_id a", "a x"}
}

// randomIndexes makes up to three of the indexes that pool names, and describes them.
func (f *fixture) randomIndexes(r *rand.Rand, pool []string) []string {
	f.t.Helper()
	var texts []string
	for _, i := range r.Perm(len(pool))[:r.IntN(4)] {
		index := on(pool[i])
		index.Name = fmt.Sprintf("r%d", i)
		if r.IntN(3) == 0 {
			index.Sparse = true
		} else if r.IntN(3) == 0 {
			index.Partial = mql.MustCompile(mqltest.PartialFilter(r))
		}
		err := f.CreateIndex(f.t.Context(), index)
		switch {
		case err == nil:
			texts = append(texts, describeIndex(index))
		case !asConflict(err, "index_exists"): // an equal one of another name, which a store may refuse
			f.t.Fatalf("CreateIndex(%s): %v", describeIndex(index), err)
		}
	}
	return texts
}

// randomQuery makes a query with a total order, and its text.
func randomQuery(r *rand.Rand, docs []bson.Raw) (store.Query, string) {
	d := mqltest.Filter(r)
	f, err := mql.Compile(d)
	if err != nil {
		panic(fmt.Sprintf("%v: %v", d, err))
	}
	q := store.Query{Filter: f, Sort: mqltest.Sort(r)}
	if r.IntN(2) == 0 {
		q.Limit = r.Int64N(20)
	}
	if r.IntN(4) == 0 {
		q.Skip = r.Int64N(10)
	}
	text := fmt.Sprintf("filter %v sort %v skip %d limit %d", f.Raw(), q.Sort, q.Skip, q.Limit)
	if r.IntN(3) == 0 {
		last := docs[r.IntN(len(docs))]
		q.After = q.Sort.Key(last)
		text += fmt.Sprintf(" after %v", last)
	}
	return q, text
}

// expected gives the ids that q finds in docs.
func expected(docs []bson.Raw, q store.Query) []string {
	var found []bson.Raw
	for _, d := range docs {
		behind := len(q.After) == 0 || q.Sort.CompareKeys(q.Sort.Key(d), q.After) > 0
		if behind && q.Filter.Match(d) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, q.Sort.Compare)
	found = found[min(int(q.Skip), len(found)):]
	if q.Limit > 0 {
		found = found[:min(int(q.Limit), len(found))]
	}
	ids := []string{} // as strings.Fields gives for nothing
	for _, d := range found {
		ids = append(ids, show(d.Lookup("_id")))
	}
	return ids
}

// Differential does the same random work on two stores: documents, each store under indexes of its own, queries and
// projections, then batches of conditional writes under a unique index, then updates, replacements and deletes by
// filters. Every answer has to be the same, to the byte. The seed is logged; SEED repeats one, SOAK sets the number of
// rounds.
func Differential(t *testing.T, a, b store.Store) {
	r := newRand(t)
	for range rounds() {
		d := &pair{t: t, a: newFixture(t, a), b: newFixture(t, b)}
		d.fill(r)
		d.compareQueries(r)
		d.compareProjections(r)
		d.compareWrites(r)
		d.compareChanges(r)
	}
}

// pair is one collection in each of two stores.
type pair struct {
	t        *testing.T
	a, b     *fixture
	docs     []bson.Raw
	aIndexes []string
	bIndexes []string
}

func (p *pair) fill(r *rand.Rand) {
	p.docs = p.a.randomDocuments(r)
	for _, d := range p.docs {
		p.b.mustWrite(store.Op{Kind: store.Insert, Doc: d})
	}
	p.aIndexes, p.bIndexes = p.a.randomIndexes(r, anyIndex()), p.b.randomIndexes(r, anyIndex())
}

func (p *pair) compareQueries(r *rand.Rand) {
	p.t.Helper()
	for range randomQueries {
		q, text := randomQuery(r, p.docs)
		for _, q := range []store.Query{q, {Filter: q.Filter, Sort: sortBy("_id")}} {
			if diff := cmp.Diff(p.a.documents(q), p.b.documents(q)); diff != "" {
				p.t.Fatalf("%s with indexes %v, %v (-%s +%s):\n%s", text, p.aIndexes, p.bIndexes, p.a.store.Name(), p.b.store.Name(), diff)
			}
		}
		aCount, aErr := p.a.Count(p.t.Context(), q.Filter, q.Limit)
		bCount, bErr := p.b.Count(p.t.Context(), q.Filter, q.Limit)
		if aErr != nil || bErr != nil || aCount != bCount {
			p.t.Fatalf("count of %s: %d (%v), %d (%v)", text, aCount, aErr, bCount, bErr)
		}
	}
}

func (p *pair) compareWrites(r *rand.Rand) {
	p.t.Helper()
	index := unique(on([]string{"a", "a.b", "c", "b.c"}[r.IntN(4)]))
	index.Name = "u"
	index.Sparse = r.IntN(2) == 0
	ctx := p.t.Context()
	// The documents at hand mostly violate it, which both stores have to say; then it comes to an empty collection.
	if a, b := outcomeOfBuild(p.a.CreateIndex(ctx, index)), outcomeOfBuild(p.b.CreateIndex(ctx, index)); a != b {
		p.t.Fatalf("building %+v: %s: %s, %s: %s", index, p.a.store.Name(), a, p.b.store.Name(), b)
	} else if a != "ok" {
		p.empty(ctx)
		p.a.index(index)
		p.b.index(index)
	}
	for range randomBatches {
		ops, atomic := randomOps(r), r.IntN(2) == 0
		a, b := p.a.write(atomic, ops...), p.b.write(atomic, ops...)
		if diff := cmp.Diff(a, b); diff != "" {
			p.t.Fatalf("atomic %v, ops %s (-%s +%s):\n%s", atomic, describe(ops), p.a.store.Name(), p.b.store.Name(), diff)
		}
	}
	if diff := cmp.Diff(p.a.contents(), p.b.contents()); diff != "" {
		p.t.Fatalf("documents after the writes (-%s +%s):\n%s", p.a.store.Name(), p.b.store.Name(), diff)
	}
}

func (p *pair) empty(ctx context.Context) {
	p.t.Helper()
	for _, f := range []*fixture{p.a, p.b} {
		if err := f.db.DropCollection(ctx, "things"); err != nil {
			p.t.Fatal(err)
		}
	}
}

func outcomeOfBuild(err error) string {
	if violation, ok := asViolation(err); ok {
		return "violation of " + violation.Index
	}
	return outcome(err)
}

// randomOps makes a batch on ids that are often taken.
func randomOps(r *rand.Rand) []store.Op {
	ops := make([]store.Op, 1+r.IntN(6))
	for i := range ops {
		d := randomDocument(r, r.IntN(12))
		switch r.IntN(3) {
		case 0:
			ops[i] = store.Op{Kind: store.Insert, Doc: d}
			continue
		case 1:
			ops[i] = store.Op{Kind: store.Replace, Doc: d}
		default:
			ops[i] = store.Op{Kind: store.Delete, ID: d.Lookup("_id")}
		}
		if r.IntN(3) == 0 {
			ops[i].If = mql.MustCompile(mqltest.Filter(r))
		}
	}
	return ops
}

func describe(ops []store.Op) string {
	var lines strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&lines, "\n\tkind %d doc %v id %v", op.Kind, op.Doc, op.ID)
		if op.If != nil {
			fmt.Fprintf(&lines, " if %v", op.If.Raw())
		}
	}
	return lines.String()
}

// documents runs a query and gives its documents in full.
func (f *fixture) documents(q store.Query) []string {
	f.t.Helper()
	var docs []string
	err := f.Find(f.t.Context(), q, func(d bson.Raw) error {
		docs = append(docs, d.String())
		return nil
	})
	if err != nil {
		f.t.Fatalf("Find: %v", err)
	}
	return docs
}
