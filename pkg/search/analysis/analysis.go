package analysis

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/standard" // what is imported so registers itself
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ar"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/bg"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ca"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ckb"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/cs"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/da"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/de"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/el"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/en"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/es"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/eu"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/fa"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/fi"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/fr"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ga"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/gl"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/hi"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/hr"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/hu"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/hy"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/id"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/it"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/nl"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/no"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/pl"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/pt"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ro"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ru"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/sv"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/registry"
)

// Standard is the analyzer of texts in no known language: words in small letters, without English stop words.
const Standard = "standard"

// A Token is a term, and where in the text it stands.
type Token struct {
	Term       string
	Position   int // of the word, from 0 on; those of stop words are left out
	Start, End int // in bytes
}

// Analyzer cuts texts into tokens. It is safe for concurrent use.
type Analyzer struct {
	of analysis.Analyzer
	// split says that a zero-width non-joiner ends a word.
	split bool
}

// languages are those with an analyzer of their own. Chinese, Japanese and Korean are cut into pairs of letters.
func languages() map[string]string {
	out := map[string]string{"zh": "cjk", "ja": "cjk", "ko": "cjk", "nb": "no", "nn": "no"}
	for name := range strings.FieldsSeq("ar bg ca cjk ckb cs da de el en es eu fa fi fr ga gl hi hr hu hy id it nl no pl pt ro ru sv tr") {
		out[name] = name
	}
	return out
}

// Languages lists the languages that have an analyzer, sorted.
func Languages() []string {
	var out []string
	for name := range languages() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// filters are what is done to the words of languages for which bleve has no analyzer, but a part of one: words lose their
// articles and stop words, not their endings.
func filters(language string) []string {
	switch language {
	case "ca", "ga":
		return []string{lowercase.Name, "elision_" + language, "stop_" + language}
	case "bg", "cs", "el", "eu", "gl", "hy", "id":
		return []string{lowercase.Name, "stop_" + language}
	}
	return nil
}

// analyzers are made once, for some read long lists of words.
var analyzers struct { //nolint:gochecknoglobals // a cache of what never changes
	sync.Mutex

	cache *registry.Cache
}

// For gives the analyzer of a language: a tag such as de or de-AT, of which the region does not count. One that has none
// gets Standard, and known is false.
func For(language string) (a *Analyzer, known bool, err error) {
	tag, _, _ := strings.Cut(strings.ToLower(language), "-")
	name, known := languages()[tag]
	if !known {
		name = Standard
	}
	analyzers.Lock()
	defer analyzers.Unlock()
	if analyzers.cache == nil {
		analyzers.cache = registry.NewCache()
	}
	of, err := analyzers.cache.AnalyzerNamed(name)
	if f := filters(name); err != nil && f != nil {
		of, err = analyzers.cache.DefineAnalyzer(name, map[string]any{"type": custom.Name, "tokenizer": unicode.Name, "token_filters": f})
	}
	if err != nil {
		return nil, false, fmt.Errorf("make the analyzer %s: %w", name, err)
	}
	return &Analyzer{of, name == "fa"}, known, nil
}

// maxTerm is how many bytes a term has at most: what is longer is data, which nobody looks for as a word.
const maxTerm = 1024

// Tokens cuts a text. Words of more than maxTerm bytes are left out.
func (a *Analyzer) Tokens(text string) []Token {
	text, places := a.even(text)
	stream := a.of.Analyze([]byte(text))
	out := make([]Token, 0, len(stream))
	for _, t := range stream {
		if len(t.Term) > 0 && len(t.Term) <= maxTerm && !strings.Contains(string(t.Term), "\x00") {
			out = append(out, Token{Term: string(t.Term), Position: t.Position - 1, Start: places.of(t.Start), End: places.of(t.End)})
		}
	}
	return out
}
