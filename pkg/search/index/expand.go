package index

import (
	"cmp"
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
	var near []Expansion
	compare := nearTo(word, distance)
	err := v.terms(ctx, f, prefix, func(term []byte) {
		if d, ok := compare(term); ok {
			near = append(near, Expansion{string(term), d})
		}
	})
	if err != nil {
		return nil, v.ix.disk.fail(err)
	}
	slices.SortFunc(near, func(a, b Expansion) int { return cmp.Or(a.Distance-b.Distance, strings.Compare(a.Term, b.Term)) })
	near = slices.Compact(near)
	var out []Expansion
	var list []posting
	for _, e := range near {
		if len(out) == limit {
			break
		}
		if err := step(ctx); err != nil {
			return nil, err
		}
		if list, err = v.postings(list[:0], f, e.Term); err != nil {
			return nil, v.ix.disk.fail(err)
		}
		if len(list) > 0 {
			out = append(out, e)
		}
	}
	return out, nil
}

// nearTo gives a func that says how far a term is from a word, if that is not more than so much.
func nearTo(word string, distance int) func(term []byte) (int, bool) {
	if distance == 0 {
		return func([]byte) (int, bool) { return 0, true }
	}
	from := []rune(word)
	var to []rune
	return func(term []byte) (int, bool) {
		if n := utf8.RuneCount(term) - len(from); n > distance || -n > distance {
			return 0, false
		}
		to = to[:0]
		for _, r := range string(term) {
			to = append(to, r)
		}
		d := levenshtein(from, to, distance)
		return d, d <= distance
	}
}

// terms calls f with the terms of a field with a prefix, whoever has them; some more than once.
func (v *View) terms(ctx context.Context, field Field, prefix string, f func(term []byte)) error {
	const look = 1024 // terms between two looks at ctx
	begin := append(v.ix.fieldKey(keyTerm, field), prefix...)
	cut := len(begin) - len(prefix)
	v.it.SetBounds(begin, above(begin))
	n := 0
	for ok := v.it.First(); ok; ok = v.it.Next() {
		if n++; n%look == 0 {
			if err := step(ctx); err != nil {
				return err
			}
		}
		f(v.it.Key()[cut:])
	}
	if err := v.it.Error(); err != nil {
		return err
	}
	for _, s := range v.segments {
		for _, term := range s.termsOf(field, prefix) {
			f([]byte(term))
		}
	}
	return nil
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
