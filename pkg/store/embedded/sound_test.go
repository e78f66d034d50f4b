package embedded_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// TestPlansAreSound makes plans for random queries with one random index and looks at the keys that random documents
// have: what matches has a key in the ranges, and what a plan says of itself is so. No store is involved, so this sees
// every plan, those among them that a store would hardly take.
func TestPlansAreSound(t *testing.T) {
	plans := 0
	for seed := range uint64(100 * soak()) {
		r := rand.New(rand.NewPCG(seed, 2))
		o := &oracle{t: t, r: r, docs: map[int]bson.Raw{}, lists: seed%2 == 0, paths: []string{"a", "b", "c", "a.b", "a.c", "b.c"}}
		if r.IntN(2) == 0 {
			r.Shuffle(len(o.paths), func(i, j int) { o.paths[i], o.paths[j] = o.paths[j], o.paths[i] })
			o.paths = o.paths[:1+r.IntN(3)]
		}
		docs := make([]bson.Raw, 40)
		for i := range docs {
			docs[i] = o.doc(i)
		}
		for range 20 {
			def := o.index()
			if slices.ContainsFunc(def.Keys, func(k store.IndexKey) bool { return k.Path == "a.0" }) {
				continue // the planner is given none of these
			}
			x := plan.Index{ID: 1, Def: &def, Prefix: embedded.IndexPrefix()}
			var keyed []keyedDoc
			for _, doc := range docs {
				keys, multikey, err := embedded.Entries(def, doc)
				if err == nil { // else it could not be in the collection
					keyed = append(keyed, keyedDoc{doc, keys})
					x.Multikey |= multikey
				}
			}
			def.Unique = false // the documents are not
			for range 10 {
				q := store.Query{Filter: o.filter()}
				if r.IntN(2) == 0 {
					q.Sort = o.sort()
				}
				for _, pl := range plan.Choose(&q, embedded.DocPrefix(), []plan.Index{x}) {
					plans++
					if err := sound(pl, q, keyed); err != nil {
						t.Fatalf("seed %d, index %s, lists %b, filter %v, sort %v: %v", seed, def.Name, x.Multikey, q.Filter.Raw(), q.Sort, err)
					}
				}
			}
		}
	}
	if plans < 1000 {
		t.Errorf("only %d plans", plans)
	}
}

type keyedDoc struct {
	doc  bson.Raw
	keys [][]byte // in the index
}

// found is a key within a scan.
type foundKey struct {
	key, order []byte // order: what a merge compares
	reverse    bool
	doc        bson.Raw
}

// sound says what is wrong with a plan.
func sound(pl *plan.Plan, q store.Query, docs []keyedDoc) error {
	var all []foundKey
	for _, d := range docs {
		var mine []foundKey
		for _, s := range pl.Scans {
			keys := d.keys
			if s.Index == nil {
				keys = [][]byte{embedded.DocKey(d.doc)}
			}
			mine = append(mine, within(s, keys, d.doc)...)
		}
		matches := q.Filter.Match(d.doc)
		switch {
		case matches && len(mine) == 0:
			return fmt.Errorf("%v matches, but has no key in the ranges of the plan %+v", d.doc, pl)
		case len(mine) > 1 && !pl.Repeats:
			return fmt.Errorf("%v has several keys, which the plan %+v does not say", d.doc, pl)
		case len(mine) > 0 && !matches && pl.Exact:
			return fmt.Errorf("%v does not match, but the plan %+v says so", d.doc, pl)
		case matches:
			all = append(all, mine...)
		}
	}
	if !pl.Sorted || pl.Order == plan.ByValue {
		return nil
	}
	return sorted(pl, q, all)
}

// within gives those of a document's keys that are in the ranges of a scan.
func within(s *plan.Scan, keys [][]byte, doc bson.Raw) []foundKey {
	var out []foundKey
	for _, key := range keys {
		for _, r := range s.Ranges {
			if bytes.Compare(key, r.Lo) >= 0 && bytes.Compare(key, r.Hi) < 0 {
				out = append(out, foundKey{key, key[r.Fixed:], s.Reverse, doc})
			}
		}
	}
	return out
}

// sorted says what is wrong with the order in which a plan gives documents.
func sorted(pl *plan.Plan, q store.Query, all []foundKey) error {
	slices.SortFunc(all, func(a, b foundKey) int {
		if a.reverse {
			a, b = b, a
		}
		if pl.Order == plan.ByKey {
			return bytes.Compare(a.order, b.order)
		}
		return bytes.Compare(a.key, b.key)
	})
	var last bson.Raw
	seen := map[string]bool{}
	for _, f := range all {
		if seen[string(f.doc)] {
			continue
		}
		seen[string(f.doc)] = true
		if _, err := q.Sort.AppendValues(nil, f.doc); err != nil {
			continue // a sort in memory would refuse it
		}
		if last != nil && q.Sort.Compare(last, f.doc) > 0 {
			return fmt.Errorf("%v comes before %v with the plan %+v", last, f.doc, pl)
		}
		last = f.doc
	}
	return nil
}

// TestPickedLists: a list that a position picks at the end of a path is one key, as in MongoDB; elsewhere each element is.
func TestPickedLists(t *testing.T) {
	for _, tt := range []struct {
		path  string
		a     any
		keys  []any
		empty bool // the key is that of an empty list
	}{
		{path: "a.1", a: bson.A{0, bson.A{1, 2}}, keys: []any{bson.A{1, 2}}},
		{path: "a.1", a: bson.A{0, bson.A{}}, empty: true},
		{path: "a.1", a: bson.A{0, bson.A{bson.A{}}}, keys: []any{bson.A{bson.A{}}}},
		{path: "a.0.0", a: bson.A{bson.A{bson.A{6}}}, keys: []any{bson.A{6}}},
		{path: "a.1.x", a: bson.A{0, bson.A{bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "x", Value: 2}}}}, keys: []any{1, 2}},
		{path: "a.0.b", a: bson.A{bson.D{{Key: "b", Value: bson.A{1, 2}}}}, keys: []any{1, 2}},
		{path: "a.0", a: bson.D{{Key: "0", Value: bson.A{1, 2}}}, keys: []any{1, 2}},
	} {
		doc := raw(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: tt.a}})
		got, _, err := embedded.Entries(index("x", tt.path), doc)
		if err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		for _, v := range tt.keys {
			want = append(want, document.AppendKey(embedded.IndexPrefix(), value(t, v), false))
		}
		if tt.empty {
			want = append(want, document.AppendUndefinedKey(embedded.IndexPrefix(), false))
		}
		for i := range want {
			want[i] = document.AppendKey(want[i], value(t, 1), false)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s of %v: %x, want %x", tt.path, tt.a, got, want)
		}
	}
}
