package search_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/search"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for q, want := range map[string][]search.Word{
		"one":                   {{Text: "one"}},
		"  one\ttwo  ":          {{Text: "one"}, {Text: "two"}},
		`"one two" three`:       {{Text: "one two", Phrase: true}, {Text: "three"}},
		`"one two`:              {{Text: "one two", Phrase: true}},
		`one"two three"four`:    {{Text: "one"}, {Text: "two three", Phrase: true}, {Text: "four"}},
		"wing*":                 {{Text: "wing", Prefix: true}},
		"+one -two three":       {{Text: "one", Must: true}, {Text: "two", Without: true}, {Text: "three"}},
		`+"a b" -"c d" x`:       {{Text: "a b", Phrase: true, Must: true}, {Text: "c d", Phrase: true, Without: true}, {Text: "x"}},
		"well-known c++ e-mail": {{Text: "well-known"}, {Text: "c++"}, {Text: "e-mail"}},
		"* + - \" \" x ***":     {{Text: "x"}},
		"日本語 é":                 {{Text: "日本語"}, {Text: "é"}},
	} {
		got, err := search.Parse(q)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", q, err, diff)
		}
	}
	for q, want := range map[string]string{
		"": "no word", "*": "no word", "-one": "no word", strings.Repeat("ä ", 501): "more than 1000 characters", strings.Repeat("a ", 65): "more than 64 words",
		"a\x00b": "valid text", "a\xff": "valid text",
	} {
		if _, err := search.Parse(q); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", q, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`+one -"two three" four* "`)
	f.Fuzz(func(t *testing.T, q string) {
		words, err := search.Parse(q)
		if err != nil {
			return
		}
		if len(words) == 0 || len(words) > search.MaxWords {
			t.Errorf("%q: %d words", q, len(words))
		}
		for _, w := range words {
			if w.Text == "" || w.Must && w.Without || w.Phrase && w.Prefix || !strings.Contains(q, w.Text) {
				t.Errorf("%q: %+v", q, w)
			}
		}
	})
}
