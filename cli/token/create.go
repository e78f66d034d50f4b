package token

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type createOptions struct {
	st    *command.State
	Write api.TokenWrite
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{st: st}
	var f flags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a personal access token",
		Long: `Make a token with which a program acts as you, within the scopes given and never beyond your own rights. The token goes to
stdout and is not shown again. This takes a login: an admin token or another personal access token can't make one.`,
		Example: `  svcctl token create deploy --scope project.read,project.reload --expires 30d
  svcctl token create import --scope namespace.blog > import.token`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Write, err = f.write(cmd.Flags().Changed, st.Now()); err != nil {
				return err
			}
			opts.Write.Name = &args[0]
			if opts.Write.Scopes == nil {
				return command.Usagef("what may it do? give --scope; svcctl token scopes lists what you can give")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCreate(cmd.Context(), opts)
		},
	}
	f.register(cmd, st)
	return cmd
}

func runCreate(ctx context.Context, opts *createOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	t, err := c.Tokens().Create(ctx, opts.Write)
	if err != nil {
		return err
	}
	p := st.Printer()
	if p.Structured() {
		return p.Print(output.Result{Value: t})
	}
	if _, err := fmt.Fprintln(p.W, t.Token); err != nil {
		return err
	}
	st.Notef("token %s (%s) %s; keep it, it is not shown again", t.Name, t.ID, until(*t))
	return nil
}
