package openapi

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/schema"
)

// collection adds the operations of a collection, and the schemas of its records. Where only writes are allowed, nothing tells how a record
// is read: the answer to a create has its id alone.
func (b *builder) collection(c *Collection) {
	o := of(c)
	if o.Disabled {
		return
	}
	label := b.labelOf(metaOf(c).Label, c.Name)
	b.tag(c.Name, label, "")
	b.recordSchemas(c)
	many, one := bson.D{}, bson.D{}
	add := func(item *bson.D, verb string, m access.Method, override *schema.Operation, make func(*Collection, string) operation) {
		if _, may := c.Grants[m]; !may || override != nil && override.Disabled {
			return
		}
		op := make(c, label)
		op.tags, op.id = []string{c.Name}, op.id+"_"+c.Name
		*item = append(*item, bson.E{Key: verb, Value: b.operation(op, override)})
	}
	add(&many, "get", access.Get, o.Get, b.list)
	add(&many, "post", access.Post, o.Post, b.create)
	if c.Singleton {
		add(&many, "put", access.Put, o.Put, b.putSingleton)
	}
	if c.Grants[access.Put].Bulk && !c.Singleton {
		add(&many, "put", access.Put, o.Put, b.bulkUpdate)
	}
	if c.Grants[access.Delete].Bulk {
		add(&many, "delete", access.Delete, o.Delete, b.bulkDelete)
	}
	add(&one, "get", access.Get, o.GetOne, b.get)
	add(&one, "put", access.Put, o.Put, b.update)
	add(&one, "patch", access.Put, o.Put, b.patch)
	add(&one, "delete", access.Delete, o.Delete, b.delete)
	base := api.RecordsPath(b.view.Project.Namespace, c.Name)[len(api.Prefix):]
	b.path(base, many)
	if g, may := c.Grants[access.Get]; may {
		b.readPaths(c, g, base, label, add)
	}
	b.path(base+"/{id}", one)
}

// readPaths adds what can be read of a collection beside its records.
func (b *builder) readPaths(c *Collection, g access.Grant, base, label string, add func(*bson.D, string, access.Method, *schema.Operation, func(*Collection, string) operation)) {
	if g.Count {
		item := bson.D{}
		add(&item, "get", access.Get, nil, b.count)
		b.path(base+"/_count", item)
	}
	if g.Facet {
		item := bson.D{}
		add(&item, "get", access.Get, nil, b.facet)
		b.path(base+"/_facet", item)
	}
	if len(c.Hooks["get.handle"]) == 0 {
		item := bson.D{}
		add(&item, "get", access.Get, nil, b.changes)
		b.path(base+"/_changes", item)
	}
	fields := bson.A{}
	for _, path := range c.Uploads.Fields {
		if !g.Hidden.Covers(path) {
			fields = append(fields, path)
		}
	}
	if len(fields) > 0 {
		item := bson.D{}
		add(&item, "get", access.Get, nil, func(*Collection, string) operation { return b.file(c, label, fields) })
		b.path(base+"/{id}/{field}/{name}", item)
	}
}

// path adds a path with its operations, if it has any.
func (b *builder) path(path string, item bson.D) {
	if len(item) > 0 {
		b.paths = append(b.paths, bson.E{Key: path, Value: item})
	}
}

func metaOf(c *Collection) *schema.CollectionMeta {
	if c.Config.Meta != nil {
		return c.Config.Meta
	}
	return &schema.CollectionMeta{}
}

func of(c *Collection) *schema.CollectionOpenAPI {
	if o := metaOf(c).OpenAPI; o != nil {
		return o
	}
	return &schema.CollectionOpenAPI{}
}

// recordSchemas adds the schemas of a collection's records: <C> as it is read, <C>.create and <C>.update as it is written, <C>.form as it is
// created beside its files.
func (b *builder) recordSchemas(c *Collection) {
	name, fields := c.Name, c.Config.Fields
	if _, may := c.Grants[access.Get]; may {
		record := b.shapeOf(c, access.Get).object(c.Tree, fields, false)
		b.schemas = append(b.schemas,
			bson.E{Key: name, Value: withSystem(record, c)},
			bson.E{Key: name + ".page", Value: page(reference("schemas", name))})
		b.nameSchemas(c)
	}
	if _, may := c.Grants[access.Post]; may {
		s := b.shapeOf(c, access.Post)
		b.schemas = append(b.schemas, bson.E{Key: name + ".create", Value: s.object(c.Tree, fields, false)})
		if len(b.fileFields(c, access.Post)) > 0 {
			s.form = true
			b.schemas = append(b.schemas, bson.E{Key: name + ".form", Value: s.object(c.Tree, fields, false)})
		}
	}
	if _, may := c.Grants[access.Put]; may {
		s := b.shapeOf(c, access.Put)
		s.change, s.partial = true, true
		b.schemas = append(b.schemas, bson.E{Key: name + ".update", Value: returned(s.object(c.Tree, fields, false))})
	}
}

// withSystem adds the fields that the service sets. id alone is always there: select leaves out the others.
func withSystem(record bson.D, c *Collection) bson.D {
	system := bson.D{
		{Key: "id", Value: recordID()},
		{Key: "createdAt", Value: moment()}, {Key: "updatedAt", Value: moment()},
		{Key: "createdBy", Value: text()}, {Key: "updatedBy", Value: text()},
		{Key: "_rev", Value: saying(bson.D{{Key: "type", Value: "integer"}}, "Grows with each change.")},
	}
	if len(c.Searches) > 0 {
		system = append(system,
			bson.E{Key: "_score", Value: saying(bson.D{{Key: "type", Value: "number"}}, "With q: the higher, the better.")},
			bson.E{Key: "_highlights", Value: saying(bson.D{{Key: "type", Value: "object"}}, "With highlight=true: by field, texts in which what was found is marked.")})
	}
	for i, e := range record {
		if own, ok := e.Value.(bson.D); ok && e.Key == "properties" {
			record[i].Value = append(append(bson.D{system[0]}, own...), system[1:]...)
			return append(record, bson.E{Key: "required", Value: bson.A{"id"}})
		}
	}
	return append(record, bson.E{Key: "properties", Value: system}, bson.E{Key: "required", Value: bson.A{"id"}})
}

// returned lets an update send back what the service has set, as it was read.
func returned(record bson.D) bson.D {
	system := bson.D{{Key: "_rev", Value: saying(bson.D{{Key: "type", Value: "integer"}}, "Where another one is stored, nothing is changed: 412.")}}
	for i, e := range record {
		if own, ok := e.Value.(bson.D); ok && e.Key == "properties" {
			record[i].Value = append(own, system...)
			return record
		}
	}
	return append(record, bson.E{Key: "properties", Value: system})
}

func moment() bson.D {
	return bson.D{{Key: "type", Value: "string"}, {Key: "format", Value: "date-time"}}
}

func text() bson.D    { return bson.D{{Key: "type", Value: "string"}} }
func integer() bson.D { return bson.D{{Key: "type", Value: "integer"}} }
func truth() bson.D   { return bson.D{{Key: "type", Value: "boolean"}} }
