package pipeline

import (
	"maps"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// restored is the stage that gives documents their names back.
func restored(names *document.Names) bson.D {
	return bson.D{{Key: "$replaceWith", Value: &restore{names: names, back: names.Inverse()}}}
}

// restore is that stage. A server gets it as an expression.
type restore struct {
	names, back *document.Names

	only []field // of what is needed of documents, in any order; nil: all
}

// field is one of documents, as they are stored.
type field struct {
	stored, name string
	inside       *document.Names
}

// keeping makes documents only of what is needed.
func (s *restore) keeping(n needs) stage {
	if n.all || n.ordered {
		return s
	}
	own := *s
	own.only = make([]field, len(n.names))
	for i, name := range n.names {
		own.only[i] = field{s.names.Path(name), name, s.names.At(name).Inverse()}
	}
	return &own
}

func (s *restore) open(r *run, next sink) sink { return &restoring{restore: s, r: r, next: next} }

type restoring struct {
	*restore
	r    *run
	next sink
	out  []byte
}

func (s *restoring) push(doc bson.Raw) error {
	if s.only == nil {
		s.out = s.back.AppendDocument(reuse(s.out), doc)
		return s.r.give(s.next, s.out)
	}
	start, out := openDoc(reuse(s.out))
	for _, f := range s.only {
		if v, ok := document.Field(doc, f.stored); ok {
			out = document.AppendElement(out, f.name, f.inside.Value(v))
		}
	}
	s.out = document.Close(out, start)
	return s.r.give(s.next, s.out)
}

func (s *restoring) end() error { return s.next.end() }

// needs is what is needed of what is stored.
func (s *restore) needs(n needs) needs {
	if n.all {
		return n
	}
	out := needs{names: make([]string, len(n.names)), ordered: n.ordered}
	for i, name := range n.names {
		out.names[i] = s.names.Path(name)
	}
	return out
}

func (s *restore) expression() bson.D { return objectRestored(s.back, "$$ROOT", 0) }

// objectRestored is the expression of an object with other names of its fields. depth keeps variables apart.
func objectRestored(names *document.Names, object any, depth int) bson.D {
	stored, below, others := names.Level()
	field := "f" + strconv.Itoa(depth)
	key, value := any("$$"+field+".k"), any("$$"+field+".v")
	var keys, values []choiceOf
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		keys = append(keys, choiceOf{name, bson.D{{Key: "$literal", Value: stored[name]}}})
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		values = append(values, choiceOf{name, valueRestored(below[name], value, depth+1)})
	}
	other := value
	if others != nil {
		other = valueRestored(others, value, depth+1)
	}
	return bson.D{{Key: "$arrayToObject", Value: bson.D{{Key: "$map", Value: bson.D{
		{Key: "input", Value: bson.D{{Key: "$objectToArray", Value: object}}},
		{Key: "as", Value: field},
		{Key: "in", Value: bson.D{{Key: "k", Value: choice(key, keys, key)}, {Key: "v", Value: choice(key, values, other)}}},
	}}}}}
}

// choiceOf is what becomes of a field, by its name.
type choiceOf struct {
	name string
	then any
}

func choice(key any, branches []choiceOf, otherwise any) any {
	is := func(name string) bson.D {
		return bson.D{{Key: "$eq", Value: bson.A{key, bson.D{{Key: "$literal", Value: name}}}}}
	}
	switch len(branches) {
	case 0:
		return otherwise
	case 1:
		return conditional(is(branches[0].name), branches[0].then, otherwise)
	}
	all := make(bson.A, len(branches))
	for i, b := range branches {
		all[i] = bson.D{{Key: "case", Value: is(b.name)}, {Key: "then", Value: b.then}}
	}
	return bson.D{{Key: "$switch", Value: bson.D{{Key: "branches", Value: all}, {Key: "default", Value: otherwise}}}}
}

// valueRestored is the expression of an object, or of a list of them, with other names of its fields; others stay. Lists in lists a
// server does not look into: fields have none.
func valueRestored(names *document.Names, value any, depth int) bson.D {
	element := "e" + strconv.Itoa(depth)
	each := bson.D{{Key: "$map", Value: bson.D{
		{Key: "input", Value: value}, {Key: "as", Value: element}, {Key: "in", Value: unlessNoObject(names, "$$"+element, depth)},
	}}}
	return conditional(bson.D{{Key: "$isArray", Value: bson.A{value}}}, each, unlessNoObject(names, value, depth))
}

func unlessNoObject(names *document.Names, value any, depth int) bson.D {
	isObject := bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: value}}, "object"}}}
	return conditional(isObject, objectRestored(names, value, depth), value)
}

// conditional is written as a list, which is one level less than with names: there is an end to how deep expressions can be.
func conditional(is, then, otherwise any) bson.D {
	return bson.D{{Key: "$cond", Value: bson.A{is, then, otherwise}}}
}
