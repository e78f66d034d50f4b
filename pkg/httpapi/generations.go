package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// listGenerations tells what a project was served from, the latest first.
func (s *Server) listGenerations(w http.ResponseWriter, r *request) error {
	head, err := s.cfg.System.Generations.Head(r.Context(), r.project.ID)
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	out := api.List[api.Generation]{Items: make([]api.Generation, 0, len(head.History)), Limit: system.KeptGenerations}
	for _, g := range slices.Backward(head.History) {
		out.Items = append(out.Items, api.Generation{
			Number: g.Number, Revision: g.Revision, Since: api.Time{Time: g.Since}, By: api.Actor(g.By), RollbackOf: g.Of,
			Files: g.Files, Bytes: g.Size, Kept: g.Kept, Current: g.Number == r.project.Generation,
		})
	}
	return r.json(w, http.StatusOK, out)
}

// rollBack serves an earlier generation again.
func (s *Server) rollBack(w http.ResponseWriter, r *request) error {
	doc, err := r.object(w)
	if err != nil {
		return err
	}
	number, err := generationOf(doc)
	if err != nil {
		return err
	}
	before := r.project.Generation
	// As for a reload, the entry comes first, but one that is not there is none to tell of.
	config, err := s.cfg.System.Generations.Config(r.Context(), r.project.ID, number)
	if err != nil {
		return err
	}
	if err := s.cfg.System.RolledBack(r.Context(), r.project.ID, r.project.Namespace, number); err != nil {
		return err
	}
	made, err := s.cfg.Control.RollBack(r.Context(), r.project.ID, number)
	if err != nil {
		return err
	}
	st, _ := s.cfg.Status.Get(r.project.ID)
	out := api.RollbackResult{RollbackOf: number, ReloadResult: api.ReloadResult{
		Generation: made, Changed: made != before, Revision: st.Revision,
		Conditions: conditionsOut(st.Conditions), Warnings: []api.ConfigProblem{},
	}}
	if st.ObservedGeneration > made { // it is over already
		out.Revision = config.Revision
		out.Warnings = append(out.Warnings, api.ConfigProblem{Message: fmt.Sprintf(
			"the files have changed since: generation %d is served from them", st.ObservedGeneration)})
	}
	return r.json(w, http.StatusOK, out)
}

// generationOf reads the body of a rollback.
func generationOf(doc bson.D) (int64, error) {
	var number int64
	var problems []errs.FieldError
	for _, e := range doc {
		if e.Key != "generation" {
			problems = append(problems, errs.FieldError{Path: e.Key, Rule: "unknown", Message: "unknown field"})
			continue
		}
		switch n := e.Value.(type) {
		case int32:
			number = int64(n)
		case int64:
			number = n
		}
	}
	if number < 1 {
		problems = append(problems, errs.FieldError{Path: "generation", Rule: "required", Message: "must be the number of a generation, which GET …/admin/generations lists"})
	}
	if problems != nil {
		return 0, errs.Validation(problems)
	}
	return number, nil
}
