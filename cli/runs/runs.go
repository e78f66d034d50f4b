package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Of are the runs of one action or job: where the API has them.
type Of struct {
	Noun            string // "action" or "job"
	Namespace, Name string

	list        func(ctx context.Context, namespace, name, status string, q client.Query) (*api.List[api.Run], error)
	get, cancel func(ctx context.Context, namespace, name, id string) (*api.Run, error)
	follow      func(ctx context.Context, namespace, name, id string, after int64, fn func(api.RunEvent) error) error
}

// OfAction gives the runs of an action.
func OfAction(c *client.Client, namespace, action string) Of {
	return Of{
		Noun: "action", Namespace: namespace, Name: action,
		list: c.ListActionRuns, get: c.ActionRun, cancel: c.CancelActionRun, follow: c.FollowActionRun,
	}
}

// OfJob gives the runs of a job.
func OfJob(c *client.Client, namespace, job string) Of {
	return Of{
		Noun: "job", Namespace: namespace, Name: job,
		list: c.ListJobRuns, get: c.JobRun, cancel: c.CancelJobRun, follow: c.FollowJobRun,
	}
}

// Get gives a run with its events.
func (o Of) Get(ctx context.Context, id string) (*api.Run, error) {
	return o.get(ctx, o.Namespace, o.Name, id)
}

// Follow calls fn for each event of a run, until the last has come or fn fails.
func (o Of) Follow(ctx context.Context, id string, fn func(api.RunEvent) error) error {
	return o.follow(ctx, o.Namespace, o.Name, id, 0, fn)
}

// Command is the command line that a hint shows: svcctl job logs shop cleanup --run ID.
func (o Of) Command(verb, id string) string {
	return strings.Join([]string{"svcctl", o.Noun, verb, o.Namespace, o.Name, "--run", id}, " ")
}

// Pick gives the run that --run names, or else the newest.
func (o Of) Pick(ctx context.Context, id string) (string, error) {
	if id != "" {
		return id, nil
	}
	page, err := o.list(ctx, o.Namespace, o.Name, "", client.Query{Limit: 1})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", notFound(o.Name + " has not run")
	}
	return page.Items[0].ID, nil
}

// pickActive gives the run that --run names, or else the one that is active. Of several the caller has to name one.
func (o Of) pickActive(ctx context.Context, id string) (string, error) {
	if id != "" {
		return id, nil
	}
	page, err := o.list(ctx, o.Namespace, o.Name, "", client.Query{})
	if err != nil {
		return "", err
	}
	active := slices.DeleteFunc(page.Items, func(r api.Run) bool { return !r.Active() })
	switch len(active) {
	case 0:
		return "", notFound("no run of " + o.Name + " is active")
	case 1:
		return active[0].ID, nil
	}
	return "", &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("%d runs of %s are active", len(active), o.Name),
		Hint: "say which with --run, such as " + active[0].ID,
	}
}

func notFound(message string) error {
	return &command.Error{Exit: command.ExitNotFound, Code: "run_not_found", Message: message}
}

// Show prints runs; value is what structured formats get.
func Show(st *command.State, value any, list ...api.Run) error {
	p := st.Printer()
	t := output.NewTable("ID", "STATUS", "TRIGGER", "BEGAN", "TOOK", "MESSAGE", "+BY", "+INSTANCE")
	result := output.Result{Value: value, Table: t}
	for _, r := range list {
		t.Row(r.ID, p.Style.State(r.Status), r.Trigger, At(r.StartedAt), Took(&r), MessageOf(&r), Who(r.By), r.Instance)
		result.Names = append(result.Names, "run/"+r.ID)
	}
	st.FitTable(t)
	return p.Print(result)
}

// At is a time in a table; "-" for none.
func At(t api.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// MessageOf says how a run has failed, or how far it is.
func MessageOf(r *api.Run) string {
	if r.Error != nil {
		return r.Error.Message
	}
	return progress(r.Progress)
}

// Took is how long a run has taken; "-" while it goes on.
func Took(r *api.Run) string {
	if r.FinishedAt.IsZero() || r.StartedAt.IsZero() {
		return "-"
	}
	return r.FinishedAt.Sub(r.StartedAt.Time).Round(time.Millisecond).String()
}

// Who is the name of who has started a run.
func Who(a api.Actor) string {
	switch {
	case a.Name != "":
		return a.Name
	case a.ID != "":
		return a.Kind + ":" + a.ID
	}
	return a.Kind
}

// printEvent writes what an event says, on a line of its own.
func printEvent(st *command.State, e api.RunEvent) error {
	if st.Printer().Format == output.FormatJSON {
		return output.JSONLine(st.Stdout(), e)
	}
	what, text := e.Event, e.Data.Message
	switch {
	case e.Event == api.EventProgress:
		text = ProgressOf(e)
	case e.Event == api.EventLog:
		what = e.Data.Level
	case e.Data.Status != "":
		what = e.Data.Status
	}
	_, err := fmt.Fprintf(st.Stdout(), "%9.3fs %-9s %s\n", e.Data.ElapsedSeconds, what, output.Escape(text))
	return err
}

// Note tells who waits for a run of what it logs and how far it is, on stderr.
func Note(st *command.State, e api.RunEvent) {
	switch e.Event {
	case api.EventLog:
		st.Notef("%s: %s", e.Data.Level, e.Data.Message)
	case api.EventProgress:
		st.Notef("%s", ProgressOf(e))
	}
}

// ProgressOf is what an event says of how far the run is.
func ProgressOf(e api.RunEvent) string {
	return progress(api.RunProgress{
		Phase: e.Data.Phase, Collection: e.Data.Collection, Message: e.Data.Message,
		Done: e.Data.Done, Total: e.Data.Total, BytesDone: e.Data.BytesDone, BytesTotal: e.Data.BytesTotal,
	})
}

// progress is how far a run is, on one line: what is known of phase, collection, amounts and message.
func progress(p api.RunProgress) string {
	var parts []string
	for _, text := range []string{p.Phase, p.Collection, amount(p.Done, p.Total, ""), amount(p.BytesDone, p.BytesTotal, " bytes"), p.Message} {
		if text != "" && (text == p.Message || !strings.Contains(p.Message, text)) { // messages often say how many themselves
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

func amount(done, total int64, unit string) string {
	switch {
	case total > 0:
		return fmt.Sprintf("%d of %d%s", done, total, unit)
	case done > 0:
		return fmt.Sprintf("%d%s", done, unit)
	}
	return ""
}
