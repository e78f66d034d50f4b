package snapshot

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newList(st *command.State) *cobra.Command {
	var profile string
	cmd := Listing(st, &profile, &cobra.Command{
		Use: "list [NAMESPACE]", Aliases: []string{"ls"},
		Short: "List the snapshots of a project, newest first",
		Long: `List the snapshots of a project, newest first. SIZE is that of all their files, NEW of those that are no links: what a snapshot takes beside
those before it. STATE is verified when a check (svcctl snapshot verify) has found all that was written, sampled when only checks of a part have, damaged
when one has found that something is not, unverified before any, and unreadable when not even the manifest can be read; pinned is one that can't be deleted.
Warnings are those of when it was taken, such as of files that were missing: svcctl snapshot show names them.`,
		Example: `  svcctl snapshot list blog
  svcctl snapshot list blog --profile daily -o name
  svcctl snapshot list -A --sort-by -.consistentAt`,
	})
	cmd.Flags().StringVar(&profile, "profile", "", "only snapshots of this profile")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"profile": st.CompleteProfileFlag})
	return cmd
}

// Listing makes a verb that lists snapshots of a profile, "" for all.
func Listing(st *command.State, profile *string, cmd *cobra.Command) *cobra.Command {
	var limit int
	cmd.Args, cmd.ValidArgsFunction = command.PlaceArgs(0), st.CompletePlace(false)
	cmd.RunE = st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
		if limit < 0 {
			return command.Usagef("--limit: want 0 or more")
		}
		c, err := st.Client()
		if err != nil {
			return err
		}
		return runList(ctx, st, c, namespace, *profile, limit)
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "how many (default all)")
	return st.WatchFlag(st.AllFlag(cmd))
}

// pageSize is how many snapshots one request asks for.
const pageSize = 1000

func runList(ctx context.Context, st *command.State, c *client.Client, namespace, profile string, limit int) error {
	all := &api.List[api.Snapshot]{Items: []api.Snapshot{}}
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all.Items))
		}
		page, err := c.ListSnapshots(ctx, namespace, profile, client.Query{Limit: size, Offset: len(all.Items)})
		if err != nil {
			return err
		}
		all.Items, all.HasMore = append(all.Items, page.Items...), page.HasMore
		if !page.HasMore || len(page.Items) == 0 || limit > 0 && len(all.Items) >= limit {
			break
		}
	}
	all.Limit = len(all.Items)
	switch {
	case len(all.Items) == 0 && profile == api.ProfileBackup:
		st.Notef("no backups; svcctl backup create %s makes one", namespace)
	case len(all.Items) == 0 && profile != "":
		st.Notef("no snapshots of the profile %s; svcctl snapshot profiles %s shows those of the config", profile, namespace)
	case len(all.Items) == 0:
		st.Notef("no snapshots; svcctl snapshot create %s takes one by a profile of the config, svcctl backup create %s one of everything", namespace, namespace)
	case all.HasMore:
		st.Notef("there are more than %d", len(all.Items))
	}
	return Print(st, all, all.Items...)
}
