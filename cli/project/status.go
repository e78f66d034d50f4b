package project

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newStatus(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "status [NAMESPACE]",
		Short: "Show how a project does: conditions, and what is wrong in its config",
		Long: `Show the phase of a project, the generation and revision that are served, its conditions, and every problem in its
config files as file:line:column: path: message. A broken config never interrupts service: the generation shown goes on
being served until the files are right again.`,
		Example: `  svcctl project status blog
  svcctl project status blog -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runStatus(ctx, st, namespace)
		}),
	}
}

func runStatus(ctx context.Context, st *command.State, namespace string) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	status, err := c.ProjectStatus(ctx, p.ID)
	if err != nil {
		return err
	}
	printer := st.Printer()
	if printer.Structured() || printer.Format == output.FormatName {
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
	return writeProblems(printer, status.Problems)
}

func writeConditions(st *command.State, p output.Printer, conditions []api.Condition) error {
	t := output.NewTable("TYPE", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range conditions {
		t.Row(c.Type, printerState(p, c), c.Reason, output.Age(st.Now(), c.LastTransitionTime.Time), c.Message)
	}
	return p.Section("Conditions", t)
}

// printerState paints a condition's status. OutOfDate is the one that is well when False.
func printerState(p output.Printer, c api.Condition) output.Painted {
	painted := p.Style.State(c.Status)
	if c.Type == "OutOfDate" {
		switch c.Status {
		case "True":
			painted.Paint = p.Style.Yellow
		case "False":
			painted.Paint = p.Style.Green
		}
	}
	return painted
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
