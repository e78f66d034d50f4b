package query

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// removal is the stages that take away what the caller may not see: of the documents themselves, or of those in the list in
// the field in. named is what the caller's stages name.
//
// A MongoDB server remembers the place of a field that was taken away, and puts a field there that gets its name later:
// that would tell which records have it. So where the caller names such a field the documents are made anew.
func (s Source) removal(in string, named map[string]bool) bson.A {
	paths, top := s.Paths.Hidden.Paths(), s.Paths.Hidden.Level()
	isNamed := func(path string) bool { return named[path[strings.LastIndexByte(path, '.')+1:]] }
	anew := slices.ContainsFunc(paths, isNamed) || slices.ContainsFunc(top.Bare, isNamed)
	out := bson.A{}
	for _, name := range top.Bare {
		out = append(out, filled(in, name, top.Below[name]))
	}
	switch {
	case in != "" && (anew || len(top.Bare) > 0):
		return append(out, stageOf("$set", bson.D{{Key: in, Value: each("$"+in, siftedObject("$$e", s.Paths.Hidden, depthName))}}))
	case anew:
		return append(out, stageOf("$replaceWith", siftedObject("$$ROOT", s.Paths.Hidden)))
	}
	for _, name := range top.Bare {
		out = append(out, stageOf("$set", bson.D{{Key: name, Value: call("$cond", bson.A{isEmpty("$" + name), "$$REMOVE", "$" + name})}}))
	}
	out = append(out, s.declared(in)...)
	hidden := bson.A{}
	for _, path := range paths {
		if first, _, _ := strings.Cut(path, "."); slices.Contains(top.Bare, first) {
			continue
		}
		if in != "" {
			path = in + "." + path
		}
		hidden = append(hidden, path)
	}
	if len(hidden) > 0 {
		out = append(out, stageOf("$unset", hidden))
	}
	return out
}

// filled is the stage that leaves in an object of objects, such as that of the translations, only what the caller may see,
// and only objects with something in them. It is a stage of its own since the fields of all languages nested in one
// expression would soon be too deep for a server.
func filled(in, name string, without *document.PathSet) bson.D {
	from := "$" + name
	if in != "" {
		from = "$$e." + name
	}
	isObject := func(v string) any { return call("$eq", bson.A{call("$type", v), "object"}) }
	level, branches := without.Level(), bson.A{}
	names := slices.Sorted(maps.Keys(level.Below))
	for _, kid := range names {
		if below := level.Below[kid]; below != nil {
			branches = append(branches, bson.D{{Key: "case", Value: isOneOf([]string{kid})}, {Key: "then", Value: siftedObject("$$m.v", below)}})
		}
	}
	var pairs any = call("$objectToArray", call("$cond", bson.A{isObject(from), from, call("$literal", bson.D{})}))
	pairs = kept(pairs, call("$and", bson.A{isOneOf(names), isObject("$$m.v")}))
	if len(branches) > 0 {
		pairs = eachMember(pairs, call("$switch", bson.D{{Key: "branches", Value: branches}, {Key: "default", Value: "$$m.v"}}))
	}
	full := call("$arrayToObject", kept(pairs, call("$not", bson.A{isEmpty("$$m.v")})))
	if in == "" {
		return stageOf("$set", bson.D{{Key: name, Value: full}})
	}
	one := call("$mergeObjects", bson.A{"$$e", bson.D{{Key: name, Value: full}}})
	return stageOf("$set", bson.D{{Key: in, Value: each("$"+in, one)}})
}

func isEmpty(v string) any { return call("$eq", bson.A{v, call("$literal", bson.D{})}) }

// names adds the names of all fields that a pipeline may speak of.
func names(v any, to map[string]bool) {
	add := func(path string) {
		for name := range strings.SplitSeq(path, ".") {
			to[strings.TrimLeft(name, "$")] = true
		}
	}
	switch v := v.(type) {
	case string:
		add(v)
	case bson.A:
		for _, item := range v {
			names(item, to)
		}
	case bson.D:
		for _, e := range v {
			add(e.Key)
			names(e.Value, to)
		}
	}
}

// declared is the stages that leave only what is declared, where nothing else may be.
func (s Source) declared(in string) bson.A {
	top := s.Undeclared.Level()
	switch {
	case !top.Others && len(top.Below) == 0:
		return nil
	case in != "":
		return bson.A{stageOf("$set", bson.D{{Key: in, Value: each("$"+in, siftedObject("$$e", s.Undeclared, depthName))}})}
	}
	if taken, ok := inclusion(s.Undeclared); ok {
		return bson.A{stageOf("$project", taken)}
	}
	taken, set := bson.D{}, bson.D{}
	for _, name := range slices.Sorted(maps.Keys(top.Below)) {
		taken = append(taken, bson.E{Key: name, Value: true})
		if below := top.Below[name]; below != nil && !slices.Contains(top.Bare, name) { // see filled
			set = append(set, bson.E{Key: name, Value: sifted("$"+name, below, true)})
		}
	}
	var out bson.A
	if top.Others {
		out = append(out, stageOf("$project", taken))
	}
	if len(set) > 0 {
		out = append(out, stageOf("$set", set))
	}
	return out
}

// inclusion is a projection that takes what is declared, if nothing else may be on any level. Where objects are declared it
// takes nothing else, also in a field that may hold anything.
func inclusion(undeclared *document.PathSet) (taken bson.D, ok bool) {
	level := undeclared.Level()
	if !level.Others {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(level.Below)) {
		var inner any = true
		if below := level.Below[name]; below != nil && !slices.Contains(level.Bare, name) {
			if inner, ok = inclusion(below); !ok {
				return nil, false
			}
		}
		taken = append(taken, bson.E{Key: name, Value: inner})
	}
	return taken, len(taken) > 0
}

// sifted is an expression for v without what is in a set: of an object, or of the objects in a list. Objects in lists of
// lists are left out but at the top, so that the expression does not double with each level of fields.
func sifted(v string, without *document.PathSet, top bool) any {
	object := siftedObject("$$e", without)
	var deeper any = bson.A{}
	if top {
		deeper = each("$$e", choice("$$e", object, bson.A{}))
	}
	isList := call("$isArray", bson.A{v})
	list := each(call("$cond", bson.A{isList, v, bson.A{v}}), choice("$$e", object, deeper)) // of one, if v is no list
	return call("$cond", bson.A{
		call("$in", bson.A{call("$type", v), bson.A{"object", "array"}}),
		call("$let", bson.D{
			{Key: "vars", Value: bson.D{{Key: "l", Value: list}}},
			{Key: "in", Value: call("$cond", bson.A{isList, "$$l", call("$first", "$$l")})},
		}),
		v,
	})
}

// each is an expression for the list of what in makes of the elements e of another one.
func each(list, in any) any {
	return call("$map", bson.D{{Key: "input", Value: list}, {Key: "as", Value: "e"}, {Key: "in", Value: in}})
}

// choice is an expression for v, or for what takes its place if it is an object or a list.
func choice(v string, object, list any) any {
	return call("$switch", bson.D{
		{Key: "branches", Value: bson.A{
			bson.D{{Key: "case", Value: call("$eq", bson.A{call("$type", v), "object"})}, {Key: "then", Value: object}},
			bson.D{{Key: "case", Value: call("$isArray", bson.A{v})}, {Key: "then", Value: list}},
		}},
		{Key: "default", Value: v},
	})
}

// siftedObject is sifted for what is an object. also is a name that stays, though it is no field. What filled has done is
// left as it is, if something is left of it.
func siftedObject(v string, without *document.PathSet, also ...string) any {
	level := without.Level()
	names := slices.Sorted(maps.Keys(level.Below))
	var pairs any = call("$objectToArray", v)
	switch {
	case level.Others:
		pairs = kept(pairs, isOneOf(append(also, names...)))
	case len(level.In) > 0:
		pairs = kept(pairs, call("$not", bson.A{isOneOf(level.In)}))
	}
	branches := bson.A{}
	for _, name := range names {
		if below := level.Below[name]; below != nil && !slices.Contains(level.Bare, name) {
			branches = append(branches, bson.D{
				{Key: "case", Value: isOneOf([]string{name})}, {Key: "then", Value: sifted("$$m.v", below, false)},
			})
		}
	}
	if len(branches) > 0 {
		value := call("$switch", bson.D{{Key: "branches", Value: branches}, {Key: "default", Value: "$$m.v"}})
		pairs = eachMember(pairs, value)
	}
	if len(level.Bare) > 0 {
		pairs = kept(pairs, call("$not", bson.A{call("$and", bson.A{isOneOf(level.Bare), isEmpty("$$m.v")})}))
	}
	return call("$arrayToObject", pairs)
}

// kept is an expression for the pairs m that cond holds for.
func kept(pairs, cond any) any {
	return call("$filter", bson.D{{Key: "input", Value: pairs}, {Key: "as", Value: "m"}, {Key: "cond", Value: cond}})
}

// eachMember is an expression for the pairs m with other values.
func eachMember(pairs, value any) any {
	return call("$map", bson.D{
		{Key: "input", Value: pairs},
		{Key: "as", Value: "m"},
		{Key: "in", Value: bson.D{{Key: "k", Value: "$$m.k"}, {Key: "v", Value: value}}},
	})
}

func isOneOf(names []string) any {
	list := bson.A{}
	for _, name := range names {
		list = append(list, name)
	}
	return call("$in", bson.A{"$$m.k", call("$literal", list)})
}

func call(operator string, operand any) bson.D { return bson.D{{Key: operator, Value: operand}} }

func stageOf(name string, spec any) bson.D { return bson.D{{Key: name, Value: spec}} }
