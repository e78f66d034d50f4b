package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// settings are searches of the same records, each with one setting that the plain one has not.
const settings = `
  - name: articles
    defaultLanguage: en
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: status, type: string}
      - {name: at, type: date}
    search:
      - {name: plain, mode: text, fields: [title, body]}
      - {name: weighed, mode: text, fields: [title, body], score: {weights: {body: 20}}}
      - {name: prefix, mode: text, fields: [title], text: {prefix: true}}
      - {name: and, mode: text, fields: [title, body], text: {operator: and}}
      - {name: exact, mode: text, fields: [title], text: {fuzziness: off}}
      - {name: best, mode: text, fields: [title, body], score: {minScore: 1.3}}
      - {name: new, mode: text, fields: [title], score: {recency: {field: at, halfLife: 1h, weight: 5}}}
      - {name: some, mode: text, fields: [title], filter: {status: open}}
      - {name: long, mode: ngram, fields: [title], ngram: {min: 5, max: 5}}
      - {name: short, mode: ngram, fields: [title], ngram: {min: 2, max: 3}, filter: {status: open}}
      - {name: fused, mode: rrf, rrf: {sources: [plain, short]}}
      - {name: first, mode: rrf, rrf: {sources: [plain, short], topK: 1}}
      - {name: leaning, mode: rrf, rrf: {sources: [plain, short], weights: {short: 10}, k: 1}}
`

// TestSettings: what each setting of a search makes of the same words.
func TestSettings(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		w := newWorld(t, s, settings, func(w *world) { w.now = func() time.Time { return now } })
		w.put("articles",
			doc(1, "title", "Garden gate", "body", "wood", "status", "open", "at", now.Add(-100*time.Hour)),
			doc(2, "title", "A garden in winter", "body", "the gate is shut", "status", "open", "at", now),
			doc(3, "title", "An old town", "body", "garden", "status", "shut", "at", now.Add(-time.Hour)),
		)
		for _, x := range []struct {
			search, q string
			want      []int
		}{
			{"plain", "garden gate", []int{1, 2, 3}},
			{"weighed", "garden", []int{3, 1, 2}},
			{"plain", "gard", nil},
			{"prefix", "gard", []int{1, 2}},
			{"prefix", "gard winter", []int{2}}, // only the last word may be a beginning
			{"and", "garden winter", []int{2}},
			{"and", "garden shut", []int{2}}, // one in each field
			{"and", "garden -gate", []int{3}},
			{"plain", "wintr", []int{2}},
			{"exact", "wintr", nil},
			{"exact", "winter", []int{2}},
			{"best", "garden gate", []int{1}},
			{"new", "garden", []int{2, 1}},
			{"some", "garden", []int{1, 2}},
			{"long", "gard", nil},
			{"long", "arden", []int{1, 2}},
			{"short", "gard", []int{1, 2}},
			{"fused", "garden", []int{1, 2, 3}},
			{"first", "garden", []int{1, 3}}, // the best of each
			{"leaning", "garden", []int{1, 2, 3}},
		} {
			got, err := w.look("articles", x.search, x.q)
			if !slices.Equal(got, x.want) || err != nil {
				t.Errorf("%s: %q finds %v, %v, want %v", x.search, x.q, got, err, x.want)
			}
		}
	})
}

// TestExplain says how scores come to be, so that what is said adds up to them.
func TestExplain(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), settings)
	w.put("articles",
		doc(1, "title", "Garden gate", "body", "a gate of wood", "status", "open", "at", time.Now()),
		doc(2, "title", "A garden", "body", "the wall", "status", "open", "at", time.Now()),
	)
	for _, name := range []string{"plain", "weighed", "new", "short"} {
		for i, why := range w.explained(name, "garden gate") {
			sum := 0.0
			for _, p := range member(why.told, "parts").(bson.A) {
				sum += member(p.(bson.D), "score").(float64)
			}
			if factor, ok := member(why.told, "recency").(float64); ok {
				sum *= factor
			}
			if math.Abs(sum-why.hit.Score) > 1e-5 {
				t.Errorf("%s: hit %d has the score %v, explained is %v: %v", name, i, why.hit.Score, sum, why.told)
			}
		}
	}
	var got []string
	for _, why := range w.explained("leaning", "garden gate") {
		sum, line := 0.0, fmt.Sprint(why.hit.ID[11], ":")
		for _, p := range member(why.told, "sources").(bson.A) {
			share := member(p.(bson.D), "share").(float64)
			sum += share
			line += fmt.Sprintf(" %s %d %.4f", member(p.(bson.D), "search"), member(p.(bson.D), "rank"), share)
		}
		if math.Abs(sum-why.hit.Score) > 1e-12 {
			t.Errorf("%s: the shares are %v, the score %v", line, sum, why.hit.Score)
		}
		got = append(got, line)
	}
	// 1/(k+rank) by the weight: k is 1, short counts ten times.
	if d := cmp.Diff([]string{"1: plain 1 0.5000 short 1 5.0000", "2: plain 2 0.3333 short 2 3.3333"}, got); d != "" {
		t.Error(d)
	}
}

func member(d bson.D, name string) any {
	v, _ := document.Member(d, name)
	return v
}

type explained struct {
	hit  engine.Hit
	told bson.D
}

// explained gives what is found, with what is said of it.
func (w *world) explained(name, q string) (out []explained) {
	w.t.Helper()
	words, err := search.Parse(q)
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.project.Collections["articles"]
	if _, err := w.look("articles", name, q); err != nil { // which waits for the index
		w.t.Fatal(err)
	}
	r, err := w.engine.Search(w.t.Context(), engine.Query{Project: w.project, Collection: c, Search: c.Search(name), Text: q, Words: words})
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	hits := r.Next(10)
	told, err := r.Explain(w.t.Context(), hits)
	if err != nil || len(told) != len(hits) || len(hits) == 0 {
		w.t.Fatalf("%s: %d of %d hits are explained: %v", name, len(told), len(hits), err)
	}
	for i, h := range hits {
		out = append(out, explained{h, told[i]})
	}
	return out
}
