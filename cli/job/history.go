package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type historyOptions struct {
	Namespace, Job, Status string
	Limit                  int
}

func newHistory(st *command.State, runF func(context.Context, *historyOptions) error) *cobra.Command {
	opts := &historyOptions{}
	cmd := onJob(st, &cobra.Command{
		Use: "history", Aliases: []string{"runs"}, Short: "List the runs of a job, newest first",
		Long:    `List the runs of a job, newest first. The service keeps the newest 100, for 30 days.`,
		Example: `  svcctl job history shop cleanup --status failed`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		opts.Namespace, opts.Job = namespace, job
		if runF != nil {
			return runF(ctx, opts)
		}
		page, err := c.ListJobRuns(ctx, namespace, job, opts.Status, client.Query{Limit: opts.Limit})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			st.Notef("no runs")
		}
		return showRuns(st, page, page.Items...)
	})
	cmd.Flags().StringVar(&opts.Status, "status", "", "only those that are queued, running, succeeded, failed, cancelled or lost")
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "how many (default 100)")
	return cmd
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
			t.Row(at(next))
			result.Names = append(result.Names, at(next))
		}
		if len(times.Times) == 0 {
			st.Notef("%s has no schedule", job)
		}
		return st.Printer().Print(result)
	})
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "how many times (default 5)")
	return cmd
}

type logsOptions struct {
	Namespace, Job, Run string
	Follow              bool
}

func newLogs(st *command.State, runF func(context.Context, *logsOptions) error) *cobra.Command {
	opts := &logsOptions{}
	cmd := onJob(st, &cobra.Command{
		Use: "logs", Short: "Show the log of a run of a job",
		Long: `Show the log and the progress of a run of a job on stdout: of the newest one, unless --run names another. With --follow the command goes on until
the run ends.`,
		Example: `  svcctl job logs shop cleanup
  svcctl job logs shop cleanup --run cleanup-1777604400 --follow`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		opts.Namespace, opts.Job = namespace, job
		if runF != nil {
			return runF(ctx, opts)
		}
		return runLogs(ctx, st, c, opts)
	})
	cmd.Flags().StringVar(&opts.Run, "run", "", "id of the run")
	cmd.Flags().BoolVarP(&opts.Follow, "follow", "f", false, "wait for more until the run has ended")
	return cmd
}

func runLogs(ctx context.Context, st *command.State, c *client.Client, opts *logsOptions) error {
	if opts.Run == "" {
		page, err := c.ListJobRuns(ctx, opts.Namespace, opts.Job, "", client.Query{Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			st.Notef("%s has not run", opts.Job)
			return nil
		}
		opts.Run = page.Items[0].ID
	}
	if opts.Follow {
		return c.FollowJobRun(ctx, opts.Namespace, opts.Job, opts.Run, 0, func(e api.RunEvent) error { return printEvent(st, e) })
	}
	run, err := c.JobRun(ctx, opts.Namespace, opts.Job, opts.Run)
	if err != nil {
		return err
	}
	if st.Printer().Structured() {
		return st.Printer().Print(output.Result{Value: run.Events})
	}
	for _, e := range run.Events {
		if err := printEvent(st, e); err != nil {
			return err
		}
	}
	return nil
}

// printEvent writes what an event says, on a line of its own.
func printEvent(st *command.State, e api.RunEvent) error {
	what, text := e.Event, e.Data.Message
	switch {
	case e.Event == api.EventProgress:
		text = progressOf(e)
	case e.Event == api.EventLog:
		what = e.Data.Level
	case e.Data.Status != "":
		what = e.Data.Status
	}
	_, err := fmt.Fprintf(st.Stdout(), "%9.3fs %-9s %s\n", e.Data.ElapsedSeconds, what, output.Escape(text))
	return err
}

func newCancel(st *command.State) *cobra.Command {
	var id string
	cmd := onJob(st, &cobra.Command{
		Use: "cancel", Short: "Cancel the active run of a job",
		Long:    `Cancel the active run of a job: the newest one, unless --run names another. It ends soon; svcctl job logs --follow waits for that.`,
		Example: `  svcctl job cancel shop cleanup`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		if id == "" {
			page, err := c.ListJobRuns(ctx, namespace, job, "", client.Query{Limit: 1})
			if err != nil {
				return err
			}
			if len(page.Items) == 0 || !page.Items[0].Active() {
				return &command.Error{Exit: command.ExitNotFound, Code: "run_not_found", Message: "no run of " + job + " is active"}
			}
			id = page.Items[0].ID
		}
		run, err := c.CancelJobRun(ctx, namespace, job, id)
		if err != nil {
			return err
		}
		return showRuns(st, run, *run)
	})
	cmd.Flags().StringVar(&id, "run", "", "id of the run")
	return cmd
}
