package snapshot

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type createOptions struct {
	Namespace, Profile string
	Wait               Wait
}

func newCreate(st *command.State, runF func(context.Context, *createOptions) error) *cobra.Command {
	opts := &createOptions{}
	cmd := MaybeOne(st, &cobra.Command{
		Use: "create", Aliases: []string{"take"}, Short: "Take a snapshot of a project",
		Long: `Take a snapshot of a project by one of its profiles, which need not be named where there is only one: its records, files and config as they are
at one moment, while everything goes on.` + Waiting,
		Example: `  svcctl snapshot create blog daily
  svcctl snapshot create blog daily --timeout 10m -o name
  svcctl snapshot create blog daily --no-wait`,
	}, "PROFILE", func(ctx context.Context, c *client.Client, namespace, profile string) error {
		opts.Namespace, opts.Profile = namespace, profile
		if runF != nil {
			return runF(ctx, opts)
		}
		return runCreate(ctx, st, c, opts)
	})
	cmd.ValidArgsFunction = st.CompleteTakenProfiles()
	opts.Wait.Register(cmd)
	return cmd
}

func runCreate(ctx context.Context, st *command.State, c *client.Client, opts *createOptions) error {
	return opts.Wait.Run(ctx, st, c, opts.Namespace, func(ctx context.Context) (_ *api.Run, err error) {
		if opts.Profile == "" {
			if opts.Profile, err = onlyProfile(ctx, c, opts.Namespace); err != nil {
				return nil, err
			}
		}
		return c.CreateSnapshot(ctx, opts.Namespace, strings.TrimPrefix(opts.Profile, "profile/"))
	})
}

// onlyProfile gives the profile of a project that has one.
func onlyProfile(ctx context.Context, c *client.Client, namespace string) (string, error) {
	list, err := c.SnapshotProfiles(ctx, namespace)
	if err != nil {
		return "", err
	}
	var names []string
	for i := range list.Items {
		if !list.Items[i].Own {
			names = append(names, list.Items[i].Name)
		}
	}
	switch len(names) {
	case 0:
		return "", &command.Error{
			Exit: command.ExitNotFound, Code: "profile_not_found", Message: namespace + " has no snapshot profile that you may use",
			Hint: "the key snapshots of its config declares them; svcctl backup create " + namespace + " takes everything without one",
		}
	case 1:
		return names[0], nil
	}
	return "", &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: "which profile?",
		Hint: "there are " + strings.Join(names, ", ") + ": svcctl snapshot create " + namespace + " " + names[0],
	}
}
