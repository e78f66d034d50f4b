package index

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Expansion is a term that a prefix or a misspelled word leads to.
type Expansion struct {
	Term     string
	Distance int // how many characters differ
}

// Expand gives the terms of a field that a record that is seen has, and that begin with a prefix; with a distance those
// that differ from the word by that many characters at most (insertions, deletions, replacements), and begin with its first
// character. They come in the order of their distance, then of their characters, up to limit. What records that are not
// seen have makes no difference.
func (v *View) Expand(ctx context.Context, f Field, word string, distance, limit int) ([]Expansion, error) {
	prefix := word
	if distance > 0 {
		_, size := utf8.DecodeRuneInString(word)
		prefix = word[:size]
	}
	terms, err := v.terms(ctx, f, prefix)
	if err != nil {
		return nil, err
	}
	var near []Expansion
	for _, t := range terms {
		d := 0
		if distance > 0 {
			d = levenshtein([]rune(word), []rune(t), distance)
		}
		if d <= distance {
			near = append(near, Expansion{t, d})
		}
	}
	slices.SortStableFunc(near, func(a, b Expansion) int { return a.Distance - b.Distance })
	out := near[:0]
	var list []posting
	for _, e := range near {
		if len(out) == limit {
			break
		}
		if list, err = v.postings(list[:0], f, e.Term); err != nil {
			return nil, err
		}
		if len(list) > 0 {
			out = append(out, e)
		}
	}
	return out, nil
}

// terms gives the terms of a field with a prefix, sorted, whoever has them.
func (v *View) terms(ctx context.Context, f Field, prefix string) ([]string, error) {
	var out []string
	begin := append(v.ix.fieldKey(keyPostings, f), prefix...)
	field := len(begin) - len(prefix)
	v.it.SetBounds(begin, above(begin))
	for ok := v.it.First(); ok; {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		term, _, found := bytes.Cut(v.it.Key()[field:], []byte{0})
		if !found {
			return nil, errDamaged
		}
		out = append(out, string(term))
		if ok = v.it.Next(); ok && bytes.HasPrefix(v.it.Key()[field:], append([]byte(out[len(out)-1]), 0)) { // another chunk
			ok = v.it.SeekGE(append(append(v.ix.fieldKey(keyPostings, f), out[len(out)-1]...), 1))
		}
	}
	if err := v.it.Error(); err != nil {
		return nil, err
	}
	for _, s := range v.segments {
		out = append(out, s.termsOf(f, prefix)...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (s *segment) termsOf(f Field, prefix string) (out []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for term := range s.terms[f] {
		if strings.HasPrefix(term, prefix) {
			out = append(out, term)
		}
	}
	return out
}

// levenshtein is how many insertions, deletions and replacements lead from a to b; limit+1 if more than limit do.
func levenshtein(a, b []rune, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return min(row[len(b)], limit+1)
}
