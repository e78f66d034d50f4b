package errs

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies an error by what the caller can do about it. Each door has one table from Kind to its status.
type Kind uint8

// The kinds, with the HTTP status that pkg/httpapi gives them.
const (
	Internal     Kind = iota // 500: our fault; the text stays in the log
	Invalid                  // 400: the request is malformed or fails validation
	Denied                   // 403: credential missing, wrong, or without the right
	NotFound                 // 404: there is no such thing, or the caller may not know of it
	Method                   // 405: the path exists, the method does not
	Conflict                 // 409: unique value taken, or already running
	Precondition             // 412: If-Match is stale
	TooLarge                 // 413: the body is above the limit
	MediaType                // 415: the body's media type is not served
	Limit                    // 422: a count limit, or a config that does not compile
	Throttled                // 429: try again after RetryAfter
	Unavailable              // 503: the store is down or the service is stopping
	Timeout                  // 504: a deadline of ours passed
	Full                     // 507: no space to write
)

// FieldError is one problem in one place of a request body or config.
type FieldError struct {
	Path    string `json:"path"`    // dotted path from the top of the body, "" for the whole
	Rule    string `json:"rule"`    // the rule that failed, such as "required" or "max"
	Message string `json:"message"` // a sentence for a person

	Other string `json:"-"` // the path of the other field, of a rule that compares two
}

// Error is a refusal: Kind, Code and Message are public, Cause is not. Errors are immutable once returned.
type Error struct {
	Kind       Kind
	Code       string        // stable snake_case slug, such as "project_not_found"
	Message    string        // public text
	Fields     []FieldError  // problems by place, if any
	Right      string        // for Denied: the right that the caller lacks, where they may be told
	Status     int           // the HTTP status, such as one that a script chose; 0: that of the kind
	RetryAfter time.Duration // for Throttled and Unavailable; zero when unknown
	Passes     bool          // for Conflict: what is in the way ends by itself, so that the same request may be carried out later
	Cause      error         // for the log only
	Logged     bool          // the log has it already, with what there is to say of its cause
}

// Error gives the public text and the cause; it is for logs, so doors print Message instead.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is match two errors of one Code, so that a package may export a prototype as a sentinel.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Kind == e.Kind
}

// With returns a copy that wraps cause.
func (e *Error) With(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Lacking returns a copy that names the right that the caller lacks. The message stays as it is.
func (e *Error) Lacking(right string) *Error {
	c := *e
	c.Right = right
	return &c
}

// New makes an error with a formatted public message.
func New(kind Kind, code, format string, args ...any) *Error {
	msg := format
	if len(args) > 0 {
		msg = fmt.Sprintf(format, args...)
	}
	return &Error{Kind: kind, Code: code, Message: msg}
}

// NewBusy makes a Conflict with something that is going on and ends by itself, such as a run.
func NewBusy(code, format string, args ...any) *Error {
	e := New(Conflict, code, format, args...)
	e.Passes = true
	return e
}

// maxFields bounds the problems that one answer lists: nobody reads more, and a body can have millions.
const maxFields = 100

// Validation makes the 400 that lists problems by place, the first hundred of them. The message names the first problem
// and how many there are more.
func Validation(fields []FieldError) *Error {
	msg := "validation failed"
	if len(fields) > 0 {
		msg = fields[0].Message
		if fields[0].Path != "" {
			msg = fields[0].Path + ": " + msg
		}
		if n := len(fields) - 1; n > 0 {
			msg = fmt.Sprintf("%s (and %d more)", msg, n)
		}
	}
	return &Error{Kind: Invalid, Code: "validation_failed", Message: msg, Fields: fields[:min(len(fields), maxFields)]}
}

// Wrap makes an internal error that says what failed; its text is for the log.
func Wrap(cause error, doing string) *Error {
	return &Error{Kind: Internal, Code: "internal", Message: "internal error", Cause: fmt.Errorf("%s: %w", doing, cause)}
}

// From gives the *Error inside err, or an internal one around it. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Code: "internal", Message: "internal error", Cause: err}
}

// KindOf gives the kind of err; an error that is not an *Error is Internal.
func KindOf(err error) Kind {
	if e := From(err); e != nil {
		return e.Kind
	}
	return Internal
}
