package httpapi

import (
	"context"
	"net/http"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/query"
)

// listModel answers with one page of a system model or of the audit log, in the envelope that collections have.
func listModel[T, Out any](w http.ResponseWriter, r *request,
	list func(ctx context.Context, by *access.Principal, params query.Params) (query.Page[T], error), out func(T) Out,
) error {
	params, err := r.listParams()
	if err != nil {
		return err
	}
	page, err := list(r.Context(), r.principal, params)
	if err != nil {
		return err
	}
	res := api.List[Out]{
		Items: make([]Out, 0, len(page.Items)), Limit: int(page.Limit), Offset: int(page.Offset),
		HasMore: page.HasMore, Next: page.Next, Total: page.Total,
	}
	for _, item := range page.Items {
		res.Items = append(res.Items, out(item))
	}
	linkNext(w, r, r.URL.Path, page.Next)
	return r.json(w, http.StatusOK, res)
}

// createModel answers with the record that create makes of the body. path is where it is from now on.
func createModel[T, Out any](w http.ResponseWriter, r *request,
	create func(ctx context.Context, by *access.Principal, doc bson.D) (T, error), out func(T) Out, path func(Out) string,
) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	made, err := create(r.Context(), r.principal, body)
	if err != nil {
		return err
	}
	res := out(made)
	w.Header().Set(api.HeaderLocation, path(res))
	return r.json(w, http.StatusCreated, res)
}

// getModel answers with the record of the path.
func getModel[T, Out any](w http.ResponseWriter, r *request,
	get func(ctx context.Context, by *access.Principal, id string) (T, error), out func(T) Out,
) error {
	found, err := get(r.Context(), r.principal, r.param("id"))
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out(found))
}

// updateModel answers with what update makes of the record of the path by the body.
func updateModel[T, Out any](w http.ResponseWriter, r *request,
	update func(ctx context.Context, by *access.Principal, id string, doc bson.D) (T, error), out func(T) Out,
) error {
	body, err := r.object(w)
	if err != nil {
		return err
	}
	changed, err := update(r.Context(), r.principal, r.param("id"), body)
	if err != nil {
		return err
	}
	return r.json(w, http.StatusOK, out(changed))
}

// deleteModel answers with the id of the record of the path, as records have it, when it is deleted.
func deleteModel(w http.ResponseWriter, r *request, del func(ctx context.Context, by *access.Principal, id string) error) error {
	id := strings.ToLower(r.param("id"))
	if err := del(r.Context(), r.principal, id); err != nil {
		return err
	}
	return r.json(w, http.StatusOK, api.DeleteResult{ID: id})
}
