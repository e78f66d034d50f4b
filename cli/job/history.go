package job

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/client"
)

func newHistory(st *command.State) *cobra.Command {
	return ofJobs(st).List(&cobra.Command{
		Use: "history", Aliases: []string{"runs"}, Short: "List the runs of a job, newest first",
		Long:    `List the runs of a job, newest first. The service keeps the newest 100, for 30 days.`,
		Example: `  svcctl job history shop cleanup --status failed`,
	})
}

func newLogs(st *command.State) *cobra.Command {
	return ofJobs(st).Logs(&cobra.Command{
		Use: "logs", Short: "Show the log of a run of a job",
		Long: `Show the log and the progress of a run of a job on stdout: of the newest one, unless --run names another. With --follow the command goes on until
the run ends.`,
		Example: `  svcctl job logs shop cleanup
  svcctl job logs shop cleanup --run cleanup-1777604400 --follow`,
	})
}

func newCancel(st *command.State) *cobra.Command {
	return ofJobs(st).Cancel(&cobra.Command{
		Use: "cancel", Short: "Cancel the active run of a job",
		Long:    `Cancel the active run of a job. It ends soon; svcctl job logs --follow waits for that.`,
		Example: `  svcctl job cancel shop cleanup`,
	})
}

type nextOptions struct {
	Namespace, Job string
	Limit          int
}

func newNext(st *command.State, runF func(context.Context, *nextOptions) error) *cobra.Command {
	opts := &nextOptions{}
	cmd := onJob(st, &cobra.Command{
		Use: "next", Short: "Show when a job is due next",
		Example: `  svcctl job next shop cleanup --limit 10`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		opts.Namespace, opts.Job = namespace, job
		if runF != nil {
			return runF(ctx, opts)
		}
		times, err := c.NextJobTimes(ctx, namespace, job, opts.Limit)
		if err != nil {
			return err
		}
		t := output.NewTable("NEXT")
		result := output.Result{Value: times, Table: t}
		for _, next := range times.Times {
			t.Row(runs.At(next))
			result.Names = append(result.Names, runs.At(next))
		}
		if len(times.Times) == 0 {
			st.Notef("%s has no schedule", job)
		}
		return st.Printer().Print(result)
	})
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "how many times (default 5)")
	return cmd
}
