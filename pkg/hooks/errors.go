package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script"
)

// CodeThrown is the code of an error that a script made with ctx.error.
const CodeThrown = "script_error"

// codeFailed is the code of a script that failed.
const codeFailed = "script_failed"

// kinds are the kinds of the statuses that scripts may give. Others have the kind of their class.
var kinds = map[int]errs.Kind{ //nolint:gochecknoglobals // never written
	http.StatusBadRequest: errs.Invalid, http.StatusForbidden: errs.Denied, http.StatusNotFound: errs.NotFound,
	http.StatusMethodNotAllowed: errs.Method, http.StatusConflict: errs.Conflict, http.StatusPreconditionFailed: errs.Precondition,
	http.StatusRequestEntityTooLarge: errs.TooLarge, http.StatusUnsupportedMediaType: errs.MediaType,
	http.StatusUnprocessableEntity: errs.Limit, http.StatusTooManyRequests: errs.Throttled,
	http.StatusServiceUnavailable: errs.Unavailable, http.StatusGatewayTimeout: errs.Timeout,
}

// thrown is the error of ctx.error for the caller: what the script said, to the letter.
func thrown(t *script.Thrown) *errs.Error {
	kind, ok := kinds[t.Status]
	if !ok {
		kind = errs.Invalid
		if t.Status >= http.StatusInternalServerError {
			kind = errs.Internal
		}
	}
	return &errs.Error{Kind: kind, Code: CodeThrown, Message: t.Message, Fields: t.Fields, Status: t.Status}
}

// refusal is the error of something that a script did with its caller's own rights.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// AsCaller marks the error of something that a script did with its caller's own rights. If the script lets it pass, they
// get it as if they had asked themselves. Without the mark it is the script's failing, and they are told nothing of it.
func AsCaller(err error) error {
	if errs.KindOf(err) == errs.Internal {
		return err
	}
	return refusal{err}
}

// failed is the error of a failed run for the caller: nothing of the script is in its text. report says that it is for the
// log, too.
func failed(f *script.Failure) (report bool, err error) {
	if cause, ok := errors.AsType[*errs.Error](f.Cause); ok {
		// The mark is of this script's own call: one further inside is of a script that this one's call led to.
		if _, own := f.Cause.(refusal); own { //nolint:errorlint // as it says
			return false, cause.With(f)
		}
		if strings.HasPrefix(cause.Code, "fetch_") && (cause.Kind == errs.Unavailable || cause.Kind == errs.Timeout) {
			return true, errs.New(cause.Kind, cause.Code, "something that a script of the project calls does not answer: try again later").With(f)
		}
		if slices.Contains([]errs.Kind{errs.Unavailable, errs.Timeout, errs.Full, errs.Throttled}, cause.Kind) {
			return true, cause.With(f) // not the script's fault: it may work another time
		}
		if cause.Code == CodeThrown { // a hook of what the script did refused it
			return false, cause
		}
	}
	return f.Reason != script.Canceled, ofReason(f)
}

func ofReason(f *script.Failure) error {
	switch f.Reason {
	case script.Timeout:
		return errs.New(errs.Timeout, "script_timeout", "a script of the project took too long").With(f)
	case script.Busy:
		e := errs.New(errs.Unavailable, "script_busy", "too many scripts of the project are running: try again").With(f)
		e.RetryAfter = time.Second
		return e
	case script.Suspended:
		e := errs.New(errs.Unavailable, "script_suspended", "a script of the project was stopped because it ran away several times: try again later").With(f)
		e.RetryAfter = 30 * time.Second
		return e
	case script.Canceled:
		return errs.New(errs.Unavailable, "canceled", "the operation was canceled").With(errors.Join(f, context.Canceled))
	default:
		return errs.New(errs.Internal, codeFailed, "a script of the project failed").With(f)
	}
}

// Bad is the error of a script that gave back what a stage can't use.
func (r *Runner) Bad(ctx context.Context, op *Operation, stage, message string) error {
	return r.fail(ctx, op, stage, &script.Failure{Reason: script.Exception, Script: op.lastOf(stage), Message: message})
}

// lastOf is the script of a stage that changed something last.
func (op *Operation) lastOf(stage string) string {
	for _, c := range slices.Backward(op.changers) {
		if c.stage == stage {
			return c.script
		}
	}
	if list := op.Collection.Hooks[stage]; len(list) > 0 {
		return list[len(list)-1].Program.Name()
	}
	return ""
}

// Fail turns the error of a run into the caller's, and logs what they are not told. where says which run it was.
func Fail(ctx context.Context, log *slog.Logger, err error, where []slog.Attr) error {
	if t, ok := errors.AsType[*script.Thrown](err); ok {
		return thrown(t)
	}
	f, ok := errors.AsType[*script.Failure](err)
	if !ok {
		return errs.Wrap(err, "run a script")
	}
	report, out := failed(f)
	if report {
		out = logged(out)
		log.LogAttrs(ctx, slog.LevelError, "script failed", slices.Concat(where, []slog.Attr{
			slog.String("at", f.Place()), slog.String("reason", string(f.Reason)), slog.String("error", f.Message), slog.String("stack", f.Stack),
		})...)
	}
	return out
}

// logged marks an error as one that the log has.
func logged(err error) error {
	e := *errs.From(err)
	e.Logged = true
	return &e
}

func (r *Runner) fail(ctx context.Context, op *Operation, stage string, err error) error {
	return Fail(ctx, r.log, err, where(op, stage))
}

func where(op *Operation, stage string) []slog.Attr {
	attrs := []slog.Attr{slog.String("namespace", op.Project.Namespace), slog.String("collection", op.Collection.Name), slog.String("stage", stage)}
	if id := op.requestID(); id != "" {
		attrs = append(attrs, slog.String("request_id", id))
	}
	return attrs
}

// Lines takes what a script logs. where says which run it is.
func Lines(ctx context.Context, log *slog.Logger, file string, where func() []slog.Attr) func(script.Line) {
	return func(l script.Line) {
		log.LogAttrs(ctx, l.SlogLevel(), "a script says", slices.Concat(where(), []slog.Attr{slog.String("script", file), slog.String("text", l.Message)})...)
	}
}

// Problems reads what a stage validate returned: nothing, a message, an object {path, message, rule?}, or a list of these.
func Problems(v any) ([]errs.FieldError, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if v {
			return nil, nil
		}
		return []errs.FieldError{{Rule: "script", Message: "is not valid"}}, nil
	case string:
		if v == "" {
			return nil, nil
		}
		return []errs.FieldError{{Rule: "script", Message: v}}, nil
	case bson.D:
		p := errs.FieldError{Rule: "script"}
		for _, e := range v {
			text, ok := e.Value.(string)
			switch e.Key {
			case "path":
				p.Path = text
			case "message":
				p.Message = text
			case "rule":
				p.Rule = text
			default:
				return nil, fmt.Errorf("a problem has path, message and rule, but no %s", e.Key)
			}
			if !ok {
				return nil, fmt.Errorf("a problem's %s must be a string", e.Key)
			}
		}
		if p.Message == "" {
			return nil, errors.New("a problem needs a message")
		}
		return []errs.FieldError{p}, nil
	case bson.A:
		var out []errs.FieldError
		for _, item := range v {
			more, err := Problems(item)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	}
	return nil, errors.New("a validate hook returns nothing, a message, or a list of {path, message}")
}
