package project

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type statusOptions struct {
	st        *command.State
	Namespace string
	Wait      bool
	Watch     bool
	Timeout   time.Duration
}

func newStatus(st *command.State, runF func(context.Context, *statusOptions) error) *cobra.Command {
	opts := &statusOptions{st: st}
	cmd := &cobra.Command{
		Use:   "status [NAMESPACE]",
		Short: "Show how a project does: conditions, and what is wrong in its config",
		Long: `Show the phase of a project, the generation and revision that are served, its conditions, and every problem in its
config files as file:line:column: path: message. A broken config never interrupts service: the generation shown goes on
being served until the files are right again.

With --wait it waits until the project is Ready. The exit code is 1 when a condition fails, 8 when it takes longer than
--timeout; without --wait it is 0 whatever the conditions say.

With --watch it is shown again whenever it has changed, until you interrupt it; -o json gives an object a line then.`,
		Example: `  svcctl project status blog
  svcctl project status blog --watch
  svcctl project status blog --wait --timeout 60s -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			opts.Namespace = namespace
			if runF != nil {
				return runF(ctx, opts)
			}
			return runStatus(ctx, opts)
		}),
	}
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until it is Ready")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "go on, and show it when it has changed")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "longest wait, 0 for no limit")
	cmd.MarkFlagsMutuallyExclusive("wait", "watch")
	return cmd
}

func runStatus(ctx context.Context, opts *statusOptions) error {
	st := opts.st
	if opts.Watch {
		return runStatusWatch(ctx, opts)
	}
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	c, p, err := find(ctx, st, opts.Namespace)
	if err != nil {
		return err
	}
	if !opts.Wait {
		status, err := c.ProjectStatus(ctx, p.ID)
		if err != nil {
			return err
		}
		return showStatus(st, p, status)
	}
	status, waitErr := waitReady(ctx, c, p, 0)
	if status == nil {
		return waitErr
	}
	if err := showStatus(st, p, status); err != nil {
		return err
	}
	return waitErr
}

// runStatusWatch shows the status, and again whenever it is another one.
func runStatusWatch(ctx context.Context, opts *statusOptions) error {
	st := opts.st
	c, p, err := find(ctx, st, opts.Namespace)
	if err != nil {
		return err
	}
	var last *api.ProjectStatus
	return watchStatus(ctx, c, p, func(status *api.ProjectStatus) (bool, error) {
		state := *status
		state.Counts = nil // records come and go all the time
		if last != nil && reflect.DeepEqual(*last, state) {
			return false, nil
		}
		first := last == nil
		last = &state
		printer := st.Printer()
		if printer.Structured() {
			return false, output.JSONLine(printer.W, status)
		}
		if !first {
			if _, err := fmt.Fprintln(printer.W); err != nil {
				return false, err
			}
		}
		return false, showStatus(st, p, status)
	})
}

func showStatus(st *command.State, p *api.Project, status *api.ProjectStatus) error {
	printer := st.Printer()
	if !printer.ForPeople() {
		return printer.Print(output.Result{Value: status, Names: []string{"project/" + p.Namespace}})
	}
	f := output.NewFields()
	f.Add("Project", p.Namespace)
	f.Add("Name", p.Name)
	f.Add("Phase", printer.Style.State(string(status.Phase)))
	f.Add("Generation", status.ObservedGeneration)
	f.Add("Revision", status.Revision)
	f.Add("Config file", p.ConfigFile)
	if err := f.Write(printer.W); err != nil {
		return err
	}
	if err := writeConditions(st, printer, status.Conditions); err != nil {
		return err
	}
	if err := writeSuspended(printer, status.SuspendedScripts); err != nil {
		return err
	}
	return writeProblems(printer, status.Problems)
}

func writeSuspended(p output.Printer, scripts []api.SuspendedScript) error {
	if len(scripts) == 0 {
		return nil
	}
	t := output.NewTable("FILE", "RUNAWAYS", "UNTIL")
	for _, s := range scripts {
		t.Row(s.File, s.Runaways, s.Until.Format(time.RFC3339))
	}
	return p.Section("Suspended scripts", t)
}

func writeConditions(st *command.State, p output.Printer, conditions []api.Condition) error {
	t := output.NewTable("TYPE", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range conditions {
		t.Row(c.Type, printerState(p, c), c.Reason, output.Age(st.Now(), c.LastTransitionTime.Time), c.Message)
	}
	cut := st.OutWidth > 0 && p.Format != output.FormatWide && t.Fit(st.OutWidth) // elsewhere it is read by grep, or kept
	err := p.Section("Conditions", t)
	if cut && err == nil {
		st.Notef("-o wide shows the messages whole")
	}
	return err
}

// printerState paints a condition's status.
func printerState(p output.Printer, c api.Condition) output.Painted {
	return p.Style.Toned(c.Status, output.ToneOfCondition(c.Type, c.Status))
}

func writeProblems(p output.Printer, problems []api.ConfigProblem) error {
	if len(problems) == 0 {
		return nil
	}
	if err := p.Heading("Problems"); err != nil {
		return err
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(p.W, output.Escape(command.ProblemLine(problem))); err != nil {
			return err
		}
	}
	return nil
}
