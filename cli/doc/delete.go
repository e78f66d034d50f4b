package doc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

type deleteOptions struct {
	st *command.State
	place
	ID      string
	Filter  string
	IfMatch string
	Yes     bool
	bounds
}

func newDelete(st *command.State, runF func(context.Context, *deleteOptions) error) *cobra.Command {
	opts := &deleteOptions{st: st}
	cmd := &cobra.Command{
		Use:   "delete [NAMESPACE] COLLECTION (ID | --filter JSON)",
		Short: "Delete a record, or all that a filter selects",
		Long: `Delete a record, or with --filter every record that it selects; how many that is, is shown before. It asks first; --yes
goes without. --dry-run says what would be deleted, and --max-affected refuses to delete more records than that.`,
		Example: `  svcctl doc delete blog articles 65f0c2a1b3d4e5f60718293a --yes
  svcctl doc delete shop orders --filter '{"status": "new"}' --max-affected 20`,
		Args: command.Args(cobra.RangeArgs(1, 3)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.place, opts.ID, err = oneOrMany(st, cmd, args, opts.Filter); err != nil {
				return err
			}
			if err := opts.check(cmd, opts.Filter); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runDelete(cmd.Context(), opts)
		},
		ValidArgsFunction: st.CompleteRecords(),
	}
	filterFlag(cmd, &opts.Filter)
	cmd.Flags().StringVar(&opts.IfMatch, "if-match", "", "revision that the record must still have")
	opts.register(cmd)
	command.YesFlag(cmd, &opts.Yes)
	cmd.MarkFlagsMutuallyExclusive("filter", "if-match")
	return cmd
}

func runDelete(ctx context.Context, opts *deleteOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.Filter != "" {
		return deleteMany(ctx, c, opts)
	}
	o := client.WriteOptions{IfMatch: etag(opts.IfMatch, "")}
	if opts.DryRun {
		r, err := c.TryDelete(ctx, opts.Namespace, opts.Collection, opts.ID, o)
		return tried(st, opts.place, r, err)
	}
	if err := st.Confirm(opts.Yes, "Delete record "+opts.ID+" of "+opts.place.String()+"?"); err != nil {
		return err
	}
	result, err := c.DeleteRecord(ctx, opts.Namespace, opts.Collection, opts.ID, o)
	if err != nil {
		return err
	}
	if result.Warning != "" {
		st.Warnf("%s", result.Warning)
	}
	t := output.NewTable("COLLECTION", "DELETED")
	t.Row(opts.place.String(), result.ID)
	return st.Printer().Print(output.Result{Value: result, Table: t, Names: []string{opts.Collection + "/" + result.ID}})
}

func deleteMany(ctx context.Context, c *client.Client, opts *deleteOptions) error {
	st := opts.st
	if opts.DryRun {
		r, err := c.TryBulkDelete(ctx, opts.Namespace, opts.Collection, opts.Filter, opts.options())
		return tried(st, opts.place, r, err)
	}
	if err := confirmMany(ctx, c, st, opts.place, opts.Filter, opts.Yes, "Delete"); err != nil {
		return err
	}
	result, err := c.BulkDelete(ctx, opts.Namespace, opts.Collection, opts.Filter, opts.options())
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		switch {
		case item.Error != nil:
			st.Warnf("%s: %s", item.ID, item.Error.Detail)
		case item.Warning != "":
			st.Warnf("%s: %s", item.ID, item.Warning)
		}
	}
	return showMany(st, opts.place, result, result.Matched, result.Succeeded, result.Failed)
}
