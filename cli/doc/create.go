package doc

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

type createOptions struct {
	st *command.State
	place
	Input  command.Input
	DryRun bool
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{st: st}
	cmd := &cobra.Command{
		Use:   "create [NAMESPACE] COLLECTION",
		Short: "Create a record",
		Long: `Create a record from JSON or YAML. What the service sets itself (id, createdAt, …) is left out, so that the copy of a
record that was read can be created. For many records, see svcctl doc import.`,
		Example: `  svcctl doc create blog authors --data '{"name": "Ann Lee", "slug": "ann-lee", "email": "ann@mail.example"}'
  svcctl doc create blog articles -f article.yaml`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			if !opts.Input.Given() {
				return command.Usagef("where is the record? give -f FILE, -f - for stdin, or --data JSON")
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runCreate(ctx, opts)
		}),
	}
	opts.Input.Register(cmd)
	dryRunFlag(cmd, &opts.DryRun)
	return cmd
}

func runCreate(ctx context.Context, opts *createOptions) error {
	st := opts.st
	data, err := opts.Input.Read(st)
	if err != nil {
		return err
	}
	if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte("[")) {
		return command.Usagef("the input is a list: svcctl doc import %s %s creates many records", opts.Namespace, opts.Collection)
	}
	record, left, _, err := writable(data)
	if err != nil {
		return command.Usagef("the input: %v", err)
	}
	noteLeft(st, left)
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.DryRun {
		r, err := c.TryCreate(ctx, opts.Namespace, opts.Collection, record)
		return tried(st, opts.place, r, err)
	}
	created, err := c.CreateRecord(ctx, opts.Namespace, opts.Collection, record)
	if err != nil {
		return err
	}
	return show(st, opts.place, created)
}

func noteLeft(st *command.State, left []string) {
	if len(left) > 0 {
		st.Notef("left out what the service sets itself: %s", strings.Join(left, ", "))
	}
}
