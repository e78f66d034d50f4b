package openapi

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// shape makes the schemas of the fields of one collection or action, as they are read or as they are written.
type shape struct {
	lang    string
	write   bool
	change  bool                            // of a write: of a record that is there, as its files may be
	partial bool                            // of a change: what is absent stays as it is, so that nothing is required
	veiled  bool                            // of a write: it takes fields that are hidden, and are told nobody
	form    bool                            // of a write: files come as parts beside it, so that none is required in it
	without *document.PathSet               // what the asker does not see, or can't write
	target  func(f *fieldtype.Field) bson.D // the schema of what a lookup puts in the place of a relation; nil, or giving nil: nothing
}

// object is the schema of an object with these fields. config is what is declared of them.
func (s *shape) object(tree *fieldtype.Tree, config []*schema.Field, strict bool) bson.D {
	properties, required := s.properties(tree, config)
	out := bson.D{{Key: "type", Value: "object"}}
	if len(properties) > 0 {
		out = append(out, bson.E{Key: "properties", Value: properties})
	}
	if len(required) > 0 {
		out = append(out, bson.E{Key: "required", Value: required})
	}
	untold := slices.ContainsFunc(tree.Fields(), func(f *fieldtype.Field) bool {
		return s.veiled && f.Hidden || described(configOf(config, f.Name)).Disabled
	})
	if s.write && (strict || !tree.Open()) && !untold {
		out = append(out, bson.E{Key: "additionalProperties", Value: false})
	}
	return out
}

func (s *shape) properties(tree *fieldtype.Tree, config []*schema.Field) (properties bson.D, required bson.A) {
	for _, f := range tree.Fields() {
		declared := configOf(config, f.Name)
		if s.without.Covers(f.Path) || described(declared).Disabled {
			continue
		}
		var value bson.D
		if f.Holds() { // translations: below it the same fields are declared
			value = s.object(f.Sub, config, f.Strict)
		} else {
			value = s.field(f, declared)
		}
		properties = append(properties, bson.E{Key: f.Name, Value: value})
		if s.write && !s.partial && f.Default == nil && !(s.form && strings.TrimSuffix(f.Type.Name(), "[]") == "file") && slices.Contains(tree.Required(), f) {
			required = append(required, f.Name)
		}
	}
	return properties, required
}

// configOf gives what is declared of a field; never nil.
func configOf(config []*schema.Field, name string) *schema.Field {
	for _, c := range config {
		if c.Name == name {
			return c
		}
	}
	return &schema.Field{}
}

// described gives how a field is described (meta.openapi); never nil.
func described(c *schema.Field) *schema.FieldOpenAPI {
	if c.Meta != nil && c.Meta.OpenAPI != nil {
		return c.Meta.OpenAPI
	}
	return &schema.FieldOpenAPI{}
}

// field is the schema of a field's value.
func (s *shape) field(f *fieldtype.Field, config *schema.Field) bson.D {
	value := s.typed(f, f.Type.Name(), config)
	if s.write {
		value = judged(value, f)
	}
	if choices := choicesOf(f, config); len(choices) > 0 {
		value = ofItems(value, f, bson.D{{Key: "enum", Value: choices}})
	}
	if s.write && (!f.Has("required") || f.Default != nil) {
		value = orNull(value)
	}
	return s.told(value, f, config)
}

// typed is the schema of a value by its type alone.
func (s *shape) typed(f *fieldtype.Field, kind string, config *schema.Field) bson.D {
	if item, isList := strings.CutSuffix(kind, "[]"); isList {
		whole := *s
		whole.partial = false // a list takes the place of the one before it, and so do its items
		return bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: whole.typed(f, item, config)}}
	}
	if f.Foreign != nil && s.target != nil {
		if record := s.target(f); record != nil {
			stored := *s
			stored.target = nil
			options := bson.A{stored.typed(f, kind, config), record}
			if !f.IsList() {
				options = append(options, bson.D{{Key: "type", Value: "null"}}) // there is none, or none for the asker
			}
			return bson.D{{Key: "anyOf", Value: options}}
		}
	}
	switch kind {
	case "string":
		if f.HoldsIDs() {
			return recordID()
		}
		return bson.D{{Key: "type", Value: "string"}}
	case "number", "boolean":
		return bson.D{{Key: "type", Value: kind}}
	case "date":
		return bson.D{{Key: "type", Value: "string"}, {Key: "format", Value: "date-time"}}
	case "object":
		if f.Sub == nil {
			return bson.D{{Key: "type", Value: "object"}}
		}
		return s.object(f.Sub, config.SubFields, f.Strict)
	case "file":
		switch {
		case s.change, s.form:
			return reference("schemas", "svc.FileChange")
		case s.write:
			return reference("schemas", "svc.FileInput")
		}
		return reference("schemas", "svc.File")
	}
	return bson.D{} // any
}

func recordID() bson.D {
	return bson.D{{Key: "type", Value: "string"}, {Key: "pattern", Value: "^[0-9a-fA-F]{24}$"}}
}

// choicesOf gives the only values that a field takes; none: it takes others.
func choicesOf(f *fieldtype.Field, config *schema.Field) bson.A {
	if own := described(config).Enum; len(own) > 0 {
		return own
	}
	if f.FreeSolo {
		return nil
	}
	return slices.Clone(bson.A(f.Choices))
}

// ofItems adds members to the schema of a value, or of a list to that of its items.
func ofItems(value bson.D, f *fieldtype.Field, members bson.D) bson.D {
	if !f.IsList() {
		for _, m := range members {
			value = with(value, m.Key, m.Value)
		}
		return value
	}
	for i, e := range value {
		if items, ok := e.Value.(bson.D); ok && e.Key == "items" {
			for _, m := range members {
				items = with(items, m.Key, m.Value)
			}
			value[i].Value = items
		}
	}
	return value
}

// orNull lets null through, which stands for no value.
func orNull(value bson.D) bson.D {
	for i, e := range value {
		switch e.Key {
		case "type":
			value[i].Value = bson.A{e.Value, "null"}
		case "enum":
			if list, ok := e.Value.(bson.A); ok {
				value[i].Value = append(slices.Clip(list), nil)
			}
		case "const":
			value[i] = bson.E{Key: "enum", Value: bson.A{e.Value, nil}}
		case "$ref":
			return bson.D{{Key: "anyOf", Value: bson.A{value, bson.D{{Key: "type", Value: "null"}}}}}
		}
	}
	return value
}

// told adds what is said of a field to people.
func (s *shape) told(value bson.D, f *fieldtype.Field, config *schema.Field) bson.D {
	own := described(config)
	if own.Format != "" {
		value = slices.DeleteFunc(value, func(e bson.E) bool { return e.Key == "format" })
		value = append(value, bson.E{Key: "format", Value: own.Format})
	}
	if config.Meta != nil {
		if label := config.Meta.Label.In(s.lang); label != "" {
			value = append(value, bson.E{Key: "title", Value: label})
		}
		text := own.Description.In(s.lang)
		if text == "" {
			text = config.Meta.HelperText.In(s.lang)
		}
		if text != "" {
			value = append(value, bson.E{Key: "description", Value: text})
		}
	}
	if s.write && f.Default != nil {
		value = append(value, bson.E{Key: "default", Value: f.Default})
	}
	if own.Example != nil {
		value = append(value, bson.E{Key: "examples", Value: bson.A{own.Example}})
	}
	if own.Deprecated {
		value = append(value, bson.E{Key: "deprecated", Value: true})
	}
	return value
}
