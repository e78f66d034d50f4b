package embedding

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// NewCmd makes svcctl embedding.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("embedding", "See how what makes vectors of texts is", newStatus(st))
}

func newStatus(st *command.State) *cobra.Command {
	service := false
	cmd := &cobra.Command{
		Use:   "status [NAMESPACE]",
		Short: "Show embedding groups and their members",
		Long: `Show the embedding groups of the service: which vectors they give, and how each member is. live answers; degraded is left
alone for a while after failed calls; quarantined gives other vectors than its group; offline was not verified yet, or its
settings can't work. A group is as good as its best member.

With a namespace, by the argument, -n, SVCCTL_NAMESPACE or the context, it takes the right project.regenerate-search on that
project, and errors are without what providers said. Without one, or with --service, it takes server.shutdown.`,
		Example: "  svcctl embedding status blog\n" +
			"  svcctl embedding status --service -o json",
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace := ""
			if len(args) > 0 && service {
				return &command.Error{Exit: command.ExitUsage, Code: "usage", Message: "--service is of no project", Hint: "leave the namespace or --service out"}
			}
			if known, err := st.Namespace(); err != nil {
				return err
			} else if !service && (known != "" || len(args) > 0) {
				if namespace, _, err = st.Place(args, 0); err != nil {
					return err
				}
			}
			return runStatus(cmd.Context(), st, namespace)
		},
	}
	cmd.Flags().BoolVar(&service, "service", false, "as the service sees them, with the full texts of errors")
	return cmd
}

func runStatus(ctx context.Context, st *command.State, namespace string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	var status *api.EmbeddingStatus
	if namespace == "" {
		status, err = c.EmbeddingStatus(ctx)
	} else {
		status, err = c.ProjectEmbeddingStatus(ctx, namespace)
	}
	if err != nil {
		return err
	}
	p := st.Printer()
	t, names := output.NewTable("GROUP", "MEMBER", "STATE", "BREAKER", "FAILURES", "AGE", "MESSAGE"), []string{}
	for _, g := range status.Groups {
		names = append(names, "embedding/"+g.Name)
		if g.Error != "" || len(g.Members) == 0 {
			t.Row(g.Name, "", p.Style.State(g.State), "", "", "", g.Error)
		}
		for _, m := range g.Members {
			t.Row(g.Name, m.Name, p.Style.State(m.State), m.Breaker, m.Failures, output.Age(st.Now(), m.Since.Time), m.Error)
		}
	}
	if len(status.Groups) == 0 {
		st.Notef("there are no embedding groups: the setting embedding.groups of the service makes them")
	}
	return p.Print(output.Result{Value: status, Table: t, Names: names})
}
