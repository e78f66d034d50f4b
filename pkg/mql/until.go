package mql

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pattern"
)

// MatchUntil is Match for documents that may take long: a regular expression goes through a text once, but with many states, and
// a text may have many megabytes. Its error is that of ended, which is asked now and then while such a text is searched.
func (f *Filter) MatchUntil(doc bson.Raw, ended func() error) (bool, error) {
	if f == nil || f.states == 0 || pattern.Quick(f.states, len(doc)) {
		return f.Match(doc), nil
	}
	u := &until{ended: ended}
	ok := u.node(f.root).match(doc)
	return ok && u.err == nil, u.err
}

// Work estimates what Match does on doc for the regular expressions of f: characters times states, some 10 ns each.
func (f *Filter) Work(doc bson.Raw) int {
	if f == nil {
		return 0
	}
	return f.states * len(doc)
}

// states is how much a character costs the regular expressions of a tree, see pattern.Pattern.
func states(n Node) (sum int) {
	switch n := n.(type) {
	case *AndNode:
		return sumOf(n.Nodes, states)
	case *OrNode:
		return sumOf(n.Nodes, states)
	case *NorNode:
		return sumOf(n.Nodes, states)
	case *Field:
		return sumOf(n.Preds, statesOf)
	default:
		return 0
	}
}

func statesOf(p Pred) int {
	switch p := p.(type) {
	case *Regex:
		return p.states
	case *In:
		return sumOf(p.Regexes, func(re *Regex) int { return re.states })
	case *Not:
		return sumOf(p.Preds, statesOf)
	case *All:
		return sumOf(p.Preds, statesOf)
	case *ElemMatch:
		if p.Node != nil {
			return states(p.Node)
		}
		return sumOf(p.Preds, statesOf)
	default:
		return 0
	}
}

func sumOf[T any](list []T, of func(T) int) (sum int) {
	for _, v := range list {
		sum += of(v)
	}
	return sum
}

// until copies filters so that their regular expressions stop when the work has to end. What they then say counts for nothing.
type until struct {
	ended func() error
	err   error
}

func (u *until) node(n Node) Node {
	switch n := n.(type) {
	case *AndNode:
		return &AndNode{Nodes: copied(n.Nodes, u.node)}
	case *OrNode:
		return &OrNode{Nodes: copied(n.Nodes, u.node)}
	case *NorNode:
		return &NorNode{Nodes: copied(n.Nodes, u.node)}
	case *Field:
		return &Field{Path: n.Path, Preds: copied(n.Preds, u.pred), segments: n.segments}
	default:
		return n
	}
}

func (u *until) pred(p Pred) Pred {
	switch p := p.(type) {
	case *Regex:
		return &endingRegex{p, u}
	case *In:
		in := &endingIn{values: &In{Values: p.Values}}
		for _, re := range p.Regexes {
			in.regexes = append(in.regexes, &endingRegex{re, u})
		}
		return in
	case *Not:
		return &Not{Preds: copied(p.Preds, u.pred)}
	case *All:
		return &All{Preds: copied(p.Preds, u.pred)}
	case *ElemMatch:
		if p.Node != nil {
			return &ElemMatch{Node: u.node(p.Node)}
		}
		return &ElemMatch{Preds: copied(p.Preds, u.pred)}
	default:
		return p
	}
}

func copied[T any](list []T, fn func(T) T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = fn(v)
	}
	return out
}

// endingIn is an In with regular expressions that end.
type endingIn struct {
	values  *In
	regexes []*endingRegex
}

func (p *endingIn) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *endingIn) one(v bson.RawValue) bool {
	if p.values.one(v) {
		return true
	}
	for _, re := range p.regexes {
		if re.one(v) {
			return true
		}
	}
	return false
}

// endingRegex is a Regex that ends.
type endingRegex struct {
	*Regex
	until *until
}

func (p *endingRegex) holds(doc []byte, path []segment) bool { return walk(doc, path, p, true) }

func (p *endingRegex) one(v bson.RawValue) bool {
	u := p.until
	if u.err != nil {
		return false
	}
	if v.Type != bson.TypeString && v.Type != bson.TypeSymbol || pattern.Quick(p.states, len(v.Value)) {
		// many short texts take as long as a long one
		if u.err = u.ended(); u.err != nil {
			return false
		}
		return p.Regex.one(v)
	}
	r := &pattern.Reader{Text: v.Value[4 : len(v.Value)-1], Ended: u.ended}
	found := p.re.MatchReader(r)
	u.err = r.Err
	return found
}
