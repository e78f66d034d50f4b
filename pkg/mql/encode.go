package mql

import (
	"encoding/binary"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// clause is one member of an encoded filter.
type clause struct {
	name  string
	value bson.RawValue
}

func encodeNode(n Node) bson.Raw {
	clauses := clausesOf(nil, n)
	if !repeats(clauses) {
		return encodeClauses(clauses)
	}
	each := make([]bson.RawValue, len(clauses))
	for i, c := range clauses {
		each[i] = object([]clause{c})
	}
	return encodeClauses([]clause{{"$and", list(each)}})
}

func clausesOf(dst []clause, n Node) []clause {
	switch n := n.(type) {
	case *AndNode:
		for _, child := range n.Nodes {
			dst = clausesOf(dst, child)
		}
		return dst
	case *OrNode:
		return append(dst, clause{"$or", encodeNodes(n.Nodes)})
	case *NorNode:
		return append(dst, clause{"$nor", encodeNodes(n.Nodes)})
	case *Field:
		return encodeField(dst, n)
	default:
		panic("mql: unknown node")
	}
}

func encodeNodes(nodes []Node) bson.RawValue {
	each := make([]bson.RawValue, len(nodes))
	for i, n := range nodes {
		each[i] = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: encodeNode(n)}
	}
	return list(each)
}

// encodeField needs a second member of the same path where an operator comes twice.
func encodeField(dst []clause, f *Field) []clause {
	var ops []clause
	for _, p := range f.Preds {
		op := encodePred(p)
		if repeats(append(slices.Clip(ops), op)) {
			dst = append(dst, clause{f.Path, object(ops)})
			ops = nil
		}
		ops = append(ops, op)
	}
	return append(dst, clause{f.Path, object(ops)})
}

func encodePred(p Pred) clause {
	switch p := p.(type) {
	case *Cmp:
		return clause{p.Op.String(), p.Value}
	case *In:
		return clause{"$in", encodeIn(p)}
	case *Not:
		return encodeNot(p)
	case *Exists:
		return clause{"$exists", boolean(p.Want)}
	case *Type:
		return clause{"$type", encodeTypes(p)}
	case *All:
		return clause{"$all", encodeAll(p)}
	case *ElemMatch:
		return clause{"$elemMatch", encodeElemMatch(p)}
	case *Size:
		return clause{"$size", int64Value(p.N)}
	case *Mod:
		return clause{"$mod", list([]bson.RawValue{int64Value(p.Divisor), int64Value(p.Remainder)})}
	case *Regex:
		return clause{"$regex", text(p.raw)}
	default:
		panic("mql: unknown predicate")
	}
}

func encodeNot(p *Not) clause {
	if len(p.Preds) == 1 {
		switch child := p.Preds[0].(type) {
		case *Cmp:
			if child.Op == Eq && child.Value.Type != bson.TypeRegex {
				return clause{"$ne", child.Value}
			}
		case *In:
			return clause{"$nin", encodeIn(child)}
		}
	}
	return clause{"$not", encodePreds(p.Preds)}
}

func encodePreds(preds []Pred) bson.RawValue {
	ops := make([]clause, len(preds))
	for i, p := range preds {
		ops[i] = encodePred(p)
	}
	return object(ops)
}

func encodeIn(p *In) bson.RawValue {
	each := slices.Clone(p.Values)
	for _, re := range p.Regexes {
		each = append(each, regex(re.raw))
	}
	return list(each)
}

func encodeTypes(p *Type) bson.RawValue {
	var each []bson.RawValue
	if p.Number {
		each = append(each, text("number"))
	}
	for _, t := range p.Types {
		each = append(each, int64Value(int64(int8(t)))) //nolint:gosec // minKey is 0xff, and -1 by number
	}
	return list(each)
}

func encodeAll(p *All) bson.RawValue {
	each := make([]bson.RawValue, len(p.Preds))
	for i, child := range p.Preds {
		switch child := child.(type) {
		case *Cmp:
			each[i] = child.Value
		case *Regex:
			each[i] = regex(child.raw)
		default:
			each[i] = object([]clause{encodePred(child)})
		}
	}
	return list(each)
}

func encodeElemMatch(p *ElemMatch) bson.RawValue {
	if p.Node == nil {
		return encodePreds(p.Preds)
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: encodeNode(p.Node)}
}

// repeats says whether a name comes twice.
func repeats(clauses []clause) bool {
	if len(clauses) > fewNames {
		names := make(map[string]struct{}, len(clauses))
		for _, c := range clauses {
			names[c.name] = struct{}{}
		}
		return len(names) < len(clauses)
	}
	for i, c := range clauses {
		if slices.ContainsFunc(clauses[:i], func(o clause) bool { return o.name == c.name }) {
			return true
		}
	}
	return false
}

// fewNames is how many names are compared one by one: among thousands, from outside, that would take minutes.
const fewNames = 16

func encodeClauses(clauses []clause) bson.Raw {
	b := make([]byte, 4, 64)
	for _, c := range clauses {
		b = document.AppendElement(b, c.name, c.value)
	}
	return document.Close(b, 0)
}

func object(clauses []clause) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: encodeClauses(clauses)}
}

func list(values []bson.RawValue) bson.RawValue {
	clauses := make([]clause, len(values))
	for i, v := range values {
		clauses[i] = clause{strconv.Itoa(i), v}
	}
	return bson.RawValue{Type: bson.TypeArray, Value: encodeClauses(clauses)}
}

func text(s string) bson.RawValue {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(s)+1)) //nolint:gosec // a pattern, of some KB at most
	return bson.RawValue{Type: bson.TypeString, Value: append(append(b, s...), 0)}
}

func regex(pattern string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeRegex, Value: append([]byte(pattern), 0, 0)}
}

func int64Value(n int64) bson.RawValue {
	b := binary.LittleEndian.AppendUint64(nil, uint64(n)) //nolint:gosec // two's complement
	return bson.RawValue{Type: bson.TypeInt64, Value: b}
}

func boolean(v bool) bson.RawValue {
	b := byte(0)
	if v {
		b = 1
	}
	return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{b}}
}
