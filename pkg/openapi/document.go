package openapi

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// Version is that of the OpenAPI Specification, https://spec.openapis.org/oas/v3.1.1.html.
const Version = "3.1.1"

// Document describes what a view shows. Members of it are in the order in which a reader looks for them.
func Document(v *View) bson.D {
	b := &builder{view: v}
	for i := range v.Collections {
		b.collection(&v.Collections[i])
	}
	for i := range v.Actions {
		b.action(&v.Actions[i])
	}
	if len(v.Project.Assets) > 0 {
		b.assets()
	}
	return bson.D{
		{Key: "openapi", Value: Version},
		{Key: "info", Value: b.info()},
		{Key: "servers", Value: bson.A{bson.D{{Key: "url", Value: api.Prefix}}}},
		{Key: "tags", Value: b.tags},
		{Key: "paths", Value: b.paths},
		{Key: "components", Value: bson.D{
			{Key: "schemas", Value: append(b.schemas, commonSchemas()...)},
			{Key: "responses", Value: commonResponses()},
			{Key: "securitySchemes", Value: securitySchemes()},
		}},
	}
}

// builder collects the parts of a document.
type builder struct {
	view    *View
	tags    bson.A
	paths   bson.D
	schemas bson.D
}

func (b *builder) info() bson.D {
	p := b.view.Project
	title, description := p.Namespace, ""
	if meta := p.Config.Meta; meta != nil {
		if label := meta.Label.In(b.view.Lang); label != "" {
			title = label
		}
		description = meta.Description.In(b.view.Lang)
	}
	out := bson.D{{Key: "title", Value: title}}
	if description != "" {
		out = append(out, bson.E{Key: "description", Value: description})
	}
	return append(out, bson.E{Key: "version", Value: p.Revision}) // that of the API: its config
}

// tag adds a tag, by which the operations of a collection, or the actions, stand together.
func (b *builder) tag(name, title, description string) {
	t := bson.D{{Key: "name", Value: name}}
	switch {
	case description != "":
		t = append(t, bson.E{Key: "description", Value: description})
	case title != "":
		t = append(t, bson.E{Key: "description", Value: title})
	}
	b.tags = append(b.tags, t)
}

// shapeOf makes the schemas of a collection's fields as the asker reads them, or writes them with a method.
func (b *builder) shapeOf(c *Collection, m access.Method) *shape {
	g := c.Grants[m]
	s := &shape{lang: b.view.Lang, without: g.Hidden, write: m != access.Get}
	if s.write {
		s.without = document.NewPathSet(append(g.Hidden.Paths(), append(g.Readonly.Paths(), c.Readonly.Paths()...)...)...)
		return s
	}
	if g.Lookup {
		s.target = func(f *fieldtype.Field) bson.D {
			if f.Foreign.Namespace == "" && b.view.readable(f.Foreign.Collection) != nil {
				return reference("schemas", f.Foreign.Collection)
			}
			return nil
		}
	}
	return s
}

func reference(kind, name string) bson.D {
	return bson.D{{Key: "$ref", Value: "#/components/" + kind + "/" + name}}
}

// labelOf gives the text of a label, or another one where there is none.
func (b *builder) labelOf(l schema.Label, otherwise string) string {
	if text := l.In(b.view.Lang); text != "" {
		return text
	}
	return otherwise
}
