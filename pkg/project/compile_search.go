package project

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
)

// implicitSearch is the name of the search that text indexes stand for.
const implicitSearch = "text"

// Every write of a record goes into each search, field by field.
const (
	maxSearches     = 16  // of a collection
	maxSearchFields = 100 // of one
)

// maxWeight is how much more than another a field or a source may count: further up it alone would.
const maxWeight = 1000

// searchCompiler makes the searches of a collection.
type searchCompiler struct {
	*paths

	scripts  map[string]*Script // by the name of the search; what is found goes in
	hidden   *document.PathSet  // what a permission set or an expression hides from some, or the collection from all
	nobody   *document.PathSet  // what it hides from all
	language string             // of its texts
	override string             // the field that names a record's own; "": none
}

// searches compiles the search configs of a collection, and behind them the one that its text indexes stand for.
func (p *paths) searches(col *schema.Collection, out *Collection, at string) []*search.Config {
	var hidden []string
	if col.Permissions != nil {
		for _, set := range col.Permissions.Sets() {
			hidden = append(hidden, set.HiddenFields...)
		}
	}
	out.SearchScripts = map[string]*Script{}
	c := &searchCompiler{paths: p, scripts: out.SearchScripts, nobody: out.Hidden, hidden: out.Hidden.Union(out.HiddenByEval).Union(document.NewPathSet(hidden...))}
	if l := p.tree.Languages(); l != nil {
		c.language, _ = search.Language(l.Default)
	}
	if col.DefaultLanguage != "" {
		c.language = c.languageOf(col.DefaultLanguage, at+".defaultLanguage")
	}
	if c.isOverride(col.LanguageOverride, at+".languageOverride") {
		c.override = col.LanguageOverride
	}
	if len(col.Search) > maxSearches {
		p.c.fail(at+".search", schema.CodeRange, "has %d search configs; %d are possible", len(col.Search), maxSearches)
		return nil
	}
	var all []*search.Config
	for i, spec := range col.Search {
		if here := at + ".search[" + strconv.Itoa(i) + "]"; !p.c.isBroken(here) {
			all = append(all, c.search(spec, col, here))
		}
	}
	texts, first := c.textIndexes(col, at)
	switch {
	case texts == nil:
	case slices.ContainsFunc(col.Search, func(s *schema.SearchConfig) bool { return s.Name == implicitSearch }):
		p.c.warn(first, "has no effect: the search config "+implicitSearch+" says itself what it searches")
	default:
		all = append(all, texts)
	}
	return all
}

// languageOf is a language that a config names.
func (c *searchCompiler) languageOf(name, at string) string {
	tag, ok := search.Language(name)
	if !ok {
		c.c.fail(at, schema.CodeInvalid, "%q is no language whose texts can be searched: %s", name, strings.Join(search.LanguageNames(), ", "))
	}
	return tag
}

// isOverride says whether a field can name the language of a record; a problem tells if not.
func (c *searchCompiler) isOverride(path, at string) bool {
	if _, ok := c.resolve(path, at); !ok {
		return false
	}
	f, _ := c.tree.Resolve(path)
	if kind := f.Type.Name(); kind != "string" && kind != "any" || c.tree.FirstList(path) != "" || fieldtype.IsSystem(f.Path) {
		c.c.fail(at, schema.CodeInvalid, "must be a field of type string, in no list")
		return false
	}
	return c.isSeen(path, at)
}

// isSeen says that all may know of a field that is at work in what is found, which would tell of it; a problem tells if not.
func (c *searchCompiler) isSeen(path, at string) bool {
	if c.hidden.Covers(path) {
		c.c.fail(at, schema.CodeConflict, "%s is hidden, at least from some: what is found, and in which order, would tell of it", path)
		return false
	}
	return true
}

// textIndexes makes a search of the fields that have a text index, and gives the place of the first; nil if none has.
func (c *searchCompiler) textIndexes(col *schema.Collection, at string) (out *search.Config, first string) {
	out = &search.Config{Name: implicitSearch, Mode: search.Text, Fuzzy: true, Override: c.override, AutoRegenerate: true}
	add := func(path, language, here string) {
		switch {
		case len(out.Fields) > maxSearchFields || hasField(out, path) >= 0 || !c.isText(path, here):
			return
		case len(out.Fields) == maxSearchFields:
			c.c.fail(here, schema.CodeRange, "there are more than %d fields with a text index", maxSearchFields)
		case first == "":
			first = here
		}
		out.Fields = append(out.Fields, c.field(path, language))
	}
	own := ""
	for i, x := range col.Indexes {
		here, language := at+".indexes["+strconv.Itoa(i)+"]", c.language
		if !slices.ContainsFunc(x.Key, isTextKey) {
			continue
		}
		if x.DefaultLanguage != "" {
			language = c.languageOf(x.DefaultLanguage, here+".defaultLanguage")
		}
		for j, key := range x.Key {
			if path, ok := strings.CutPrefix(key, textKey); ok {
				add(path, language, here+".key["+strconv.Itoa(j)+"]")
			}
		}
		if !c.isOverride(x.LanguageOverride, here+".languageOverride") {
			continue
		}
		if own != "" && own != x.LanguageOverride {
			c.c.fail(here+".languageOverride", schema.CodeConflict, "the text indexes of a collection are one search, and another one names %s", own)
		}
		own, out.Override = x.LanguageOverride, x.LanguageOverride
	}
	eachField(col.Fields, at+".fields", "", func(f *schema.Field, here, path string) {
		if i := slices.Index(f.Index, "text"); i >= 0 {
			add(path, c.language, here+".index["+strconv.Itoa(i)+"]")
		}
	})
	if len(out.Fields) == 0 {
		return nil, ""
	}
	return out, first
}

// isText says whether there is a field that can have text in it; a problem tells if not.
func (c *searchCompiler) isText(path, at string) bool {
	if _, ok := c.resolve(path, at); !ok {
		return false
	}
	f, _ := c.tree.Resolve(path)
	var problem string
	switch kind := f.Type.Name(); {
	case fieldtype.IsSystem(f.Path):
		problem = "what the service itself writes into a record is no text"
	case f.Path == fieldtype.I18n || strings.HasPrefix(path, fieldtype.I18n+"."):
		problem = "name the field itself: its translations are searched with it"
	case f.Foreign != nil && f.Foreign.KeyPath() == "_id":
		problem = "a relation by the id has no text to search"
	case kind == "object" || kind == "object[]" || kind == "file" || kind == "file[]": // some of which may be hidden
		problem = "a field of type " + kind + " has no text of its own to search: name the fields in it"
	case kind != "string" && kind != "string[]" && kind != "any":
		problem = "a field of type " + kind + " has no text to search"
	case f.Path != path:
		problem = "name the field without positions in lists"
	default:
		return true
	}
	c.c.fail(at, schema.CodeInvalid, "%s", problem)
	return false
}

// field is one that is searched, with the languages in which it may have another value.
func (c *searchCompiler) field(path, language string) search.Field {
	out := search.Field{Path: path, Language: language, Weight: 1}
	top, _, _ := strings.Cut(path, ".")
	if l := c.tree.Languages(); l != nil {
		for _, other := range l.Others {
			if c.tree.Translation(other, top) != nil {
				out.Translations = append(out.Translations, other)
			}
		}
	}
	return out
}

// hasField gives the place of a field in a search; -1: it isn't searched.
func hasField(s *search.Config, path string) int {
	return slices.IndexFunc(s.Fields, func(f search.Field) bool { return f.Path == path })
}

// search compiles one search config.
func (c *searchCompiler) search(s *schema.SearchConfig, col *schema.Collection, at string) *search.Config {
	out := &search.Config{Name: s.Name, Mode: search.Mode(s.Mode), Async: s.Async, AutoRegenerate: s.AutoRegenerate}
	c.onlyOf(s, at)
	language, list, listAt := "", s.Fields, at+".fields"
	switch out.Mode {
	case search.Text:
		words := s.Text
		if words == nil {
			words = schema.DefaultSearchText()
		}
		out.Fuzzy, out.Prefix, out.All = words.Fuzziness != "off", words.Prefix, words.Operator == "and"
		if language, out.Override = c.language, c.override; words.Language != "" {
			language, out.Override = c.languageOf(words.Language, at+".text.language"), ""
		}
	case search.Ngram:
		grams := s.Ngram
		if grams == nil {
			grams = schema.DefaultSearchNgram()
		}
		out.MinGram, out.MaxGram = grams.Min, grams.Max
	case search.Regex:
		re := s.Regex
		if re == nil {
			re = schema.DefaultSearchRegex()
		}
		out.Options = re.Options
	case search.Vector:
		if s.Vector == nil { // which has been said
			return out
		}
		if out.Group = s.Vector.Group; len(s.Vector.Fields) > 0 {
			list, listAt = s.Vector.Fields, at+".vector.fields"
			if len(s.Fields) > 0 {
				c.c.fail(at+".fields", schema.CodeConflict, "vector.fields names the fields: remove one of the two")
			}
		}
	case search.RRF:
		c.sources(s.RRF, col, out, at+".rrf")
		return out
	}
	if out.Mode.Indexed() && (s.Eval != "" || c.c.isBroken(at+".eval")) {
		c.eval(s, out, list, language, at, listAt)
	} else {
		out.Fields = c.fields(list, language, listAt)
	}
	c.score(s.Score, out, at+".score")
	out.Filter = c.filter(s, at+".filter")
	return out
}

// onlyOf refuses what searches of other modes have. Of what is about an index it only tells that there is none.
func (c *searchCompiler) onlyOf(s *schema.SearchConfig, at string) {
	mode := search.Mode(s.Mode)
	for _, x := range []struct {
		member string
		given  bool
		fits   bool
	}{
		{"text", s.Text != nil, mode == search.Text},
		{"ngram", s.Ngram != nil, mode == search.Ngram},
		{"regex", s.Regex != nil, mode == search.Regex},
		{"vector", s.Vector != nil, mode == search.Vector},
		{"rrf", s.RRF != nil, mode == search.RRF},
		{"fields", len(s.Fields) > 0, mode != search.RRF},
		{"filter", len(s.Filter) > 0, mode != search.RRF},
		{"eval", s.Eval != "", mode.Indexed()},
		{"score", s.Score != nil, mode.Indexed()},
	} {
		if x.given && !x.fits {
			c.c.fail(at+"."+x.member, schema.CodeConflict, "a search of mode %s has no %s: remove it", mode, x.member)
		}
	}
	if mode.Indexed() {
		return
	}
	for _, x := range []struct {
		member string
		given  bool
	}{{"async", s.Async}, {"autoRegenerate", s.AutoRegenerate}} {
		if x.given {
			c.c.warn(at+"."+x.member, "has no effect: a search of mode "+s.Mode+" has no index of its own")
		}
	}
}

// fields are those that the config names, or else all that have text and that somebody sees.
func (c *searchCompiler) fields(list []string, language, at string) (out []search.Field) {
	if len(list) > maxSearchFields {
		c.c.fail(at, schema.CodeRange, "has %d fields; %d are possible", len(list), maxSearchFields)
		return nil
	}
	for i, path := range list {
		here := at + "[" + strconv.Itoa(i) + "]"
		switch {
		case slices.Contains(list[:i], path):
			c.c.fail(here, schema.CodeDuplicate, "%q is there twice", path)
		case c.isText(path, here):
			out = append(out, c.field(path, language))
		}
	}
	if len(list) > 0 {
		return out
	}
	n := 0
	c.tree.Walk(func(f *fieldtype.Field) {
		kind := f.Type.Name()
		if kind != "string" && kind != "string[]" || f.Foreign != nil || strings.HasPrefix(f.Path, fieldtype.I18n+".") || c.nobody.Covers(f.Path) {
			return
		}
		if n++; n <= maxSearchFields {
			out = append(out, c.field(f.Path, language))
		}
	})
	switch {
	case n == 0:
		c.c.fail(at, schema.CodeRequired, "is required: the collection declares no field of type string or string[] to search")
	case n > maxSearchFields:
		c.c.fail(at, schema.CodeRange, "is required: the collection has %d fields of text, and a search can have %d", n, maxSearchFields)
	}
	return out
}

// sources compiles what a search of mode rrf fuses.
func (c *searchCompiler) sources(rrf *schema.SearchRRF, col *schema.Collection, out *search.Config, at string) {
	if rrf == nil { // which has been said
		return
	}
	out.K, out.TopK = rrf.K, rrf.TopK
	source := func(name string) int {
		return slices.IndexFunc(out.Sources, func(s search.Source) bool { return s.Name == name })
	}
	for i, name := range rrf.Sources {
		here := at + ".sources[" + strconv.Itoa(i) + "]"
		j := slices.IndexFunc(col.Search, func(s *schema.SearchConfig) bool { return s.Name == name })
		switch {
		case j < 0 || name == out.Name: // which has been said
		case !search.Mode(col.Search[j].Mode).Indexed() && col.Search[j].Mode != "":
			c.c.fail(here, schema.CodeInvalid, "a search of mode %s has no ranks to fuse", col.Search[j].Mode)
		case source(name) >= 0:
			c.c.fail(here, schema.CodeDuplicate, "%q is there twice", name)
		default:
			out.Sources = append(out.Sources, search.Source{Name: name, Weight: 1})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rrf.Weights)) {
		here := at + ".weights." + name
		i := source(name)
		switch {
		case i >= 0:
			out.Sources[i].Weight = c.weight(rrf.Weights[name], "the source", here)
		case !slices.Contains(rrf.Sources, name):
			c.c.fail(here, schema.CodeInvalid, "%q is none of the sources", name)
		}
	}
}

// weight is how much something counts; a problem tells if it can't.
func (c *searchCompiler) weight(weight float64, what, at string) float64 {
	if weight <= 0 || weight > maxWeight {
		c.c.fail(at, schema.CodeRange, "must be above 0 and at most %d; what is not to count is left out of %ss", maxWeight, what)
	}
	return weight
}

// score compiles how results are weighed.
func (c *searchCompiler) score(s *schema.SearchScore, out *search.Config, at string) {
	if s == nil {
		return
	}
	out.MinScore = s.MinScore
	if out.Mode == search.Vector && len(s.Weights) > 0 {
		c.c.fail(at+".weights", schema.CodeConflict, "a search of mode vector weighs no fields, whose text becomes one vector: remove it")
		return
	}
	if out.Eval != nil && len(s.Weights) > 0 {
		c.c.fail(at+".weights", schema.CodeConflict, "eval makes one text of all fields, which have no weights then: remove it")
		return
	}
	for _, path := range slices.Sorted(maps.Keys(s.Weights)) {
		here := at + ".weights." + path
		if i := hasField(out, path); i >= 0 {
			out.Fields[i].Weight = c.weight(s.Weights[path], "the field", here)
		} else if _, ok := c.resolve(path, here); ok {
			c.c.fail(here, schema.CodeUnknownField, "%q is none of the fields of the search", path)
		}
	}
	if s.Recency == nil {
		return
	}
	here, path := at+".recency.field", s.Recency.Field
	if _, ok := c.resolve(path, here); !ok {
		return
	}
	if f, _ := c.tree.Resolve(path); f.Type.Name() != "date" || c.tree.FirstList(path) != "" {
		c.c.fail(here, schema.CodeInvalid, "must be a field of type date, in no list")
		return
	}
	if c.isSeen(path, here) {
		out.Recency = &search.Recency{Path: path, HalfLife: s.Recency.HalfLife.Std(), Weight: s.Recency.Weight}
	}
}

// filter compiles which records are found.
func (c *searchCompiler) filter(s *schema.SearchConfig, at string) *mql.Filter {
	f, err := query.Resolver{Tree: c.tree, Limits: query.DefaultLimits()}.Filter(query.Where{Filter: s.Filter})
	if err == nil {
		return f
	}
	if path, ok := strings.CutPrefix(errs.From(err).Message, "unknown field: "); ok {
		if _, found := c.resolve(path, at); !found { // which has told the nearest
			return nil
		}
	}
	c.c.fail(at, schema.CodeInvalid, "%s", errs.From(err).Message)
	return nil
}
