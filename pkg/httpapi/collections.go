package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/schema"
)

// listCollections describes the collections that the caller may read.
func (s *Server) listCollections(w http.ResponseWriter, r *request) error {
	out := api.List[api.CollectionDescription]{Items: []api.CollectionDescription{}}
	for _, name := range slices.Sorted(maps.Keys(r.project.Collections)) {
		r.inCollection(r.project.Collections[name])
		d, err := s.describe(r)
		switch {
		case errs.KindOf(err) == errs.Denied && err != nil:
			continue
		case err != nil:
			return err
		}
		out.Items = append(out.Items, d)
	}
	r.inCollection(nil)
	out.Limit = len(out.Items)
	return r.json(w, http.StatusOK, out)
}

func (s *Server) describeCollection(w http.ResponseWriter, r *request) error {
	d, err := s.describe(r)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, d)
}

// collectionStats tells how large a collection is, to those who may read all of it.
func (s *Server) collectionStats(w http.ResponseWriter, r *request) error {
	c, ok := r.project.Collections[r.param("collection")]
	if !ok {
		return errs.ErrCollectionNotFound
	}
	r.inCollection(c)
	d, err := s.cfg.Records.Describe(r.Context(), r.call())
	if err != nil {
		return err
	}
	if !d.ReadsAll { // the figures tell of the other records, too
		return errs.ErrDenied
	}
	out, err := s.cfg.Control.Stats(r.Context(), r.project, c.Name)
	if err != nil {
		return err
	}
	out.Indexes = slices.DeleteFunc(out.Indexes, func(ix api.IndexStats) bool { return !shows(d, ix.Key) })
	return r.json(w, http.StatusOK, out)
}

// describe tells what the request's collection is like, as far as the caller may read it.
func (s *Server) describe(r *request) (api.CollectionDescription, error) {
	c := r.collection
	d, err := s.cfg.Records.Describe(r.Context(), r.call())
	if err != nil {
		return api.CollectionDescription{}, err
	}
	indexes, err := s.cfg.Control.Indexes(r.Context(), r.project, c.Name)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	out := api.CollectionDescription{
		Name: c.Name, StrictFields: !c.Tree.Open(), Fields: r.describeFields(d, d.Fields, c.Config.Fields),
		Indexes:     visibleIndexes(indexes, d, r.principal.Has(access.ProjectRead)),
		Projections: d.Projections, Meta: r.labels(object(d.Meta)), Singleton: c.Singleton,
		YourPermissions: make(map[string]api.MethodRights, len(d.Rights)),
	}
	for _, s := range d.Searches {
		out.Search = append(out.Search, api.SearchDescription{
			Name: s.Name, Mode: s.Mode, Fields: s.Fields, Sources: s.Sources, Eval: s.Eval, Meta: r.labels(object(s.Meta)),
		})
	}
	if l := c.Tree.Languages(); l != nil {
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

// describeFields gives the wire form of the fields that the caller may know of, with what their config says.
func (r *request) describeFields(in *records.Description, fields []records.DescribedField, config []*schema.Field) []api.FieldDescription {
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
			d.Validator = r.rules(c.Validator.Value, f.Unsaid)
		}
		if c.Meta != nil {
			meta := object(c.Meta.Raw)
			if namesHidden(in, strings.TrimSuffix(f.Path, f.Name), c.Meta.DependsOn) {
				delete(meta, "dependsOn")
			}
			d.Meta = r.labels(meta)
		}
		if len(f.Sub) > 0 {
			d.SubFields = r.describeFields(in, f.Sub, c.SubFields)
		}
		out = append(out, d)
	}
	return out
}

// rules gives a validator without what the caller may not know of: rules that compare with a field hidden from them, and, but
// to those who may read the project, where its script is.
func (r *request) rules(v any, unsaid []string) any {
	d, ok := v.(bson.D)
	if !ok {
		return plain(v)
	}
	out := object(d)
	for _, name := range unsaid {
		delete(out, name)
	}
	if out["script"] != nil && !r.principal.Has(access.ProjectRead) {
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
	in = slices.DeleteFunc(in, func(ix api.IndexDescription) bool { return !shows(d, ix.Key) })
	for i := range in {
		if !operator {
			in[i].Message = ""
		}
	}
	return in
}

// shows says whether the caller may know of all fields of an index key.
func shows(d *records.Description, key []string) bool {
	return !slices.ContainsFunc(key, func(path string) bool { return !d.Shows(strings.TrimPrefix(path, "-")) })
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
