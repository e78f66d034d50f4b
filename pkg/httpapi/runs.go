package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
)

const maxRuns = 1000 // of one page

// page reads the parameters of a list whose pages are by offset; limit is 0 where the request does not say.
func (r *request) page() (limit, offset int64, err error) {
	most, err := r.integer(api.ParamLimit)
	if err == nil && most != nil {
		if limit = *most; limit < 1 || limit > maxRuns {
			err = errs.New(errs.Invalid, "query_limit", "limit is %d; 1 to %d are allowed", limit, maxRuns)
		}
	}
	if err != nil {
		return 0, 0, err
	}
	skip, err := r.integer(api.ParamOffset)
	if err == nil && skip != nil {
		if offset = *skip; offset < 0 {
			err = errs.New(errs.Invalid, "bad_parameter", "limit and offset can't be negative")
		}
	}
	return limit, offset, err
}

// runQuery reads the parameters of a list of runs.
func (r *request) runQuery() (operation.Query, error) {
	var q operation.Query
	var err error
	if q.Limit, q.Offset, err = r.page(); err != nil {
		return q, err
	}
	status, err := r.one(api.ParamStatus)
	if err != nil {
		return q, err
	}
	switch q.Status = operation.Status(status); q.Status {
	case "", operation.Queued, operation.Running, operation.Succeeded, operation.Failed, operation.Cancelled, operation.Lost:
		return q, nil
	}
	return q, errs.New(errs.Invalid, "bad_parameter", "status must be queued, running, succeeded, failed, cancelled or lost")
}

// streamRun sends a run's events behind one. A reader who has had the last one is told not to come again (204).
// check says whether the reader still may see the run.
func (s *Server) streamRun(w http.ResponseWriter, r *request, run *operation.Run, after int64, check func() error,
	follow func(ctx context.Context, after int64, fn func(operation.Event) error) error,
) error {
	if !run.Status.Active() && after >= run.LastEvent && after > 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.stream(w, r, check, func(ctx context.Context, send sendEvent) error {
		err := follow(ctx, after, func(e operation.Event) error {
			return send(e.ID, string(e.Kind), r.withoutOthers(document.AppendJSON(nil, e.Data, nil)))
		})
		if errors.Is(err, operation.ErrNotFound) { // its record went meanwhile: there is no more to tell
			return nil
		}
		return err
	})
}

func actorOf(r *request) operation.Actor {
	return operation.Actor(audit.NewCaller(r.principal, "", "").Actor)
}

func actorOut(a operation.Actor) api.Actor {
	if a.Kind == "" {
		a.Kind = "service"
	}
	return api.Actor(a)
}

func runsOut(page *operation.Page) api.List[api.Run] {
	out := api.List[api.Run]{Items: make([]api.Run, 0, len(page.Items)), Limit: int(page.Limit), Offset: int(page.Offset), HasMore: page.HasMore}
	for _, run := range page.Items {
		out.Items = append(out.Items, runOut(run))
	}
	return out
}

func runOut(run *operation.Run) api.Run {
	out := api.Run{
		ID: run.ID, Kind: string(run.Kind), Name: run.Name, Subject: run.Subject, Status: string(run.Status), Trigger: string(run.Trigger),
		Slot: api.Time{Time: run.Slot}, By: actorOut(run.By), Instance: run.Instance,
		Cancellable: run.Cancellable && run.Status.Active(), CancelRequested: run.CancelRequested,
		CreatedAt: api.Time{Time: run.CreatedAt}, StartedAt: api.Time{Time: run.StartedAt}, FinishedAt: api.Time{Time: run.FinishedAt},
		Progress: progressOut(run.Progress), Input: valueOut(run.Input), Result: valueOut(run.Result), Output: valueOut(run.Output),
	}
	if f := run.Error; f != nil {
		out.Error = &api.RunError{Code: f.Code, Message: f.Message}
		for _, field := range f.Fields {
			out.Error.Errors = append(out.Error.Errors, api.FieldError{Path: field.Path, Rule: field.Rule, Message: field.Message})
		}
	}
	for _, p := range run.Phases {
		out.Phases = append(out.Phases, api.RunPhase{
			Phase: p.Name, Done: p.Done, Total: p.Total, BytesDone: p.BytesDone, BytesTotal: p.BytesTotal, Seconds: p.Took.Truncate(time.Millisecond).Seconds(),
		})
	}
	for _, e := range run.Events {
		out.Events = append(out.Events, api.RunEvent{ID: e.ID, At: api.Time{Time: e.At}, Event: string(e.Kind), Data: eventOut(e.Data)})
	}
	return out
}

func progressOut(p operation.Progress) api.RunProgress {
	return api.RunProgress{
		Phase: p.Phase, Collection: p.Collection, Message: p.Message, Done: p.Done, Total: p.Total, BytesDone: p.BytesDone, BytesTotal: p.BytesTotal,
		RunCounters: api.RunCounters(p.Counters),
	}
}

func valueOut(v bson.RawValue) []byte {
	if v.Type == 0 {
		return nil
	}
	return document.AppendJSONValue(nil, v, nil)
}

// eventOut gives what an event says.
func eventOut(data bson.Raw) api.RunEventData {
	var out api.RunEventData
	if err := json.Unmarshal(document.AppendJSON(nil, data, nil), &out); err != nil { // not possible: it is ours
		out.Message = err.Error()
	}
	return out
}
