package httpapi

import (
	"context"
	"net/http"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/system"
)

// listModel answers with one page of a system model, in the envelope that collections have.
func listModel[T, Out any](w http.ResponseWriter, r *request,
	list func(ctx context.Context, by *access.Principal, params query.Params) (system.Page[T], error), out func(T) Out,
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
