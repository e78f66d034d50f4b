package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Exit codes of svcctl. A code that is not here means that it failed too.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the request was refused; validate: the config is invalid
	ExitUsage       = 2   // the command line makes no sense, or a validate could not run
	ExitPartial     = 3   // some of several were done
	ExitDenied      = 4   // credential missing, wrong, or without the right
	ExitNotFound    = 5   // no such thing
	ExitConflict    = 6   // it is there already, changed meanwhile, or is running
	ExitUnreachable = 7   // no answer from the service, or TLS failed
	ExitTimeout     = 8   // --timeout or --request-timeout is over
	ExitInterrupted = 130 // Ctrl-C
)

// Error is a failure with its exit code. One without a Message has been told already.
type Error struct {
	Exit    int
	Code    string // slug for -o json
	Message string
	Hint    string // what to do next
	Cause   error
}

// Error is the message, with the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// exitError is an error with another exit code than its own.
type exitError struct {
	error
	exit int
}

func (e *exitError) Unwrap() error { return e.error }

// NotRun is the error of a command whose exit code 1 has a meaning of its own, such as a diff's: a failure that would end it
// with that ends it with ExitUsage. What was told already stays as it is.
func NotRun(err error) error {
	if told, ok := errors.AsType[*Error](err); err == nil || ok && told.Message == "" {
		return err
	}
	return &exitError{err, ExitUsage}
}

// Usagef is the error of a command line that makes no sense.
func Usagef(format string, args ...any) error {
	return &Error{Exit: ExitUsage, Code: "usage", Message: fmt.Sprintf(format, args...)}
}

// NoChange is the error of svcctl NOUN update with no flag that says what to change.
func NoChange(noun string) error {
	return Usagef("what is the change? svcctl %s update --help lists the flags", noun)
}

// Told ends the command with an exit code, without another word.
func Told(exit int) error { return &Error{Exit: exit} }

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

// hint says what to do about a refusal.
func (st *State) hint(ctx context.Context, e *client.Error) string {
	switch {
	case e.Code() == "login_failed":
		return "an administrator, who has a context of their own, sets a new password (user passwd USERNAME) and sees whether the user is active (user get)"
	case e.Code() == "config_outside":
		return "svcd serves what is below its projects directory: copy the project there, or start svcd with another --projects.dir"
	case e.Code() == "unique_conflict" && slices.ContainsFunc(e.Problem.Errors, func(f api.FieldError) bool { return f.Path == "namespace" }):
		return "svcctl project list shows by which config file; each project has a namespace of its own: in a copied one, change namespace: in the project file"
	case e.Code() == "restoring" && placeOf(e.Path, 1) != "":
		return "svcctl snapshot attach" + placeOf(e.Path, 1) + " shows how far the restore is"
	case e.Status == http.StatusForbidden:
		return st.hintDenied(ctx, e)
	case e.Code() == "project_not_found":
		return "svcctl project list shows the registered ones, svcctl project register makes one known"
	case e.Code() == "generation_not_found":
		return "svcctl project history shows the generations that are kept"
	case e.Code() == "collection_not_found" && strings.Contains(e.Path, "/admin/snapshots/"):
		return "svcctl snapshot show" + placeOf(e.Path, 1) + " " + cmp.Or(snapshotIn(e.Path), "ID") + " shows what the snapshot has"
	case e.Code() == "collection_not_found":
		return "svcctl collection list" + placeOf(e.Path, 1) + " shows what the project has"
	case e.Status == http.StatusNotFound && strings.Contains(e.Path, "/_/assets/"):
		return "svcctl asset list" + placeOf(e.Path, 1) + " shows the folders that there are; the path is that of a file below one"
	case e.Code() == "embedding_offline" && placeOf(e.Path, 1) != "":
		return "svcctl embedding status" + placeOf(e.Path, 1) + " shows which provider fails; other searches go on, --search chooses one"
	case e.Code() == "job_not_found" && placeOf(e.Path, 1) != "":
		return "svcctl job list" + placeOf(e.Path, 1) + " shows what the project has"
	case placeOf(e.Path, 1) != "" && strings.Contains(e.Path, "/admin/"):
		if hint := hintSnapshots(e); hint != "" {
			return hint
		}
	case (e.Code() == "unknown_field" || slices.ContainsFunc(e.Problem.Errors, isUnknownField)) && placeOf(e.Path, 2) != "":
		return "svcctl collection describe" + placeOf(e.Path, 2) + " shows the fields"
	case placeOf(e.Path, 3) != "" && (e.Code() == "not_found" || e.Code() == "bad_id"):
		return "svcctl doc list" + placeOf(e.Path, 2) + " shows the records that there are"
	case e.Code() == "no_search":
		return "svcctl explain collection.search tells how the config of the collection declares one"
	case slices.ContainsFunc(e.Problem.Errors, func(f api.FieldError) bool { return strings.HasPrefix(f.Path, "scopes.") }):
		return "svcctl token scopes lists those that you can give"
	case strings.HasPrefix(e.Problem.Detail, "filter: malformed JSON"):
		return `a filter is JSON, as in --filter '{"status": "published", "views": {"$gte": 10}}'`
	case e.Status == http.StatusTooManyRequests && e.RetryAfter > 0:
		return fmt.Sprintf("try again in %s", e.RetryAfter)
	case e.Status == http.StatusRequestEntityTooLarge:
		return "send less at once: a smaller file; of records that are imported, fewer by --batch"
	case e.Status >= http.StatusInternalServerError && e.Problem.RequestID != "":
		return "the service's log has more under request id " + e.Problem.RequestID
	}
	return ""
}

func isUnknownField(f api.FieldError) bool { return f.Rule == "unknown" }

// placeOf gives the first words of a path below those of projects, the namespace and the collection, as arguments: " blog
// articles". It is "" where the path has fewer.
func placeOf(path string, words int) string {
	_, rest, ok := strings.Cut(path, "/_/")
	all := strings.Split(rest, "/")
	if !ok || len(all) < words {
		return ""
	}
	out := " " + strings.Join(all[:words], " ")
	if words > 1 && all[1] == "_" {
		return ""
	}
	return out
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
