package project

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type rollbackOptions struct {
	st        *command.State
	Namespace string
	To        int64
	Wait      bool
	Yes       bool
	Timeout   time.Duration
}

func newRollback(st *command.State, runF func(context.Context, *rollbackOptions) error) *cobra.Command {
	opts := &rollbackOptions{st: st}
	cmd := &cobra.Command{
		Use:   "rollback [NAMESPACE] --to GENERATION",
		Short: "Serve an earlier config of a project again",
		Long: `Serve an earlier generation of a project again, as svcctl project history lists them: on every instance, and after a
restart, too. The command ends when it is served; requests in flight finish on what was served before. The files stay as they are:
when they change, or at the next reload, they are served again. Records stay as they are, too; indexes become those of that
config.

A config that this version of the service does not take any more is refused with all its problems, and nothing changes.
With --wait it also waits until the project is Ready, as svcctl project reload does.`,
		Example:           `  svcctl project rollback blog --to 12 --yes`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			opts.Namespace = namespace
			if opts.To < 1 {
				return command.Usagef("--to must be the number of a generation: svcctl project history %s lists them", namespace)
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runRollback(ctx, opts)
		}),
	}
	cmd.Flags().Int64Var(&opts.To, "to", 0, "the generation to serve again")
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until it is Ready, too")
	command.YesFlag(cmd, &opts.Yes)
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "longest wait, 0 for no limit")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"to": completeGenerations(st)})
	return cmd
}

// completeGenerations completes the number of a generation that is kept, in a flag.
func completeGenerations(st *command.State) command.CompleteFunc {
	return st.CompleteAt(0, func(ctx context.Context, c *client.Client, namespace string, _ []string, _ string) []string {
		list, err := c.Generations(ctx, namespace)
		if err != nil {
			return nil
		}
		var out []string
		for _, g := range list.Items {
			if g.Kept && !g.Current {
				out = append(out, fmt.Sprintf("%d\t%s, by %s", g.Number, output.Age(st.Now(), g.Since.Time), byName(g.By)))
			}
		}
		return out
	})
}

func runRollback(ctx context.Context, opts *rollbackOptions) error {
	st := opts.st
	c, err := st.PatientClient()
	if err != nil {
		return err
	}
	if err := st.Confirm(opts.Yes, fmt.Sprintf("Serve generation %d of %s again at %s?", opts.To, opts.Namespace, c.Server())); err != nil {
		return err
	}
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	var p *api.Project
	if opts.Wait { // before the rollback, so that without the right nothing is done
		if _, p, err = find(ctx, st, opts.Namespace); err != nil {
			return err
		}
	}
	result, err := c.Rollback(ctx, opts.Namespace, opts.To)
	if err != nil {
		return command.Named(err, strconv.FormatInt(opts.To, 10))
	}
	if !result.Changed {
		st.Notef("generation %d is what is served already", opts.To)
	}
	for _, w := range result.Warnings {
		st.Warnf("%s", w.Message)
	}
	var waitErr error
	if opts.Wait {
		var status *api.ProjectStatus
		if status, waitErr = waitReady(ctx, c, p, 0); status != nil {
			result.Conditions = status.Conditions
		}
	}
	t := output.NewTable("NAMESPACE", "GENERATION", "ROLLBACK OF", "CHANGED", "REVISION")
	t.Row(opts.Namespace, result.Generation, result.RollbackOf, result.Changed, result.Revision)
	err = st.Printer().Print(output.Result{Value: result, Table: t, Names: []string{"project/" + opts.Namespace}})
	if err != nil {
		return err
	}
	return waitErr
}
