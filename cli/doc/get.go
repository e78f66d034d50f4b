package doc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/client"
)

type getOptions struct {
	st *command.State
	place
	ID    string
	Query client.Query
}

func newGet(st *command.State, runF func(context.Context, *getOptions) error) *cobra.Command {
	opts := &getOptions{st: st}
	cmd := &cobra.Command{
		Use:   "get [NAMESPACE] COLLECTION ID",
		Short: "Show one record",
		Example: `  svcctl doc get blog articles 65f0c2a1b3d4e5f60718293a
  svcctl doc get blog articles 65f0c2a1b3d4e5f60718293a -o yaml > article.yaml`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(2, func(ctx context.Context, namespace string, rest []string) error {
			opts.place, opts.ID = place{namespace, rest[0]}, rest[1]
			if runF != nil {
				return runF(ctx, opts)
			}
			return runGet(ctx, opts)
		}),
	}
	showFlags(cmd, &opts.Query)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"select": st.CompleteFieldList(2), "lookup": st.CompleteFieldList(2)})
	return cmd
}

func runGet(ctx context.Context, opts *getOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	r, _, err := c.GetRecord(ctx, opts.Namespace, opts.Collection, opts.ID, opts.Query)
	if err != nil {
		return err
	}
	return show(opts.st, opts.place, r)
}
