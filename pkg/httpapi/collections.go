package httpapi

import (
	"net/http"
	"slices"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/catalog"
	"github.com/svcctl/svc/pkg/errs"
)

// asker is the caller as one who asks what there is in the project.
func (r *request) asker() catalog.Asker {
	return catalog.Asker{Project: r.project, Principal: r.principal, Request: r.forScripts(), Lang: r.lang}
}

// listCollections describes the collections that the caller may read.
func (s *Server) listCollections(w http.ResponseWriter, r *request) error {
	items, err := s.catalog.Collections(r.Context(), r.asker())
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.List[api.CollectionDescription]{Items: items, Limit: len(items)})
}

func (s *Server) describeCollection(w http.ResponseWriter, r *request) error {
	d, err := s.catalog.Collection(r.Context(), r.asker(), r.call())
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
	out.Indexes = slices.DeleteFunc(out.Indexes, func(ix api.IndexStats) bool { return !d.ShowsKey(ix.Key) })
	return r.json(w, http.StatusOK, out)
}
