package project

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type diffOptions struct {
	st        *command.State
	Dir       string // "": the files on the service's disk
	Namespace string // "": that of the files in Dir
}

// completeProjectOrDir completes a namespace, or a directory where the argument begins as a path does.
func completeProjectOrDir(st *command.State) command.CompleteFunc {
	namespaces := st.CompletePlace(false)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.ContainsAny(prefix, "/.") {
			return command.CompleteDir(cmd, args, prefix)
		}
		return namespaces(cmd, args, prefix)
	}
}

func newDiff(st *command.State, runF func(context.Context, *diffOptions) error) *cobra.Command {
	opts := &diffOptions{st: st}
	cmd := &cobra.Command{
		Use:   "diff [NAMESPACE | DIR]",
		Short: "Show what a reload of a project would change",
		Long: `Show what a reload would change, before anything does: each change with its risk, and the records that are in its way.
With a namespace, with the files as they are on the service's disk. With a directory (a path with a slash, or -f), with the
files in it: they are sent to the service, which writes them nowhere.

The risks are safe, slow, breaking (callers or records may fail that did not, or everybody may do more) and destructive
(what is stored is out of reach). The hash, in -o json and on standard error, holds a reload to this plan:
svcctl project reload --plan HASH.

The exit code is 0 when nothing would change, 1 when something would, and another one when it could not be found out.`,
		Example: `  svcctl project diff blog
  svcctl project diff ./projects/blog -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: completeProjectOrDir(st),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 && isPath(args[0]) {
				if opts.Dir != "" {
					return command.Usagef("the directory is given twice: as an argument and with -f")
				}
				opts.Dir, args = args[0], nil
			}
			if opts.Dir == "" || len(args) > 0 {
				if opts.Namespace, _, err = st.Place(args, 0); err != nil {
					return err
				}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return command.NotRun(runDiff(cmd.Context(), opts))
		},
	}
	cmd.Flags().StringVarP(&opts.Dir, "file", "f", "", "directory with the files to compare")
	return cmd
}

// isPath says that an argument is a path, which a namespace never looks like.
func isPath(arg string) bool {
	return strings.ContainsAny(filepath.ToSlash(arg), "/") || arg == "." || arg == ".."
}

func runDiff(ctx context.Context, opts *diffOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	namespace := opts.Namespace
	var archive []byte
	if opts.Dir != "" {
		st.ProblemFolder = opts.Dir
		f, err := openFolder(opts.Dir)
		if err != nil {
			return err
		}
		if namespace == "" {
			namespace = f.config.Namespace
		}
		if archive, err = f.archive(); err != nil {
			return err
		}
	}
	plan, err := c.Plan(ctx, namespace, archive)
	if err != nil {
		return err
	}
	if err := showPlan(st, st.Printer(), plan); err != nil {
		return err
	}
	if plan.Empty {
		return nil
	}
	return command.Told(command.ExitFailed)
}

// showPlan prints a plan, and tells of it what the table has not.
func showPlan(st *command.State, p output.Printer, plan *api.Plan) error {
	t := output.NewTable("RISK", "ACTION", "KIND", "OBJECT", "DETAIL", "+SAMPLES")
	result := output.Result{Value: plan, Table: t}
	for _, it := range plan.Items {
		t.Row(paintedRisk(p, it.Risk), it.Action, it.Kind, it.Object, it.Detail, strings.Join(it.Samples, " "))
		result.Names = append(result.Names, it.Kind+"/"+it.Object)
	}
	for _, w := range plan.Warnings {
		w.Warning = false // the word is in front already
		st.Warnf("%s", command.ProblemLine(w))
	}
	if plan.Empty {
		st.Notef("%s: nothing would change", plan.Namespace)
	} else {
		st.Notef("%s: changes: %d, risk: %s, hash: %s", plan.Namespace, len(plan.Items), plan.Risk, plan.Hash)
	}
	if plan.Empty && !p.Structured() {
		return nil
	}
	return p.Print(result)
}

func paintedRisk(p output.Printer, r api.Risk) output.Painted {
	out := p.Style.State(string(r))
	switch r {
	case api.RiskBreaking:
		out.Paint = p.Style.Yellow
	case api.RiskDestructive:
		out.Paint = p.Style.Red
	case api.RiskSafe, api.RiskSlow:
	}
	return out
}
