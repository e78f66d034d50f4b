package doc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

type countOptions struct {
	st *command.State
	place
	Filter string
}

func newCount(st *command.State, runF func(context.Context, *countOptions) error) *cobra.Command {
	opts := &countOptions{st: st}
	cmd := &cobra.Command{
		Use:               "count [NAMESPACE] COLLECTION",
		Short:             "Count records",
		Example:           `  svcctl doc count blog articles --filter '{"status": "draft"}'`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runCount(ctx, opts)
		}),
	}
	filterFlag(cmd, &opts.Filter)
	return cmd
}

func runCount(ctx context.Context, opts *countOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	n, err := c.CountRecords(ctx, opts.Namespace, opts.Collection, opts.Filter)
	if err != nil {
		return err
	}
	p := opts.st.Printer()
	switch {
	case p.Structured() && p.Format == "json":
		return p.JSON(api.CountResult{Count: n})
	case p.Structured():
		return p.YAML(api.CountResult{Count: n})
	}
	_, err = fmt.Fprintln(p.W, n)
	return err
}
