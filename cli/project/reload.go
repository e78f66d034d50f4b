package project

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

type reloadOptions struct {
	st        *command.State
	Namespace string
	Wait      bool
	Timeout   time.Duration
}

func newReload(st *command.State, runF func(context.Context, *reloadOptions) error) *cobra.Command {
	opts := &reloadOptions{st: st}
	cmd := &cobra.Command{
		Use:   "reload [NAMESPACE]",
		Short: "Load a project's config files again",
		Long: `Load a project's config files again, and wait until the new generation is served. Requests in flight finish on the
old one. An invalid config is refused with all its problems, and the old one goes on being served.`,
		Example: `  svcctl project reload blog
  svcctl project reload blog --timeout 30s -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Namespace, _, err = st.Place(args, 0); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runReload(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", true, "wait until it is done")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 2*time.Minute, "longest wait, 0 for no limit")
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
	if !opts.Wait {
		if err := c.RequestReload(ctx, opts.Namespace); err != nil {
			return err
		}
		st.Notef("reload of %s is on its way; svcctl project status %s shows how it went", opts.Namespace, opts.Namespace)
		return nil
	}
	result, err := c.Reload(ctx, opts.Namespace)
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
	p := st.Printer()
	t := output.NewTable("NAMESPACE", "GENERATION", "CHANGED", "REVISION")
	t.Row(opts.Namespace, result.Generation, result.Changed, result.Revision)
	return p.Print(output.Result{Value: result, Table: t, Names: []string{"project/" + opts.Namespace}})
}
