package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

// listCollections describes the collections that the caller may read.
func (s *Server) listCollections(w http.ResponseWriter, r *request) error {
	out := api.List[api.CollectionDescription]{Items: []api.CollectionDescription{}}
	for _, name := range slices.Sorted(maps.Keys(r.project.Collections)) {
		d, err := s.describe(r, r.project.Collections[name])
		switch {
		case errs.KindOf(err) == errs.Denied && err != nil:
			continue
		case err != nil:
			return err
		}
		out.Items = append(out.Items, d)
	}
	out.Limit = len(out.Items)
	return r.json(w, http.StatusOK, out)
}

func (s *Server) describeCollection(w http.ResponseWriter, r *request) error {
	d, err := s.describe(r, r.collection)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, d)
}

// describe tells what a collection is like, as far as the caller may read it.
func (s *Server) describe(r *request, c *project.Collection) (api.CollectionDescription, error) {
	env := access.Env{Now: time.Now(), AdminTokens: r.project.AdminTokens}
	grant, err := c.Permissions.Decide(r.principal, access.Get, env)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	indexes, err := s.cfg.Control.Indexes(r.Context(), r.project, c.Name)
	if err != nil {
		return api.CollectionDescription{}, err
	}
	d := api.CollectionDescription{
		Name: c.Name, StrictFields: !c.Tree.Open(),
		Fields:          describeFields(c.Config.Fields, "", grant.Hidden),
		Indexes:         visibleIndexes(indexes, grant.Hidden),
		YourPermissions: map[string]api.MethodRights{},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Projections)) {
		if grant.AllProjections || slices.Contains(grant.Projections, name) {
			d.Projections = append(d.Projections, name)
		}
	}
	if c.Config.Meta != nil {
		d.Meta = object(c.Config.Meta.Raw)
	}
	if slices.ContainsFunc(c.DefaultSort, func(f mql.SortField) bool { return grant.Hidden.Touches(f.Path) }) {
		delete(d.Meta, "defaultSort")
	}
	for _, m := range []access.Method{access.Get, access.Post, access.Put, access.Delete} {
		g, err := c.Permissions.Decide(r.principal, m, env)
		d.YourPermissions[m.String()] = api.MethodRights{
			Allow: err == nil, Bulk: g.Bulk, Aggregate: g.Aggregate, Lookup: g.Lookup, Count: g.Count, Facet: g.Facet,
		}
	}
	return d, nil
}

func describeFields(fields []*schema.Field, parent string, hidden *document.PathSet) []api.FieldDescription {
	out := make([]api.FieldDescription, 0, len(fields))
	for _, f := range fields {
		path := f.Name
		if parent != "" {
			path = parent + "." + f.Name
		}
		if hidden.Covers(path) {
			continue
		}
		d := api.FieldDescription{
			Name: f.Name, Type: string(f.Type), Readonly: f.Readonly.Value, StrictFields: f.StrictFields != nil && *f.StrictFields,
			Index: f.Index,
		}
		if f.Validator != nil {
			d.Validator = plain(f.Validator.Value)
		}
		if f.Meta != nil {
			d.Meta = object(f.Meta.Raw)
		}
		if len(f.SubFields) > 0 {
			d.SubFields = describeFields(f.SubFields, path, hidden)
		}
		out = append(out, d)
	}
	return out
}

// visibleIndexes leaves out the indexes on fields that are hidden from the caller.
func visibleIndexes(in []api.IndexDescription, hidden *document.PathSet) []api.IndexDescription {
	return slices.DeleteFunc(in, func(ix api.IndexDescription) bool {
		return slices.ContainsFunc(ix.Key, func(key string) bool {
			if key[0] == '-' {
				key = key[1:]
			}
			return hidden.Covers(key)
		})
	})
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
