package quality_test

import (
	"os"
	"testing"

	"github.com/svcctl/svc/pkg/search/analysis"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/search/quality"
)

// TestTextOfCranfield measures plain BM25; what a reference implementation reaches is the least.
func TestTextOfCranfield(t *testing.T) {
	dir := os.Getenv("CRANFIELD")
	if dir == "" {
		t.Skip("NOT TESTED: set CRANFIELD to the folder of the Cranfield collection")
	}
	docs, queries, err := quality.Cranfield(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 1400 || len(queries) != 225 {
		t.Fatalf("%d documents, %d queries", len(docs), len(queries))
	}
	a, _, err := analysis.For("en")
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(text string) []index.Token {
		var out []index.Token
		for _, tok := range a.Tokens(text) {
			out = append(out, index.Token{Term: tok.Term, Position: uint32(tok.Position)})
		}
		return out
	}
	for name, fields := range map[string]func(d quality.Document) map[index.Field][]index.Token{
		"one field": func(d quality.Document) map[index.Field][]index.Token {
			return map[index.Field][]index.Token{1: tokens(d.Title + "\n" + d.Text)}
		},
		"title and text": func(d quality.Document) map[index.Field][]index.Token {
			return map[index.Field][]index.Token{1: tokens(d.Text), 2: tokens(d.Title)}
		},
	} {
		db, err := index.Open(index.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		ix, err := db.Index("c")
		if err != nil {
			t.Fatal(err)
		}
		var changes []index.Change
		for _, d := range docs {
			changes = append(changes, index.Change{ID: []byte(d.ID), Rev: 1, Fields: fields(d)})
		}
		if err := ix.Apply(t.Context(), changes, nil); err != nil {
			t.Fatal(err)
		}
		for _, boost := range []float32{1, 1.5, 2} {
			r, err := quality.Measure(queries, func(query string) ([]string, error) {
				v, err := ix.View()
				if err != nil {
					return nil, err
				}
				defer v.Close()
				var q index.Query
				for _, tok := range a.Tokens(query) {
					g := index.Group{Leaves: []index.Leaf{{Field: 1, Terms: []string{tok.Term}, Boost: 1}}}
					if name != "one field" {
						g.Leaves = append(g.Leaves, index.Leaf{Field: 2, Terms: []string{tok.Term}, Boost: boost})
					}
					q.Groups = append(q.Groups, g)
				}
				m, err := v.Search(t.Context(), q)
				if err != nil {
					return nil, err
				}
				defer m.Release()
				var ids []string
				for _, h := range m.Top(100) {
					ids = append(ids, string(h.ID))
				}
				return ids, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if boost == 1 && (r.NDCG10 < 0.519 || r.Recall < 0.753) {
				t.Errorf("%s: nDCG@10 %.4f, recall@100 %.4f; want 0.519 and 0.753 at least", name, r.NDCG10, r.Recall)
			}
			t.Logf("%s, boost %.1f: nDCG@10 %.3f, recall@100 %.3f of %d queries", name, boost, r.NDCG10, r.Recall, r.Queries)
			if name == "one field" {
				break
			}
		}
		_ = db.Close(t.Context())
	}
}
