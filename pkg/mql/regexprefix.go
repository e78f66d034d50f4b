package mql

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/mql/pattern"
)

// Prefix is the literal text that everything begins with that p matches, for the bounds of a scan; "" if there is none,
// as where p is not anchored or ignores case. exact says that p matches every text that begins with it.
func (p *Regex) Prefix() (prefix string, exact bool) {
	flags, _, _ := pattern.Flags(p.Options)
	tree, err := syntax.Parse(p.Pattern, flags)
	if err != nil { // it did parse when it was compiled
		return "", false
	}
	var w prefixWriter
	after := w.write(tree)
	return w.out.String(), w.anchored && after != something
}

// follows is what may come behind a prefix.
type follows uint8

const (
	something follows = iota // not everything matches
	anything                 // what comes behind does not matter
	nothing                  // nothing, so far: the prefix may go on
)

type prefixWriter struct {
	out      strings.Builder
	anchored bool
}

// write adds the literal text that re begins with.
func (w *prefixWriter) write(re *syntax.Regexp) follows {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return nothing
	case syntax.OpBeginText:
		if w.out.Len() > 0 {
			return something
		}
		w.anchored = true
		return nothing
	case syntax.OpLiteral:
		// A text that is not valid UTF-8 matches as if it had the replacement character.
		if !w.anchored || re.Flags&syntax.FoldCase != 0 || slices.Contains(re.Rune, utf8.RuneError) {
			return something
		}
		for _, r := range re.Rune {
			w.out.WriteRune(r)
		}
		return nothing
	case syntax.OpCapture:
		return w.write(re.Sub[0])
	case syntax.OpConcat:
		return w.sequence(re.Sub)
	case syntax.OpPlus:
		return min(w.write(re.Sub[0]), anything)
	default:
		if optional(re) {
			return anything
		}
		return something
	}
}

func (w *prefixWriter) sequence(subs []*syntax.Regexp) follows {
	for i, sub := range subs {
		after := w.write(sub)
		if after == anything && every(subs[i+1:], optional) {
			return anything
		}
		if after != nothing {
			return something
		}
	}
	return nothing
}

// optional says whether re matches nothing at all anywhere.
func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0
	case syntax.OpCapture, syntax.OpConcat:
		return every(re.Sub, optional)
	default:
		return false
	}
}
