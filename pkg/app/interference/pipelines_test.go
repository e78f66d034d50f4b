package interference_test

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// name is the name of a field that a pipeline makes.
func (g *generator) name() string {
	if !g.bold {
		return pick(g, "x", "y")
	}
	return pick(g, "x", "y", "secret", "mood", "rank", "seo.score", "parts.cost", "data.k", "note", "nope", "_i18n", "_i18n.de", "_i18n.de.secret", "_i18n.fr.x")
}

// expression is an operand of a stage. What expressions name is not refused where it is hidden: it is not there.
func (g *generator) expression(depth int) any {
	path := func() string { return pick(g, "$"+g.field(), "$"+pick(g, riskyPaths...)) }
	if depth == 0 {
		return pick[any](g, path(), path(), path(), "$$ROOT", "$$ROOT."+pick(g, riskyPaths...), "$x", 1, "a")
	}
	inner := func() any { return g.expression(depth - 1) }
	op := func(name string, v any) any { return bson.D{{Key: name, Value: v}} }
	switch g.IntN(12) {
	case 0:
		return op("$getField", pick(g, "secret", "rank", "nope", "name", "_i18n"))
	case 1:
		return op("$objectToArray", pick(g, "$$ROOT", "$seo", "$_i18n", "$_i18n.de"))
	case 2:
		return op(pick(g, "$add", "$subtract"), bson.A{"$n", pick(g, 1, 0)})
	case 3:
		return op("$cond", bson.A{op(pick(g, "$gt", "$eq"), bson.A{inner(), 1}), 1, inner()})
	case 4:
		return op(pick(g, "$type", "$isArray"), bson.A{inner()})
	case 5:
		return op("$bsonSize", pick(g, "$$ROOT", "$seo", "$_i18n"))
	case 6:
		return op("$map", bson.D{{Key: "input", Value: pick(g, "$parts", "$who")}, {Key: "in", Value: pick(g, "$$this", "$$this.cost", "$$this.sku")}})
	case 7:
		return op("$setField", bson.D{{Key: "field", Value: pick(g, "x", "secret", "rank")}, {Key: "input", Value: pick(g, "$$ROOT", "$seo", "$_i18n")}, {Key: "value", Value: inner()}})
	case 8:
		return op("$mergeObjects", bson.A{"$$ROOT", bson.D{{Key: pick(g, "x", "secret", "_i18n"), Value: inner()}}})
	case 9: // what fails on some values
		return pick(g, op(pick(g, "$divide", "$add"), bson.A{inner(), inner()}), op(pick(g, "$toString", "$size", "$toUpper"), inner()))
	default:
		return inner()
	}
}

// stages makes some stages whose results have one order: that of the ids, or that of what groups are made by.
func (g *generator) stages(depth int) bson.A {
	one := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
	byID := one("$sort", bson.D{{Key: "_id", Value: 1}})
	out := bson.A{byID}
	for range 1 + g.IntN(3) {
		switch g.IntN(13) {
		case 0, 1:
			out = append(out, one("$match", g.filter(1)))
		case 2:
			out = append(out, one("$project", bson.D{{Key: g.field(), Value: 1}}))
		case 3:
			out = append(out, one("$project", bson.D{{Key: "x", Value: g.expression(2)}}))
		case 4, 5:
			out = append(out, one("$set", bson.D{{Key: g.name(), Value: g.expression(2)}}))
		case 6:
			out = append(out, one("$unset", g.field()))
		case 7:
			out = append(out, one("$unwind", "$"+g.field()))
		case 8:
			out = append(out, one("$group", bson.D{{Key: "_id", Value: g.expression(1)}, {Key: "x", Value: one(pick(g, "$push", "$max", "$first", "$sum", "$min"), g.expression(1))}}), byID)
		case 9:
			out = append(out, one("$replaceWith", bson.D{{Key: "_id", Value: "$_id"}, {Key: "x", Value: g.expression(1)}}))
		case 10:
			if depth > 0 {
				out = append(out, one("$facet", bson.D{{Key: "x", Value: g.stages(depth - 1)}}))
			}
		case 11:
			as := g.name()
			local, foreign := pick(g, "ref", "name", "who", g.field()), pick(g, "_id", "name", "ref", g.field())
			if g.one(4) {
				out = append(out, one("$graphLookup", bson.D{
					{Key: "from", Value: "items"},
					{Key: "startWith", Value: "$ref"},
					{Key: "connectFromField", Value: "ref"},
					{Key: "connectToField", Value: "_id"},
					{Key: "as", Value: "x"},
					{Key: "maxDepth", Value: 2},
				}))
				as = "x"
			} else {
				out = append(out, one("$lookup", bson.D{{Key: "from", Value: "items"}, {Key: "localField", Value: local}, {Key: "foreignField", Value: foreign}, {Key: "as", Value: as}}))
			}
			out = append(out, one("$set", bson.D{{Key: as, Value: one("$sortArray", bson.D{{Key: "input", Value: "$" + as}, {Key: "sortBy", Value: bson.D{{Key: "_id", Value: 1}}}})}}))
		default:
			if depth > 0 {
				out = append(out, one("$unionWith", bson.D{{Key: "coll", Value: "items"}, {Key: "pipeline", Value: g.stages(depth - 1)}}))
			}
		}
	}
	return out
}
