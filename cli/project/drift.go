package project

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newDrift(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "drift [NAMESPACE...]",
		Short: "Show where what a project declares and what there is differ",
		Long: `Show where what projects declare and what there is differ, without changing anything: files on disk that are not what is
served, or not where the registration says, indexes that are missing, left over, of another definition or made by other hands, jobs that
are suspended with a schedule or without being declared any more, and files of records that no record names.
The action is missing, unexpected or differs.

The service repairs indexes by itself, at the latest a few minutes later; svcctl project reload has it do so at once. What it is at right
now is told on standard error, and is no drift. Indexes made by other hands are told and never dropped.

The exit code is 0 when nothing differs, 1 when something does, and another one when it could not be found out: of several projects,
what is known of the others is shown all the same.`,
		Example: `  svcctl project drift blog
  svcctl project drift blog shop -o json`,
		ValidArgsFunction: st.CompleteNamespaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				namespace, _, err := st.Place(nil, 0)
				if err != nil {
					return err
				}
				args = []string{namespace}
			}
			return command.NotRun(runDrift(cmd.Context(), st, args))
		},
	}
}

func runDrift(ctx context.Context, st *command.State, namespaces []string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	t := output.NewTable("NAMESPACE", "ACTION", "KIND", "OBJECT", "DETAIL")
	all := make([]api.Drift, 0, len(namespaces))
	result := output.Result{Table: t}
	drifted := false
	var failures []error // what is known of the others is shown all the same
	for _, namespace := range namespaces {
		d, err := c.Drift(ctx, namespace)
		if err != nil {
			if len(namespaces) > 1 {
				err = fmt.Errorf("%s: %w", namespace, err)
			}
			failures = append(failures, err)
			continue
		}
		all = append(all, *d)
		for _, it := range d.Items {
			drifted = true
			t.Row(namespace, it.Action, it.Kind, it.Object, it.Detail)
			result.Names = append(result.Names, namespace+"/"+it.Kind+"/"+it.Object)
		}
		for _, it := range d.Pending {
			st.Notef("%s: %s %s %s: %s", namespace, it.Action, it.Kind, it.Object, it.Detail)
		}
		if len(d.Items)+len(d.Pending) == 0 {
			st.Notef("%s: nothing differs", namespace)
		}
	}
	result.Value = map[string]any{"items": all}
	p := st.Printer()
	if drifted || p.Structured() && len(all) > 0 {
		if err := p.Print(result); err != nil {
			return err
		}
	}
	switch {
	case len(failures) > 0:
		return errors.Join(failures...)
	case drifted:
		return command.Told(command.ExitFailed)
	}
	return nil
}
