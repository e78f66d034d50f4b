package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/analysis"
	"github.com/svcctl/svc/pkg/search/index"
)

// ErrNothingToSearch is for a caller who may see none of the fields of a search.
var ErrNothingToSearch = errs.New(errs.Denied, "permission_denied", "permission denied")

// asked is what a caller looks for, as one index is asked for it.
type asked struct {
	query   index.Query
	columns []column                        // that are looked into
	terms   map[index.Field]map[string]bool // that are looked for, to mark them in texts
}

// ask makes of words what an index is asked for. hidden are the paths that the caller may not see.
func (b *bound) ask(ctx context.Context, v *index.View, words []search.Word, lang string, hidden *document.PathSet, now time.Time) (*asked, error) {
	a := &asked{columns: b.readable(lang, hidden), terms: map[index.Field]map[string]bool{}}
	if len(a.columns) == 0 {
		return nil, ErrNothingToSearch
	}
	a.query.MinScore = float32(b.MinScore)
	a.query.Recency = b.recency(hidden, now)
	if b.Mode == search.Ngram {
		a.grams(b, words)
		return a, nil
	}
	for i, w := range words {
		w.Prefix = w.Prefix || b.Prefix && i == len(words)-1 && !w.Phrase
		g := index.Group{Occur: occur(w, b.All)}
		for _, col := range a.columns {
			leaf, err := a.leaf(ctx, v, col, w, g.Occur)
			if err != nil {
				return nil, err
			}
			g.Leaves = append(g.Leaves, leaf...)
		}
		if b.Fuzzy && !w.Phrase && !w.Without {
			if err := a.fuzzy(ctx, v, w, &g); err != nil {
				return nil, err
			}
		}
		if len(g.Leaves) > 0 { // else it is a stop word in all fields
			a.query.Groups = append(a.query.Groups, g)
		}
	}
	for _, g := range a.query.Groups {
		if g.Occur != index.MustNot {
			a.mark(g)
		}
	}
	return a, nil
}

// recency says how dates count for a caller; nil: they don't.
func (b *bound) recency(hidden *document.PathSet, now time.Time) *index.Recency {
	r := b.Recency
	if r == nil || hidden.Touches(r.Path) {
		return nil
	}
	return &index.Recency{Field: recencyField, Now: now, HalfLife: r.HalfLife, Weight: float32(r.Weight)}
}

func occur(w search.Word, all bool) index.Occur {
	switch {
	case w.Without:
		return index.MustNot
	case w.Must || all:
		return index.Must
	}
	return index.Should
}

// readable gives the columns that a caller who reads in a language looks into: of each field that in their language, if there is
// one that they may see.
func (b *bound) readable(lang string, hidden *document.PathSet) (out []column) {
	for i := 0; i < len(b.columns); {
		own := b.columns[i]
		best, visible := own, own.visible(hidden)
		for i++; i < len(b.columns) && b.columns[i].path == own.path && b.columns[i].lang != ""; i++ {
			// A translation stands for the field itself where there is none: who may not see that may not find it so.
			if b.columns[i].lang == lang && visible && b.columns[i].visible(hidden) {
				best = b.columns[i]
			}
		}
		if visible {
			out = append(out, best)
		}
	}
	return out
}

// leaf makes of a word what is looked for in a column; nothing of a stop word.
func (a *asked) leaf(ctx context.Context, v *index.View, col column, w search.Word, occur index.Occur) ([]index.Leaf, error) {
	tokens := col.cut(w.Text)
	if w.Prefix {
		return a.prefix(ctx, v, col, w, tokens)
	}
	switch len(tokens) {
	case 0:
		return nil, nil
	case 1:
		return []index.Leaf{{Field: col.field, Terms: []string{tokens[0].Term}, Boost: col.weight, Tag: col.path}}, nil
	}
	if occur == index.Should && !w.Phrase { // such as boundary-layer: its parts, as if there was a space
		var out []index.Leaf
		for _, t := range tokens {
			out = append(out, index.Leaf{Field: col.field, Terms: []string{t.Term}, Boost: col.weight, Tag: col.path})
		}
		return out, nil
	}
	leaf := index.Leaf{Field: col.field, Boost: col.weight, Tag: col.path}
	for _, t := range tokens {
		leaf.Terms = append(leaf.Terms, t.Term)
		leaf.Phrase = append(leaf.Phrase, uint32(t.Position-tokens[0].Position)) //nolint:gosec // of a text that was typed
	}
	return []index.Leaf{leaf}, nil
}

// Bounds of what one word stands for.
const (
	maxPrefixed = 64
	maxFuzzy    = 16
)

// prefix looks for words that begin so, with their endings or without.
func (a *asked) prefix(ctx context.Context, v *index.View, col column, w search.Word, tokens []analysis.Token) ([]index.Leaf, error) {
	begins := []string{strings.ToLower(w.Text)}
	for _, t := range tokens {
		if len(tokens) == 1 && t.Term != begins[0] {
			begins = append(begins, t.Term)
		}
	}
	leaf := index.Leaf{Field: col.field, Boost: col.weight, Tag: col.path}
	for _, begin := range begins {
		found, err := v.Expand(ctx, col.field, begin, 0, maxPrefixed)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			if !slices.Contains(leaf.Terms, x.Term) {
				leaf.Terms = append(leaf.Terms, x.Term)
			}
		}
	}
	return []index.Leaf{leaf}, nil
}

// fuzzy adds to a word that no record has those that are spelled nearly so.
func (a *asked) fuzzy(ctx context.Context, v *index.View, w search.Word, g *index.Group) error {
	for _, l := range g.Leaves {
		if l.Phrase != nil {
			return nil
		}
		for _, t := range l.Terms {
			found, err := v.Expand(ctx, l.Field, t, 0, 1)
			if err != nil || len(found) > 0 && (found[0].Term == t || w.Prefix) {
				return err
			}
		}
	}
	for _, col := range a.columns {
		tokens := col.cut(w.Text)
		if len(tokens) != 1 {
			continue
		}
		distance := edits(tokens[0].Term)
		if distance == 0 {
			continue
		}
		found, err := v.Expand(ctx, col.field, tokens[0].Term, distance, maxFuzzy)
		if err != nil {
			return err
		}
		near := index.Leaf{Field: col.field, Boost: col.weight, Tag: col.path}
		for _, x := range found {
			if x.Distance == found[0].Distance { // what is nearest
				near.Terms = append(near.Terms, x.Term)
			}
		}
		if len(near.Terms) > 0 {
			g.Leaves = append(g.Leaves, near)
		}
	}
	return nil
}

// edits is how many characters of a term may be wrong.
func edits(term string) int {
	switch n := len([]rune(term)); {
	case n < 4:
		return 0
	case n < 8:
		return 1
	}
	return 2
}

// gramShare is how many of the parts of what is looked for a record has to have.
const gramShare = 0.6

// maxGrams bounds the parts that are looked for.
const maxGrams = index.MaxGroups

// grams makes of words their longest parts, most of which have to be found.
func (a *asked) grams(b *bound, words []search.Word) {
	seen := map[string]bool{}
	// What may not be there, and what has to be, comes before what there may be no room for.
	words = slices.SortedStableFunc(slices.Values(words), func(x, y search.Word) int { return int(occur(y, false)) - int(occur(x, false)) })
	for _, w := range words {
		parts := analysis.Grams(w.Text, b.MaxGram, b.MaxGram)
		if n := len([]rune(w.Text)); n < b.MaxGram {
			parts = analysis.Grams(w.Text, max(b.MinGram, n), b.MaxGram)
		}
		occurs := occur(w, false)
		if occurs == index.MustNot { // a part alone is in other words, too
			a.without(parts)
			continue
		}
		for _, p := range parts {
			if seen[p.Term] || len(a.query.Groups) == maxGrams {
				continue
			}
			seen[p.Term] = true
			g := index.Group{Occur: occurs}
			for _, col := range a.columns {
				g.Leaves = append(g.Leaves, index.Leaf{Field: col.field, Terms: []string{p.Term}, Boost: col.weight, Tag: col.path})
			}
			a.query.Groups = append(a.query.Groups, g)
			a.mark(g)
		}
	}
	should := 0
	for _, g := range a.query.Groups {
		if g.Occur == index.Should {
			should++
		}
	}
	a.query.AtLeast = int(gramShare*float64(should) + 0.5)
}

// without leaves out records that have a word with all of some parts.
func (a *asked) without(parts []analysis.Token) {
	if len(parts) == 0 {
		return
	}
	leaf := index.Leaf{}
	for _, p := range parts {
		leaf.Terms = append(leaf.Terms, p.Term)
		leaf.Phrase = append(leaf.Phrase, uint32(p.Position-parts[0].Position)) //nolint:gosec // of a text that was typed
	}
	g := index.Group{Occur: index.MustNot}
	for _, col := range a.columns {
		leaf.Field = col.field
		g.Leaves = append(g.Leaves, leaf)
	}
	a.query.Groups = append(a.query.Groups, g)
}

// mark notes what is looked for, to be marked in texts.
func (a *asked) mark(g index.Group) {
	for _, l := range g.Leaves {
		if a.terms[l.Field] == nil {
			a.terms[l.Field] = map[string]bool{}
		}
		for _, t := range l.Terms {
			a.terms[l.Field][t] = true
		}
	}
}
