package job

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl job.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("job", "See and run the jobs of a project",
		newList(st), newDescribe(st), newRun(st, nil), newHistory(st, nil), newLogs(st, nil), newNext(st, nil),
		newCancel(st), newSuspend(st), newResume(st))
}

// onJob makes a verb that is about one job.
func onJob(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, job string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] JOB"
	cmd.Args = command.PlaceArgs(1)
	cmd.ValidArgsFunction = st.CompletePlace(false)
	cmd.RunE = st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
		c, err := st.Client()
		if err != nil {
			return err
		}
		return run(ctx, c, namespace, rest[0])
	})
	return cmd
}

// showJobs prints jobs; value is what structured formats get.
func showJobs(st *command.State, value any, jobs ...api.Job) error {
	p := st.Printer()
	t := output.NewTable("NAME", "SCHEDULE", "NEXT", "LAST", "STATUS", "+SKIPPED", "+MISSED", "+FILE")
	result := output.Result{Value: value, Table: t}
	for _, j := range jobs {
		next, last, status := at(j.NextRun), "-", p.Style.State("-")
		if j.Suspended {
			next = "suspended"
		}
		if j.LastRun != nil {
			last, status = at(j.LastRun.CreatedAt), p.Style.State(j.LastRun.Status)
		}
		t.Row(j.Name, dash(j.Cron), next, last, status, j.Slots.Skipped, j.Slots.Missed, j.File)
		result.Names = append(result.Names, "job/"+j.Name)
	}
	return p.Print(result)
}

// showRuns prints runs; value is what structured formats get.
func showRuns(st *command.State, value any, runs ...api.Run) error {
	p := st.Printer()
	t := output.NewTable("ID", "STATUS", "TRIGGER", "BEGAN", "TOOK", "MESSAGE", "+BY", "+INSTANCE")
	result := output.Result{Value: value, Table: t}
	for _, r := range runs {
		message := progress(r.Progress)
		if r.Error != nil {
			message = r.Error.Message
		}
		t.Row(r.ID, p.Style.State(r.Status), r.Trigger, at(r.StartedAt), took(r), message, who(r.By), r.Instance)
		result.Names = append(result.Names, "run/"+r.ID)
	}
	return p.Print(result)
}

func at(t api.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func took(r api.Run) string {
	if r.FinishedAt.IsZero() || r.StartedAt.IsZero() {
		return "-"
	}
	return r.FinishedAt.Sub(r.StartedAt.Time).Round(time.Millisecond).String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func who(a api.Actor) string {
	switch {
	case a.Name != "":
		return a.Name
	case a.ID != "":
		return a.Kind + ":" + a.ID
	}
	return a.Kind
}
