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

// noIfMatch refuses a condition on the revision of one record, where there is not the one.
func (r *request) noIfMatch() error {
	if err := r.noIfNoneMatch(); err != nil {
		return err
	}
	if r.Header.Get(api.HeaderIfMatch) == "" {
		return nil
	}
	return errs.New(errs.Invalid, "unsupported", "If-Match is for the update or delete of one record: name its id in the path, or give a filter on _rev")
}

// noIfNoneMatch refuses a condition that writes don't look at, rather than write in spite of it.
func (r *request) noIfNoneMatch() error {
	if r.Header.Get(api.HeaderIfNoneMatch) == "" {
		return nil
	}
	return errs.New(errs.Invalid, "unsupported", "If-None-Match is for reads: a write is held to a revision by If-Match, and a create never takes the place of a record")
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
	out := api.BulkCreateResult{
		Items:     bulkItems(s, w, r, res, http.StatusCreated, func(it outcome) api.BulkCreateItem { return api.BulkCreateItem(it) }),
		Succeeded: len(res.Items) - res.Failed(),
		Failed:    res.Failed(),
	}
	return r.bulkJSON(w, bulkStatus(res, http.StatusCreated), out, res)
}

// outcome is what any bulk write tells of one item.
type outcome struct {
	ID      string
	Status  int
	Error   *api.Problem
	Item    json.RawMessage
	Warning string
}

// bulkItems gives what a bulk write tells of its items, in the wire type of that write. status is that of those that went well.
func bulkItems[T any](s *Server, w http.ResponseWriter, r *request, res records.BulkResult, status int, wire func(outcome) T) []T {
	minimal := r.minimal(w.Header())
	out := make([]T, len(res.Items))
	for i, it := range res.Items {
		o := outcome{ID: it.ID, Status: status, Warning: it.Warning}
		switch {
		case it.Err != nil:
			o.Error = s.itemProblem(r, it.Err)
			o.Status = o.Error.Status
		case it.Record != nil && !minimal:
			o.Item = it.Record.AppendJSON(nil)
		}
		out[i] = wire(o)
	}
	return out
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
	if err := r.noIfMatch(); err != nil {
		return err
	}
	if !r.hasFilter() {
		return errs.New(errs.Invalid, "filter_required", "filter query parameter is required")
	}
	where, err := r.filter()
	if err != nil {
		return err
	}
	if media, err := r.mediaType(api.MediaJSON, api.MediaMergePatch, api.MediaForm); err == nil && media == api.MediaForm {
		return errFormBulk
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
	out := api.BulkUpdateResult{
		Matched:   res.Matched,
		Items:     bulkItems(s, w, r, res, http.StatusOK, func(it outcome) api.BulkUpdateItem { return api.BulkUpdateItem(it) }),
		Succeeded: len(res.Items) - res.Failed(),
		Failed:    res.Failed(),
	}
	return r.bulkJSON(w, bulkStatus(res, http.StatusOK), out, res)
}

func (s *Server) bulkDelete(w http.ResponseWriter, r *request) error {
	if err := r.noIfMatch(); err != nil {
		return err
	}
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
	out := api.BulkDeleteResult{
		Matched: res.Matched,
		Items: bulkItems(s, w, r, res, http.StatusOK, func(it outcome) api.BulkDeleteItem {
			return api.BulkDeleteItem{ID: it.ID, Status: it.Status, Warning: it.Warning, Error: it.Error, Item: it.Item}
		}),
		Succeeded: len(res.Items) - res.Failed(),
		Failed:    res.Failed(),
	}
	return r.bulkJSON(w, bulkStatus(res, http.StatusOK), out, res)
}

// bulkStatus is the status of the whole: good, unless something failed.
func bulkStatus(res records.BulkResult, good int) int {
	if res.Failed() > 0 {
		return http.StatusMultiStatus
	}
	return good
}
