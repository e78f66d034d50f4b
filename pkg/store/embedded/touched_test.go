package embedded_test

import (
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// What many writers add to the same few documents, by _id and by filter, alone and in transactions, is all there
// in the end: an edit that was worked out on an older document is never taken for one on the current one.
func TestWritersOfOneDocumentLoseNothing(t *testing.T) {
	t.Parallel()
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	createIndex(t, c, index("n", "n"))
	const docs, writers, rounds = 3, 8, 120
	for i := range docs {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 0}, {Key: "m", Value: 0}}))
	}
	inc, err := mql.CompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				id := (w + i) % docs
				byID := store.Op{Kind: store.Update, ID: value(t, id), Update: inc}
				byFilter := store.Op{Kind: store.Update, Filter: mql.MustCompile(bson.D{{Key: "_id", Value: id}}), Update: inc}
				var ops []store.Op
				switch w % 4 {
				case 0:
					ops = []store.Op{byID}
				case 1:
					ops = []store.Op{byFilter}
				case 2: // the second is on what the first makes
					ops = []store.Op{byID, byID}
				default:
					byFilter.Many = true
					ops = []store.Op{byFilter}
				}
				results, err := c.Write(t.Context(), ops, i%2 == 0)
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range results {
					if r.Err != nil || r.Modified != 1 {
						t.Errorf("result %+v", r)
					}
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for i := range docs {
		doc, err := c.Get(t.Context(), value(t, i))
		if err != nil {
			t.Fatal(err)
		}
		total += doc.Lookup("n").AsInt64()
	}
	if want := int64(rounds * (writers + writers/4)); total != want {
		t.Errorf("%d of %d increments are there", total, want)
	}
}
