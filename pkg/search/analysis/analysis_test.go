package analysis_test

import (
	"slices"
	"testing"

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
