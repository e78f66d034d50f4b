package openapi

import (
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// actionsTag is the tag of all actions. It is no name of a collection, since these have no blanks.
const actionsTag = "the actions"

// action adds the operations that call an action.
func (b *builder) action(a *Action) {
	meta := a.Config.Meta
	if meta == nil {
		meta = &schema.ActionMeta{}
	}
	label := b.labelOf(meta.Label, a.Name)
	if len(b.tags) == 0 || b.tags[len(b.tags)-1].(bson.D)[0].Value != actionsTag { //nolint:forcetypeassert // tag makes them so
		b.tag(actionsTag, "", "What this project does besides keeping records.")
	}
	var item bson.D
	for _, m := range a.Methods {
		method, config := a.Action.Methods[m], &schema.ActionMethod{}
		if methods := meta.Methods; methods != nil && m == access.Get && methods.Get != nil {
			config = methods.Get
		} else if methods != nil && m == access.Post && methods.Post != nil {
			config = methods.Post
		}
		op := operation{
			id: m.String() + "_action_" + a.Name, tags: []string{actionsTag}, summary: label, description: b.labelOf(meta.Description, ""),
			parameters: b.inputs(method.Query, config.Query), answers: answersOf(method), optional: true,
			refusals: []int{http.StatusConflict, http.StatusUnprocessableEntity, http.StatusGatewayTimeout},
		}
		_, op.open = a.Permissions.Sets()["public"]
		if m == access.Post {
			op.parameters = append(op.parameters, keyed())
			op.body = bson.D{{Key: "type", Value: "object"}}
			op.refusals = append(op.refusals, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
			if method.Data != nil {
				op.body = b.input(method.Data).object(method.Data, config.Data, true)
				op.optional = len(method.Data.Required()) == 0
			}
		}
		item = append(item, bson.E{Key: m.String(), Value: b.operation(op, nil)})
	}
	b.path(api.ActionPath(b.view.Project.Namespace, a.Name)[len(api.Prefix):], item)
}

// input makes the schemas of what an action takes: without fields that can't be given, and without hidden ones, which can.
func (b *builder) input(tree *fieldtype.Tree) *shape {
	var without []string
	tree.Walk(func(f *fieldtype.Field) {
		if f.Hidden || f.Readonly {
			without = append(without, f.Path)
		}
	})
	return &shape{lang: b.view.Lang, write: true, veiled: true, without: document.NewPathSet(without...)}
}

// inputs are the parameters that an action takes.
func (b *builder) inputs(tree *fieldtype.Tree, config []*schema.Field) []parameter {
	var out []parameter
	if tree == nil {
		return nil
	}
	s := b.input(tree)
	for _, f := range tree.Fields() {
		c := configOf(config, f.Name)
		if s.without.Covers(f.Path) {
			continue
		}
		value := s.typed(f, f.Type.Name(), c)
		p := parameter{in: "query", name: f.Name, required: f.Has("required") && f.Default == nil, schema: judged(value, f)} // a list comes item by item
		if c.Meta != nil {
			p.description = c.Meta.HelperText.In(b.view.Lang)
		}
		p.json = f.Type.Name() == "object"
		out = append(out, p)
	}
	return out
}

func answersOf(m *project.ActionMethod) []answer {
	run := answer{status: http.StatusAccepted, description: "A run, which goes on.", schema: reference("schemas", "svc.Run"), headers: map[string]string{api.HeaderLocation: "The run."}}
	result := answer{status: http.StatusOK, description: "What the action gives.", media: "*/*", schema: bson.D{}}
	switch m.Kind {
	case project.ActionAsync:
		return []answer{run}
	case project.ActionStream:
		return []answer{{status: http.StatusOK, description: "Its progress as events, for who accepts them.", schema: event(), media: api.MediaEvents}, run}
	}
	return []answer{result, {status: http.StatusNoContent, description: "Nothing to give."}}
}

// assets adds the folders that everybody may read.
func (b *builder) assets() {
	names := bson.A{}
	for _, a := range b.view.Project.Assets {
		names = append(names, a.Name)
	}
	b.tag("the assets", "", "Files of the project that everybody may read.")
	op := operation{
		id: "asset", tags: []string{"the assets"}, summary: "Get a file of a folder", open: true,
		parameters: []parameter{
			{in: "path", name: "asset", required: true, schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: names}}},
			{in: "path", name: "path", required: true, description: "The path of the file in the folder.", schema: text()},
			flag(api.ParamDownload, "Have browsers save it."),
		},
		answers: []answer{
			{status: http.StatusOK, description: "The file.", media: "*/*", schema: bson.D{}},
			{status: http.StatusPartialContent, description: "A part of it, by Range.", media: "*/*", schema: bson.D{}},
			{status: http.StatusNotModified, description: "It is as it was, by If-None-Match."},
		},
		refusals: []int{http.StatusRequestedRangeNotSatisfiable},
	}
	path := api.AssetsPath(b.view.Project.Namespace)[len(api.Prefix):] + "/{asset}/{path}"
	b.path(path, bson.D{{Key: "get", Value: b.operation(op, nil)}})
}
