package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/search/analysis"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const large = `
  - name: articles
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: body, type: string}, {name: title, type: string}]
    search:
      - {name: main, mode: text, fields: [body, title]}
      - {name: parts, mode: ngram, fields: [body, title], ngram: {min: 1, max: 9}}
`

// TestS19LargeTexts is row S19: what a record's text takes in an index is bounded, field by field, and records that are too large to be
// taken in together are so one after the other, when an index is made and when they are written.
func TestS19LargeTexts(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, large)
		body := "early " + strings.Repeat("fill ", 300_000) + "late"
		for n := 1; n <= 3; n++ {
			w.write("articles", doc(n, "body", body, "title", fmt.Sprintf("fox%d", n)))
		}
		w.put("articles", doc(4, "body", body, "title", "fox4"), doc(5, "body", "early", "title", "fox5"))
		for _, name := range []string{"main", "parts"} {
			w.soon(name, "late", nil)
			for n := 1; n <= 5; n++ {
				w.soon(name, fmt.Sprintf("+fox%d", n), []int{n})
			}
			w.soon(name, "+early", []int{5, 1, 2, 3, 4})
		}
	})
}

// TestPieces compares terms that were cut piece by piece with those of the whole text.
func TestPieces(t *testing.T) {
	t.Parallel()
	of, _, err := analysis.For(analysis.Standard)
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&words, "ü%d\n", i)
	}
	for _, text := range []string{"", "one", words.String(), strings.Repeat(" ", 100_000) + "one", "a " + strings.Repeat("ü", 400) + strings.Repeat(" b", 50_000)} {
		if d := cmp.Diff(of.Tokens(text), append([]analysis.Token{}, engine.Cut(of.Tokens, text)...)); d != "" {
			t.Errorf("%.20s: %s", text, d)
		}
	}
	// A word that is longer than a piece is cut into some, none of which has half a letter.
	for _, term := range engine.Cut(func(text string) []analysis.Token { return analysis.Grams(text, 20, 20) }, strings.Repeat("日本語", 30_000)) {
		if len(term.Term) != 60 {
			t.Errorf("a part of %d bytes", len(term.Term))
		}
	}
}

// TestNgramsWithout leaves out what has a word, not what has a part of it.
func TestNgramsWithout(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		w.put("articles", doc(1, "title", "golden gate"), doc(2, "title", "garden gate"), doc(3, "title", "gate of gardeners"), doc(4, "title", "gard gate ardens"))
		w.soon("parts", "gate", []int{1, 2, 4, 3})
		for _, x := range []struct {
			q    string
			want []int
		}{
			{"gate -garden", []int{1, 4}},
			{"gate -\"garden gate\"", []int{1, 4, 3}},
			{"gate -ga", nil},
			{"gate -gardeners -golden", []int{2, 4}},
			{"gate -gate", nil},
		} {
			w.finds("articles", "parts", x.q, x.want)
		}
	})
}
