package job

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	return st.WatchFlag(st.AllFlag(&cobra.Command{
		Use:     "list [NAMESPACE]",
		Aliases: []string{"ls"},
		Short:   "List the jobs of a project, with their next and last runs",
		Example: `  svcctl job list shop
  svcctl job list -A --watch`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			page, err := c.ListJobs(ctx, namespace)
			if err != nil {
				return err
			}
			if len(page.Items) == 0 {
				st.Notef("%s has no jobs", namespace)
			}
			return showJobs(st, page, page.Items...)
		}),
	}))
}

func newDescribe(st *command.State) *cobra.Command {
	return onJob(st, &cobra.Command{
		Use: "describe", Aliases: []string{"get"}, Short: "Show one job; -o yaml shows everything", Example: `  svcctl job describe shop cleanup -o yaml`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		j, err := c.Job(ctx, namespace, job)
		return show(st, j, err)
	})
}

func newSuspend(st *command.State) *cobra.Command {
	return onJob(st, &cobra.Command{
		Use: "suspend", Short: "Keep a job from being run by its schedule",
		Long: `Keep a job from being run by its schedule, until svcctl job resume. A run that is active goes on, and the job can still be
run by hand.`,
		Example: `  svcctl job suspend shop cleanup`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		j, err := c.SuspendJob(ctx, namespace, job)
		return show(st, j, err)
	})
}

func newResume(st *command.State) *cobra.Command {
	return onJob(st, &cobra.Command{
		Use: "resume", Short: "Have a suspended job be run by its schedule again",
		Long:    `Have a suspended job be run by its schedule again. What it was due for meanwhile does not come later.`,
		Example: `  svcctl job resume shop cleanup`,
	}, func(ctx context.Context, c *client.Client, namespace, job string) error {
		j, err := c.ResumeJob(ctx, namespace, job)
		return show(st, j, err)
	})
}

func show(st *command.State, j *api.Job, err error) error {
	if err != nil {
		return err
	}
	return showJobs(st, j, *j)
}
