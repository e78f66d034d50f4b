package job

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
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

With --wait the command shows the run's log on stderr and ends with the run: with exit code 1 if that did not succeed, 8 when it
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
	run, err := c.RunJob(ctx, opts.Namespace, opts.Job)
	if err != nil {
		return err
	}
	if !opts.Wait {
		return showRuns(st, run, *run)
	}
	waiting, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	err = c.FollowJobRun(waiting, opts.Namespace, opts.Job, run.ID, 0, func(e api.RunEvent) error {
		note(st, e)
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return &command.Error{
			Exit: command.ExitTimeout, Code: "timeout", Message: "the run " + run.ID + " has not ended yet", Hint: "svcctl job logs --follow comes back to it",
		}
	}
	if err != nil {
		return err
	}
	if run, err = c.JobRun(ctx, opts.Namespace, opts.Job, run.ID); err != nil {
		return err
	}
	if err := showRuns(st, run, *run); err != nil {
		return err
	}
	return outcome(run)
}

// outcome is an error if a run has not succeeded.
func outcome(run *api.Run) error {
	if run.Status == api.RunSucceeded || run.Active() {
		return nil
	}
	message := run.Status
	if run.Error != nil {
		message = run.Error.Message
	}
	return &command.Error{
		Exit: command.ExitFailed, Code: "run_" + run.Status, Message: "run " + run.ID + ": " + message,
		Hint: "svcctl job logs " + run.Name + " --run " + run.ID + " shows its log",
	}
}

// note tells of an event on stderr.
func note(st *command.State, e api.RunEvent) {
	switch {
	case e.Event == api.EventLog:
		st.Notef("%s: %s", e.Data.Level, e.Data.Message)
	case e.Event == api.EventProgress && e.Data.Total > 0:
		st.Notef("%d of %d %s", e.Data.Done, e.Data.Total, e.Data.Message)
	case e.Event == api.EventProgress:
		st.Notef("%s %s", e.Data.Phase, e.Data.Message)
	}
}
