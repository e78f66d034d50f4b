package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// storedNames gives the operand of a stage with the public name id written as the stored _id: in expressions, and where the
// stage names fields.
func storedNames(stage string, spec any) any {
	switch stage {
	case "$match": // Filter does that
		return spec
	case "$sort":
		return renamed(spec)
	case "$project":
		d, _ := spec.(bson.D)
		out := make(bson.D, len(d))
		for i, e := range d {
			if chosen(e.Value) && e.Key == "id" {
				e.Key = "_id"
			}
			out[i] = bson.E{Key: e.Key, Value: storedPaths(e.Value)}
		}
		return out
	case "$unset":
		if list, ok := spec.(bson.A); ok {
			out := make(bson.A, len(list))
			for i := range list {
				out[i] = storedName(list[i])
			}
			return out
		}
		return storedName(spec)
	case "$lookup", "$setWindowFields":
		d, _ := spec.(bson.D)
		out := make(bson.D, len(d))
		for i, e := range d {
			switch e.Key {
			case "localField":
				e.Value = storedName(e.Value)
			case "sortBy":
				e.Value = renamed(e.Value)
			default:
				e.Value = storedPaths(e.Value)
			}
			out[i] = e
		}
		return out
	case "$graphLookup":
		d, _ := spec.(bson.D)
		out := make(bson.D, len(d))
		for i, e := range d {
			if e.Key == "startWith" {
				e.Value = storedPaths(e.Value)
			}
			out[i] = e
		}
		return out
	case "$facet", "$unionWith": // the stages in them are asked about one by one
		return spec
	default:
		return storedPaths(spec)
	}
}

// chosen says that a projection takes a field, or leaves it out, and computes nothing.
func chosen(v any) bool {
	switch v.(type) {
	case bool, int32, int64, float64, bson.Decimal128:
		return true
	}
	return false
}

// renamed gives an object of paths with the stored name of the id.
func renamed(spec any) any {
	d, ok := spec.(bson.D)
	if !ok {
		return spec
	}
	out := make(bson.D, len(d))
	for i, e := range d {
		if e.Key == "id" {
			e.Key = "_id"
		}
		out[i] = e
	}
	return out
}

func storedName(v any) any {
	if v == "id" {
		return "_id"
	}
	return v
}

// storedPaths gives an expression with the stored name of the id.
func storedPaths(v any) any {
	return document.Map(v, func(v any) (any, bool) {
		switch v := v.(type) {
		case string:
			if of, ok := strings.CutSuffix(v, "id"); ok && (of == "$" || of == "$$ROOT." || of == "$$CURRENT.") {
				return of + "_id", true
			}
		case bson.D:
			if len(v) == 1 && (v[0].Key == "$literal" || v[0].Key == "$const") {
				return v, true
			}
		}
		return nil, false
	})
}

// regexes holds the regular expressions in an expression against the collection's limits. Those of filters are measured with
// the filter.
func (f *flow) regexes(v any) error {
	if limit := f.paths.Limits.Regex; limit != "off" && limit != "anchored" {
		return nil
	}
	switch v := v.(type) {
	case bson.A:
		for _, item := range v {
			if err := f.regexes(item); err != nil {
				return err
			}
		}
	case bson.D:
		for _, e := range v {
			switch e.Key {
			case "$regexMatch", "$regexFind", "$regexFindAll":
				return limitError("%s is off in this collection, whose queryLimits.regex is %s", e.Key, f.paths.Limits.Regex)
			case "$literal", "$const":
				continue
			}
			if err := f.regexes(e.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
