package job

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type runOptions struct {
	Namespace, Job string
	Wait           bool
	Timeout        time.Duration
}

func newRun(st *command.State, runF func(context.Context, *runOptions) error) *cobra.Command {
	opts := &runOptions{}
	cmd := onJob(st, &cobra.Command{
		Use: "run", Short: "Run a job now",
		Long: `Run a job now, whether or not it is suspended. It is refused while a run of the job is active (exit code 6).

With --wait the command shows the run's log and progress on stderr and ends with the run: with exit code 1 if that did not succeed, 8 when it
takes longer than --timeout. The run goes on when the command is interrupted; svcctl job logs --follow comes back to it.`,
		Example: `  svcctl job run shop cleanup
  svcctl job run shop cleanup --wait -o json`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		opts.Namespace, opts.Job = namespace, job
		if runF != nil {
			return runF(ctx, opts)
		}
		return runRun(ctx, st, c, opts)
	})
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until the run has ended")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 0, "longest wait, 0 for no limit")
	return cmd
}

func runRun(ctx context.Context, st *command.State, c *client.Client, opts *runOptions) error {
	bounded, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	run, err := c.RunJob(bounded, opts.Namespace, opts.Job)
	switch {
	case err != nil:
		return runs.NotStarted(bounded, err, "svcctl job runs "+opts.Namespace+" "+opts.Job)
	case !opts.Wait:
		return runs.Show(st, run, *run)
	}
	of := runs.OfJob(c, opts.Namespace, opts.Job)
	err = of.Follow(bounded, run.ID, func(e api.RunEvent) error {
		runs.Note(st, e)
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return runs.GoesOn(run.ID, of.Command("logs", run.ID)+" --follow comes back to it")
	}
	if err != nil {
		return err
	}
	if run, err = of.Get(ctx, run.ID); err != nil {
		return err
	}
	if err := runs.Show(st, run, *run); err != nil || run.Status == api.RunSucceeded {
		return err
	}
	return runs.Failed(run, of.Command("logs", run.ID)+" shows its log")
}
