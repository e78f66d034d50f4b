package project

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newHistory(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "history [NAMESPACE]",
		Short: "List the configs that a project was served from, the latest first",
		Long: `List the generations of a project: the configs that it was served from, the latest first. The service keeps the
latest 20 with their files, so that svcctl project rollback can serve one of them again.`,
		Example:           `  svcctl project history blog`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			page, err := c.Generations(ctx, namespace)
			if err != nil {
				return err
			}
			t := output.NewTable("GENERATION", "SERVED", "AGE", "BY", "FILES", "REVISION", "NOTE")
			result := output.Result{Value: page, Table: t}
			for _, g := range page.Items {
				served := ""
				if g.Current {
					served = "*"
				}
				t.Row(g.Number, served, output.Age(st.Now(), g.Since.Time), byName(g.By), g.Files, shortRevision(g.Revision), noteOf(g))
				result.Names = append(result.Names, "generation/"+strconv.FormatInt(g.Number, 10))
			}
			st.FitTable(t)
			return st.Printer().Print(result)
		}),
	}
}

// byName names who did something in a table.
func byName(a api.Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return a.Kind
}

// shortRevision is enough of a revision to tell it from others. -o json has it whole.
func shortRevision(revision string) string { return revision[:min(len(revision), 12)] }

func noteOf(g api.Generation) string {
	switch {
	case g.RollbackOf != 0:
		return fmt.Sprintf("rollback to %d", g.RollbackOf)
	case !g.Kept:
		return "files not kept"
	}
	return ""
}
