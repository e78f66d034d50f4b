package search_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/search"
)

func TestLanguage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", "none": "", "de": "de", "DE-at": "de", "pt-BR": "pt", "German": "de", "turkish": "tr"} {
		if got, ok := search.Language(name); !ok || got != want {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
	for _, name := range []string{"xx", "klingon", "german-x", "-", "de_DE", "d"} {
		if got, ok := search.Language(name); ok || got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range search.LanguageNames() {
		if got, ok := search.Language(name); !ok || (got == "") != (name == "none") {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}
