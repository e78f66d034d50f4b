package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
		return command.RunGoesOn(run.ID, "svcctl job logs --follow comes back to it")
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
	return command.RunFailed(run, "svcctl job logs "+run.Name+" --run "+run.ID+" shows its log")
}

// note tells of an event on stderr.
func note(st *command.State, e api.RunEvent) {
	switch e.Event {
	case api.EventLog:
		st.Notef("%s: %s", e.Data.Level, e.Data.Message)
	case api.EventProgress:
		st.Notef("%s", progressOf(e))
	}
}

// progressOf is what an event says of how far the run is.
func progressOf(e api.RunEvent) string {
	return progress(api.RunProgress{
		Phase: e.Data.Phase, Collection: e.Data.Collection, Message: e.Data.Message,
		Done: e.Data.Done, Total: e.Data.Total, BytesDone: e.Data.BytesDone, BytesTotal: e.Data.BytesTotal,
	})
}

// progress is how far a run is, on one line: what is known of phase, collection, amounts and message.
func progress(p api.RunProgress) string {
	var parts []string
	for _, text := range []string{p.Phase, p.Collection, amount(p.Done, p.Total, ""), amount(p.BytesDone, p.BytesTotal, " bytes"), p.Message} {
		if text != "" {
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
