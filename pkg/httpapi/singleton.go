package httpapi

import (
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// listOnly are the parameters of lists that a single record does not have.
func listOnly() []string {
	return []string{api.ParamSort, api.ParamLimit, api.ParamOffset, api.ParamAfter, api.ParamCount, api.ParamAggregate, api.ParamFacet, "q", "qName"}
}

// isOnly says that the request is for the one record of a singleton, at the collection's own path. What asks for a list
// gets one.
func (r *request) isOnly() bool {
	return r.collection.Singleton && !r.hasFilter() && !slices.ContainsFunc(listOnly(), r.query.Has)
}

// readOne reads the record of the path, or the one of a singleton.
func (s *Server) readOne(r *request, p records.GetParams) (records.Record, error) {
	if id := r.param("id"); id != "" {
		return s.cfg.Records.Get(r.Context(), r.call(), id, p)
	}
	return s.cfg.Records.GetOnly(r.Context(), r.call(), p)
}

func (s *Server) putOnly(w http.ResponseWriter, r *request) error {
	change, err := r.change(w)
	if err != nil {
		return err
	}
	if change.IfRev, err = r.ifMatch(); err != nil {
		return err
	}
	change.There = r.Header.Get(api.HeaderIfMatch) != "" // also if it is *
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, created, err := s.cfg.Records.PutOnly(r.Context(), call, change)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, nil, []records.Item{{ID: res.ID}})
	case created:
		w.Header().Set(api.HeaderLocation, api.RecordsPath(r.project.Namespace, r.collection.Name))
		return r.written(w, http.StatusCreated, res)
	}
	return r.written(w, http.StatusOK, res)
}

// noReplace refuses a parameter that only updates of one record have.
func (r *request) noReplace() error {
	if r.query.Has(api.ParamReplace) {
		return errs.New(errs.Invalid, "unknown_parameter", "unknown query parameter: %s", api.ParamReplace)
	}
	return nil
}
