package snapshot

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type drillOptions struct {
	Namespace, ID string // ID: "" is the newest
	Profile       string
	Wait          Wait
}

func newDrill(st *command.State, runF func(context.Context, *drillOptions) error) *cobra.Command {
	opts := &drillOptions{}
	cmd := MaybeOne(st, &cobra.Command{
		Use: "drill", Aliases: []string{"rehearse"}, Short: "Restore a snapshot on trial, beside the records",
		Long: `Restore a snapshot on trial: the one that is named, or the newest, with --profile that of a profile. It is loaded into a database that is made for it, exported from there,
compared to the bit, and removed; its files are read. Nothing that is served changes, and it takes the room of the records in the store meanwhile.

Exit code 1 means that it can't be restored as it is, and says why.` + waitingBeside,
		Example: `  svcctl snapshot drill blog
  svcctl snapshot drill blog --profile daily
  svcctl snapshot drill blog 20260301T031500Z-k3x9q2`,
	}, "ID", func(ctx context.Context, c *client.Client, namespace, id string) error {
		opts.Namespace, opts.ID = namespace, IDOf(id)
		if opts.ID != "" && opts.Profile != "" {
			return command.Usagef("--profile: the snapshot is named, so it is not needed")
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return runDrill(ctx, st, c, opts)
	})
	cmd.ValidArgsFunction = st.CompleteSnapshots("", 1)
	cmd.Flags().StringVar(&opts.Profile, "profile", "", "the newest snapshot of this profile")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"profile": st.CompleteProfileFlag})
	opts.Wait.Register(cmd)
	return cmd
}

func runDrill(ctx context.Context, st *command.State, c *client.Client, opts *drillOptions) error {
	return opts.Wait.Run(ctx, st, c, opts.Namespace, func(ctx context.Context) (_ *api.Run, err error) {
		if opts.ID == "" {
			if opts.ID, err = newestSnapshot(ctx, c, opts); err != nil {
				return nil, err
			}
		}
		return c.DrillSnapshot(ctx, opts.Namespace, opts.ID)
	})
}

// newestSnapshot is the one that is restored on trial where none is named.
func newestSnapshot(ctx context.Context, c *client.Client, opts *drillOptions) (string, error) {
	page, err := c.ListSnapshots(ctx, opts.Namespace, opts.Profile, client.Query{Limit: 1})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		hint := "svcctl snapshot create " + opts.Namespace + " " + opts.Profile + " takes one, if the config has that profile: svcctl snapshot profiles " + opts.Namespace + " shows those that it has"
		if opts.Profile == "" {
			hint = "svcctl snapshot profiles " + opts.Namespace + " shows by which profiles they are taken"
		}
		return "", &command.Error{
			Exit: command.ExitNotFound, Code: "snapshot_not_found", Message: "there is no snapshot to be restored on trial",
			Hint: hint,
		}
	}
	return page.Items[0].ID, nil
}
