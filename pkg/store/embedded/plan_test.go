package embedded_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestPlans tells for queries on 100 documents which index is taken and how little is read.
func TestPlans(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	for _, x := range []store.Index{
		index("kind_n", "kind", "-n"), index("n", "n"), index("tags_n", "tags", "n"), index("email", "email"),
		{Name: "rare", Keys: index("", "rare").Keys, Sparse: true},
	} {
		x.Unique = x.Name == "email"
		createIndex(t, c, x)
	}
	for i := range 100 {
		doc := bson.D{
			{Key: "_id", Value: i},
			{Key: "kind", Value: fmt.Sprint("k", i%4)},
			{Key: "n", Value: i},
			{Key: "tags", Value: bson.A{i % 10, 100 + i%5}},
			{Key: "email", Value: fmt.Sprint(i, "@example.com")},
			{Key: "other", Value: i % 2},
		}
		if i%50 == 0 {
			doc = append(doc, bson.E{Key: "rare", Value: i})
		}
		must(t, c, insert(t, doc))
	}
	eq := func(path string, v any) bson.E { return bson.E{Key: path, Value: v} }
	op := func(path, op string, v any) bson.E { return bson.E{Key: path, Value: bson.D{{Key: op, Value: v}}} }
	for _, tt := range []struct {
		name   string
		filter bson.D
		sort   mql.Sort
		limit  int64
		skip   int64
		want   store.Explanation
	}{
		{name: "all", want: store.Explanation{KeysExamined: 100, DocsExamined: 100}},
		{name: "no index", filter: bson.D{eq("other", 1)}, want: store.Explanation{KeysExamined: 100, DocsExamined: 100}},
		{name: "by id", filter: bson.D{eq("_id", 7)}, want: store.Explanation{Indexes: []string{"_id"}, KeysExamined: 1, DocsExamined: 1}},
		{
			name: "by ids", filter: bson.D{op("_id", "$in", bson.A{7, 9, 1000})},
			want: store.Explanation{Indexes: []string{"_id"}, KeysExamined: 2, DocsExamined: 2},
		},
		{
			name: "id wins", filter: bson.D{eq("_id", 7), eq("kind", "k3")},
			want: store.Explanation{Indexes: []string{"_id"}, KeysExamined: 1, DocsExamined: 1},
		},
		{name: "by id order", sort: sortBy("-_id"), limit: 3, want: store.Explanation{Indexes: []string{"_id"}, KeysExamined: 3, DocsExamined: 3}},
		{
			name: "unique", filter: bson.D{eq("email", "5@example.com"), eq("kind", "k1")},
			want: store.Explanation{Indexes: []string{"email"}, KeysExamined: 1, DocsExamined: 1},
		},
		{
			name: "equality and order", filter: bson.D{eq("kind", "k1")}, sort: sortBy("-n", "_id"), limit: 5,
			want: store.Explanation{Indexes: []string{"kind_n"}, KeysExamined: 5, DocsExamined: 5},
		},
		{
			name: "equality and order backwards", filter: bson.D{eq("kind", "k1")}, sort: sortBy("n", "-_id"), limit: 5,
			want: store.Explanation{Indexes: []string{"kind_n"}, KeysExamined: 5, DocsExamined: 5},
		},
		{
			name: "_id the wrong way", filter: bson.D{eq("kind", "k1")}, sort: sortBy("n", "_id"), limit: 5,
			want: store.Explanation{Indexes: []string{"n"}, KeysExamined: 18, DocsExamined: 18}, // less than 25 to sort
		},
		{
			name: "equality and range", filter: bson.D{eq("kind", "k1"), op("n", "$lt", 20)},
			want: store.Explanation{Indexes: []string{"kind_n"}, KeysExamined: 5, DocsExamined: 5},
		},
		{
			name: "several equalities in order", filter: bson.D{op("kind", "$in", bson.A{"k1", "k2"})}, sort: sortBy("kind", "-n"), limit: 30,
			want: store.Explanation{Indexes: []string{"kind_n"}, KeysExamined: 30, DocsExamined: 30},
		},
		{name: "order", sort: sortBy("n", "_id"), limit: 2, want: store.Explanation{Indexes: []string{"n"}, KeysExamined: 2, DocsExamined: 2}},
		{
			name: "range in order", filter: bson.D{op("n", "$gte", 90)}, sort: sortBy("-n"),
			want: store.Explanation{Indexes: []string{"n"}, KeysExamined: 10, DocsExamined: 10},
		},
		{
			name: "short range instead of order", filter: bson.D{op("n", "$gte", 98)}, sort: sortBy("_id"), limit: 5,
			want: store.Explanation{Indexes: []string{"n"}, KeysExamined: 2, DocsExamined: 2, SortInMemory: true},
		},
		{
			name: "skip without documents", filter: bson.D{eq("kind", "k1")}, sort: sortBy("-n"), skip: 10, limit: 5,
			want: store.Explanation{Indexes: []string{"kind_n"}, KeysExamined: 15, DocsExamined: 5},
		},
		{
			name: "list", filter: bson.D{eq("tags", 3)}, sort: sortBy("n"), limit: 5,
			want: store.Explanation{Indexes: []string{"tags_n"}, KeysExamined: 5, DocsExamined: 5},
		},
		{name: "document once", filter: bson.D{op("tags", "$gte", 0)}, want: store.Explanation{Indexes: []string{"tags_n"}, KeysExamined: 200, DocsExamined: 100}},
		{
			name: "sparse", filter: bson.D{op("rare", "$exists", true)},
			want: store.Explanation{Indexes: []string{"rare"}, KeysExamined: 2, DocsExamined: 2},
		},
		{name: "sparse value", filter: bson.D{op("rare", "$gte", 50)}, want: store.Explanation{Indexes: []string{"rare"}, KeysExamined: 1, DocsExamined: 1}},
		{name: "sparse and null", filter: bson.D{eq("rare", nil)}, want: store.Explanation{KeysExamined: 100, DocsExamined: 100}},
		{name: "sparse order", sort: sortBy("rare"), want: store.Explanation{KeysExamined: 100, DocsExamined: 100, SortInMemory: true}},
		{name: "impossible", filter: bson.D{op("n", "$in", bson.A{})}, want: store.Explanation{Indexes: []string{"n"}}},
		{
			name: "contradiction", filter: bson.D{{Key: "n", Value: bson.D{{Key: "$gt", Value: 5}, {Key: "$lt", Value: 3}}}},
			want: store.Explanation{Indexes: []string{"n"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := store.Query{Sort: tt.sort, Limit: tt.limit, Skip: tt.skip}
			if tt.filter != nil {
				q.Filter = mql.MustCompile(tt.filter)
			}
			got, err := c.Explain(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Returned = int64(len(find(t, c, q)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestElementsOfOneList: two fields of an index that lead through one list may be satisfied by different elements.
func TestElementsOfOneList(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("pair", "a.b", "a.c"))
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{
		bson.D{{Key: "b", Value: 1}, {Key: "c", Value: 0}}, bson.D{{Key: "b", Value: 0}, {Key: "c", Value: 2}},
	}}}))
	q := store.Query{Filter: mql.MustCompile(bson.D{{Key: "a.b", Value: 1}, {Key: "a.c", Value: 2}})}
	if got := len(find(t, c, q)); got != 1 {
		t.Errorf("found %d documents, want 1", got)
	}
	e, err := c.Explain(t.Context(), q)
	if err != nil || strings.Join(e.Indexes, " ") != "pair" || e.KeysExamined != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestPositionBehindID: fields behind _id don't order, but they are part of the position.
func TestPositionBehindID(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 5}}))
	q := store.Query{Sort: sortBy("_id", "n"), After: []bson.RawValue{value(t, 1), value(t, 4)}}
	if got := len(find(t, c, q)); got != 1 {
		t.Errorf("behind (1, 4): %d documents, want the one at (1, 5)", got)
	}
	q.After = q.After[:1]
	err := c.Find(t.Context(), q, func(bson.Raw) error { return nil })
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("a position of the wrong length: %v", err)
	}
}

func TestSortMemory(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	for i := range 27 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "big", Value: strings.Repeat("x", 4<<20)}, {Key: "n", Value: -i}}))
	}
	count := func(q store.Query) (n int, err error) {
		err = c.Find(t.Context(), q, func(bson.Raw) error { n++; return nil })
		return n, err
	}
	if _, err := count(store.Query{Sort: sortBy("n")}); errs.KindOf(err) != errs.Limit {
		t.Errorf("sorting 108 MB: %v, want a limit", err)
	}
	if n, err := count(store.Query{Sort: sortBy("n"), Limit: 3}); n != 3 || err != nil {
		t.Errorf("the first 3 of 108 MB: %d, %v", n, err)
	}
	createIndex(t, c, index("n", "n"))
	if n, err := count(store.Query{Sort: sortBy("n")}); n != 27 || err != nil {
		t.Errorf("108 MB in the order of an index: %d, %v", n, err)
	}
}

func TestParallelArrays(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("ab", "a", "b"))
	code := func(doc bson.D) string {
		results, err := c.Write(t.Context(), []store.Op{insert(t, doc)}, true)
		if err != nil {
			t.Fatal(err)
		}
		if e := (*errs.Error)(nil); errors.As(results[0].Err, &e) {
			return e.Code
		}
		return fmt.Sprint(results[0].Err)
	}
	list := bson.A{1, 2}
	for _, tt := range []struct {
		doc  bson.D
		want string
	}{
		{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: list}, {Key: "b", Value: 1}}, "<nil>"},
		{bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: list}, {Key: "b", Value: list}}, "parallel_arrays"},
		{bson.D{{Key: "_id", Value: 3}, {Key: "a", Value: bson.A{}}, {Key: "b", Value: bson.A{}}}, "parallel_arrays"},
		{bson.D{{Key: "_id", Value: 4}, {Key: "c", Value: list}, {Key: "d", Value: list}}, "<nil>"},
	} {
		if got := code(tt.doc); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.doc, got, tt.want)
		}
	}
	if err := c.CreateIndex(t.Context(), index("cd", "c", "d")); errs.KindOf(err) != errs.Invalid {
		t.Errorf("index over two lists of a document: %v", err)
	}
	left, err := c.Indexes(t.Context())
	if err != nil || len(left) != 1 {
		t.Errorf("the failed index left %v, %v", left, err)
	}
	createIndex(t, c, index("e0", "e.0"))
	if got := code(bson.D{{Key: "_id", Value: 5}, {Key: "e", Value: bson.A{bson.D{{Key: "0", Value: 1}}}}}); got != "ambiguous_path" {
		t.Errorf("position and field of one name: %s", got)
	}
	createIndex(t, c, index("g", "g.0", "g.1.0"))
	if got := code(bson.D{{Key: "_id", Value: 7}, {Key: "g", Value: bson.A{list, list}}}); got != "parallel_arrays" {
		t.Errorf("lists at two positions of a list: %s", got)
	}
	if got := code(bson.D{{Key: "_id", Value: 8}, {Key: "g", Value: bson.A{list, 1}}}); got != "<nil>" {
		t.Errorf("a list at one of two positions of a list: %s", got)
	}
	createIndex(t, c, index("f1", "f.1"))
	if got := code(bson.D{{Key: "_id", Value: 6}, {Key: "f", Value: bson.A{bson.D{{Key: "1", Value: 7}}}}}); got != "<nil>" {
		t.Errorf("a field of the name of a position that the list does not have: %s", got)
	}
}

// TestRefusedWrites are ops that no document can come of; the ops beside them stand.
func TestRefusedWrites(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	good := insert(t, bson.D{{Key: "_id", Value: 1}})
	for name, op := range map[string]store.Op{
		"no kind":          {Doc: good.Doc},
		"no _id":           {Kind: store.Insert, Doc: raw(t, bson.D{{Key: "a", Value: 1}})},
		"list for an _id":  {Kind: store.Insert, Doc: raw(t, bson.D{{Key: "_id", Value: bson.A{1}}})},
		"delete nothing":   {Kind: store.Delete},
		"damaged document": {Kind: store.Insert, Doc: good.Doc[:len(good.Doc)-2]},
		"too large":        {Kind: store.Insert, Doc: raw(t, bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: strings.Repeat("x", 16<<20)}})},
	} {
		results, err := c.Write(t.Context(), []store.Op{op, good}, false)
		if kind := errs.KindOf(results[0].Err); err != nil || (kind != errs.Invalid && kind != errs.TooLarge) {
			t.Errorf("%s: %v, %v", name, results, err)
		}
		if results[1].Err != nil {
			t.Errorf("%s: the op beside it: %v", name, results[1].Err)
		}
		must(t, c, store.Op{Kind: store.Delete, ID: value(t, 1)})
	}
	for _, name := range []string{"", "UPPER", "a.b", strings.Repeat("x", 61)} {
		if _, err := s.Database(name).Collection("c").Write(t.Context(), []store.Op{good}, false); errs.KindOf(err) != errs.Invalid {
			t.Errorf("database %q: %v", name, err)
		}
	}
}
