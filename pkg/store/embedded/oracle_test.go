package embedded_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// soak multiplies the rounds of the random tests; SOAK=100 is for a night.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// TestIndexesChangeNothing runs random queries on random documents with random indexes, and compares what comes with
// what package mql says of the documents, which knows no indexes.
func TestIndexesChangeNothing(t *testing.T) {
	for seed := range uint64(figure(t, "SEEDS", 40, 12) * soak()) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := open(t, embedded.Options{InMemory: true})
			m := &oracle{t: t, r: r, c: collection(s), docs: map[int]bson.Raw{}, lists: seed%2 == 0}
			for range 4 {
				m.paths = []string{"a", "b", "c", "a.b", "a.c", "b.c"}
				if r.IntN(2) == 0 {
					r.Shuffle(len(m.paths), func(i, j int) { m.paths[i], m.paths[j] = m.paths[j], m.paths[i] })
					m.paths = m.paths[:1+r.IntN(3)]
				}
				for range 60 {
					m.change()
				}
				m.changeIndexes()
				for range 60 {
					m.query()
				}
			}
		})
	}
}

// oracle is a collection and what should be in it.
type oracle struct {
	t    *testing.T
	r    *rand.Rand
	c    store.Collection
	docs map[int]bson.Raw
	// paths are those that filters, sorts and indexes mostly have.
	paths []string
	// lists are in some documents. Without any, the bounds of indexes are tight and answer counts alone.
	lists bool
}

func (o *oracle) doc(id int) bson.Raw {
	if o.lists && o.r.IntN(3) == 0 {
		return raw(o.t, mqltest.Doc(o.r, id))
	}
	object := func() bson.D {
		return bson.D{{Key: "b", Value: o.scalar()}, {Key: "c", Value: o.scalar()}}
	}
	doc := bson.D{{Key: "_id", Value: id}}
	for _, name := range []string{"a", "b", "c"} {
		kinds := 8
		if !o.lists {
			kinds = 6
		}
		switch o.r.IntN(kinds) {
		case 0:
		case 1:
			doc = append(doc, bson.E{Key: name, Value: object()})
		case 6:
			doc = append(doc, bson.E{Key: name, Value: bson.A{o.scalar(), o.scalar()}})
		case 7:
			doc = append(doc, bson.E{Key: name, Value: bson.A{object(), object()}})
		default:
			doc = append(doc, bson.E{Key: name, Value: o.scalar()})
		}
	}
	return raw(o.t, doc)
}

// scalar is mostly one of a few, so that filters on two fields still find something.
func (o *oracle) scalar() any {
	few := []any{nil, 0, 1, 1.5, 2, "a", math.NaN()}
	if o.r.IntN(4) > 0 {
		return few[o.r.IntN(len(few))]
	}
	return mqltest.Scalar(o.r)
}

func (o *oracle) change() {
	id := o.r.IntN(80)
	op := store.Op{Kind: store.Insert, Doc: o.doc(id)}
	if _, exists := o.docs[id]; exists {
		op.Kind = store.Replace
		if o.r.IntN(3) == 0 {
			op = store.Op{Kind: store.Delete, ID: value(o.t, id)}
		}
	}
	results, err := o.c.Write(o.t.Context(), []store.Op{op}, o.r.IntN(2) == 0)
	switch {
	case err != nil:
		o.t.Fatal(err)
	case errs.KindOf(results[0].Err) == errs.Invalid, isDuplicate(results[0].Err): // two lists in one index
	case results[0].Err != nil:
		o.t.Fatal(results[0].Err)
	case op.Kind == store.Delete:
		delete(o.docs, id)
	default:
		o.docs[id] = op.Doc
	}
}

func isDuplicate(err error) bool {
	var duplicate *store.DuplicateKeyError
	var violation *store.ViolationError
	return errors.As(err, &duplicate) || errors.As(err, &violation)
}

func (o *oracle) changeIndexes() {
	indexes, err := o.c.Indexes(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	for _, x := range indexes {
		if o.r.IntN(3) == 0 {
			if err := o.c.DropIndex(o.t.Context(), x.Name); err != nil {
				o.t.Fatal(err)
			}
		}
	}
	for range 3 {
		def := o.index()
		if err := o.c.CreateIndex(o.t.Context(), def); err != nil && errs.KindOf(err) != errs.Invalid && !isDuplicate(err) {
			o.t.Fatal(err)
		}
	}
}

func (o *oracle) index() store.Index {
	def := index("", "a.b", "a.c")
	if o.r.IntN(4) > 0 {
		def = store.Index{}
	}
	for range 1 + o.r.IntN(3) {
		path := o.paths[o.r.IntN(len(o.paths))]
		if o.r.IntN(4) == 0 {
			path = []string{"a", "a.b", "b.b", "a.b.c", "a.0", "_id"}[o.r.IntN(6)]
		}
		if !slices.ContainsFunc(def.Keys, func(k store.IndexKey) bool { return k.Path == path }) {
			def.Keys = append(def.Keys, store.IndexKey{Path: path, Desc: o.r.IntN(3) == 0})
		}
	}
	switch o.r.IntN(6) {
	case 0:
		def.Sparse = true
	case 1:
		def.Partial = mql.MustCompile(o.partial())
	}
	if o.r.IntN(5) == 0 {
		def.Unique = true
		def.Keys = append(def.Keys, store.IndexKey{Path: "u", Desc: o.r.IntN(2) == 0}) // few fields are unique here
	}
	def.Name = fmt.Sprint(def.Keys, def.Sparse, def.Unique, def.Partial.Raw())
	return def
}

// partial is mostly something that filters here imply.
func (o *oracle) partial() bson.D {
	if o.r.IntN(3) == 0 {
		return mqltest.PartialFilter(o.r)
	}
	path := []string{"a", "b", "c", "a.b"}[o.r.IntN(4)]
	return []bson.D{
		{{Key: path, Value: bson.D{{Key: "$exists", Value: true}}}},
		{{Key: path, Value: bson.D{{Key: "$gte", Value: 0}}}},
		{{Key: path, Value: bson.D{{Key: "$type", Value: "number"}}}},
		{{Key: path, Value: bson.D{{Key: "$in", Value: bson.A{0, 1, 1.5, 2}}}}},
	}[o.r.IntN(4)]
}

func (o *oracle) query() {
	o.t.Helper()
	q := store.Query{Filter: o.filter()}
	if o.r.IntN(4) > 0 {
		q.Sort = o.sort()
	}
	want := o.matches(q)
	if len(q.Sort) > 0 {
		if slices.ContainsFunc(want, func(d bson.Raw) bool { _, err := q.Sort.AppendValues(nil, d); return err != nil }) {
			return // refused, unless an index or a limit spares it the comparison
		}
		slices.SortFunc(want, q.Sort.Compare)
		if len(want) > 0 && o.r.IntN(2) == 0 {
			q.After = o.position(q.Sort, want)
			want = slices.DeleteFunc(want, func(d bson.Raw) bool { return q.Sort.CompareKeys(q.Sort.Key(d), q.After) <= 0 })
		}
		if o.r.IntN(2) == 0 {
			q.Skip, q.Limit = int64(o.r.IntN(4)), int64(1+o.r.IntN(10))
			want = want[min(int(q.Skip), len(want)):]
			want = want[:min(int(q.Limit), len(want))]
		}
	}
	got := find(o.t, o.c, q)
	if len(q.Sort) == 0 {
		byID := mql.Sort{{Path: "_id"}}
		slices.SortFunc(got, byID.Compare)
		slices.SortFunc(want, byID.Compare)
	}
	if diff := cmp.Diff(show(want), show(got)); diff != "" {
		e, _ := o.c.Explain(o.t.Context(), q)
		o.t.Errorf("filter %v sort %v after %v skip %d limit %d (%+v):\n%s", q.Filter.Raw(), q.Sort, q.After, q.Skip, q.Limit, e, diff)
	}
	o.count(q.Filter)
}

func (o *oracle) count(f *mql.Filter) {
	o.t.Helper()
	n, err := o.c.Count(o.t.Context(), f, 0)
	if want := len(o.matches(store.Query{Filter: f})); err != nil || n != int64(want) {
		o.t.Errorf("Count(%v) = %d, %v, want %d", f.Raw(), n, err, want)
	}
}

func (o *oracle) matches(q store.Query) []bson.Raw {
	var out []bson.Raw
	for _, d := range o.docs {
		if q.Filter.Match(d) {
			out = append(out, d)
		}
	}
	return out
}

// filter makes most of the filters from conditions that indexes are for.
func (o *oracle) filter() *mql.Filter {
	switch o.r.IntN(10) {
	case 0:
		return nil
	case 1, 2, 3:
		return mql.MustCompile(mqltest.Filter(o.r))
	case 4, 5:
		doc := o.conditions()
		branches := bson.A{o.conditions(), o.conditions()}
		if o.r.IntN(3) == 0 {
			branches = append(branches, bson.D{{Key: "$or", Value: bson.A{o.conditions(), o.conditions()}}})
		}
		return mql.MustCompile(append(doc, bson.E{Key: []string{"$or", "$or", "$nor"}[o.r.IntN(3)], Value: branches}))
	default:
		return mql.MustCompile(o.conditions())
	}
}

func (o *oracle) conditions() bson.D {
	doc := bson.D{}
	for _, path := range append(slices.Clone(o.paths), "_id") {
		if o.r.IntN(3) > 0 && (len(o.paths) > 2 || path == "_id") {
			continue
		}
		doc = append(doc, bson.E{Key: path, Value: o.operators(path, 2)})
	}
	return doc
}

func (o *oracle) operators(path string, depth int) bson.D {
	ops := bson.D{o.operator(path, depth)}
	if second := o.operator(path, depth); o.r.IntN(2) == 0 && second.Key != ops[0].Key {
		ops = append(ops, second)
	}
	return ops
}

func (o *oracle) operator(path string, depth int) bson.E {
	scalar := func() any {
		if path == "_id" {
			return o.r.IntN(80)
		}
		return o.scalar()
	}
	ops := []string{
		"$eq", "$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$in", "$exists", "$exists", "$ne", "$nin", "$type", "$regex",
		"$eq list", "$gt list", "$all", "$size", "$elemMatch", "$elemMatch fields", "$not",
	}
	if depth == 0 {
		ops = ops[:14]
	}
	op := ops[o.r.IntN(len(ops))]
	name, _, _ := strings.Cut(op, " ")
	var v any
	switch op {
	case "$in", "$nin", "$all", "$eq list", "$gt list":
		list := bson.A{scalar(), scalar(), scalar()}[:o.r.IntN(4)]
		if o.r.IntN(5) == 0 {
			list = append(list, bson.A{scalar()})
		}
		if op == "$in" && o.r.IntN(5) == 0 {
			list = append(list, bson.Regex{Pattern: "^a"})
		}
		v = list
	case "$exists":
		v = o.r.IntN(2) == 0
	case "$type":
		v = []string{"number", "int", "string", "null", "array", "object", "bool", "undefined", "objectId"}[o.r.IntN(9)]
	case "$regex":
		v = []string{"^a", "^ab", "b$", "^", "^a.*", "(?i)^a", "^é"}[o.r.IntN(7)]
	case "$size":
		v = o.r.IntN(3)
	case "$not", "$elemMatch":
		v = o.operators(path, depth-1)
	case "$elemMatch fields":
		v = bson.D{{Key: "b", Value: o.operators("b", depth-1)}, {Key: "c", Value: o.operators("c", depth-1)}}[:1+o.r.IntN(2)]
	default:
		v = scalar()
	}
	return bson.E{Key: name, Value: v}
}

func (o *oracle) sort() mql.Sort {
	if o.r.IntN(3) == 0 {
		return mqltest.Sort(o.r)
	}
	var s mql.Sort
	for _, i := range o.r.Perm(len(o.paths))[:o.r.IntN(min(3, len(o.paths)+1))] {
		s = append(s, mql.SortField{Path: o.paths[i], Desc: o.r.IntN(2) == 0})
	}
	s = append(s, mql.SortField{Path: "_id", Desc: o.r.IntN(2) == 0})
	if o.r.IntN(8) == 0 {
		s = append(s, mql.SortField{Path: "c"})
	}
	return s
}

// position is that of a document, or, changed in one field, one between documents.
func (o *oracle) position(s mql.Sort, docs []bson.Raw) []bson.RawValue {
	key := s.Key(docs[o.r.IntN(len(docs))])
	if o.r.IntN(3) == 0 {
		key[o.r.IntN(len(key))] = value(o.t, o.scalar())
	}
	return key
}

func show(docs []bson.Raw) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = string(document.AppendJSON(nil, d, nil))
	}
	return out
}
