package embedded_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestAllocations compares queries that pass many documents with such that pass few: what each document costs must
// be nothing. Rarely, the engine itself allocates when it loads a block.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	const few, many = 200, 2000
	c := collection(open(t, embedded.Options{InMemory: true}))
	createIndex(t, c, index("n", "n"))
	createIndex(t, c, index("kind_n", "kind", "n"))
	createIndex(t, c, index("tags", "tags"))
	var ops []store.Op
	for i := range many {
		ops = append(ops, insert(t, bson.D{
			{Key: "_id", Value: i * 7919 % 100_003},
			{Key: "n", Value: i},
			{Key: "kind", Value: fmt.Sprint("kind-", i%5)},
			{Key: "tags", Value: bson.A{i % 3, i % 3, 10 + i%4}},
			{Key: "deep", Value: bson.D{{Key: "er", Value: i % 10}}},
			{Key: "title", Value: fmt.Sprint("The title of number ", i)},
		}))
	}
	must(t, c, ops...)
	kinds := bson.A{"kind-0", "kind-1", "kind-2", "kind-3", "kind-4"}
	projection, err := mql.CompileProjection(bson.D{{Key: "title", Value: 1}, {Key: "deep.er", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]func(n int64) store.Query{
		"scan": func(n int64) store.Query {
			return store.Query{Limit: n, Filter: mql.MustCompile(bson.D{
				{Key: "deep.er", Value: bson.D{{Key: "$gte", Value: 0}}}, {Key: "title", Value: bson.D{{Key: "$ne", Value: "x"}}},
			})}
		},
		"index":      func(n int64) store.Query { return store.Query{Limit: n, Filter: gte("n", 0)} },
		"order":      func(n int64) store.Query { return store.Query{Limit: n, Sort: sortBy("-n")} },
		"projection": func(n int64) store.Query { return store.Query{Limit: n, Filter: gte("n", 0), Project: projection} },
		"lists":      func(n int64) store.Query { return store.Query{Limit: n, Filter: gte("tags", 0)} },
		"merged points": func(n int64) store.Query {
			return store.Query{Limit: n, Sort: sortBy("n"), Filter: mql.MustCompile(bson.D{{Key: "kind", Value: bson.D{{Key: "$in", Value: kinds}}}})}
		},
		"merged branches": func(n int64) store.Query {
			return store.Query{Limit: n, Sort: sortBy("n"), Filter: mql.MustCompile(bson.D{{Key: "$or", Value: bson.A{
				bson.D{{Key: "kind", Value: "kind-1"}}, bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 0}}}},
			}}})}
		},
		"the first of a sort": func(n int64) store.Query {
			return store.Query{Limit: 10, Sort: sortBy("deep.er", "title"), Filter: mql.MustCompile(bson.D{{Key: "n", Value: bson.D{{Key: "$lt", Value: n}}}})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocs := func(n int64) float64 {
				q := query(n)
				var out []byte
				return testing.AllocsPerRun(5, func() {
					out = out[:0]
					err := c.Find(t.Context(), q, func(doc bson.Raw) error {
						out = document.AppendJSON(out[:0], doc, nil)
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				})
			}
			// All of the process is counted: what others do at the same time goes by, what documents cost does not.
			for tries := 1; ; tries++ {
				a, b := allocs(few), allocs(many)
				if b-a <= 0.02*(many-few) {
					break
				}
				if tries == 5 {
					t.Fatalf("%.0f allocations for %d documents, %.0f for %d", a, few, b, many)
				}
			}
		})
	}
}

func gte(path string, v any) *mql.Filter {
	return mql.MustCompile(bson.D{{Key: path, Value: bson.D{{Key: "$gte", Value: v}}}})
}
