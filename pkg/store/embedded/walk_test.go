package embedded_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// Documents by their _id are found whether they are side by side or far apart, and whether all or only some are there.
func TestManyByID(t *testing.T) {
	c := collection(open(t, embedded.Options{InMemory: true}))
	id := func(i int) bson.ObjectID { // many of them end with 0xFF, which no key after them can
		return bson.ObjectID{0xff, byte(i >> 8), byte(i), 0xff, 0, 0, 0, 0, 0, 0, 0, byte(0xff * (i % 2))}
	}
	var ops []store.Op
	for i := range 1000 {
		if i%7 != 0 {
			ops = append(ops, insert(t, bson.D{{Key: "_id", Value: id(i)}, {Key: "n", Value: i}}))
		}
	}
	must(t, c, ops...)
	for name, ask := range map[string]func(i int) bool{
		"all":         func(int) bool { return true },
		"the first":   func(i int) bool { return i < 30 },
		"every third": func(i int) bool { return i%3 == 0 },
		"few":         func(i int) bool { return i%97 == 0 },
		"in clusters": func(i int) bool { return i/20%5 == 0 },
		"missing":     func(i int) bool { return i%7 == 0 },
		"other types": func(i int) bool { return i < 3 },
	} {
		in := bson.A{"text", nil, bson.A{1}, 1.5}
		var want []int32
		for i := range 1100 {
			if !ask(i) {
				continue
			}
			if in = append(in, id(i)); i < 1000 && i%7 != 0 {
				want = append(want, int32(i))
			}
		}
		for _, desc := range []bool{false, true} {
			q := store.Query{Filter: mql.MustCompile(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: in}}}}), Sort: mql.Sort{{Path: "_id", Desc: desc}}}
			var got []int32
			for _, d := range find(t, c, q) {
				got = append(got, d.Lookup("n").Int32())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, descending %v: %s", name, desc, diff)
			}
			slices.Reverse(want)
		}
	}
}
