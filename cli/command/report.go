package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// report is an error as it is shown.
type report struct {
	exit      int
	code      string
	message   string
	status    int
	requestID string
	right     string
	hint      string
	fields    []api.FieldError
	problems  []api.ConfigProblem
}

// maxDetails is how many details Explain tells of.
const maxDetails = 3

// Explain says in a line what an error means, and what to do about it, which may be "". It is for what goes on after errors; it may
// ask the service, and can be called at the same time as itself once a Client was made.
func (st *State) Explain(ctx context.Context, err error) (message, hint string) {
	r := st.explain(ctx, err)
	details := r.details()
	if more := len(details) - maxDetails; more > 0 {
		details = append(details[:maxDetails:maxDetails], fmt.Sprintf("and %d more", more))
	}
	if len(details) > 0 {
		r.message += ": " + strings.Join(details, "; ")
	}
	return r.message, r.hint
}

// ExitOf gives the exit code that an error ends a command with.
func (st *State) ExitOf(ctx context.Context, err error) int { return st.explain(ctx, err).exit }

// exitOfStatus is the table from the service's refusals to exit codes; any other status is ExitFailed.
func exitOfStatus(status int) int {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitDenied
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return ExitConflict
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return ExitUnreachable
	case http.StatusGatewayTimeout:
		return ExitTimeout
	}
	return ExitFailed
}

// explain finds the exit code of an error and what to say about it. Commands in that reach the same service (see Reach).
func (st *State) explain(ctx context.Context, err error) report {
	r := st.reportOf(ctx, err)
	r.message, r.hint = st.Reach(r.message), st.Reach(r.hint)
	return r
}

func (st *State) reportOf(ctx context.Context, err error) report {
	r := report{exit: ExitFailed, code: "failed", message: err.Error()}
	var (
		own         *Error
		refused     *client.Error
		unreachable *client.UnreachableError
	)
	switch {
	case errors.As(err, &own):
		r.exit, r.hint = own.Exit, own.Hint
		if own.Code != "" {
			r.code = own.Code
		}
	case errors.As(err, &refused):
		if r.exit = exitOfStatus(refused.Status); refused.Code() == "snapshot_damaged" { // it is no conflict to whom another time would help
			r.exit = ExitFailed
		}
		r.code, r.status, r.requestID = refused.Problem.Code, refused.Status, refused.Problem.RequestID
		r.fields, r.problems = refused.Problem.Errors, refused.Problem.Problems
		r.right = refused.Problem.Right
		if before, ok := strings.CutSuffix(r.message, refused.Error()); ok {
			r.message = before + missed(refused)
		}
		if r.hint = st.hint(ctx, refused); r.code == "snapshot_not_found" && r.hint != "" { // which is the same advice, with the command
			r.message, _, _ = strings.Cut(r.message, ": look at ")
		}
	case isShape(err):
		r.code, r.hint = "output", "-o json shows what it is made of; what a list has is in .items"
	case errors.Is(err, context.DeadlineExceeded):
		r.exit, r.code = ExitTimeout, "timeout"
		r.hint = "allow more with --timeout or --request-timeout"
	case errors.Is(err, context.Canceled):
		r.exit, r.code, r.message = ExitInterrupted, "interrupted", "interrupted"
	case errors.As(err, &unreachable):
		r.exit, r.code = ExitUnreachable, "unreachable"
		r.hint = "is the service running there? choose another with --server, SVCCTL_SERVER or svcctl config use-context"
		if unreachable.Permanent() {
			r.hint = "is that address the service's? --server chooses another, --ca-file names the authority of its certificate"
		}
	}
	if other, ok := errors.AsType[*exitError](err); ok && r.exit == ExitFailed {
		r.exit = other.exit
	}
	return r
}

// isShape says that an expression of the user failed on what there was.
func isShape(err error) bool {
	_, failed := errors.AsType[*output.ShapeError](err)
	_, other := errors.AsType[*output.NotJSONError](err)
	return failed || other
}

// Fail tells the user about err and gives the exit code.
func (st *State) Fail(ctx context.Context, err error) int {
	if err == nil || errors.Is(err, ErrOutputClosed) {
		return ExitOK
	}
	r := st.explain(ctx, err)
	if r.message == "" {
		return r.exit
	}
	if st.Flags.Output == output.FormatJSON && (st.shaped == nil || st.asJSON) {
		writeErrorJSON(st.Err, r)
		return r.exit
	}
	st.annotate(r.problems)
	style := st.Style(st.ErrTTY)
	fmt.Fprintln(st.Err, style.Red("error:"), output.EscapeLines(st.uncommanded(r.message)))
	for _, line := range r.details() {
		fmt.Fprintln(st.Err, "  "+st.uncommanded(output.Escape(line)))
	}
	if r.hint != "" && !st.Flags.Quiet {
		fmt.Fprintln(st.Err, style.Bold("hint:"), st.uncommanded(output.Escape(r.hint)))
	}
	return r.exit
}

// details are the lines below the message: a problem by place each, but not a single one that the message tells already.
func (r report) details() []string {
	var lines, messages []string
	for _, f := range r.fields {
		lines, messages = append(lines, fieldLine(f)), append(messages, f.Message)
	}
	for _, p := range r.problems {
		lines, messages = append(lines, ProblemLine(p)), append(messages, p.Message)
	}
	if len(lines) == 1 && strings.Contains(r.message, messages[0]) {
		return nil
	}
	return lines
}

func fieldLine(f api.FieldError) string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// ProblemLine is a config problem as file:line:column: path: message.
func ProblemLine(p api.ConfigProblem) string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	if p.File != "" {
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// writeErrorJSON is the form of errors for programs.
func writeErrorJSON(w io.Writer, r report) {
	type body struct {
		Code      string              `json:"code"`
		Message   string              `json:"message"`
		Status    int                 `json:"status,omitempty"`
		RequestID string              `json:"requestId,omitempty"`
		Right     string              `json:"right,omitempty"`
		Hint      string              `json:"hint,omitempty"`
		Errors    []api.FieldError    `json:"errors,omitempty"`
		Problems  []api.ConfigProblem `json:"problems,omitempty"`
	}
	// There is nowhere left to tell that stderr is gone.
	_ = output.JSONLine(w, map[string]body{"error": {
		r.code, r.message, r.status, r.requestID, r.right, r.hint, r.fields, r.problems,
	}})
}
