package mqltest

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Pipeline makes an aggregation of documents from Doc. others are the names of the other collections. ordered says
// whether the order of the results is the only one that is right, given that documents are read in a known order.
func Pipeline(r *rand.Rand, others []string) (stages bson.A, ordered bool) {
	g := &pipelines{Rand: r, others: others, ordered: true, unique: true, dated: true}
	return g.stages(1+r.IntN(5), 2), g.ordered
}

type pipelines struct {
	*rand.Rand
	others   []string
	vars     []string
	inFacet  bool
	inLookup bool // in the pipeline of one
	// holes: fields were chosen or computed, and lists may have lost elements. A server still counts them when a later stage computes fields below the list.
	holes   bool
	ordered bool   // there is one right order
	unique  bool   // no two documents have one _id
	follow  bson.A // stages that have to come behind the one that was made
	// safe: stages do not fail for documents. A server looks up for fewer documents than come by, and runs the branches of a
	// $facet in turns, so it is not known whether they fail, or which one first.
	safe      bool
	below     bool // something below x was computed
	belowA    bool // a $lookup has put something below a: a server may sort by what a was before that
	dated     bool // there is a date t in every document, another one in each
	projected bool // by a $project, which a server forgets before a $group by the whole document
}

func (g *pipelines) stages(n, depth int) bson.A {
	list := bson.A{}
	for range n {
		list = append(list, g.stage(depth))
		list = append(list, g.follow...)
		g.follow = nil
	}
	return list
}

func (g *pipelines) stage(depth int) bson.D {
	names := []string{
		"$match", "$match", "$project", "$project", "$addFields", "$set", "$unset", "$sort", "$sort", "$unwind", "$unwind", "$count",
		"$replaceRoot", "$replaceWith", "$group", "$group", "$sortByCount", "$bucket", "$bucketAuto",
	}
	if g.ordered && g.unique {
		names = append(names, "$setWindowFields", "$setWindowFields", "$setWindowFields", "$fill")
	}
	if g.ordered {
		names = append(names, "$limit", "$skip", "$limit", "$skip")
	}
	if depth > 0 && !g.inFacet {
		names = append(names, "$facet")
	}
	if depth > 0 {
		names = append(names, "$unionWith", "$lookup", "$lookup", "$graphLookup")
	}
	for {
		name := pick(g.Rand, names)
		if name == "$unwind" && g.holes {
			continue
		}
		if operand := stageMakers()[name]; operand != nil {
			return bson.D{{Key: name, Value: operand(g, depth)}}
		}
	}
}

// stageMakers has what makes the operand of each stage.
func stageMakers() map[string]func(g *pipelines, depth int) any {
	return map[string]func(g *pipelines, depth int) any{
		"$match":     func(g *pipelines, _ int) any { return g.filter() },
		"$project":   func(g *pipelines, _ int) any { return g.project() },
		"$addFields": func(g *pipelines, _ int) any { return g.added() },
		"$set":       func(g *pipelines, _ int) any { return g.added() },
		"$unset":     (*pipelines).unset,
		"$sort":      (*pipelines).sort,
		"$limit":     func(g *pipelines, _ int) any { return pick(g.Rand, []any{int32(1), int64(2), 3.0, int32(5), int32(0)}) },
		"$skip": func(g *pipelines, _ int) any {
			return pick(g.Rand, []any{int32(1), int64(2), 0.0, int32(3), int32(-1)})
		},
		"$unwind":      (*pipelines).unwind,
		"$count":       (*pipelines).count,
		"$replaceRoot": func(g *pipelines, _ int) any { return bson.D{{Key: "newRoot", Value: g.root()}} },
		"$replaceWith": func(g *pipelines, _ int) any { return g.root() },
		"$group":       (*pipelines).group,
		"$sortByCount": (*pipelines).sortByCount,
		"$bucket":      (*pipelines).bucket,
		"$bucketAuto":  (*pipelines).bucketAuto,
		"$lookup":      (*pipelines).lookup,
		"$graphLookup": (*pipelines).graphLookup,
		"$facet":       (*pipelines).facet,
		"$unionWith":   (*pipelines).unionWith,

		"$setWindowFields": func(g *pipelines, _ int) any { return g.windows() },
		"$fill":            func(g *pipelines, _ int) any { return g.fill() },
	}
}

func (g *pipelines) filter() any {
	if g.holes || g.IntN(3) > 0 { // a server filters too early by an expression in a $or that reads a renamed field
		if g.holes { // and by a field where only a part of it was computed
			path := pick(g.Rand, []string{"k", "x"})
			if g.below {
				path = "k"
			}
			return bson.D{{Key: path, Value: constant(g.Rand)}}
		}
		return Filter(g.Rand)
	}
	cond := bson.E{Key: "$expr", Value: g.condition()}
	switch g.IntN(3) {
	case 0:
		return append(Filter(g.Rand), cond)
	case 1:
		return bson.D{{Key: pick(g.Rand, []string{"$or", "$and", "$nor"}), Value: bson.A{Filter(g.Rand), bson.D{cond}}}}
	default:
		return bson.D{cond}
	}
}

// condition makes an expression of two values, at least one of the document: a server takes a bare path for true or for false
// where the field was renamed, and filters by a constant before stages that fail.
func (g *pipelines) condition() any {
	path := "$" + pick(g.Rand, []string{"a", "b", "c", "a.b", "a.c", "b.c", "_id", "k"})
	if g.IntN(4) == 0 {
		return bson.D{{Key: "$not", Value: bson.A{path}}}
	}
	return bson.D{{Key: pick(g.Rand, []string{"$eq", "$eq", "$ne", "$gt", "$lte"}), Value: bson.A{path, g.expression()}}}
}

// expression makes one that does not fail for any document: a server computes some for fewer documents than come by.
func (g *pipelines) expression() any {
	path := func() string {
		if len(g.vars) > 0 && g.IntN(2) == 0 {
			return "$$" + pick(g.Rand, g.vars)
		}
		return "$" + pick(g.Rand, []string{"a", "b", "c", "a.b", "a.c", "b.c", "a.b.c", "_id", "k", "a.0", "$ROOT", "$CURRENT.a"})
	}
	switch g.IntN(10) {
	case 0:
		return Scalar(g.Rand)
	case 1:
		return bson.D{{Key: pick(g.Rand, []string{"$eq", "$gt", "$lte", "$cmp", "$ifNull"}), Value: bson.A{path(), path()}}}
	case 2:
		return bson.D{{Key: "$cond", Value: bson.A{path(), path(), pick(g.Rand, []any{"$$REMOVE", int32(1), path()})}}}
	case 3:
		return bson.A{path(), path()}
	case 4:
		return bson.D{{Key: "$literal", Value: Value(g.Rand, 2)}}
	case 5:
		return bson.D{{Key: pick(g.Rand, []string{"$type", "$isArray", "$isNumber", "$not"}), Value: bson.A{path()}}}
	case 6:
		if g.IntN(6) == 0 {
			return bson.D{{Key: pick(g.Rand, []string{"$nope", "$eq"}), Value: bson.A{path(), path(), path()}}}
		}
	}
	return path()
}

// fields makes paths with what is said of them; paths collide seldom.
func (g *pipelines) fields(value func() any, extra *bson.E) bson.D {
	d := bson.D{}
	for range 1 + g.IntN(3) {
		if g.holes {
			d = append(d, bson.E{Key: pick(g.Rand, []string{"a", "b", "c", "x", "k"}), Value: value()})
			continue
		}
		path := pick(g.Rand, []string{"a", "b", "c", "a.b", "a.c", "b.c", "a.b.c", "c.b", "_id.x", "x", "x.y", "k", "_id"})
		g.below = g.below || path == "x.y"
		v := value()
		if top, rest, ok := cutPath(path); ok && g.IntN(3) == 0 {
			path, v = top, bson.D{{Key: rest, Value: v}}
		}
		d = append(d, bson.E{Key: path, Value: v})
	}
	if extra != nil {
		d = append(d, *extra)
	}
	if g.IntN(12) > 0 {
		d = distinctPaths(d)
	}
	g.holes = true
	for _, e := range d {
		if e.Key == "_id" || e.Key == "_id.x" {
			g.unique = false
		}
	}
	return d
}

func cutPath(path string) (top, rest string, ok bool) {
	for i := range len(path) {
		if path[i] == '.' {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

func (g *pipelines) project() any {
	g.projected = true
	style := pick(g.Rand, []any{true, int32(1), 1.5, false, int32(0), 0.0})
	computing := g.IntN(2) == 0
	var id *bson.E
	if g.IntN(4) == 0 {
		id = &bson.E{Key: "_id", Value: pick(g.Rand, []any{true, false, int64(1), int32(0)})}
	}
	d := g.fields(func() any {
		switch {
		case computing && g.IntN(2) == 0:
			return g.expression()
		case computing && g.IntN(12) > 0:
			return true
		default:
			return style
		}
	}, id)
	g.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	return d
}

func (g *pipelines) added() any { return g.fields(g.expression, nil) }

func (g *pipelines) unset(int) any {
	paths := bson.A{}
	for _, e := range g.fields(func() any { return true }, nil) {
		if _, ok := e.Value.(bool); ok {
			paths = append(paths, e.Key)
		}
	}
	if len(paths) == 1 && g.IntN(2) == 0 {
		return paths[0]
	}
	return paths
}

// sort makes one of a field that may have lists, at most: where two have, it depends on the plan whether that is refused.
// Paths are not dotted: a server sorts what a later projection leaves of a list.
func (g *pipelines) sort(int) any {
	d := bson.D{}
	if g.IntN(3) > 0 {
		names := []string{"b", "n", "x", "a", "a"}
		if g.belowA {
			names = names[:3]
		}
		d = append(d, bson.E{Key: pick(g.Rand, names), Value: g.direction()})
	}
	if g.IntN(3) == 0 && !g.holes {
		d = append(d, bson.E{Key: "k", Value: g.direction()})
	}
	g.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	if g.ordered = g.unique; g.unique || len(d) == 0 {
		d = append(d, bson.E{Key: "_id", Value: g.direction()})
	}
	return d
}

func (g *pipelines) direction() any { return pick(g.Rand, []any{int32(1), int32(-1), int64(1), -1.0}) }

// unwind never puts the index into what is unwound: a MongoDB 6.0.5 crashes then.
func (g *pipelines) unwind(int) any {
	g.unique = false
	path := "$" + pick(g.Rand, []string{"a", "a", "b", "c", "a.b", "a.b.c", "b.c", "x"})
	if g.IntN(2) == 0 {
		return path
	}
	d := bson.D{{Key: "path", Value: path}}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "preserveNullAndEmptyArrays", Value: g.IntN(3) > 0})
	}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "includeArrayIndex", Value: pick(g.Rand, []string{"i", "k", "i.j"})})
	}
	return d
}

func (g *pipelines) count(int) any {
	g.unique, g.ordered, g.holes, g.dated = false, true, false, false
	return pick(g.Rand, []string{"n", "a", "b"})
}

func (g *pipelines) root() any {
	g.unique, g.dated = false, false
	switch g.IntN(5) {
	case 0:
		if g.safe {
			return "$$ROOT"
		}
		return "$" + pick(g.Rand, []string{"a", "b", "$ROOT"})
	case 1:
		return bson.D{{Key: "a", Value: g.expression()}, {Key: "r", Value: "$$ROOT"}}
	default:
		return bson.D{{Key: "_id", Value: "$_id"}, {Key: "b", Value: g.expression()}, {Key: "a", Value: bson.D{{Key: "b", Value: g.expression()}}}}
	}
}

// branch makes a pipeline that leads to one order.
func (g *pipelines) branch(depth int, unique, inFacet, safe bool) bson.A {
	for {
		inner := &pipelines{
			Rand: g.Rand, others: g.others, vars: g.vars, ordered: true, unique: unique, inFacet: inFacet || g.inFacet, holes: g.holes && inFacet,
			safe: safe || g.safe, inLookup: g.inLookup || safe && !inFacet, below: g.below && inFacet, belowA: g.belowA && inFacet,
			projected: g.projected && inFacet, dated: g.dated || !inFacet,
		}
		if list := inner.stages(g.IntN(4), depth-1); inner.ordered {
			return list
		}
	}
}

func (g *pipelines) facet(depth int) any {
	d := bson.D{}
	for _, name := range []string{"a", "b", "x"}[:1+g.IntN(3)] {
		list := bson.A{}
		if g.ordered {
			list = g.branch(depth, g.unique, true, true)
		} else {
			list = append(list, bson.D{{Key: "$count", Value: "n"}})
		}
		d = append(d, bson.E{Key: name, Value: list})
	}
	g.unique, g.ordered, g.dated = false, true, false
	return d
}

func (g *pipelines) unionWith(depth int) any {
	g.unique = false
	coll := pick(g.Rand, g.others)
	if g.IntN(3) == 0 {
		return coll
	}
	return bson.D{{Key: "coll", Value: coll}, {Key: "pipeline", Value: g.branch(depth, true, false, false)}}
}

func (g *pipelines) group(int) any {
	whole := "$$ROOT"
	if g.projected {
		whole = "$b"
	}
	d := bson.D{{Key: "_id", Value: pick(g.Rand, []any{
		"$k", "$k", "$a", "$b.c", nil, int32(1), "$_id", whole,
		bson.D{{Key: "x", Value: whole}},
		bson.D{{Key: "x", Value: "$a"}, {Key: "y", Value: "$b"}},
		bson.D{{Key: "x", Value: "$a"}},
		bson.D{{Key: "x", Value: bson.D{{Key: "y", Value: "$none"}}}},
		g.expression(),
	})}}
	names := g.accumulators()
	for _, field := range []string{"n", "a", "x"}[:g.IntN(4)] {
		d = append(d, bson.E{Key: field, Value: g.accumulator(pick(g.Rand, names))})
	}
	if g.IntN(40) == 0 {
		d = append(d, bson.E{Key: pick(g.Rand, []string{"a.b", "$a", "z", "y"}), Value: pick(g.Rand, []any{
			int32(1),
			bson.D{},
			bson.D{{Key: "$sum", Value: int32(1)}, {Key: "$avg", Value: int32(1)}},
			bson.D{{Key: "$nope", Value: int32(1)}},
			bson.D{{Key: "$sum", Value: bson.A{int32(1)}}},
		})})
	}
	g.unique, g.ordered, g.holes, g.below, g.belowA, g.projected, g.dated = false, false, false, false, false, false, false // two lists with one smallest element sort alike
	return d
}

// accumulators are those whose result is known.
func (g *pipelines) accumulators() []string {
	names := []string{"$sum", "$avg", "$min", "$max", "$count", "$maxN", "$minN"}
	if g.ordered {
		names = append(names, "$first", "$last", "$push", "$firstN", "$lastN", "$stdDevPop", "$stdDevSamp") // whose last digit depends on the order
		if g.unique {
			names = append(names, "$top", "$bottomN")
		}
	}
	return names
}

func (g *pipelines) accumulator(name string) bson.D {
	value := pick(g.Rand, []any{"$a", "$b", "$b.c", "$k", "$_id", "$$ROOT", int32(1), 0.1, g.expression()})
	byID := bson.D{{Key: "_id", Value: int32(-1)}}
	var operand any
	switch name {
	case "$count":
		operand = bson.D{}
	case "$firstN", "$lastN", "$maxN", "$minN":
		operand = bson.D{{Key: "n", Value: int32(2)}, {Key: "input", Value: value}}
	case "$top":
		operand = bson.D{{Key: "sortBy", Value: byID}, {Key: "output", Value: value}}
	case "$bottomN":
		operand = bson.D{{Key: "n", Value: int64(2)}, {Key: "sortBy", Value: byID}, {Key: "output", Value: value}}
	default:
		operand = value
	}
	return bson.D{{Key: name, Value: operand}}
}

func (g *pipelines) sortByCount(int) any {
	g.unique, g.ordered, g.holes, g.dated = false, false, false, false
	return pick(g.Rand, []any{"$k", "$a", "$b.c", "$_id", bson.D{{Key: "$type", Value: "$a"}}, "k"})
}

func (g *pipelines) lookup(depth int) any {
	paths := []string{"a", "b", "c", "k", "a.b", "b.c", "_id", "none"}
	as := pick(g.Rand, []string{"x", "x", "b", "y.z", "a.b"})
	d := bson.D{{Key: "from", Value: pick(g.Rand, g.others)}, {Key: "as", Value: as}}
	equal := g.IntN(3) > 0
	if equal {
		d = append(d, bson.E{Key: "localField", Value: pick(g.Rand, paths)}, bson.E{Key: "foreignField", Value: pick(g.Rand, paths)})
	}
	if !equal || g.IntN(4) == 0 {
		before, let := g.vars, bson.D{}
		for _, name := range []string{"v", "w"}[:g.IntN(3)] {
			let = append(let, bson.E{Key: name, Value: g.expression()})
		}
		for _, e := range let {
			g.vars = append(slices.Clip(g.vars), e.Key)
		}
		d = append(d, bson.E{Key: "let", Value: let}, bson.E{Key: "pipeline", Value: g.branch(depth, true, false, true)})
		g.vars = before
	}
	g.holes, g.belowA = true, g.belowA || as == "a.b"
	return d
}
