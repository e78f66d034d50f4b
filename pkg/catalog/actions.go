package catalog

import (
	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// Actions describes the actions that the asker may call.
func (c *Catalog) Actions(who Asker) []api.ActionDescription {
	out := []api.ActionDescription{}
	for _, a := range c.actions.Callable(who.Project, who.Principal) {
		out = append(out, c.Action(who, a))
	}
	return out
}

// Action describes an action to an asker who may call it.
func (c *Catalog) Action(who Asker, a *project.Action) api.ActionDescription {
	out := api.ActionDescription{Name: a.Name, Methods: map[string]api.ActionMethodDescription{}, YourPermissions: map[string]bool{}}
	spec := &schema.ActionMethods{}
	if meta := a.Config.Meta; meta != nil {
		out.Meta = who.labels(object(meta.Raw))
		delete(out.Meta, "methods")
		if meta.Methods != nil {
			spec = meta.Methods
		}
	}
	for m, config := range map[access.Method]*schema.ActionMethod{access.Get: spec.Get, access.Post: spec.Post} {
		method := a.Methods[m]
		if method == nil {
			continue
		}
		if config == nil {
			config = &schema.ActionMethod{}
		}
		d := api.ActionMethodDescription{
			Query: who.input(method.Query, config.Query), Execution: method.Kind, Cancellable: method.Cancellable,
			AnyData: m == access.Post && method.Data == nil,
		}
		if method.Data != nil {
			d.Data = who.input(method.Data, config.Data)
		}
		if o := config.Output; o != nil {
			d.Output = map[string]any{}
			switch {
			case o.Title.Langs != nil && who.Lang != "":
				d.Output["title"] = o.Title.In(who.Lang)
			case o.Title.Langs != nil:
				d.Output["title"] = o.Title.Langs
			case o.Title.Text != "":
				d.Output["title"] = o.Title.Text
			}
			if o.Mapping != nil {
				d.Output["mapping"] = mappingOut(o.Mapping)
			}
		}
		out.Methods[m.String()] = d
		out.YourPermissions[m.String()] = c.actions.May(who.toAction(a, m), m) == nil
	}
	return out
}

func mappingOut(m *schema.ActionMapping) map[string]any {
	out := map[string]any{}
	for name, v := range map[string]any{"summary": m.Summary, "details": m.Details, "progress": m.Progress} {
		if v != nil {
			out[name] = plain(v)
		}
	}
	return out
}

// input gives the wire form of fields of query or data, but for hidden ones.
func (who Asker) input(tree *fieldtype.Tree, config []*schema.Field) []api.FieldDescription {
	out := []api.FieldDescription{}
	for _, f := range tree.Fields() {
		for _, c := range config {
			if c.Name != f.Name || f.Hidden {
				continue
			}
			d := api.FieldDescription{Name: f.Name, Type: f.Type.Name(), Readonly: f.Readonly, Required: f.Has("required")}
			if c.Validator != nil {
				d.Validator = plain(c.Validator.Value)
			}
			if c.Meta != nil {
				d.Meta = who.labels(object(c.Meta.Raw))
			}
			if f.Sub != nil {
				d.SubFields = who.input(f.Sub, c.SubFields)
			}
			out = append(out, d)
		}
	}
	return out
}
