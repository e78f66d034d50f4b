package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// statusOf is the one table from the kind of an error to its HTTP status. A kind without a row is a 500.
func statusOf(kind errs.Kind) int {
	switch kind {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.Denied:
		return http.StatusForbidden
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Method:
		return http.StatusMethodNotAllowed
	case errs.Conflict:
		return http.StatusConflict
	case errs.Precondition:
		return http.StatusPreconditionFailed
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge
	case errs.MediaType:
		return http.StatusUnsupportedMediaType
	case errs.Limit:
		return http.StatusUnprocessableEntity
	case errs.Throttled:
		return http.StatusTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	case errs.Timeout:
		return http.StatusGatewayTimeout
	case errs.Full:
		return http.StatusInsufficientStorage
	case errs.Internal:
	}
	return http.StatusInternalServerError
}

// public turns any error into the one that the caller is told, so that no text of ours or of a library leaks.
func public(ctx context.Context, err error) *errs.Error {
	var known *errs.Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return errs.New(errs.Unavailable, "canceled", "the request was canceled").With(err)
	case errors.Is(err, context.DeadlineExceeded):
		return errs.New(errs.Timeout, "timeout", "the request took too long: try again").With(err)
	}
	return errs.From(err)
}

// problem is the wire form of an error (RFC 9457).
func problem(e *errs.Error, requestID string) *api.Problem {
	status := statusOf(e.Kind)
	if e.Status >= http.StatusBadRequest { // its own
		status = e.Status
	}
	p := &api.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: e.Code, Detail: shortened(e.Message), Right: e.Right, RequestID: requestID,
	}
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, api.FieldError{Path: shortened(f.Path), Rule: f.Rule, Message: shortened(f.Message)})
	}
	return p
}

// maxTold is how long a text of a problem may be, in bytes.
const maxTold = 2000

// shortened leaves out the middle of a long text: what a caller has sent is not sent back at length.
func shortened(text string) string {
	if len(text) <= maxTold {
		return text
	}
	return strings.ToValidUTF8(text[:maxTold*3/4], "") + " … " + strings.ToValidUTF8(text[len(text)-maxTold/4:], "")
}

// sendProblem answers with an error. Retry-After is sent when repeating the request can't do a thing twice: with a
// refusal that says itself that nothing was done yet, and with one of a read.
func (s *Server) sendProblem(w http.ResponseWriter, r *request, p *api.Problem, retryAfter time.Duration) {
	body, err := json.Marshal(p)
	if err != nil { // strings and integers only
		body = []byte(`{"status":500,"code":"internal","detail":"internal error"}`)
	}
	body = r.withoutOthers(body)
	media := api.MediaProblem
	if r.route.right.kind == rightMCP {
		body, media = s.refuseMCP(w, r, p), api.MediaJSON
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Del(api.HeaderETag)
	if retryAfter == 0 && p.Status == http.StatusServiceUnavailable && r.safe() {
		retryAfter = time.Second
	}
	if retryAfter > 0 {
		h.Set(api.HeaderRetryAfter, strconv.FormatInt(int64((retryAfter+time.Second-1)/time.Second), 10))
	}
	if err := send(w, p.Status, media, body); err != nil {
		s.log.DebugContext(r.Context(), "refusal not delivered", "request_id", r.id, "error", err)
	}
}
