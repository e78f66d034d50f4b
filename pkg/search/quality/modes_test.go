package quality_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/local"
	"github.com/svcctl/svc/pkg/embedding/local/minilm"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/search/quality"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

const cranfieldProject = `
namespace: cranfield
collections:
  - name: abstracts
    defaultLanguage: en
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: title, type: string}, {name: text, type: string}]
    search:
      - {name: text, mode: text, fields: [text]} # which begins with the title
      - {name: vector, mode: vector, vector: {group: minilm, fields: [title, text]}}
      - {name: rrf, mode: rrf, rrf: {sources: [text, vector]}}
`

// TestModesOfCranfield measures searches as projects declare them, with all-MiniLM-L6-v2 in this process. It takes minutes.
func TestModesOfCranfield(t *testing.T) {
	dir := os.Getenv("CRANFIELD")
	if dir == "" {
		t.Skip("NOT TESTED: set CRANFIELD to the folder of the Cranfield collection")
	}
	model := minilm.Dir(t)
	docs, queries, err := quality.Cranfield(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open(t.Context(), embedded.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	groups, err := embedding.Open(t.Context(), embedding.Config{
		Providers: []embedding.ProviderConfig{{Name: "minilm", Type: "local", ModelPath: model, TimeoutPerAttempt: 5 * time.Minute, SlowThreshold: time.Minute}},
		Groups:    []embedding.GroupConfig{{Name: "minilm", Members: []string{"minilm"}}},
	}, embedding.Types{"local": local.New}, embedding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer groups.Close()
	config := t.TempDir()
	if err := os.WriteFile(filepath.Join(config, "project.yaml"), []byte(cranfieldProject), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(config, "project.yaml", nil)
	if p == nil {
		t.Fatal(problems)
	}
	abstracts := p.Collections["abstracts"]
	var ops []store.Op
	for i, d := range docs {
		id, err := strconv.Atoi(d.ID)
		if err != nil || id != i+1 {
			t.Fatalf("document %d has the id %s", i, d.ID)
		}
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: number(id)}, {Key: "title", Value: d.Title}, {Key: "text", Value: d.Text}})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
	}
	if err := store.WriteAll(t.Context(), s.Database(project.DatabaseName(p.Namespace)).Collection(abstracts.StoredName()), ops...); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Store: s, Dir: t.TempDir(), Logger: slog.Default(), Now: time.Now, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := e.Serve(p); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := e.Settle(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d vectors in %v", len(docs), time.Since(began).Round(time.Second))
	for _, want := range []struct {
		search       string
		ndcg, recall float64
	}{{"text", 0.519, 0.753}, {"vector", 0.510, 0.78}, {"rrf", 0.563, 0.80}} {
		r, err := quality.Measure(queries, func(q string) ([]string, error) {
			words, err := search.Parse(q)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q, err)
			}
			found, err := e.Search(t.Context(), engine.Query{Project: p, Collection: abstracts, Search: abstracts.Search(want.search), Text: q, Words: words})
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, h := range found.Next(100) {
				ids = append(ids, strconv.Itoa(int(h.ID[10])<<8|int(h.ID[11])))
			}
			return ids, found.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: nDCG@10 %.4f, recall@100 %.4f of %d queries", want.search, r.NDCG10, r.Recall, r.Queries)
		if r.NDCG10 < want.ndcg || r.Recall < want.recall {
			t.Errorf("%s: want %.3f and %.3f at least", want.search, want.ndcg, want.recall)
		}
	}
}

func number(n int) bson.ObjectID { return bson.ObjectID{10: byte(n >> 8), 11: byte(n)} }
