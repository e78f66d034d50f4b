package httpapi

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// models are the system models with what a write of them takes. The tags of these structs are what package system
// checks bodies by.
func models() map[string]any {
	return map[string]any{
		"user": api.UserWrite{}, "project": api.ProjectWrite{}, "org": api.OrgWrite{}, "team": api.TeamWrite{},
		"token": api.TokenWrite{},
	}
}

var errNoModel = errs.New(errs.NotFound, "model_not_found", "model not found: there are user, project, org, team and token")

func (s *Server) meta(w http.ResponseWriter, r *request) error {
	out := api.Meta{Models: map[string][]api.MetaField{}}
	for name, form := range models() {
		out.Models[name] = metaOf(reflect.TypeOf(form))
	}
	return r.json(w, http.StatusOK, out)
}

func (s *Server) modelMeta(w http.ResponseWriter, r *request) error {
	form, ok := models()[r.param("model")]
	if !ok {
		return errNoModel
	}
	return r.json(w, http.StatusOK, metaOf(reflect.TypeOf(form)))
}

// metaOf describes the members of a struct, in their order. That a member is a pointer only says that it may be left
// out, so it is described by what it points to.
func metaOf(t reflect.Type) []api.MetaField {
	out := make([]api.MetaField, 0, t.NumField())
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		m := api.MetaField{Name: name, Type: ft.String(), Kind: ft.Kind().String(), Validator: f.Tag.Get("validator")}
		switch {
		case ft == reflect.TypeFor[api.Time](): // in JSON a string, so it has no members
			m.Type = reflect.TypeFor[time.Time]().String()
		case ft.Kind() == reflect.Slice:
			m.SliceOf = ft.Elem().String()
		case ft.Kind() == reflect.Struct:
			m.StructOf = metaOf(ft)
		}
		out = append(out, m)
	}
	return out
}
