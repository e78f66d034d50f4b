package doc

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type patchOptions struct {
	st *command.State
	place
	ID      string
	Input   command.Input
	IfMatch string
	DryRun  bool
	Lang    string
}

func newPatch(st *command.State, runF func(context.Context, *patchOptions) error) *cobra.Command {
	opts := &patchOptions{st: st}
	cmd := &cobra.Command{
		Use:   "patch [NAMESPACE] COLLECTION ID",
		Short: "Change a record by a JSON patch",
		Long: `Change a record by a JSON Merge Patch (RFC 7396: an object whose members are set, objects merge, null removes), or, where
the input is a list, by a JSON Patch (RFC 6902: operations such as add, remove, replace and test).`,
		Example: `  svcctl doc patch blog articles 65f0c2a1b3d4e5f60718293a -d '{"seo": {"title": null}}'
  svcctl doc patch blog articles 65f0c2a1b3d4e5f60718293a -d '[{"op": "add", "path": "/tags/-", "value": "bread"}]'`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompleteRecords(),
		RunE: st.AtPlace(2, func(ctx context.Context, namespace string, rest []string) error {
			opts.place, opts.ID = place{namespace, rest[0]}, rest[1]
			if !opts.Input.Given() {
				return command.Usagef("what is the patch? give -f FILE, -f - for stdin, or --data JSON")
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runPatch(ctx, opts)
		}),
	}
	opts.Input.Register(cmd)
	ifMatchFlag(cmd, &opts.IfMatch)
	dryRunFlag(cmd, &opts.DryRun)
	langFlag(st, cmd, &opts.Lang, 2)
	return cmd
}

func runPatch(ctx context.Context, opts *patchOptions) error {
	st := opts.st
	patch, err := opts.Input.Read(st)
	if err != nil {
		return err
	}
	media, rev := api.MediaMergePatch, ""
	if bytes.HasPrefix(bytes.TrimSpace(patch), []byte("[")) {
		media = api.MediaJSONPatch
	} else {
		var left []string
		if patch, left, rev, err = writable(patch); err != nil {
			return command.Usagef("the input: %v", err)
		}
		noteLeft(st, left)
	}
	c, err := st.Client()
	if err != nil {
		return err
	}
	o := client.WriteOptions{IfMatch: etag(opts.IfMatch, rev), Lang: opts.Lang}
	if opts.DryRun {
		r, err := c.TryPatch(ctx, opts.Namespace, opts.Collection, opts.ID, media, patch, o)
		return tried(st, opts.place, r, err)
	}
	patched, err := c.PatchRecord(ctx, opts.Namespace, opts.Collection, opts.ID, media, patch, o)
	if err != nil {
		return err
	}
	return show(st, opts.place, patched)
}
