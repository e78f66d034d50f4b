package records_test

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
)

// name is the name of a field that a pipeline makes.
func (g *generator) name() string {
	return pick(g, "x", "y", "secret", "mood", "rank", "seo.score", "parts.cost", "data.k", "nope", "_i18n", "_i18n.de", "_i18n.de.secret", "_i18n.fr.x")
}

// expression is an operand of a stage.
func (g *generator) expression(depth int) any {
	if depth == 0 {
		return pick[any](g, "$"+g.path(), "$"+g.path(), "$$ROOT", "$$ROOT."+g.path(), "$x", "$x.secret", int64(1), "a")
	}
	inner := func() any { return g.expression(depth - 1) }
	op := func(name string, v any) any { return bson.D{{Key: name, Value: v}} }
	switch g.IntN(10) {
	case 0:
		return op("$getField", pick(g, "secret", "rank", "nope", "name", "_i18n"))
	case 1:
		return op("$objectToArray", pick(g, "$$ROOT", "$seo", "$data", "$_i18n", "$_i18n.de"))
	case 2:
		return op(pick(g, "$add", "$divide", "$subtract"), bson.A{inner(), pick[any](g, int64(1), int64(0), inner())})
	case 3:
		return op("$cond", bson.A{op(pick(g, "$gt", "$eq"), bson.A{inner(), int64(1)}), int64(1), inner()})
	case 4:
		return op(pick(g, "$toString", "$type", "$isArray", "$size", "$toUpper"), bson.A{inner()})
	case 5:
		return op("$bsonSize", pick(g, "$$ROOT", "$seo", "$data", "$_i18n"))
	case 6:
		return op("$map", bson.D{{Key: "input", Value: pick(g, "$parts", "$tags")}, {Key: "in", Value: pick(g, "$$this", "$$this.cost", "$$this.sku")}})
	case 7:
		return op("$setField", bson.D{{Key: "field", Value: g.name()}, {Key: "input", Value: pick(g, "$$ROOT", "$seo", "$_i18n")}, {Key: "value", Value: inner()}})
	case 8:
		return op("$mergeObjects", bson.A{"$$ROOT", bson.D{{Key: pick(g, "x", "secret", "_i18n"), Value: inner()}}})
	default:
		return inner()
	}
}

// stages makes some stages whose results have one order: that of the ids, or that of what groups are made by.
func (g *generator) stages(depth int) bson.A {
	one := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
	byID := one("$sort", bson.D{{Key: "_id", Value: int64(1)}})
	out := bson.A{byID}
	for range 1 + g.IntN(3) {
		switch g.IntN(13) {
		case 0, 1:
			out = append(out, one("$match", g.filter(1)))
		case 2:
			out = append(out, one("$project", bson.D{{Key: g.path(), Value: int64(1)}}))
		case 3:
			out = append(out, one("$project", bson.D{{Key: "x", Value: g.expression(2)}}))
		case 4, 5:
			out = append(out, one("$set", bson.D{{Key: g.name(), Value: g.expression(2)}}))
		case 6:
			out = append(out, one("$unset", g.path()))
		case 7:
			out = append(out, one("$unwind", "$"+g.path()))
		case 8:
			out = append(out, one("$group", bson.D{{Key: "_id", Value: g.expression(1)}, {Key: "x", Value: one(pick(g, "$push", "$max", "$first", "$sum"), g.expression(1))}}), byID)
		case 9:
			out = append(out, one("$replaceWith", bson.D{{Key: "_id", Value: "$_id"}, {Key: "x", Value: g.expression(1)}}))
		case 10:
			if depth > 0 {
				out = append(out, one("$facet", bson.D{{Key: "x", Value: g.stages(depth - 1)}}))
			}
		case 11:
			as := pick(g, "x", "secret", "nope", "_i18n")
			out = append(out, one("$lookup", bson.D{{Key: "from", Value: "items"}, {Key: "localField", Value: g.path()}, {Key: "foreignField", Value: g.path()}, {Key: "as", Value: as}}),
				one("$set", bson.D{{Key: as, Value: one("$sortArray", bson.D{{Key: "input", Value: "$" + as}, {Key: "sortBy", Value: bson.D{{Key: "_id", Value: int64(1)}}}})}}))
		default:
			if depth > 0 {
				out = append(out, one("$unionWith", bson.D{{Key: "coll", Value: "items"}, {Key: "pipeline", Value: g.stages(depth - 1)}}))
			}
		}
	}
	return out
}

// aggregateRequest is an aggregation, or facets.
func (g *generator) aggregateRequest(where query.Where) request {
	if g.IntN(4) == 0 {
		fields := g.path() + "," + pick(g, "name", "tags", "n", g.path())
		return func(w *world, c *records.Call) string {
			res, err := w.service.Facets(g.t.Context(), c, records.FacetParams{Where: where, Fields: fields})
			if err != nil {
				return show(err)
			}
			return string(res.AppendJSON(nil))
		}
	}
	limit := int64(1000)
	p := records.AggregateParams{Where: where, Stages: g.stages(1), Limit: &limit}
	g.last = append(bson.D{{Key: "stages", Value: p.Stages}}, where.Filter...)
	return func(w *world, c *records.Call) string {
		return strings.TrimSpace(sortLines(aggregated(w.service.Aggregate(g.t.Context(), c, p))))
	}
}
