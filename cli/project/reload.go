package project

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type reloadOptions struct {
	st        *command.State
	Namespace string
	Wait      bool
	Timeout   time.Duration
	Plan      string
	Allow     string
}

func newReload(st *command.State, runF func(context.Context, *reloadOptions) error) *cobra.Command {
	opts := &reloadOptions{st: st}
	cmd := &cobra.Command{
		Use:     "reload [NAMESPACE]",
		Aliases: []string{"reconcile"},
		Short:   "Load a project's config files again",
		Long: `Load a project's config files again. The command ends when the new generation is served; requests in flight finish on
the old one. An invalid config is refused with all its problems, and the old one goes on being served.

With --wait it also waits until the project is Ready, its indexes built. The exit code is 1 when a condition fails, such
as a unique index that records violate, and 8 when it takes longer than --timeout. It reads the status for that, which
needs the right project.read beside project.reload; without --wait, what is not well is a warning.

With --plan it changes what that plan of svcctl project diff tells, or nothing (exit code 6); with --allow nothing that has a greater
risk.`,
		Example: `  svcctl project reload blog
  svcctl project reload blog --wait --timeout 60s -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Namespace, _, err = st.Place(args, 0); err != nil {
				return err
			}
			if err := command.CheckAllow(opts.Allow); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runReload(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until it is Ready, too")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "longest wait, 0 for no limit")
	cmd.Flags().StringVar(&opts.Plan, "plan", "", "hash of the plan that it has to be")
	command.AllowFlag(cmd, &opts.Allow)
	return cmd
}

func runReload(ctx context.Context, opts *reloadOptions) error {
	st := opts.st
	c, err := st.PatientClient()
	if err != nil {
		return err
	}
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	var p *api.Project
	if opts.Wait { // before the reload, so that without the right nothing is done
		if _, p, err = find(ctx, st, opts.Namespace); err != nil {
			return err
		}
	}
	reload := c.Reload
	if opts.Plan != "" || opts.Allow != "" {
		reload = func(ctx context.Context, namespace string) (*api.ReloadResult, error) {
			return c.ReloadPlanned(ctx, namespace, opts.Plan, api.Risk(opts.Allow))
		}
	}
	result, err := reload(ctx, opts.Namespace)
	if err != nil {
		return err
	}
	for _, w := range result.Warnings {
		w.Warning = false // the word is in front already
		st.Warnf("%s", command.ProblemLine(w))
	}
	if !result.Changed {
		st.Notef("the files are those that are served already")
	}
	if !opts.Wait {
		warnConditions(st, result)
		return showReload(st, opts.Namespace, result)
	}
	patience := 0
	if !result.Changed {
		patience = settleLooks
	}
	status, waitErr := waitReady(ctx, c, p, patience)
	if status != nil {
		result.Conditions = status.Conditions
	}
	if err := showReload(st, opts.Namespace, result); err != nil {
		return err
	}
	return waitErr
}

func showReload(st *command.State, namespace string, result *api.ReloadResult) error {
	t := output.NewTable("NAMESPACE", "GENERATION", "CHANGED", "REVISION")
	t.Row(namespace, result.Generation, result.Changed, result.Revision)
	return st.Printer().Print(output.Result{Value: result, Table: t, Names: []string{"project/" + namespace}})
}
