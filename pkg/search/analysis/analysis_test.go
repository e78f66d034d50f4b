package analysis_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/search/analysis"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		language, text string
		known          bool
		want           []analysis.Token
	}{
		{"en", "The foxes are jumping", true, []analysis.Token{{Term: "fox", Position: 1, Start: 4, End: 9}, {Term: "jump", Position: 3, Start: 14, End: 21}}},
		{"de-AT", "Häuser", true, []analysis.Token{{Term: "haus", Position: 0, Start: 0, End: 7}}},
		{"zh", "中文字", true, []analysis.Token{{Term: "中文", Position: 0, Start: 0, End: 6}, {Term: "文字", Position: 1, Start: 3, End: 9}}},
		{"ca", "L'arbre i el riu", true, []analysis.Token{{Term: "arbre", Position: 0, Start: 0, End: 7}, {Term: "riu", Position: 3, Start: 13, End: 16}}},
		{"xx", "Ünknown tongues", false, []analysis.Token{{Term: "ünknown", Position: 0, Start: 0, End: 8}, {Term: "tongues", Position: 1, Start: 9, End: 16}}},
		{"en", "a\x00b", true, []analysis.Token{{Term: "b", Position: 1, Start: 2, End: 3}}},
		{"en", "", true, []analysis.Token{}},
		{"xx", "İstanbul ẞalat", false, []analysis.Token{{Term: "istanbul", Position: 0, Start: 0, End: 9}, {Term: "ßalat", Position: 1, Start: 10, End: 17}}},
		{"fa", "می\u200cخواهم باغ", true, []analysis.Token{{Term: "خواهم", Position: 1, Start: 7, End: 17}, {Term: "باغ", Position: 2, Start: 18, End: 24}}},
	} {
		a, known, err := analysis.For(tc.language)
		if err != nil || known != tc.known {
			t.Errorf("%s: known %v, %v", tc.language, known, err)
			continue
		}
		if d := cmp.Diff(tc.want, a.Tokens(tc.text)); d != "" {
			t.Errorf("%s %q: %s", tc.language, tc.text, d)
		}
	}
}

// TestLanguages makes the analyzer of each language, and compares it with what it says of itself.
func TestLanguages(t *testing.T) {
	t.Parallel()
	all := analysis.Languages()
	if len(all) < 30 || !slices.IsSorted(all) {
		t.Errorf("%d languages: %v", len(all), all)
	}
	for _, language := range all {
		a, known, err := analysis.For(language)
		if err != nil || !known {
			t.Errorf("%s: known %v, %v", language, known, err)
			continue
		}
		if got := a.Tokens("2026 xylophon"); len(got) == 0 {
			t.Errorf("%s leaves nothing of two words", language)
		}
	}
}

// TestAnyText cuts texts of whatever there is: terms of a text are text, and are where they say.
func TestAnyText(t *testing.T) {
	t.Parallel()
	parts := []string{
		"a", "é", "e\u0301", "\u200c", "\u200b", "\u200d", "می", "خواهم", "العَرَبِيَّة", "ـ", "日本", "한국", "😀", "👨\u200d👩", "İ", "I", "ı", "ß", "ẞ", "ﬁ", " ", "'",
		"l'", "’", "-", "\u202e", "ΑΣ", "Ⱥ", "Ꞌ", "\u212a", "कि", "\xff", "\x00", "x", "running", "q", "٣",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, language := range append(analysis.Languages(), analysis.Standard) {
		a, _, err := analysis.For(language)
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			var some strings.Builder
			for range r.IntN(12) {
				some.WriteString(parts[r.IntN(len(parts))])
			}
			text := some.String()
			for _, token := range a.Tokens(text) {
				switch {
				case token.Start < 0 || token.Start > token.End || token.End > len(text):
					t.Fatalf("%s: %q has %q at %d to %d", language, text, token.Term, token.Start, token.End)
				case utf8.ValidString(text) && (!utf8.ValidString(token.Term) || !utf8.ValidString(text[token.Start:token.End])):
					t.Fatalf("%s: %q has %q, which is %q", language, text, token.Term, text[token.Start:token.End])
				}
			}
		}
	}
}
