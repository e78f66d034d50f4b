package engine

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/analysis"
	"github.com/svcctl/svc/pkg/search/index"
)

// bound is a config with what it takes to apply it.
type bound struct {
	*search.Config

	names   *document.Names // that fields have in it
	columns []column
	embeds  []embedded // of mode vector, instead of columns
	script  *scripted  // nil: there is none
}

// recencyField is where an index has the date that scores depend on.
const recencyField = math.MaxUint16

// column is what an index has of a field: its text, in the language of the records or in one that they are translated to.
type column struct {
	field  index.Field
	path   string  // as declared
	lang   string  // of the translation; "": the field itself
	weight float32 // how much it counts
	cut    cutter
	of     []string // of a script: what its text is made of
}

// cutter cuts texts into terms.
type cutter func(text string) []analysis.Token

func newBound(c *search.Config, names *document.Names, script *scripted) *bound {
	b := &bound{Config: c, names: names, script: script}
	switch {
	case c.Mode == search.Vector:
		b.embeds = embedsOf(c)
		return b
	case script != nil:
		script.columns(b)
		return b
	}
	for _, f := range c.Fields {
		b.columns = append(b.columns, column{field: b.next(), path: f.Path, weight: float32(f.Weight), cut: b.cutter(f.Language)})
		for _, lang := range f.Translations {
			language, _ := search.Language(lang)
			b.columns = append(b.columns, column{field: b.next(), path: f.Path, lang: lang, weight: float32(f.Weight), cut: b.cutter(language)})
		}
	}
	return b
}

func (b *bound) next() index.Field { return index.Field(len(b.columns)) } //nolint:gosec // configs are bounded

// cutter gives what cuts texts of a language.
func (b *bound) cutter(language string) cutter {
	if b.Mode == search.Ngram {
		return func(text string) []analysis.Token { return analysis.Grams(text, b.MinGram, b.MaxGram) }
	}
	return words(language)
}

// words gives what cuts texts of a language into its words.
func words(language string) cutter {
	a, _, err := analysis.For(language)
	if err != nil { // what is known is registered
		panic(err)
	}
	return a.Tokens
}

// changes says what becomes of records in an index. Those that are not in docs are gone.
func (b *built) changes(
	how *bound, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw, said map[bson.ObjectID]saying, kept map[vectorKey]known,
) []index.Change {
	out := make([]index.Change, len(ids))
	var work sync.WaitGroup
	const share = 32 // records that are worth another core
	workers := min(runtime.GOMAXPROCS(0), 1+len(ids)/share)
	for w := range workers {
		work.Go(func() {
			for i := w; i < len(ids); i += workers {
				out[i] = b.change(how, ids[i], docs[ids[i]], said[ids[i]], kept)
			}
		})
	}
	work.Wait()
	return out
}

func (b *built) change(how *bound, id bson.ObjectID, doc bson.Raw, said saying, kept map[vectorKey]known) index.Change {
	c := index.Change{ID: id[:], Gone: doc == nil || !how.Filter.Match(doc)}
	if c.Gone {
		return c
	}
	c.Rev = versionOf(doc)
	if how.Mode == search.Vector {
		b.embed(&c, how, doc, said, kept)
	} else {
		c.Fields = how.terms(doc, said)
	}
	if said.failed != nil {
		park(&c)
	}
	c.In = func(set *index.Set) bool {
		switch f := set.Data.(type) {
		case *mql.Filter:
			return f.Match(doc)
		case *moving:
			return f.has(doc, b.s.t.e.o.Now())
		}
		return false
	}
	if how.Recency != nil {
		_ = mql.EachValue(doc, how.Recency.Path, func(v bson.RawValue) error {
			if ms, ok := v.DateTimeOK(); ok {
				c.Values = map[index.Field]int64{recencyField: ms}
			}
			return nil
		})
	}
	return c
}

// terms gives the terms of a record.
func (b *bound) terms(doc bson.Raw, said saying) map[index.Field][]index.Token {
	out := make(map[index.Field][]index.Token, len(b.columns))
	own, room := b.own(doc), maxTerms
	for _, col := range b.columns {
		cut := col.cut
		if own != nil && col.lang == "" {
			cut = own
		}
		var tokens []index.Token
		begin := uint32(0)
		b.textsOf(doc, said, col.path, col.lang, func(text string) {
			last := begin
			for t := range cut.all(text) {
				if len(tokens) == min(room, maxFieldTerms) {
					break
				}
				last = begin + uint32(t.Position) //nolint:gosec // a record has 16 MiB at most
				tokens = append(tokens, index.Token{Term: t.Term, Position: last})
			}
			begin = last + apart
		})
		if room -= len(tokens); len(tokens) > 0 {
			out[col.field] = tokens
		}
	}
	return out
}

// apart is how far texts of one field are from each other: no phrase goes from one to the next.
const apart = 100

// own is the cutter of the language that a record says it is in; nil if it says none that is known.
func (b *bound) own(doc bson.Raw) cutter {
	if b.Override == "" {
		return nil
	}
	name := ""
	texts(doc, b.Override, "", func(text string) { name = text })
	language, ok := search.Language(name)
	if name == "" || !ok {
		return nil
	}
	return words(language)
}

// texts calls fn for the texts of a field of a record, as who reads it in a language sees them.
func texts(doc bson.Raw, path, lang string, fn func(text string)) {
	if lang != "" {
		top, _, _ := strings.Cut(path, ".")
		if v, err := doc.LookupErr(fieldtype.I18n, lang, top); err == nil {
			found := false
			eachText(doc, fieldtype.I18n+"."+lang+"."+path, func(text string) { found = true; fn(text) })
			if found || v.Type == bson.TypeArray || v.Type == bson.TypeString { // what is no object stands for the whole field
				return
			}
		}
	}
	eachText(doc, path, fn)
}

func eachText(doc bson.Raw, path string, fn func(text string)) {
	_ = mql.EachValue(doc, path, func(v bson.RawValue) error {
		if text, ok := v.StringValueOK(); ok {
			fn(text)
		}
		return nil
	})
}

// visible says whether a caller who reads in a language sees what a column has.
func (c column) visible(hidden *document.PathSet) bool {
	if c.of != nil {
		return !slices.ContainsFunc(c.of, hidden.Reaches)
	}
	path := c.path
	if c.lang != "" {
		path = fieldtype.I18n + "." + c.lang + "." + path
	}
	return !hidden.Touches(path)
}
