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
		Long: `Show one record: a value a line, those of objects by their path. -o wide shows members and texts as they are, -o yaml
and json the record. That of a singleton needs no id.`,
		Example: `  svcctl doc get blog articles 65f0c2a1b3d4e5f60718293a
  svcctl doc get blog articles 65f0c2a1b3d4e5f60718293a -o yaml > article.yaml
  svcctl doc get blog articles 65f0c2a1b3d4e5f60718293a --lookup author --lang de
  svcctl doc get blog settings`,
		Args:              command.Args(cobra.RangeArgs(1, 3)),
		ValidArgsFunction: st.CompleteRecords(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.place, opts.ID, err = oneOrOnly(st, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runGet(cmd.Context(), opts)
		},
	}
	showFlags(st, cmd, &opts.Query, 2)
	return cmd
}

func runGet(ctx context.Context, opts *getOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	r, _, err := getOne(ctx, c, opts.place, opts.ID, opts.Query)
	if err != nil {
		return err
	}
	return show(opts.st, opts.place, r)
}
