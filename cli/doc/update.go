package doc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type updateOptions struct {
	st *command.State
	place
	ID      string
	Filter  string
	Input   command.Input
	Replace bool
	IfMatch string
	Yes     bool
	Lang    string
	bounds
}

func newUpdate(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st}
	cmd := &cobra.Command{
		Use:   "update [NAMESPACE] COLLECTION (ID | --filter JSON)",
		Short: "Change a record, or all that a filter selects",
		Long: `Change a record, or with --filter every record that it selects. A field given is set (objects merge, lists replace),
null removes it, absent ones stay; --replace makes the input the whole record. --dry-run says what would be done, and
--max-affected refuses to change more records than that.

When the input holds a _rev, as a record that was read does, the record must still have it: a change made meanwhile is
not overwritten, and the exit code is 6. --if-match says the revision in its place, and --if-match any goes without.

The record of a singleton needs no id; where there is none yet, it is made.`,
		Example: `  svcctl doc update blog articles 65f0c2a1b3d4e5f60718293a --data '{"status": "published"}'
  svcctl doc update blog articles 65f0c2a1b3d4e5f60718293a --lang de --data '{"title": "Ein Weg"}'
  svcctl doc update blog settings --data '{"perPage": 20}'
  svcctl doc update blog articles --filter '{"status": "draft"}' --data '{"archived": true}' --dry-run
  svcctl doc update blog articles --filter '{"status": "draft"}' --data '{"archived": true}' --max-affected 50 --yes`,
		Args: command.Args(cobra.RangeArgs(1, 3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(opts.complete(cmd, args), opts.check(cmd, opts.Filter)); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
		ValidArgsFunction: st.CompleteRecords(),
	}
	opts.Input.Register(cmd)
	filterFlag(cmd, &opts.Filter)
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "the input is the whole record")
	ifMatchFlag(cmd, &opts.IfMatch)
	opts.register(cmd)
	langFlag(st, cmd, &opts.Lang, 2)
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask before the change of many records")
	cmd.MarkFlagsMutuallyExclusive("filter", "replace")
	cmd.MarkFlagsMutuallyExclusive("filter", "if-match")
	return cmd
}

// newReplace makes svcctl doc replace, which is an update by the whole record.
func newReplace(st *command.State, runF func(context.Context, *updateOptions) error) *cobra.Command {
	opts := &updateOptions{st: st, Replace: true, bounds: bounds{MaxAffected: -1}}
	cmd := &cobra.Command{
		Use:   "replace [NAMESPACE] COLLECTION ID",
		Short: "Replace a record",
		Long: `Replace a record by the input: what the input doesn't have is removed. As with svcctl doc update, a _rev in the input is
one that the record must still have, and --if-match says another, or any.`,
		Example:           `  svcctl doc replace blog articles 65f0c2a1b3d4e5f60718293a -f article.yaml`,
		Args:              command.Args(cobra.RangeArgs(1, 3)),
		ValidArgsFunction: st.CompleteRecords(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.complete(cmd, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpdate(cmd.Context(), opts)
		},
	}
	opts.Input.Register(cmd)
	ifMatchFlag(cmd, &opts.IfMatch)
	dryRunFlag(cmd, &opts.DryRun)
	langFlag(st, cmd, &opts.Lang, 2)
	return cmd
}

func ifMatchFlag(cmd *cobra.Command, ifMatch *string) {
	cmd.Flags().StringVar(ifMatch, "if-match", "", "revision that the record must still have, or any")
}

func (opts *updateOptions) complete(cmd *cobra.Command, args []string) (err error) {
	if opts.Filter == "" {
		opts.place, opts.ID, err = oneOrOnly(opts.st, args)
	} else {
		opts.place, _, err = oneOrMany(opts.st, cmd, args, opts.Filter)
	}
	if err != nil {
		return err
	}
	if !opts.Input.Given() {
		return command.Usagef("what is the change? give -f FILE, -f - for stdin, or --data JSON")
	}
	return nil
}

// oneOrMany reads [NAMESPACE] COLLECTION ID, or with --filter [NAMESPACE] COLLECTION.
func oneOrMany(st *command.State, cmd *cobra.Command, args []string, filter string) (at place, id string, err error) {
	want := 2
	if filter != "" {
		want = 1
	}
	if err := command.PlaceArgs(want)(cmd, args); err != nil {
		return place{}, "", err
	}
	namespace, rest, err := st.Place(args, want)
	if err != nil {
		return place{}, "", err
	}
	at = place{namespace, rest[0]}
	if want == 2 {
		id = rest[1]
	}
	return at, id, nil
}

func runUpdate(ctx context.Context, opts *updateOptions) error {
	st := opts.st
	data, err := opts.Input.Read(st)
	if err != nil {
		return err
	}
	change, left, rev, err := writable(data)
	if err != nil {
		return command.Usagef("the input: %v", err)
	}
	noteLeft(st, left)
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.Filter != "" {
		return updateMany(ctx, c, opts, change)
	}
	o := client.WriteOptions{IfMatch: etag(opts.IfMatch, rev), Replace: opts.Replace, Lang: opts.Lang}
	if opts.ID == "" {
		return updateOnly(ctx, c, opts, change, o)
	}
	if opts.DryRun {
		r, err := c.TryUpdate(ctx, opts.Namespace, opts.Collection, opts.ID, change, o)
		return tried(st, opts.place, r, err)
	}
	updated, err := c.UpdateRecord(ctx, opts.Namespace, opts.Collection, opts.ID, change, o)
	if err != nil {
		return err
	}
	return show(st, opts.place, updated)
}

// updateOnly changes the record of a singleton, or makes it.
func updateOnly(ctx context.Context, c *client.Client, opts *updateOptions, change api.Record, o client.WriteOptions) error {
	if opts.DryRun {
		return command.Usagef("--dry-run needs the id of the record: svcctl doc list %s %s shows it", opts.Namespace, opts.Collection)
	}
	if err := checkOnly(ctx, c, opts.place); err != nil {
		return err
	}
	updated, err := c.PutOnly(ctx, opts.Namespace, opts.Collection, change, o)
	if err != nil {
		return err
	}
	return show(opts.st, opts.place, updated)
}

// etag makes the If-Match value of a revision; the flag wins over what the input holds.
func etag(flag, rev string) string {
	if flag == "any" {
		return ""
	}
	if flag != "" {
		rev = strings.Trim(flag, `"`)
	}
	if rev == "" {
		return ""
	}
	return `"` + rev + `"`
}

func updateMany(ctx context.Context, c *client.Client, opts *updateOptions, change api.Record) error {
	st, o := opts.st, opts.options()
	o.Lang = opts.Lang
	if opts.DryRun {
		r, err := c.TryBulkUpdate(ctx, opts.Namespace, opts.Collection, opts.Filter, change, o)
		return tried(st, opts.place, r, err)
	}
	if err := confirmMany(ctx, c, st, opts.place, opts.Filter, opts.Yes, "Change"); err != nil {
		return err
	}
	result, err := c.BulkUpdate(ctx, opts.Namespace, opts.Collection, opts.Filter, change, o)
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		if item.Error != nil {
			st.Warnf("%s: %s", item.ID, item.Error.Detail)
		}
	}
	return showMany(st, opts.place, result, result.Matched, result.Succeeded, result.Failed)
}

// confirmMany counts what a bulk write will touch and asks.
func confirmMany(ctx context.Context, c *client.Client, st *command.State, at place, filter string, yes bool, verb string) error {
	if yes {
		return nil
	}
	n, err := c.CountRecords(ctx, at.Namespace, at.Collection, filter)
	if err != nil {
		return fmt.Errorf("count what the filter selects: %w", err)
	}
	return st.Confirm(false, fmt.Sprintf("%s %s of %s?", verb, output.Count(n, "record"), at))
}

// showMany prints the outcome of a bulk write, and makes failures exit code 3, or 1 when nothing succeeded.
func showMany(st *command.State, at place, value any, matched, succeeded, failed int) error {
	t := output.NewTable("COLLECTION", "MATCHED", "SUCCEEDED", "FAILED")
	t.Row(at.String(), matched, succeeded, failed)
	if err := st.Printer().Print(output.Result{Value: value, Table: t, Names: []string{at.String()}}); err != nil {
		return err
	}
	return partial(succeeded, failed)
}

func partial(succeeded, failed int) error {
	switch {
	case failed == 0:
		return nil
	case succeeded == 0:
		return command.Told(command.ExitFailed)
	}
	return command.Told(command.ExitPartial)
}
