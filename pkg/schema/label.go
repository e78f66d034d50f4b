package schema

import (
	"maps"
	"slices"
	"strings"
)

// Label is a text for people: one string, or one for each language.
type Label struct {
	Text  string            // when the file has a plain string
	Langs map[string]string // language tag → text
}

// In picks the text for a language: that language, its base language ("de" of "de-AT"), English, else the first by
// language tag. A plain string serves every language.
func (l Label) In(lang string) string {
	if l.Langs == nil {
		return l.Text
	}
	base, _, _ := strings.Cut(lang, "-")
	for _, tag := range []string{lang, base, "en"} {
		if s, ok := l.Langs[tag]; ok {
			return s
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(l.Langs)) {
		return l.Langs[tag]
	}
	return ""
}
