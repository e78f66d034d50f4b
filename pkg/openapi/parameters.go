package openapi

import (
	"iter"
	"maps"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// parameter is one of an operation.
type parameter struct {
	in, name, description string
	required              bool
	joined                bool   // a list goes in one value, with commas between its items
	json                  bool   // the value is JSON
	schema                bson.D // of the value
}

func parametersOf(in []parameter) bson.A {
	out := bson.A{}
	for _, p := range in {
		d := bson.D{{Key: "name", Value: p.name}, {Key: "in", Value: p.in}}
		if p.description != "" {
			d = append(d, bson.E{Key: "description", Value: p.description})
		}
		if p.required {
			d = append(d, bson.E{Key: "required", Value: true})
		}
		if p.joined {
			d = append(d, bson.E{Key: "style", Value: "form"}, bson.E{Key: "explode", Value: false})
		}
		if p.json {
			d = append(d, bson.E{Key: "content", Value: bson.D{{Key: api.MediaJSON, Value: bson.D{{Key: "schema", Value: p.schema}}}}})
		} else {
			d = append(d, bson.E{Key: "schema", Value: p.schema})
		}
		out = append(out, d)
	}
	return out
}

func keysOf[M map[K]V, K comparable, V any](m M) iter.Seq[K] { return maps.Keys(m) }

func flag(name, description string) parameter {
	return parameter{in: "query", name: name, description: description, schema: truth()}
}

func byID() []parameter {
	return []parameter{{in: "path", name: "id", required: true, schema: recordID()}}
}

// listParameters are those of a list.
func (b *builder) listParameters(c *Collection) []parameter {
	limits := c.Limits.List
	limit := bson.D{{Key: "type", Value: "integer"}, {Key: "minimum", Value: 0}}
	if limits.MaxLimit > 0 {
		limit = append(limit, bson.E{Key: "maximum", Value: limits.MaxLimit})
	}
	if limits.DefaultLimit > 0 {
		limit = append(limit, bson.E{Key: "default", Value: limits.DefaultLimit})
	}
	offset := bson.D{{Key: "type", Value: "integer"}, {Key: "minimum", Value: 0}}
	if limits.MaxOffset > 0 {
		offset = append(offset, bson.E{Key: "maximum", Value: limits.MaxOffset})
	}
	g := c.Grants[access.Get]
	out := []parameter{b.filter(c), b.sorting(c),
		{in: "query", name: api.ParamLimit, description: "How many.", schema: limit},
		{in: "query", name: api.ParamOffset, description: "How many to pass over.", schema: offset},
		{in: "query", name: api.ParamAfter, description: "The next of the page before.", schema: text()}}
	if g.Count {
		out = append(out, flag(api.ParamCount, "With the total."))
	}
	out = append(out, b.oneParameters(c)...)
	out = append(out, b.searchParameters(c)...)
	if len(c.Searches) > 0 {
		out = append(out, flag(api.ParamHighlight, "With q: with texts in which what was found is marked."), flag(api.ParamExplain, "With q: with why each was found."))
	}
	if g.Facet {
		out = append(out, parameter{in: "query", name: api.ParamFacet, joined: true, description: "The answer is that of _facet for these fields, in place of the list.",
			schema: bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: b.names(c, "")}, {Key: "minItems", Value: 1}}})
	}
	if g.Aggregate {
		out = append(out, parameter{in: "query", name: api.ParamAggregate, json: true, description: "A pipeline of MongoDB's stages, whose results stand in the page in place of the records.",
			schema: bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: stage()}}})
	}
	return append(out, b.extraParameters(c)...)
}

// stage is the schema of a stage of a pipeline: an object with its name.
func stage() bson.D {
	return bson.D{{Key: "type", Value: "object"}, {Key: "minProperties", Value: 1}, {Key: "maxProperties", Value: 1}, {Key: "propertyNames", Value: pattern(`^\$`)}}
}

// oneParameters are those of a read of one record, which lists have as well.
func (b *builder) oneParameters(c *Collection) []parameter {
	out := []parameter{b.selecting(c)}
	if len(c.Projections) > 0 {
		out = append(out, parameter{in: "query", name: api.ParamProjection, description: "A selection of fields by its name, in place of select.",
			schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: listOf(c.Projections)}}})
	}
	if relations := b.relations(c); c.Grants[access.Get].Lookup && len(relations) > 0 {
		out = append(out, parameter{in: "query", name: api.ParamLookup, joined: true, description: "Relations whose records stand in place of what names them.",
			schema: bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: relations}}}}})
	}
	return append(out, b.language(c)...)
}

func (b *builder) language(c *Collection) []parameter {
	l := c.Tree.Languages()
	if l == nil {
		return nil
	}
	return []parameter{{in: "query", name: api.ParamLang, description: "The language of the record's texts.",
		schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: listOf(append([]string{l.Default}, l.Others...))}}}}
}

func (b *builder) searchParameters(c *Collection) []parameter {
	if len(c.Searches) == 0 {
		return nil
	}
	return []parameter{
		{in: "query", name: api.ParamQ, description: "Words to look for: the best come first.", schema: bson.D{{Key: "type", Value: "string"}, {Key: "minLength", Value: 1}}},
		{in: "query", name: api.ParamQName, description: "The search that looks for them.", schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: listOf(c.Searches)}}},
	}
}

func (b *builder) writeParameters(c *Collection) []parameter {
	return append([]parameter{flag(api.ParamDryRun, "Say what it would do, and do nothing.")}, b.language(c)...)
}

func (b *builder) bulkParameters(c *Collection) []parameter {
	filter := b.filter(c)
	filter.required = true
	return append([]parameter{filter,
		{in: "query", name: api.ParamMaxAffected, description: "Where it is to more records, nothing is done: 422.", schema: bson.D{{Key: "type", Value: "integer"}, {Key: "minimum", Value: 0}, {Key: "maximum", Value: int64(math.MaxInt64)}}},
	}, b.writeParameters(c)...)
}

// extraParameters are those that the config adds for its hooks (meta.query).
func (b *builder) extraParameters(c *Collection) []parameter {
	var out []parameter
	for _, name := range slices.Sorted(maps.Keys(c.QueryParams)) {
		out = append(out, b.extra(name, c.QueryParams[name]))
	}
	return out
}

func (b *builder) extra(name string, q *schema.QueryParam) parameter {
	s := bson.D{{Key: "type", Value: q.Type}}
	if len(q.Enum) > 0 {
		s = append(s, bson.E{Key: "enum", Value: q.Enum})
	}
	if q.Default != nil {
		s = append(s, bson.E{Key: "default", Value: q.Default})
	}
	if q.Example != nil {
		s = append(s, bson.E{Key: "examples", Value: bson.A{q.Example}})
	}
	return parameter{in: "query", name: name, description: q.Description.In(b.view.Lang), schema: s, json: q.Type == "object" || q.Type == "array"}
}

// filter is a query in the words of MongoDB, over the fields that the asker may name.
func (b *builder) filter(c *Collection) parameter {
	return parameter{in: "query", name: api.ParamFilter, json: true, schema: reference("schemas", "svc.Filter"),
		description: `Records to find, such as {"status": "published", "views": {"$gte": 10}}. The short form filter[views][gte]=10 does, too.`}
}

func (b *builder) sorting(c *Collection) parameter {
	sort := list(b.names(c, "-"))
	if most := c.Limits.List.MaxSortFields; most > 0 {
		sort = append(sort, bson.E{Key: "maxItems", Value: int64(most)})
	}
	return parameter{in: "query", name: api.ParamSort, joined: true, description: "Fields, with - before those that go down.", schema: sort}
}

func (b *builder) selecting(c *Collection) parameter {
	return parameter{in: "query", name: api.ParamSelect, joined: true, description: "The fields that come, or, with - before each, those that don't. The id always comes.",
		schema: list(b.names(c, ""))}
}

// names is the schema of the name of a field that the asker may name, with or without a mark before it.
func (b *builder) names(c *Collection, mark string) bson.D {
	if mark == "" {
		return reference("schemas", c.Name+".field")
	}
	return reference("schemas", c.Name+".order")
}

// nameSchemas adds the schemas of names of fields: <C>.field of one, <C>.order of one that may have - before it.
func (b *builder) nameSchemas(c *Collection) {
	plain, marked := bson.A{}, bson.A{}
	add := func(path string) { plain, marked = append(plain, path), append(marked, path, "-"+path) }
	for _, name := range []string{"id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev"} {
		add(name)
	}
	c.Tree.Walk(func(f *fieldtype.Field) {
		if !c.Unnameable.Touches(f.Path) && !f.Holds() && len(plain) < maxNames {
			add(f.Path)
		}
	})
	field, order := text(), text()
	if !c.Tree.Open() && len(plain) < maxNames { // else there are names that are not declared, or too many
		field, order = append(field, bson.E{Key: "enum", Value: plain}), append(order, bson.E{Key: "enum", Value: marked})
	}
	b.schemas = append(b.schemas, bson.E{Key: c.Name + ".field", Value: field}, bson.E{Key: c.Name + ".order", Value: order})
}

// maxNames bounds what is spelt out of the names of one collection's fields.
const maxNames = 1000

// relations gives the fields that lookup can name.
func (b *builder) relations(c *Collection) bson.A {
	var out bson.A
	c.Tree.Walk(func(f *fieldtype.Field) {
		if f.Foreign != nil && f.Foreign.Namespace == "" && b.view.readable(f.Foreign.Collection) != nil && !c.Unnameable.Touches(f.Path) {
			out = append(out, f.Path)
		}
	})
	return out
}
