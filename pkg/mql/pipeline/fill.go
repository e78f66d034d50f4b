package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// compileFill makes $fill of the stages that it stands for: a $setWindowFields and an $addFields.
func compileFill(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(codeFailedToParse, "%s needs an object", name)
	}
	s := &fillSpec{}
	for _, e := range d {
		if err := s.option(name, e); err != nil {
			return nil, nil, err
		}
	}
	if err := s.fields(name); err != nil {
		return nil, nil, err
	}
	var stages several
	if len(s.window) > 0 {
		w, _, err := compileWindows(c, name, append(s.order, bson.E{Key: "output", Value: s.window}))
		if err != nil {
			return nil, nil, err
		}
		stages = append(stages, w)
	}
	if len(s.values) > 0 {
		set, _, err := compileAddFields(c, name, s.values)
		if err != nil {
			return nil, nil, err
		}
		stages = append(stages, set)
	}
	return stages, d, nil
}

// fillSpec is the operand of $fill.
type fillSpec struct {
	order          bson.D // sortBy and partitionBy of the $setWindowFields
	partitioned    bool
	output         bson.D
	given          bool
	window, values bson.D
}

func (s *fillSpec) option(name string, e bson.E) error {
	d, isObject := asObject(e.Value)
	switch e.Key {
	case "output":
		if !isObject {
			return bad(codeTypeMismatch, "%s: output has to be an object", name)
		}
		s.output, s.given = d, true
	case "sortBy":
		if !isObject {
			return bad(codeTypeMismatch, "%s: sortBy has to be an object", name)
		}
		s.order = append(s.order, bson.E{Key: "sortBy", Value: d})
	case "partitionBy":
		if !isObject {
			return bad(codeTypeMismatch, "%s: partitionBy has to be an object", name)
		}
		return s.partition(name, e.Value)
	case "partitionByFields":
		list, ok := asList(e.Value)
		if !ok {
			return bad(codeTypeMismatch, "%s: partitionByFields has to be a list of paths", name)
		}
		by := bson.D{}
		for _, v := range list {
			path, ok := v.(string)
			if !ok {
				return bad(codeTypeMismatch, "%s: partitionByFields has to be a list of paths", name)
			}
			by = append(by, bson.E{Key: path, Value: "$" + path})
		}
		return s.partition(name, by)
	default:
		return bad(codeUnknownField, "%s does not know %s", name, document.Readable(e.Key))
	}
	return nil
}

func (s *fillSpec) partition(name string, by any) error {
	if s.partitioned {
		return bad(6050204, "%s takes partitionBy or partitionByFields, not both", name)
	}
	s.partitioned = true
	s.order = append(s.order, bson.E{Key: "partitionBy", Value: by})
	return nil
}

// fields sorts out which fields are filled by a method, and which by a value.
func (s *fillSpec) fields(name string) error {
	switch {
	case !s.given:
		return bad(codeMissingField, "%s needs output", name)
	case len(s.output) == 0:
		return bad(6050203, "%s needs a field at least in output", name)
	}
	for _, e := range s.output {
		d, ok := asObject(e.Value)
		switch {
		case !ok:
			return bad(6050200, "%s: %s has to be an object with value or method", name, document.Readable(e.Key))
		case len(d) == 0:
			continue
		case len(d) > 1:
			return bad(6050201, "%s: %s takes value or method, not both", name, document.Readable(e.Key))
		}
		path := "$" + e.Key
		switch how := d[0]; {
		case how.Key == "value":
			s.values = append(s.values, bson.E{Key: e.Key, Value: formulaOf("$ifNull", path, how.Value)})
		case how.Key != "method":
			return bad(codeUnknownField, "%s: %s takes value or method, not %s", name, document.Readable(e.Key), document.Readable(how.Key))
		case how.Value == "linear":
			s.window = append(s.window, bson.E{Key: e.Key, Value: bson.D{{Key: "$linearFill", Value: path}}})
		case how.Value == "locf":
			s.window = append(s.window, bson.E{Key: e.Key, Value: bson.D{{Key: "$locf", Value: path}}})
		default:
			if _, isText := how.Value.(string); !isText {
				return bad(codeTypeMismatch, "%s: the method of %s has to be a text", name, document.Readable(e.Key))
			}
			return bad(6050202, "%s: the method of %s has to be linear or locf", name, document.Readable(e.Key))
		}
	}
	return nil
}
