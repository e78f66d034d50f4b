package search

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// Mode is how a search finds records.
type Mode string

// The modes.
const (
	Text   Mode = "text"   // words of a language
	Ngram  Mode = "ngram"  // parts of words
	Regex  Mode = "regex"  // a regular expression, on what is stored: it has no index
	Vector Mode = "vector" // meaning, by an embedding group
	RRF    Mode = "rrf"    // others, fused by reciprocal rank: it has no index of its own
)

// Indexed says that searches of the mode have an index.
func (m Mode) Indexed() bool { return m == Text || m == Ngram || m == Vector }

// Config is one search of a collection, compiled. It is immutable.
type Config struct {
	Name   string
	Mode   Mode
	Fields []Field     // that are searched; none of mode rrf
	Filter *mql.Filter // which records can be found; nil: all
	// Override is the path of the field that names the language of a record; "": none does.
	Override string
	// Eval is the script that gives the text of a record, in place of its fields; nil: there is none.
	Eval *Eval

	// Of mode text.
	Fuzzy  bool // a word that no record has finds those that are spelled nearly so
	Prefix bool // the last word may be the beginning of one
	All    bool // every word has to be there, instead of one

	MinGram, MaxGram int    // of mode ngram: how many characters
	Options          string // of mode regex, as $options has them
	Group            string // of mode vector: the embedding group

	Sources []Source // of mode rrf
	K       int      // its constant: what is found at rank r counts 1/(K+r)
	TopK    int      // how many of each source count

	MinScore float64
	Recency  *Recency // nil: scores don't depend on a date

	Async          bool // writes don't wait until they can be found
	AutoRegenerate bool // an index of another config is made anew without being asked for
}

// Eval is what a script takes to give the text of a record. What it gives is one column of the index.
type Eval struct {
	Print string   // tells its content apart
	Paths []string // the fields that it is given; none: it is not run any more
}

// Visible gives the fields by which a caller can search from whom some paths are hidden. Of a search with a script, or of mode vector,
// that is all of them, or none: what it makes of a field can't be told from the rest.
func (c *Config) Visible(hidden *document.PathSet) []Field {
	if c.Eval != nil || c.Mode == Vector {
		if slices.ContainsFunc(c.Fields, func(f Field) bool { return hidden.Reaches(f.Path) }) {
			return nil
		}
		return c.Fields
	}
	var out []Field
	for _, f := range c.Fields {
		if !hidden.Touches(f.Path) {
			out = append(out, f)
		}
	}
	return out
}

// Field is a field that is searched, or that a script is given.
type Field struct {
	Path     string // as the collection declares it, without positions in lists
	Language string // of its text, for the analyzer; "": not known
	Weight   float64
	// Translations are the languages of the collection in which the field may have another value (_i18n.<language>).
	Translations []string
}

// Source is another search of the collection whose ranks count.
type Source struct {
	Name   string
	Weight float64
}

// Recency raises the scores of records by a date: by Weight if it is now, by half of that for each HalfLife since.
type Recency struct {
	Path     string
	HalfLife time.Duration
	Weight   float64
}

// form is raised when the same record leads to another index than before.
const form = 1

// Fingerprint tells what is in the index of a config apart: an index that was made by another config with the same one holds the same.
// stored gives what a field is stored as, by names, so that a field that was renamed changes nothing.
func (c *Config) Fingerprint(stored func(path string) string, names *document.Names) string {
	h := sha256.New()
	put := func(values ...any) { _, _ = fmt.Fprintf(h, "%q\n", values) }
	put(form, c.Mode, c.MinGram, c.MaxGram)
	for _, f := range c.Fields {
		put(stored(f.Path), f.Language, f.Translations)
	}
	if c.Eval != nil { // to a script a field is what it is called
		put("eval", c.Eval.Print, c.Eval.Paths)
	}
	if c.Override != "" {
		put("override", stored(c.Override))
	}
	if c.Recency != nil {
		put("recency", stored(c.Recency.Path))
	}
	if c.Filter != nil {
		put("filter", []byte(c.Filter.Stored(names).Raw()))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
