package script

import (
	"fmt"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// Thrown is what ctx.error made and the script threw: an answer that the script wants the caller to see.
type Thrown struct { //nolint:errname // it is what a script has thrown
	Status  int // 400 to 599
	Message string
	Fields  []errs.FieldError
}

// Error gives the status and the message.
func (t *Thrown) Error() string { return fmt.Sprintf("%d: %s", t.Status, t.Message) }

// Reason says what kind of failure it was.
type Reason string

// The reasons of failures.
const (
	Exception Reason = "exception" // the script threw, or what it returned can't be a value
	Timeout   Reason = "timeout"   // it ran over its limit
	Memory    Reason = "memory"    // it made the heap grow over its limit
	Depth     Reason = "depth"     // its calls nested too deep
	Busy      Reason = "busy"      // too many runs of this project wait already
	Suspended Reason = "suspended" // the script ran away several times in a row and rests
	Canceled  Reason = "canceled"  // the caller gave up, or the service stops
	Killed    Reason = "killed"    // its worker process died or was killed
	Panic     Reason = "panic"     // a defect of ours or of a library; the process lives
)

// Failure is a run that gave no result. Its text is for logs and for the owners of the project, never for an answer.
type Failure struct { //nolint:errname // the word for what a run ends with
	Reason  Reason
	Script  string // the file in which it happened, with Line and Column; 0 is unknown
	Line    int
	Column  int
	Message string
	Stack   string // with the script's own positions, a line for each call
	Cause   error  // of an exception: the error of the Host call that became it; nil for others

	RetryAfter time.Duration // of busy and suspended: when to try again
}

// Place is file:line:column, or the file alone where the line is not known.
func (f *Failure) Place() string {
	if f.Line == 0 {
		return f.Script
	}
	return fmt.Sprintf("%s:%d:%d", f.Script, f.Line, f.Column)
}

// Error gives the place, the reason and the message.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s: %s", f.Place(), f.Reason, f.Message) }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Runaway says whether the failure counts for the breaker: the script took what is not its to take.
func (f *Failure) Runaway() bool {
	return f.Reason == Timeout || f.Reason == Memory || f.Reason == Killed || f.Reason == Panic
}
