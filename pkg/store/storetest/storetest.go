package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Run tests that the stores that open gives keep the contract of package store. open is called once for the suite
// and once more for each test that closes its store; it must close what it opened when its t ends. A store may hold
// other databases: the suite makes its own, with names of their own, and drops them.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	s := open(t)
	for _, section := range []section{
		{"indexes", testIndexes},
		{"databases", testDatabases},
		{"rename", testRename},
		{"replace", testReplace},
		{"bookkeeping", testBookkeeping},
		{"stats", testStats},
		{"transactions", testTransactions},
		{"views", testViews},
		{"feed", testFeed},
		{"cancellation", testCancellation},
		{"concurrency", testConcurrency},
	} {
		t.Run(section.name, func(t *testing.T) { section.run(t, s) })
	}
	t.Run("close", func(t *testing.T) { testClose(t, open) })
	// These wait for the disk more than anything else, and none of them looks at time.
	for _, section := range []section{
		{"documents", testDocuments},
		{"writes", testWrites},
		{"unique", testUnique},
		{"find", testFind},
		{"paging", testPaging},
		{"count", testCount},
		{"explain", testExplain},
		{"aggregate", testAggregate},
		{"filters", testFilters},
		{"random queries", testRandomQueries},
		{"projections", testProjections},
		{"distinct", testDistinct},
		{"updates", testUpdates},
		{"upserts", testUpserts},
		{"ops by filter", testFilterOps},
		{"violations", testViolations},
		{"refusals", testRefusals},
		{"names", testNames},
		{"page ends", testPageEnds},
		{"bad paths", testBadPaths},
		{"depth", testDepth},
		{"bad indexes", testBadIndexes},
		{"large filters", testLargeFilters},
		{"partial indexes", testPartialIndexes},
	} {
		t.Run(section.name, func(t *testing.T) {
			t.Parallel()
			section.run(t, s)
		})
	}
}

type section struct {
	name string
	run  func(t *testing.T, s store.Store)
}

// Lacking is a store that can't do all of it, such as one behind a protocol that has no words for something. Lacks says
// why a test is left out; "" if it is not.
type Lacking interface{ Lacks(test string) string }

// RunAround is Run for what is around a store, or in front of it, that all of Run is run on by its own tests: which indexes there are is nothing
// that it could make a difference to, so what does not depend on them is looked at under three of them, and not under all. With SOAK it is Run.
func RunAround(t *testing.T, open func(t *testing.T) store.Store) {
	Run(t, func(t *testing.T) store.Store {
		s := open(t)
		around.Store(s, true)
		t.Cleanup(func() { around.Delete(s) })
		return s
	})
}

// around are the open stores that RunAround is run on.
var around sync.Map

// fixture is an empty collection in a database of its own.
type fixture struct {
	t     *testing.T
	store store.Store
	db    store.Database
	store.Collection
}

func newFixture(t *testing.T, s store.Store) *fixture {
	t.Helper()
	if l, ok := s.(Lacking); ok {
		if why := l.Lacks(t.Name()); why != "" {
			t.Skip(why)
		}
	}
	db := s.Database(databaseName(t, s))
	t.Cleanup(func() { validate(t, db) }) // before the database goes
	return &fixture{t: t, store: s, db: db, Collection: db.Collection("things")}
}

// validate checks that whatever a test did has left the database intact.
func validate(t *testing.T, db store.Database) {
	t.Helper()
	err := db.Validate(context.WithoutCancel(t.Context()), func(p store.Problem) {
		t.Errorf("Validate: collection %q index %q: %s (repairable: %v)", p.Collection, p.Index, p.Text, p.Repairable)
	})
	if err != nil {
		t.Errorf("Validate: %v", err)
	}
}

// collection gives another collection of the same database.
func (f *fixture) collection(name string) *fixture {
	c := *f
	c.Collection = f.db.Collection(name)
	return &c
}

// in gives the same collection for use in a subtest.
func (f *fixture) in(t *testing.T) *fixture {
	c := *f
	c.t = t
	return &c
}

// databaseName gives a name that nobody else uses. The database is dropped when t ends.
func databaseName(t *testing.T, s store.Store) string {
	t.Helper()
	name := "storetest-" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return name
}

// given inserts documents, which must succeed.
func (f *fixture) given(docs ...string) {
	f.t.Helper()
	ops := make([]store.Op, len(docs))
	for i, d := range docs {
		ops[i] = insert(d)
	}
	f.mustWrite(ops...)
}

// mustWrite applies ops one by one, and each must succeed.
func (f *fixture) mustWrite(ops ...store.Op) {
	f.t.Helper()
	for i, outcome := range f.write(false, ops...) {
		if outcome != "ok" {
			f.t.Fatalf("op %d: %s", i, outcome)
		}
	}
}

// write applies ops and gives the outcome of each in words.
func (f *fixture) write(atomic bool, ops ...store.Op) []string {
	f.t.Helper()
	results, err := f.Write(f.t.Context(), ops, atomic)
	if err != nil {
		f.t.Fatalf("Write: %v", err)
	}
	if len(results) != len(ops) {
		f.t.Fatalf("Write gave %d results for %d ops", len(results), len(ops))
	}
	outcomes := make([]string, len(results))
	for i, r := range results {
		outcomes[i] = outcome(r.Err)
	}
	return outcomes
}

// index creates an index, which must succeed.
func (f *fixture) index(index store.Index) {
	f.t.Helper()
	if err := f.CreateIndex(f.t.Context(), index); err != nil {
		f.t.Fatalf("CreateIndex(%s): %v", index.Name, err)
	}
}

// find runs a query and gives the ids of its documents, as in "1 2 3".
func (f *fixture) find(q store.Query) string {
	f.t.Helper()
	var ids []string
	err := f.Find(f.t.Context(), q, func(d bson.Raw) error {
		ids = append(ids, show(d.Lookup("_id")))
		return nil
	})
	if err != nil {
		f.t.Fatalf("Find: %v", err)
	}
	return strings.Join(ids, " ")
}

// contents gives all documents in _id order, one a line.
func (f *fixture) contents() string {
	f.t.Helper()
	var lines []string
	err := f.Find(f.t.Context(), store.Query{Sort: mql.Sort{{Path: "_id"}}}, func(d bson.Raw) error {
		lines = append(lines, d.String())
		return nil
	})
	if err != nil {
		f.t.Fatalf("Find: %v", err)
	}
	return strings.Join(lines, "\n")
}

// outcome names what became of an op: ok, missing, stale, aborted, invalid, too large, or "dup index[paths]".
func outcome(err error) string {
	var dup *store.DuplicateKeyError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errs.ErrNotFound):
		return "missing"
	case errors.Is(err, store.ErrStale):
		return "stale"
	case errors.Is(err, store.ErrAborted):
		return "aborted"
	case errors.As(err, &dup):
		return fmt.Sprintf("dup %s%v", dup.Index, dup.Paths)
	case errs.KindOf(err) == errs.Invalid:
		return "invalid"
	case errs.KindOf(err) == errs.TooLarge:
		return "too large"
	default:
		return "unexpected: " + err.Error()
	}
}

// result is outcome with what else a Result says: "ok 2/1" is two documents found of which one has changed. After it come
// "upserted" with the id, and "doc" with the document.
func result(r store.Result) string {
	if r.Err != nil {
		return outcome(r.Err)
	}
	text := fmt.Sprintf("ok %d/%d", r.Matched, r.Modified)
	if r.Upserted.Type != 0 {
		text += " upserted " + show(r.Upserted)
	}
	if r.Doc != nil {
		text += " doc " + r.Doc.String()
	}
	return text
}

// The helpers below make values from Extended JSON. They panic, because a mistake there is one in the suite.

func doc(json string) bson.Raw { return marshal(parse(json)) }

func marshal(d bson.D) bson.Raw {
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("%v: %v", d, err))
	}
	return raw
}

func value(json string) bson.RawValue { return doc(`{"v":` + json + `}`).Lookup("v") }

// filter compiles a filter; "" is no filter.
func filter(json string) *mql.Filter {
	if json == "" {
		return nil
	}
	return mql.MustCompile(parse(json))
}

// update compiles an update with its array filters.
func update(json string, arrayFilters ...string) *mql.Update {
	filters := make([]bson.D, len(arrayFilters))
	for i, f := range arrayFilters {
		filters[i] = parse(f)
	}
	return mql.MustCompileUpdate(parse(json), filters...)
}

// projection compiles a projection; "" is none.
func projection(json string) *mql.Projection {
	if json == "" {
		return nil
	}
	return mql.MustCompileProjection(parse(json))
}

func parse(json string) bson.D {
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		panic(fmt.Sprintf("%s: %v", json, err))
	}
	return d
}

// large inserts a document with size bytes in the field pad. JSON would take many times as long.
func large(id, n, size int) store.Op {
	pad := strings.Repeat("x", size)
	return store.Op{Kind: store.Insert, Doc: marshal(bson.D{{Key: "_id", Value: int32(id)}, {Key: "n", Value: int32(n)}, {Key: "pad", Value: pad}})}
}

func insert(json string) store.Op  { return store.Op{Kind: store.Insert, Doc: doc(json)} }
func replace(json string) store.Op { return store.Op{Kind: store.Replace, Doc: doc(json)} }
func remove(id string) store.Op    { return store.Op{Kind: store.Delete, ID: value(id)} }

// when puts a condition on an op.
func when(cond string, op store.Op) store.Op {
	op.If = filter(cond)
	return op
}

// sortBy reads a sort such as "a -b.c".
func sortBy(spec string) mql.Sort {
	var s mql.Sort
	for path := range strings.FieldsSeq(spec) {
		p, desc := strings.CutPrefix(path, "-")
		s = append(s, mql.SortField{Path: p, Desc: desc})
	}
	return s
}

// on defines an index on paths such as "a -b.c"; its name is the paths.
func on(paths string) store.Index {
	index := store.Index{Name: strings.ReplaceAll(paths, " ", "_")}
	for _, f := range sortBy(paths) {
		index.Keys = append(index.Keys, store.IndexKey{Path: f.Path, Desc: f.Desc})
	}
	return index
}

func unique(index store.Index) store.Index {
	index.Unique = true
	return index
}

func sparse(index store.Index) store.Index {
	index.Sparse = true
	return index
}

// show prints a value for a table: numbers and strings plainly, the rest as Extended JSON.
func show(v bson.RawValue) string {
	if n, ok := v.AsInt64OK(); ok && v.Type != bson.TypeDouble {
		return strconv.FormatInt(n, 10)
	}
	if s, ok := v.StringValueOK(); ok {
		return s
	}
	return v.String()
}
