package action

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl action.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("action", "See and call the actions of a project", newList(st), newDescribe(st), newCall(st, nil),
		newRuns(st), newLogs(st), newResult(st), newCancel(st))
}

// onAction makes a verb that is about one action. What it answers itself takes as long as it does.
func onAction(st *command.State, cmd *cobra.Command, run func(ctx context.Context, c *client.Client, namespace, action string) error) *cobra.Command {
	cmd.Use += " [NAMESPACE] ACTION"
	cmd.Args = command.PlaceArgs(1)
	cmd.ValidArgsFunction = st.CompleteActions()
	cmd.RunE = st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
		c, err := st.Client()
		if err != nil {
			return err
		}
		ctx, end := c.WhileAnswering(ctx)
		defer end()
		return run(ctx, c, namespace, rest[0])
	})
	return cmd
}

func newList(st *command.State) *cobra.Command {
	return st.AllFlag(&cobra.Command{
		Use:               "list [NAMESPACE]",
		Aliases:           []string{"ls"},
		Short:             "List the actions of a project that you may call",
		Example:           `  svcctl action list shop`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			page, err := c.ListActions(ctx, namespace)
			if err != nil {
				return err
			}
			if len(page.Items) == 0 {
				st.Notef("%s has no actions that you may call", namespace)
			}
			t := output.NewTable("NAME", "METHODS", "EXECUTION")
			result := output.Result{Value: page, Table: t}
			for _, a := range page.Items {
				t.Row(a.Name, strings.Join(mayUse(a), ", "), strings.Join(executions(a), ", "))
				result.Names = append(result.Names, "action/"+a.Name)
			}
			return st.Printer().Print(result)
		}),
	})
}

// mayUse lists the methods that the caller may use.
func mayUse(a api.ActionDescription) []string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(a.YourPermissions)) {
		if a.YourPermissions[m] {
			out = append(out, m)
		}
	}
	return out
}

// executions lists how the methods run, each way once.
func executions(a api.ActionDescription) []string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(a.Methods)) {
		out = append(out, a.Methods[m].Execution)
	}
	return slices.Compact(out)
}

func newDescribe(st *command.State) *cobra.Command {
	return onAction(st, &cobra.Command{
		Use: "describe", Aliases: []string{"get"}, Short: "Show what an action takes, and how it runs",
		Example: "  svcctl action describe shop export-products\n  svcctl action describe shop export-products -o yaml",
	}, func(ctx context.Context, c *client.Client, namespace, action string) error {
		a, err := c.DescribeAction(ctx, namespace, action)
		if err != nil {
			return err
		}
		return describe(st, a)
	})
}

func describe(st *command.State, a *api.ActionDescription) error {
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: a, Names: []string{"action/" + a.Name}})
	}
	f := output.NewFields()
	f.Add("Action", a.Name)
	f.Add("You may", strings.Join(mayUse(*a), ", "))
	if err := f.Write(p.W); err != nil {
		return err
	}
	for _, m := range slices.Sorted(maps.Keys(a.Methods)) {
		method := a.Methods[m]
		t := output.NewTable("WHERE", "FIELD", "TYPE", "REQUIRED")
		addFields(t, "query", "", method.Query)
		addFields(t, "data", "", method.Data)
		if method.AnyData {
			t.Row("data", "*", "any", false)
		}
		title := strings.ToUpper(m) + " (" + method.Execution
		if method.Cancellable {
			title += ", cancellable"
		}
		if err := p.Section(title+")", t); err != nil {
			return err
		}
	}
	return nil
}

func addFields(t *output.Table, where, prefix string, fields []api.FieldDescription) {
	for _, f := range fields {
		t.Row(where, prefix+f.Name, f.Type, f.Required)
		addFields(t, where, prefix+f.Name+".", f.SubFields)
	}
}
