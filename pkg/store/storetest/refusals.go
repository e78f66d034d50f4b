package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// testRefusals holds what can't be done against the code that each store has to give for it.
func testRefusals(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.given(`{"_id":1,"a":1}`)
	t.Run("names", func(t *testing.T) { f.in(t).refusedNames() })
	t.Run("ops", func(t *testing.T) { f.in(t).refusedOps() })
	t.Run("indexes", func(t *testing.T) { f.in(t).refusedIndexes() })
	t.Run("lists side by side", func(t *testing.T) { f.in(t).refusedLists() })
	t.Run("positions", func(t *testing.T) { f.in(t).refusedPositions() })
}

func (f *fixture) refused(what string, err error, code string) {
	f.t.Helper()
	if e := (*errs.Error)(nil); !errors.As(err, &e) || e.Code != code {
		f.t.Errorf("%s: %v, want the code %s", what, err, code)
	}
}

func (f *fixture) refusedNames() {
	ops := []store.Op{insert(`{"_id":1}`)}
	for _, name := range []string{"", "UPPER", "a.b", "admin", "config", "local", strings.Repeat("x", 61)} {
		_, err := f.store.Database(name).Collection("things").Write(f.t.Context(), ops, false)
		f.refused("database "+name, err, "bad_name")
	}
	for _, name := range []string{"", "a$b", "a b", "a\x00b", "system.users", ".a", "a.", strings.Repeat("x", 121)} {
		_, err := f.db.Collection(name).Write(f.t.Context(), ops, false)
		f.refused("collection "+name, err, "bad_name")
	}
}

func (f *fixture) refusedOps() {
	one, all := doc(`{"_id":1,"a":2}`), filter(`{}`)
	id := one.Lookup("_id")
	list := doc(`{"_id":[1]}`)
	large, err := bson.Marshal(bson.D{{Key: "_id", Value: 9}, {Key: "x", Value: strings.Repeat("x", 16<<20)}})
	if err != nil {
		f.t.Fatal(err)
	}
	for what, refused := range map[string]struct {
		code string
		op   store.Op
	}{
		"no kind":                    {"bad_write", store.Op{Doc: one}},
		"update with nothing":        {"bad_write", store.Op{Kind: store.Update, ID: id}},
		"insert with a filter":       {"bad_write", store.Op{Kind: store.Insert, Doc: one, Filter: all}},
		"insert with a condition":    {"bad_write", store.Op{Kind: store.Insert, Doc: one, If: all}},
		"two conditions":             {"bad_write", store.Op{Kind: store.Delete, Filter: all, If: all}},
		"many without a filter":      {"bad_write", store.Op{Kind: store.Delete, ID: id, Many: true}},
		"sort without a filter":      {"bad_write", store.Op{Kind: store.Delete, ID: id, Sort: sortBy("a")}},
		"replace many":               {"bad_write", store.Op{Kind: store.Replace, Doc: one, Filter: all, Many: true}},
		"many, give one":             {"bad_write", store.Op{Kind: store.Delete, Filter: all, Many: true, Return: store.ReturnBefore}},
		"upsert by a delete":         {"bad_write", store.Op{Kind: store.Delete, ID: id, Upsert: true}},
		"upsert under a condition":   {"bad_write", store.Op{Kind: store.Replace, Doc: one, If: all, Upsert: true}},
		"after a delete":             {"bad_write", store.Op{Kind: store.Delete, ID: id, Return: store.ReturnAfter}},
		"no _id":                     {"bad_id", insert(`{"a":1}`)},
		"delete of nothing":          {"bad_id", store.Op{Kind: store.Delete}},
		"list for an _id":            {"bad_id", store.Op{Kind: store.Insert, Doc: list}},
		"an operator in the _id":     {"bad_id", insert(`{"_id":{"a":[{"$b":1}]}}`)},
		"damaged document":           {"bad_document", store.Op{Kind: store.Insert, Doc: one[:len(one)-2]}},
		"more than a document":       {"bad_document", store.Op{Kind: store.Insert, Doc: append(slices.Clone(doc(`{"_id":9}`)), 0)}},
		"two _id":                    {"bad_document", insert(`{"_id":9,"a":1,"_id":8}`)},
		"an operator in a replace":   {"bad_document", store.Op{Kind: store.Replace, Doc: doc(`{"_id":1,"$a":1}`)}},
		"an operator for another":    {"bad_document", by(`{"_id":1}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"$a":1}`)})},
		"an operator, upserted":      {"bad_document", by(`{"_id":9}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"a":1,"$a":1}`), Upsert: true})},
		"large document":             {"document_too_large", store.Op{Kind: store.Insert, Doc: large}},
		"another _id by an update":   {"update_failed", store.Op{Kind: store.Update, ID: id, Update: update(`{"$set":{"_id":2}}`)}},
		"another _id by a replace":   {"update_failed", by(`{"_id":1}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"_id":2}`)})},
		"another _id, and give that": {"update_failed", returning(store.ReturnAfter, "", by(`{"_id":1}`, "", store.Op{Kind: store.Replace, Doc: doc(`{"_id":2}`)}))},
	} {
		results, err := f.Write(f.t.Context(), []store.Op{refused.op}, false)
		if err != nil {
			f.t.Errorf("%s: the whole Write fails: %v", what, err)
			continue
		}
		f.refused(what, results[0].Err, refused.code)
	}
	if got := f.documents(store.Query{}); len(got) != 1 {
		f.t.Errorf("there are now %v", got)
	}
}

func (f *fixture) refusedIndexes() {
	a := []store.IndexKey{{Path: "a"}}
	for what, index := range map[string]store.Index{
		"no name":           {Keys: a},
		"the primary's":     {Name: "_id_", Keys: a},
		"all names":         {Name: "*", Keys: a},
		"no keys":           {Name: "x"},
		"_id alone":         {Name: "x", Keys: []store.IndexKey{{Path: "_id"}}},
		"one path twice":    {Name: "x", Keys: []store.IndexKey{{Path: "a"}, {Path: "a", Desc: true}}},
		"empty path":        {Name: "x", Keys: []store.IndexKey{{Path: "a..b"}}},
		"sparse, partial":   {Name: "x", Keys: a, Sparse: true, Partial: filter(`{"a":1}`)},
		"half a second":     {Name: "x", Keys: a, ExpireAfter: 500 * time.Millisecond},
		"expire by two":     {Name: "x", Keys: []store.IndexKey{{Path: "a"}, {Path: "b"}}, ExpireAfter: time.Hour},
		"expire in decades": {Name: "x", Keys: a, ExpireAfter: 70 * 365 * 24 * time.Hour},
	} {
		f.refused(what, f.CreateIndex(f.t.Context(), index), "bad_index")
	}
	f.refused("a partial filter", f.CreateIndex(f.t.Context(),
		store.Index{Name: "x", Keys: a, Partial: filter(`{"a":{"$ne":1}}`)}), "bad_partial_filter")
	f.wantIndexes()
}

func (f *fixture) refusedLists() {
	f.mustWrite(insert(`{"_id":2,"l":[1,2],"m":[1,2]}`))
	index := store.Index{Name: "l_m", Keys: []store.IndexKey{{Path: "l"}, {Path: "m"}}}
	f.refused("an index", f.CreateIndex(f.t.Context(), index), "parallel_arrays")
	err := f.Find(f.t.Context(), store.Query{Sort: sortBy("l m")}, func(bson.Raw) error { return nil })
	f.refused("a sort", err, "parallel_sort")
}

func (f *fixture) refusedPositions() {
	w := store.Watch{After: f.collection("others").position()}
	err := f.store.Database(databaseName(f.t, f.store)).Watch(f.t.Context(), w, func(store.Event) error { return nil })
	f.refused("that of another database", err, "bad_position")
	w.After = store.Position("nonsense")
	f.refused("nonsense", f.db.Watch(f.t.Context(), w, func(store.Event) error { return nil }), "bad_position")
	one := value(`1`)
	for what, after := range map[string][]bson.RawValue{
		"one value for two fields":   {one},
		"three values":               {one, one, one},
		"a number that is cut":       {{Type: bson.TypeInt32, Value: []byte{1}}, one},
		"a number with more":         {{Type: bson.TypeInt32, Value: make([]byte, 8)}, one},
		"a text without an end":      {one, {Type: bson.TypeString, Value: []byte{2, 0, 0, 0, 'x', 'x'}}},
		"a text of a negative size":  {one, {Type: bson.TypeString, Value: []byte{255, 255, 255, 255, 'x', 0}}},
		"a damaged object":           {{Type: bson.TypeEmbeddedDocument, Value: []byte{9, 0, 0, 0, 16, 'a', 0, 1, 0}}, one},
		"a list with a damaged item": {{Type: bson.TypeArray, Value: []byte{10, 0, 0, 0, 2, '0', 0, 9, 0, 0}}, one},
		"neither true nor false":     {{Type: bson.TypeBoolean, Value: []byte{2}}, one},
		"an unknown type":            {{Type: 0x60, Value: []byte{1}}, one},
		"bytes without a type":       {{Value: []byte{1}}, one},
		"a deep object":              {{Type: bson.TypeEmbeddedDocument, Value: nested(200)}, one},
	} {
		q := store.Query{Sort: sortBy("a _id"), After: after}
		f.refused("Find after "+what, f.Find(f.t.Context(), q, func(bson.Raw) error { return nil }), "bad_position")
		_, err := f.Explain(f.t.Context(), q)
		f.refused("Explain after "+what, err, "bad_position")
		for _, id := range after { // nothing can have such an _id
			if _, err := f.Get(f.t.Context(), id); err != nil && outcome(err) != "missing" {
				f.t.Errorf("Get with %s: %v", what, err)
			}
		}
		err = f.db.Transact(f.t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.Collection("things").Find(ctx, q, func(bson.Raw) error { return nil })
		})
		f.refused("Find in a transaction after "+what, err, "bad_position")
	}
}
