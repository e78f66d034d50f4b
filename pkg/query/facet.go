package query

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// FacetField is a field whose values are counted.
type FacetField struct {
	Name string // as the caller gives it
	path string // as it is stored
}

// maxFacetFields is how many fields one request may count.
const maxFacetFields = 16

// Facets reads the names of fields to count the values of: "status,tags".
func (r Resolver) Facets(names string) ([]FacetField, error) {
	var out []FacetField
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.ContainsFunc(out, func(f FacetField) bool { return f.Name == name }) {
			continue
		}
		path, _, err := r.Path(name)
		if err != nil {
			return nil, err
		}
		if err := r.comparable(path, "facet", nil); err != nil {
			return nil, err
		}
		out = append(out, FacetField{Name: name, path: path})
	}
	switch {
	case len(out) == 0:
		return nil, errs.New(errs.Invalid, "missing_parameter", "missing required parameter: facet")
	case len(out) > maxFacetFields:
		return nil, limitError("facets of %d fields are asked for, the limit is %d", len(out), maxFacetFields)
	}
	return out, nil
}

// FacetWindow is the list in what FacetPipeline gives that has the number of records as n.
const FacetWindow = "window"

// FacetList is the name of the list of a field: the values as _id, and how many records have each as n.
func FacetList(i int) string { return "f" + strconv.Itoa(i) }

// FacetPipeline counts the values of fields in the records that match: in one document, a list for each field, with the
// values that most records have first. A record counts once for each of its values, the items of a list being values of
// their own. What is missing or null is no value.
func FacetPipeline(filter *mql.Filter, fields []FacetField, limit int64) bson.A {
	keep, lists := bson.D{}, bson.D{{Key: FacetWindow, Value: bson.A{stageOf("$count", "n")}}}
	for i, f := range fields {
		name, _, _ := strings.Cut(f.path, ".")
		if !slices.ContainsFunc(keep, func(e bson.E) bool { return e.Key == name }) {
			keep = append(keep, bson.E{Key: name, Value: true})
		}
		lists = append(lists, bson.E{Key: FacetList(i), Value: bson.A{
			stageOf("$project", bson.D{{Key: "_id", Value: facetValues(f.path)}}),
			stageOf("$unwind", "$_id"),
			stageOf("$group", bson.D{{Key: "_id", Value: "$_id"}, {Key: "n", Value: call("$sum", int32(1))}}),
			stageOf("$sort", bson.D{{Key: "n", Value: int32(-1)}, {Key: "_id", Value: int32(1)}}),
			stageOf("$limit", limit),
		}})
	}
	return bson.A{stageOf("$match", filter), stageOf("$project", keep), stageOf("$facet", lists)}
}

func stageOf(name string, spec any) bson.D { return bson.D{{Key: name, Value: spec}} }

// facetValues is an expression for the values of a field: one, or a list of different ones.
func facetValues(path string) any {
	of := "$" + path
	isList := func(v any) bson.D { return call("$isArray", bson.A{v}) }
	var all any = of
	for range strings.Count(path, ".") { // of lists on the way, whose items have lists
		all = call("$reduce", bson.D{
			{Key: "input", Value: all},
			{Key: "initialValue", Value: bson.A{}},
			{Key: "in", Value: call("$concatArrays", bson.A{
				"$$value", call("$cond", bson.A{isList("$$this"), "$$this", bson.A{"$$this"}}),
			})},
		})
	}
	return call("$cond", bson.A{isList(of), call("$setDifference", bson.A{all, bson.A{nil}}), of})
}
