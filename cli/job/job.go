package job

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl job.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("job", "See and run the jobs of a project",
		newList(st), newDescribe(st), newRun(st, nil), newHistory(st), newLogs(st), newNext(st, nil),
		newCancel(st), newSuspend(st), newResume(st))
}

// ofJobs makes the verbs about the runs of jobs.
func ofJobs(st *command.State) runs.Noun { return runs.Noun{St: st, On: onJob, Of: runs.OfJob} }

// onJob makes a verb that is about one job.
func onJob(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, job string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] JOB"
	cmd.Args = command.PlaceArgs(1)
	cmd.ValidArgsFunction = st.CompleteJobs()
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
		next, last, status := runs.At(j.NextRun), "-", p.Style.State("-")
		if j.Suspended {
			next = "suspended"
		}
		if j.LastRun != nil {
			last, status = runs.At(j.LastRun.CreatedAt), p.Style.State(j.LastRun.Status)
		}
		t.Row(j.Name, dash(j.Cron), next, last, status, j.Slots.Skipped, j.Slots.Missed, j.File)
		result.Names = append(result.Names, "job/"+j.Name)
	}
	st.FitTable(t)
	return p.Print(result)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
