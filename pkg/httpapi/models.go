package httpapi

import (
	"context"
	"net/http"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/system"
)

// Page sizes of the lists of system models.
const (
	defaultModelLimit = 100
	maxModelLimit     = 1000
)

// listModel answers with one page of a system model, in the envelope that collections have.
func listModel[T, Out any](w http.ResponseWriter, r *request,
	list func(ctx context.Context, limit, offset int64) (system.Page[T], error),
	count func(ctx context.Context) (int64, error),
	out func(T) Out,
) error {
	limit, offset, err := r.modelPage()
	if err != nil {
		return err
	}
	withTotal, err := r.boolean(api.ParamCount)
	if err != nil {
		return err
	}
	page, err := list(r.Context(), limit, offset)
	if err != nil {
		return err
	}
	res := api.List[Out]{Items: make([]Out, 0, len(page.Items)), Limit: int(limit), Offset: int(offset), HasMore: page.HasMore}
	for _, item := range page.Items {
		res.Items = append(res.Items, out(item))
	}
	if withTotal {
		n, err := count(r.Context())
		if err != nil {
			return err
		}
		res.Total = &n
	}
	return r.json(w, http.StatusOK, res)
}

func (r *request) modelPage() (limit, offset int64, err error) {
	limit = defaultModelLimit
	if n, err := r.integer(api.ParamLimit); err != nil {
		return 0, 0, err
	} else if n != nil {
		limit = *n
	}
	if n, err := r.integer(api.ParamOffset); err != nil {
		return 0, 0, err
	} else if n != nil {
		offset = *n
	}
	switch {
	case limit < 0 || offset < 0:
		return 0, 0, errs.New(errs.Invalid, "bad_parameter", "limit and offset can't be negative")
	case limit > maxModelLimit:
		return 0, 0, errs.New(errs.Invalid, "query_limit", "limit is %d, the highest allowed is %d", limit, maxModelLimit)
	}
	return limit, offset, nil
}
