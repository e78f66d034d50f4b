package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
)

// Collections describes the collections that the asker may read, by name.
func (c *Catalog) Collections(ctx context.Context, who Asker) ([]api.CollectionDescription, error) {
	out := []api.CollectionDescription{}
	related := relations{catalog: c, who: who, known: map[string]*records.Description{}}
	for _, name := range slices.Sorted(maps.Keys(who.Project.Collections)) {
		d, err := related.target(ctx, name)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		one, err := related.collection(ctx, who.Project.Collections[name], d)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Collection describes the collection that a call of the asker is for, as far as they may read it; it is denied to those who may not.
func (c *Catalog) Collection(ctx context.Context, who Asker, call *records.Call) (api.CollectionDescription, error) {
	d, err := c.records.Describe(ctx, call)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	related := relations{catalog: c, who: who, known: map[string]*records.Description{call.Collection.Name: d}}
	return related.collection(ctx, call.Collection, d)
}

// collection gives the wire form of what the asker may know of a collection.
func (r *relations) collection(ctx context.Context, of *project.Collection, d *records.Description) (api.CollectionDescription, error) {
	who := r.who
	indexes, err := r.catalog.indexes(ctx, who.Project, of.Name)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	fields, err := r.fields(ctx, d, d.Fields, of.Config.Fields)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	out := api.CollectionDescription{
		Name: of.Name, StrictFields: !of.Tree.Open(), Fields: fields,
		Indexes:     visibleIndexes(indexes, d, who.Principal.Has(access.ProjectRead)),
		Projections: d.Projections, Meta: who.labels(object(d.Meta)), Singleton: of.Singleton,
		YourPermissions: make(map[string]api.MethodRights, len(d.Rights)),
	}
	for _, s := range d.Searches {
		out.Search = append(out.Search, api.SearchDescription{
			Name: s.Name, Mode: s.Mode, Fields: s.Fields, Sources: s.Sources, Eval: s.Eval, Meta: who.labels(object(s.Meta)),
		})
	}
	if l := of.Tree.Languages(); l != nil {
		out.Languages = append([]string{l.Default}, l.Others...)
	}
	for _, m := range d.Rights {
		g := m.Grant
		out.YourPermissions[m.Method.String()] = api.MethodRights{
			Allow: m.Allowed, Bulk: g.Bulk, Aggregate: g.Aggregate, Lookup: g.Lookup, Count: g.Count, Facet: g.Facet,
		}
	}
	return out, nil
}

// relations describes fields for an asker, who learns nothing of related records that they may not read.
type relations struct {
	catalog *Catalog
	who     Asker
	known   map[string]*records.Description // by collection; nil: the asker may not read it
}

// fields gives the wire form of the fields that the caller may know of, with what their config says.
func (r *relations) fields(ctx context.Context, in *records.Description, fields []records.DescribedField, config []*schema.Field) ([]api.FieldDescription, error) {
	who := r.who
	out := make([]api.FieldDescription, 0, len(fields))
	for _, f := range fields {
		i := slices.IndexFunc(config, func(c *schema.Field) bool { return c.Name == f.Name })
		if i < 0 {
			continue
		}
		c := config[i]
		d := api.FieldDescription{
			Name: f.Name, Type: string(c.Type), Readonly: f.Readonly, Translated: f.Translated, StrictFields: c.StrictFields != nil && *c.StrictFields,
			Index: c.Index,
		}
		if c.Validator != nil {
			d.Validator = who.rules(c.Validator.Value, f.Unsaid)
		}
		if c.Meta != nil {
			meta := object(c.Meta.Raw)
			if namesHidden(in, strings.TrimSuffix(f.Path, f.Name), c.Meta.DependsOn) {
				delete(meta, "dependsOn")
			}
			if err := r.conceal(ctx, meta, c.Meta.Foreign); err != nil {
				return nil, err
			}
			d.Meta = who.labels(meta)
		}
		if len(f.Sub) > 0 {
			var err error
			if d.SubFields, err = r.fields(ctx, in, f.Sub, c.SubFields); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// conceal takes from the meta of a field what it says of related records: all of it where the asker may not read them or know of the field
// that the value equals, and the label where that names a field that is hidden from them.
func (r *relations) conceal(ctx context.Context, meta map[string]any, f *schema.Foreign) error {
	if f == nil {
		return nil
	}
	target, err := r.target(ctx, f.Collection)
	if err != nil {
		return err
	}
	foreign, _ := meta["foreign"].(map[string]any)
	switch {
	case target == nil || !target.Shows(f.Key):
		delete(meta, "foreign")
	case namesHidden(target, "", words(f.Label)):
		delete(foreign, "label")
	}
	return nil
}

// words are what could be paths of fields in a value: labels are often texts around them.
func words(v any) bson.A {
	var out bson.A
	switch v := v.(type) {
	case string:
		for _, w := range strings.FieldsFunc(v, func(c rune) bool { return c != '.' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			out = append(out, w)
		}
	case bson.A:
		for _, item := range v {
			out = append(out, words(item)...)
		}
	case bson.D:
		for _, e := range v {
			out = append(append(out, e.Key), words(e.Value)...)
		}
	}
	return out
}

// target describes a collection of the project; nil: the asker may not read it.
func (r *relations) target(ctx context.Context, name string) (*records.Description, error) {
	if d, ok := r.known[name]; ok {
		return d, nil
	}
	of := r.who.Project.Collections[name]
	if of == nil {
		return nil, nil //nolint:nilnil // as one that may not be read
	}
	d, err := r.catalog.records.Describe(ctx, r.who.toRecords(of))
	switch {
	case errs.KindOf(err) == errs.Denied && err != nil:
		d = nil
	case err != nil:
		return nil, err
	}
	r.known[name] = d
	return d, nil
}

// rules gives a validator without what the caller may not know of: rules that compare with a field hidden from them, and, but
// to those who may read the project, where its script is.
func (who Asker) rules(v any, unsaid []string) any {
	d, ok := v.(bson.D)
	if !ok {
		return plain(v)
	}
	out := object(d)
	for _, name := range unsaid {
		delete(out, name)
	}
	if out["script"] != nil && !who.Principal.Has(access.ProjectRead) {
		out["script"] = true
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// namesHidden says whether a text or a name in a value is the path of a field that the caller may not know of, beside the
// field that the value is of or from the top.
func namesHidden(d *records.Description, beside string, v any) bool {
	switch v := v.(type) {
	case string:
		return !d.Shows(v) || !d.Shows(beside+v)
	case bson.A:
		return slices.ContainsFunc(v, func(item any) bool { return namesHidden(d, beside, item) })
	case bson.D:
		return slices.ContainsFunc(v, func(e bson.E) bool { return namesHidden(d, beside, e.Key) || namesHidden(d, beside, e.Value) })
	}
	return false
}

// visibleIndexes leaves out the indexes on fields that are hidden from the caller. What is wrong with one may name
// records, so that it is for those who may read the project.
func visibleIndexes(in []api.IndexDescription, d *records.Description, operator bool) []api.IndexDescription {
	in = slices.DeleteFunc(in, func(ix api.IndexDescription) bool { return !d.ShowsKey(ix.Key) })
	for i := range in {
		if !operator {
			in[i].Message = ""
		}
	}
	return in
}

// plain is a config value for JSON.
func plain(v any) any {
	switch v := v.(type) {
	case bson.D:
		return object(v)
	case bson.A:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

func object(d bson.D) map[string]any {
	if d == nil {
		return nil
	}
	out := make(map[string]any, len(d))
	for _, e := range d {
		out[e.Key] = plain(e.Value)
	}
	return out
}
