package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store"
)

const randomChanges = 120 // in each round

// compareProjections reads parts of documents.
func (p *pair) compareProjections(r *rand.Rand) {
	p.t.Helper()
	for range randomQueries / 3 {
		q, text := randomQuery(r, p.docs)
		q.Project = randomProjection(r)
		if diff := cmp.Diff(p.a.documentsOrError(q), p.b.documentsOrError(q)); diff != "" {
			p.t.Fatalf("%s projection %v with indexes %v, %v (-%s +%s):\n%s",
				text, q.Project.Raw(), p.aIndexes, p.bIndexes, p.a.store.Name(), p.b.store.Name(), diff)
		}
	}
}

// documentsOrError is documents, or that the projection does not fit one of them.
func (f *fixture) documentsOrError(q store.Query) []string {
	f.t.Helper()
	var docs []string
	err := f.Find(f.t.Context(), q, func(d bson.Raw) error {
		docs = append(docs, d.String())
		return nil
	})
	if errs.KindOf(err) == errs.Invalid {
		return []string{"invalid"}
	}
	if err != nil {
		f.t.Fatalf("Find: %v", err)
	}
	return docs
}

// compareChanges updates, replaces and deletes by filters, each store under indexes of its own, of which those that are
// unique or on two paths are none: they would have to be the same.
func (p *pair) compareChanges(r *rand.Rand) {
	p.t.Helper()
	a, b := newFixture(p.t, p.a.store), newFixture(p.t, p.b.store)
	for i := range 20 {
		d := store.Op{Kind: store.Insert, Doc: randomDocument(r, i)}
		a.mustWrite(d)
		b.mustWrite(d)
	}
	aIndexes, bIndexes := a.randomIndexes(r, simpleIndex()), b.randomIndexes(r, simpleIndex())
	var done []string
	for i := range randomChanges {
		op, text := randomChange(r)
		done = append(done, text)
		atomic := op.Many || r.IntN(2) == 0 // of many of which one fails, it is not said which come before
		if diff := cmp.Diff(a.change(op, atomic), b.change(op, atomic)); diff != "" {
			p.t.Fatalf("%s with indexes %v, %v (-%s +%s):\n%s", text, aIndexes, bIndexes, a.store.Name(), b.store.Name(), diff)
		}
		if i%10 != 9 {
			continue
		}
		if diff := cmp.Diff(a.contents(), b.contents()); diff != "" {
			p.t.Fatalf("after\n%s\nwith indexes %v, %v (-%s +%s):\n%s",
				strings.Join(done, "\n"), aIndexes, bIndexes, a.store.Name(), b.store.Name(), diff)
		}
		done = nil
	}
}

// change applies an op, and says what came of it.
func (f *fixture) change(op store.Op, atomic bool) string {
	f.t.Helper()
	results, err := f.Write(f.t.Context(), []store.Op{op}, atomic)
	if err != nil {
		f.t.Fatalf("Write: %v", err)
	}
	return result(results[0])
}

// randomChange makes an op that chooses its document by a filter or an _id, and its text.
func randomChange(r *rand.Rand) (store.Op, string) {
	op := store.Op{Kind: store.Update}
	where := mqltest.Filter(r)
	id := bson.E{Key: "_id", Value: int32(r.IntN(24))}
	if r.IntN(3) == 0 {
		where = append(bson.D{id}, where...)
	}
	op.Filter = mql.MustCompile(where)
	op.Sort = mql.Sort{{Path: mqltest.Path(r), Desc: r.IntN(2) == 0}, {Path: "_id", Desc: r.IntN(2) == 0}}
	if ambiguous(op.Sort[0].Path) {
		op.Sort = op.Sort[1:]
	}
	switch r.IntN(8) {
	case 0:
		op.Kind = store.Delete
	case 1:
		op.Kind = store.Replace
		op.Doc = randomDocument(r, r.IntN(24))
		if r.IntN(3) > 0 {
			op.Doc = withoutID(op.Doc)
		}
	default:
		op.Update = randomUpdate(r)
	}
	switch upsert := mqltest.Upsert(r); {
	case r.IntN(4) == 0 && op.Kind != store.Delete: // the filter names the _id, so that both stores insert the same
		f, err := mql.Compile(append(bson.D{id}, upsert...))
		if err == nil && (op.Kind == store.Replace && !op.Doc.Lookup("_id").IsZero() || namesID(f)) {
			op.Filter, op.Upsert = f, true
		}
	case r.IntN(3) == 0 && op.Kind != store.Replace:
		op.Many, op.Sort = true, nil
	}
	if r.IntN(2) == 0 && !op.Many {
		op.Return = store.ReturnBefore
		if op.Kind != store.Delete && r.IntN(2) == 0 {
			op.Return = store.ReturnAfter
		}
		if r.IntN(2) == 0 {
			op.Project = randomProjection(r)
		}
		if op.Return == store.ReturnAfter && op.Project.Positional() {
			op.Return = store.ReturnBefore // the filter matches the document before
		}
	}
	return op, describeChange(op)
}

func withoutID(d bson.Raw) bson.Raw {
	var fields bson.D
	if err := bson.Unmarshal(d, &fields); err != nil {
		panic(err)
	}
	raw, err := bson.Marshal(fields[1:])
	if err != nil {
		panic(err)
	}
	return raw
}

// namesID says that an upsert with f makes no _id of its own. One that can match nothing at all does.
func namesID(f *mql.Filter) bool {
	base, err := mql.UpsertBase(f)
	return err != nil || !base.Lookup("_id").IsZero()
}

// ambiguous says whether a path names a position, which a MongoDB server does not sort by where it may be a name, too.
func ambiguous(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(name string) bool { return name[0] >= '0' && name[0] <= '9' })
}

func describeChange(op store.Op) string {
	text := fmt.Sprintf("kind %d filter %v sort %v many %v upsert %v return %d", op.Kind, op.Filter.Raw(), op.Sort, op.Many, op.Upsert, op.Return)
	if op.Doc != nil {
		text += " doc " + op.Doc.String()
	}
	if op.Update != nil {
		text += fmt.Sprintf(" update %v array filters %v", op.Update.Raw(), op.Update.ArrayFilters())
	}
	if op.Project != nil {
		text += " projection " + op.Project.Raw().String()
	}
	return text
}

// randomUpdate makes an update that compiles and gives the same whenever it runs.
func randomUpdate(r *rand.Rand) *mql.Update {
	for {
		d, filters := mqltest.Update(r)
		if slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == "$currentDate" }) {
			continue
		}
		if u, err := mql.CompileUpdate(d, filters); err == nil {
			return u
		}
	}
}

func randomProjection(r *rand.Rand) *mql.Projection {
	for {
		if p, err := mql.CompileProjection(mqltest.Projection(r)); err == nil {
			return p
		}
	}
}
