package runs

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Noun is what has runs, actions or jobs, and makes its verbs about them.
type Noun struct {
	St *command.State
	// On makes a verb that is about one action or job.
	On func(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, name string) error) *cobra.Command
	// Of gives the runs of one.
	Of func(c *client.Client, namespace, name string) Of
}

// Verb makes a verb about the runs of one action or job.
func (n Noun) Verb(cmd *cobra.Command, run func(ctx context.Context, of Of) error) *cobra.Command {
	return n.On(n.St, cmd, func(ctx context.Context, c *client.Client, namespace, name string) error {
		return run(ctx, n.Of(c, namespace, name))
	})
}

// List makes a verb that lists runs.
func (n Noun) List(cmd *cobra.Command) *cobra.Command {
	var status string
	var limit int
	cmd = n.Verb(cmd, func(ctx context.Context, of Of) error {
		if err := CheckStatus(status); err != nil {
			return err
		}
		page, err := of.list(ctx, of.Namespace, of.Name, status, client.Query{Limit: limit})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			n.St.Notef("no runs")
		}
		return Show(n.St, page, page.Items...)
	})
	ListFlags(cmd, &status, &limit)
	return cmd
}

// ListFlags adds the flags of a verb that lists runs.
func ListFlags(cmd *cobra.Command, status *string, limit *int) {
	cmd.Flags().StringVar(status, "status", "", "only those that are queued, running, succeeded, failed, cancelled or lost")
	cmd.Flags().IntVar(limit, "limit", 0, "how many (default 100)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"status": cobra.FixedCompletions(statuses(), cobra.ShellCompDirectiveNoFileComp)})
}

// CheckStatus refuses a status that no run has.
func CheckStatus(status string) error {
	if status != "" && !slices.Contains(statuses(), status) {
		return command.Usagef("--status %s: want one of %s", status, strings.Join(statuses(), ", "))
	}
	return nil
}

func statuses() []string {
	return []string{api.RunQueued, api.RunRunning, api.RunSucceeded, api.RunFailed, api.RunCancelled, api.RunLost}
}

// Logs makes a verb that shows the log of a run.
func (n Noun) Logs(cmd *cobra.Command) *cobra.Command {
	var id string
	var follow bool
	cmd = n.Verb(cmd, func(ctx context.Context, of Of) error { return logs(ctx, n.St, of, id, follow) })
	n.RunFlag(cmd, &id)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the run has ended")
	return cmd
}

func logs(ctx context.Context, st *command.State, of Of, id string, follow bool) error {
	id, err := of.Pick(ctx, id)
	if err != nil {
		return err
	}
	if follow {
		return of.Follow(ctx, id, func(e api.RunEvent) error { return printEvent(st, e) })
	}
	run, err := of.Get(ctx, id)
	if err != nil {
		return err
	}
	if p := st.Printer(); p.Structured() {
		return p.Print(output.Result{Value: run.Events})
	}
	for _, e := range run.Events {
		if err := printEvent(st, e); err != nil {
			return err
		}
	}
	return nil
}

// Cancel makes a verb that cancels a run.
func (n Noun) Cancel(cmd *cobra.Command) *cobra.Command {
	var id string
	cmd = n.Verb(cmd, func(ctx context.Context, of Of) error {
		id, err := of.pickActive(ctx, id)
		if err != nil {
			return err
		}
		run, err := of.cancel(ctx, of.Namespace, of.Name, id)
		if err != nil {
			return err
		}
		return Show(n.St, run, *run)
	})
	n.RunFlag(cmd, &id)
	return cmd
}

// RunFlag adds --run to a verb, and completes it with the runs that there are.
func (n Noun) RunFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "run", "", "id of the run")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"run": n.completeRuns})
}

func (n Noun) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return n.St.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
		namespace, rest, err := n.St.Place(args, 1)
		if err != nil || len(rest) != 1 {
			return nil
		}
		page, err := n.Of(c, namespace, rest[0]).list(ctx, namespace, rest[0], "", client.Query{})
		if err != nil {
			return nil
		}
		ids := make([]string, len(page.Items))
		for i, r := range page.Items {
			ids[i] = r.ID + "\t" + r.Status + " " + At(r.CreatedAt)
		}
		return ids
	})
}
