package mql

import (
	"regexp/syntax"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pattern"
)

// Stats is how large a filter is, for limits on what callers send.
type Stats struct {
	Depth   int // levels of $and, $or, $nor, $not, $all and $elemMatch around the deepest condition, plus 1; 0 if empty
	Clauses int // conditions, and the operators that hold others
	MaxIn   int // elements of the longest $in, $nin or $all
	Regexes []RegexUse
}

// RegexUse is one regular expression of a filter.
type RegexUse struct {
	Path, Pattern, Options string
	Anchored               bool // matches at the beginning of the text only
}

// Measure walks a filter that is not yet compiled. It takes any shape: what Compile would refuse counts as a
// condition.
func Measure(doc bson.D) Stats {
	var s Stats
	s.doc(doc, "", 1)
	return s
}

// count notes a condition; below is false beyond the depth that Compile takes, where the walk ends.
func (s *Stats) count(depth int) (below bool) {
	s.Clauses++
	s.Depth = max(s.Depth, depth)
	return depth <= maxNesting+1
}

func (s *Stats) doc(doc bson.D, prefix string, depth int) {
	for _, e := range doc {
		if !isLogical(e.Key) {
			s.operand(e.Value, join(prefix, e.Key), depth)
			continue
		}
		items, _ := asList(e.Value)
		if !s.count(depth) {
			return
		}
		for _, item := range items {
			if d, ok := item.(bson.D); ok {
				s.doc(d, prefix, depth+1)
			}
		}
	}
}

func (s *Stats) operand(v any, path string, depth int) {
	if ops, ok := operatorsOf(v); ok {
		s.operators(ops, path, depth)
		return
	}
	s.count(depth)
	if re, ok := v.(bson.Regex); ok {
		s.regex(path, re.Pattern, re.Options)
	}
}

func (s *Stats) operators(ops bson.D, path string, depth int) {
	for _, e := range ops {
		if e.Key == "$options" {
			continue
		}
		if !s.count(depth) {
			return
		}
		switch e.Key {
		case "$in", "$nin", "$all":
			items, _ := asList(e.Value)
			s.list(items, path, depth)
		case "$elemMatch":
			s.elemMatch(e.Value, path, depth+1)
		case "$not":
			s.operand(e.Value, path, depth+1)
		case "$regex":
			options, _ := document.Member(ops, "$options")
			s.regexOperator(path, e.Value, options)
		}
	}
}

func (s *Stats) list(items []any, path string, depth int) {
	s.MaxIn = max(s.MaxIn, len(items))
	for _, item := range items {
		switch item := item.(type) {
		case bson.Regex:
			s.regex(path, item.Pattern, item.Options)
		case bson.D:
			if isElemMatch(item) {
				s.operators(item, path, depth+1)
			}
		}
	}
}

func (s *Stats) elemMatch(v any, path string, depth int) {
	d, _ := v.(bson.D)
	if isOfElements(d) {
		s.operators(d, path, depth)
		return
	}
	s.doc(d, path, depth)
}

func (s *Stats) regexOperator(path string, v, options any) {
	o, _ := options.(string)
	switch v := v.(type) {
	case string:
		s.regex(path, v, o)
	case bson.Regex:
		s.regex(path, v.Pattern, v.Options+o)
	}
}

func (s *Stats) regex(path, text, options string) {
	use := RegexUse{Path: path, Pattern: text, Options: options}
	if flags, _, ok := pattern.Flags(options); ok {
		tree, err := syntax.Parse(text, flags)
		use.Anchored = err == nil && anchored(tree)
	}
	s.Regexes = append(s.Regexes, use)
}

// anchored says whether every match of re begins where the text does.
func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpCapture, syntax.OpPlus:
		return anchored(re.Sub[0])
	case syntax.OpConcat:
		return len(re.Sub) > 0 && anchored(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !anchored(sub) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
