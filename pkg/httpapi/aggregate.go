package httpapi

import (
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// notWith is a parameter of lists that does not go with another one, and what to do in its place.
type notWith struct{ name, instead string }

// aggregateRecords answers with what a pipeline gives.
func (s *Server) aggregateRecords(w http.ResponseWriter, r *request) error {
	err := r.alone(api.ParamAggregate, []notWith{
		{api.ParamSort, "use a $sort stage"},
		{api.ParamSelect, "use a $project stage"},
		{api.ParamProjection, "use a $project stage"},
		{api.ParamOffset, "use a $skip stage"},
		{api.ParamAfter, "use a $match stage behind a $sort stage"},
		{api.ParamCount, "use a $count stage"},
		{api.ParamLookup, "use a $lookup stage"},
		{api.ParamFacet, "use a $sortByCount stage"},
		{api.ParamQ, "a pipeline has no search: ask for the list, or for its facets"},
		{api.ParamQName, "a pipeline has no search"},
		{api.ParamQLimit, "a pipeline has no search"},
		{api.ParamHighlight, "a pipeline has no search"},
		{api.ParamExplain, "a pipeline has no search"},
		{api.ParamLang, "name translations by their paths, such as _i18n.de.title"},
	})
	if err != nil {
		return err
	}
	p := records.AggregateParams{}
	if p.Stages, err = r.stages(); err != nil {
		return err
	}
	if p.Limit, err = r.integer(api.ParamLimit); err != nil {
		return err
	}
	if p.Where, err = r.filter(); err != nil {
		return err
	}
	res, err := s.cfg.Records.Aggregate(r.Context(), r.call(), p)
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, res.AppendJSON)
}

// stages reads the pipeline.
func (r *request) stages() (bson.A, error) {
	text, err := r.one(api.ParamAggregate)
	if err != nil {
		return nil, err
	}
	v, err := document.ParseJSONValue([]byte(text))
	if err != nil {
		e := *errs.From(err)
		e.Message = "aggregate: " + e.Message
		return nil, &e
	}
	list, ok := v.(bson.A)
	if !ok {
		return nil, errs.New(errs.Invalid, "bad_pipeline", `aggregate must be a list of stages, such as [{"$sortByCount": "$status"}]`)
	}
	return list, nil
}

// alone refuses parameters that mean nothing beside the one that was given.
func (r *request) alone(name string, others []notWith) error {
	for _, o := range others {
		if r.query.Has(o.name) {
			return errs.New(errs.Invalid, "bad_parameter", "%s does not go together with %s: %s", o.name, name, o.instead)
		}
	}
	return nil
}

func (s *Server) facetRecords(w http.ResponseWriter, r *request) error {
	return s.facets(w, r, api.ParamFields)
}

// facets answers with the values of the fields that a parameter names.
func (s *Server) facets(w http.ResponseWriter, r *request, name string) error {
	const instead = "leave it out, or ask for the list by itself"
	err := r.alone(name, []notWith{
		{api.ParamSort, instead},
		{api.ParamSelect, instead},
		{api.ParamProjection, instead},
		{api.ParamLimit, instead},
		{api.ParamOffset, instead},
		{api.ParamAfter, instead},
		{api.ParamCount, instead},
		{api.ParamLookup, instead},
		{api.ParamHighlight, instead},
		{api.ParamExplain, instead},
		{api.ParamLang, "name translations by their paths, such as _i18n.de.title"},
	})
	if err != nil {
		return err
	}
	p := records.FacetParams{}
	if p.Fields, err = r.one(name); err != nil {
		return err
	}
	if p.Where, err = r.filter(); err != nil {
		return err
	}
	if p.Search, err = r.search(); err != nil {
		return err
	}
	if p.Window, err = r.window(); err != nil {
		return err
	}
	res, err := s.cfg.Records.Facets(r.Context(), r.call(), p)
	if err != nil && errs.From(err).Code == "missing_parameter" { // by the name that it has on this route
		return errs.New(errs.Invalid, "missing_parameter", "missing required parameter: %s", name)
	}
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, res.AppendJSON)
}
