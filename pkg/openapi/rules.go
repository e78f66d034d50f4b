package openapi

import (
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/fieldtype"
)

// judged adds to the schema of a field's value what its validator says in words of JSON Schema. What has none there (scripts, other
// records, other fields, moments) is left out: the schema takes what the service may refuse, never the other way round.
func judged(value bson.D, f *fieldtype.Field) bson.D {
	kind := f.Type.Name()
	item := strings.TrimSuffix(kind, "[]")
	required := false
	for _, r := range f.Rules {
		if r.Other != "" {
			continue
		}
		switch of := sizes(kind); r.Name {
		case "required":
			required = of.counts // "" and [] are no values
		case "min":
			value = with(value, of.least, r.Arg)
		case "max":
			value = with(value, of.most, r.Arg)
		case "len":
			value = with(with(value, of.least, r.Arg), of.most, r.Arg)
		case "minItems", "maxItems":
			value = with(value, r.Name, r.Arg)
		case "uniqueItems":
			value = with(value, r.Name, true)
		default:
			if more := judgedItem(r, item); more != nil {
				value = ofItems(value, f, more)
			}
		}
	}
	least := sizes(kind).least
	if required && !slices.ContainsFunc(value, func(e bson.E) bool { return e.Key == least && e.Value != int64(0) }) {
		value = with(value, least, int64(1))
	}
	return value
}

// size is what JSON Schema calls the bounds that min and max mean for a type; "" where it has no word.
type size struct {
	least, most string
	counts      bool // characters or items, not a number's value
}

func sizes(kind string) size {
	switch {
	case strings.HasSuffix(kind, "[]"):
		return size{"minItems", "maxItems", true}
	case kind == "string":
		return size{"minLength", "maxLength", true}
	case kind == "number":
		return size{"minimum", "maximum", false}
	}
	return size{}
}

// with adds a keyword to a schema. One that is there already holds as well.
func with(s bson.D, key string, v any) bson.D {
	switch {
	case key == "":
		return s
	case !slices.ContainsFunc(s, func(e bson.E) bool { return e.Key == key }):
		return append(s, bson.E{Key: key, Value: v})
	}
	also := bson.D{{Key: key, Value: v}}
	for i, e := range s {
		if list, ok := e.Value.(bson.A); ok && e.Key == "allOf" {
			s[i].Value = append(list, also)
			return s
		}
	}
	return append(s, bson.E{Key: "allOf", Value: bson.A{also}})
}

// judgedItem says of a rule about single values what it means for one.
func judgedItem(r fieldtype.Rule, kind string) bson.D {
	text, isText := r.Arg.(string)
	switch r.Name {
	case "pattern":
		if isText && portable(text) {
			return bson.D{{Key: "pattern", Value: text}}
		}
	case "startsWith":
		return pattern("^" + regexp.QuoteMeta(text))
	case "endsWith":
		return pattern(regexp.QuoteMeta(text) + "$")
	case "slug":
		return pattern("^[a-z0-9]+(?:-[a-z0-9]+)*$")
	case "email", "uuid":
		return bson.D{{Key: "format", Value: r.Name}}
	case "url":
		return bson.D{{Key: "format", Value: "uri"}}
	case "oneof":
		if list, ok := r.Arg.(bson.A); ok && kind != "date" {
			return bson.D{{Key: "enum", Value: list}}
		}
	case "eq", "ne":
		if kind == "date" {
			return nil
		}
		is := bson.D{{Key: "const", Value: r.Arg}}
		if r.Name == "ne" {
			return bson.D{{Key: "not", Value: is}}
		}
		return is
	case "gt", "gte", "lt", "lte":
		if kind == "number" {
			word := map[string]string{"gt": "exclusiveMinimum", "gte": "minimum", "lt": "exclusiveMaximum", "lte": "maximum"}[r.Name]
			return bson.D{{Key: word, Value: r.Arg}}
		}
	}
	return nil
}

func pattern(expr string) bson.D {
	return bson.D{{Key: "pattern", Value: expr}}
}

// portable says that an expression means the same to JSON Schema (ECMA 262) as to RE2, in which it is written.
func portable(expr string) bool {
	for _, only := range []string{`(?i`, `(?s`, `(?m`, `(?U`, `(?P`, `(?-`, `\A`, `\z`, `\Q`, `\C`, `\p`, `\P`, `[[:`, `\a`, `\x{`} {
		if strings.Contains(expr, only) {
			return false
		}
	}
	return true
}
