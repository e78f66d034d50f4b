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
	list func(ctx context.Context, q system.PageQuery) (system.Page[T], error),
	count func(ctx context.Context) (int64, error),
	out func(T) Out,
) error {
	q, err := r.modelPage()
	if err != nil {
		return err
	}
	withTotal, err := r.boolean(api.ParamCount)
	if err != nil {
		return err
	}
	page, err := list(r.Context(), q)
	if err != nil {
		return err
	}
	res := api.List[Out]{
		Items: make([]Out, 0, len(page.Items)), Limit: int(q.Limit), Offset: int(q.Offset), HasMore: page.HasMore, Next: page.Next,
	}
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
	linkNext(w, r, r.URL.Path, page.Next)
	return r.json(w, http.StatusOK, res)
}

func (r *request) modelPage() (q system.PageQuery, err error) {
	q.Limit = defaultModelLimit
	for name, dst := range map[string]*int64{api.ParamLimit: &q.Limit, api.ParamOffset: &q.Offset} {
		n, err := r.integer(name)
		if err != nil {
			return q, err
		}
		if n != nil {
			*dst = *n
		}
	}
	if q.After, err = r.one(api.ParamAfter); err != nil {
		return q, err
	}
	switch {
	case q.Limit < 0 || q.Offset < 0:
		return q, errs.New(errs.Invalid, "bad_parameter", "limit and offset can't be negative")
	case q.Limit > maxModelLimit:
		return q, errs.New(errs.Invalid, "query_limit", "limit is %d, the highest allowed is %d", q.Limit, maxModelLimit)
	}
	return q, nil
}
