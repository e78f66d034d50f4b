package project

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// newSuspend makes svcctl project suspend, or resume.
func newSuspend(st *command.State, suspended bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suspend [NAMESPACE]",
		Short: "Keep a project as it is served, whatever happens to its files",
		Long: `Keep a project as it is served now, on every instance and over restarts, until svcctl project resume: its files are not looked
at, a reload is refused, and indexes are told of and not changed. Requests are answered and jobs run as before, and a rollback is
still done. It is for when Git must not change production for a while.`,
		Example:           `  svcctl project suspend shop`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runSuspend(ctx, st, namespace, suspended)
		}),
	}
	if !suspended {
		cmd.Use = "resume [NAMESPACE]"
		cmd.Short = "Follow a project's files again, and serve them now"
		cmd.Long = `End svcctl project suspend: the project's files are read, and served if they are valid, before the command ends. Files that can't
be served leave the project as it was, as at any other time: svcctl project status tells.`
		cmd.Example = `  svcctl project resume shop`
	}
	return cmd
}

func runSuspend(ctx context.Context, st *command.State, namespace string, suspended bool) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	if p.Suspended == suspended {
		state := map[bool]string{true: "is suspended already", false: "is not suspended"}[suspended]
		st.Notef("%s %s", p.Namespace, state)
		return show(st, p)
	}
	if p, err = c.Projects().Update(ctx, p.ID, api.ProjectWrite{Suspended: &suspended}); err != nil {
		return err
	}
	if suspended {
		st.Notef("%s stays as it is served: svcctl project resume %s ends that", p.Namespace, p.Namespace)
		return show(st, p)
	}
	if status, err := c.ProjectStatus(ctx, p.ID); err == nil { // it is resumed, whatever its files say
		if valid := status.Condition("ConfigValid"); valid.Status == "False" {
			st.Warnf("the files can't be served, so that it stays as it is: %s", valid.Message)
		}
	}
	return show(st, p)
}
