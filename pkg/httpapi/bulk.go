package httpapi

import (
	"encoding/json"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// bulkItems tells a bulk create from a record: its body has the one member items, a list. Where the collection
// declares a field of that name the body is a record, unless bulk=true says otherwise.
func (r *request) bulkItems(body bson.D) (items bson.A, bulk bool, err error) {
	asked, err := r.boolean(api.ParamBulk)
	if err != nil {
		return nil, false, err
	}
	if !asked {
		if f, ok := r.collection.Tree.Resolve("items"); ok && f.Path == "items" && len(r.collection.Tree.Fields()) > 0 {
			return nil, false, nil
		}
	}
	if len(body) == 1 && body[0].Key == "items" {
		items, bulk = body[0].Value.(bson.A)
	}
	if asked && !bulk {
		return nil, false, errs.New(errs.Invalid, "bad_bulk", `with bulk=true the body must be {"items": [...]}`)
	}
	return items, bulk, nil
}

func (s *Server) bulkCreate(w http.ResponseWriter, r *request, items bson.A) error {
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.BulkCreate(r.Context(), call, items)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, nil, res.Items)
	}
	minimal := r.minimal(w.Header())
	out := api.BulkCreateResult{Items: make([]api.BulkCreateItem, len(res.Items)), Failed: res.Failed()}
	out.Succeeded = len(res.Items) - out.Failed
	for i, it := range res.Items {
		item := &out.Items[i]
		item.ID, item.Status = it.ID, http.StatusCreated
		if it.Err != nil {
			item.Error = s.itemProblem(r, it.Err)
			item.Status = item.Error.Status
		}
		if item.Warning = it.Warning; !minimal {
			item.Item = itemOut(it)
		}
	}
	status := http.StatusCreated
	if out.Failed > 0 {
		status = http.StatusMultiStatus
	}
	return r.bulkJSON(w, status, out, res)
}

// itemOut is what goes out of a record of a bulk write, if anything.
func itemOut(it records.Item) json.RawMessage {
	if it.Err != nil || it.Record == nil {
		return nil
	}
	return it.Record.AppendJSON(nil)
}

// bulkJSON answers with a wire type, and with what hooks have added to it.
func (r *request) bulkJSON(w http.ResponseWriter, status int, v any, res records.BulkResult) error {
	body, err := json.Marshal(v)
	if err != nil {
		return errs.Wrap(err, "encode answer")
	}
	return r.respond(w, status, func(dst []byte) []byte {
		dst = append(dst, body[:len(body)-1]...)
		return append(res.AppendExtra(dst), '}')
	})
}

// itemProblem is the error of one item. What is ours alone goes to the log, as for a whole request.
func (s *Server) itemProblem(r *request, err error) *api.Problem {
	e := public(r.Context(), err)
	s.logError(r, e)
	return problem(e, r.id)
}

func (s *Server) bulkUpdate(w http.ResponseWriter, r *request) error {
	if r.isOnly() {
		return s.putOnly(w, r)
	}
	if err := r.noReplace(); err != nil {
		return err
	}
	if !r.hasFilter() {
		return errs.New(errs.Invalid, "filter_required", "filter query parameter is required")
	}
	where, err := r.filter()
	if err != nil {
		return err
	}
	body, err := r.object(w)
	if err != nil {
		return err
	}
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.BulkUpdate(r.Context(), call, where, body)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, &res.Matched, res.Items)
	}
	minimal := r.minimal(w.Header())
	out := api.BulkUpdateResult{Matched: res.Matched, Items: make([]api.BulkUpdateItem, len(res.Items))}
	out.Failed, out.Succeeded = res.Failed(), len(res.Items)-res.Failed()
	for i, it := range res.Items {
		out.Items[i] = api.BulkUpdateItem{ID: it.ID, Status: http.StatusOK}
		if it.Err != nil {
			out.Items[i].Error = s.itemProblem(r, it.Err)
			out.Items[i].Status = out.Items[i].Error.Status
		}
		if out.Items[i].Warning = it.Warning; !minimal {
			out.Items[i].Item = itemOut(it)
		}
	}
	return r.bulkJSON(w, bulkStatus(res), out, res)
}

func (s *Server) bulkDelete(w http.ResponseWriter, r *request) error {
	if !r.hasFilter() {
		return errs.New(errs.Invalid, "filter_required", "filter query parameter is required for bulk delete")
	}
	where, err := r.filter()
	if err != nil {
		return err
	}
	call, err := r.writeCall()
	if err != nil {
		return err
	}
	res, err := s.cfg.Records.BulkDelete(r.Context(), call, where)
	switch {
	case err != nil:
		return err
	case call.DryRun:
		return s.dryRun(w, r, &res.Matched, res.Items)
	}
	minimal := r.minimal(w.Header())
	out := api.BulkDeleteResult{Matched: res.Matched, Items: make([]api.BulkDeleteItem, len(res.Items))}
	out.Failed, out.Succeeded = res.Failed(), len(res.Items)-res.Failed()
	for i, it := range res.Items {
		out.Items[i] = api.BulkDeleteItem{ID: it.ID}
		if it.Err != nil {
			out.Items[i].Error = s.itemProblem(r, it.Err)
		}
		if out.Items[i].Warning = it.Warning; !minimal {
			out.Items[i].Item = itemOut(it)
		}
	}
	return r.bulkJSON(w, bulkStatus(res), out, res)
}

func bulkStatus(res records.BulkResult) int {
	if res.Failed() > 0 {
		return http.StatusMultiStatus
	}
	return http.StatusOK
}
