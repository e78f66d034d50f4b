package snapshot

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type pruneOptions struct {
	Namespace, Profile string
	DryRun, Yes        bool
	Wait               Wait
}

func newPrune(st *command.State, runF func(context.Context, *pruneOptions) error) *cobra.Command {
	opts := &pruneOptions{}
	cmd := MaybeOne(st, &cobra.Command{
		Use: "prune", Short: "Remove the snapshots that no rule of their profile keeps",
		Long: `Remove the snapshots that no rule of their profile's retention keeps: of one profile, or of all that have a retention. Those that are pinned, and the newest
verified one, stay whatever the rules say. It asks first; --yes goes without.

--dry-run says of each snapshot whether it would stay, and why, and removes none. REASONS are all rules that keep it; one is enough:

  last snapshot             it is one of the newest that keepLast counts
  daily 2026-03-29          it is the newest of that day, and the day is one that keepDaily counts; so with hourly, weekly, monthly and yearly
  oldest daily snapshot     it is the oldest of all, and fewer days have a snapshot than keepDaily counts: so the history grows until the rule is full
  within 7d                 it is older than the newest one by less than that (keepWithin)
  pinned, newest verified   it stays whatever the rules say; so does what is dated in the future
  damaged                   it can't be read, or a check has found damage: it stays until one that is newer is verified
  imported, checked lately  it has come in, or was checked, in the last seven days
  no retention policy       the profile keeps all
  no rule keeps it          it goes` + Waiting,
		Example: `  svcctl snapshot prune blog --dry-run
  svcctl snapshot prune blog daily --yes`,
	}, "PROFILE", func(ctx context.Context, c *client.Client, namespace, profile string) error {
		opts.Namespace, opts.Profile = namespace, strings.TrimPrefix(profile, "profile/")
		if runF != nil {
			return runF(ctx, opts)
		}
		return runPrune(ctx, st, c, opts)
	})
	cmd.ValidArgsFunction = st.CompleteProfiles()
	command.DryRunFlag(cmd, &opts.DryRun, "say what would be removed, and why, and remove nothing")
	command.YesFlag(cmd, &opts.Yes)
	opts.Wait.Register(cmd)
	return cmd
}

func runPrune(ctx context.Context, st *command.State, c *client.Client, opts *pruneOptions) error {
	if opts.DryRun || !opts.Yes {
		plan, err := c.PlanPrune(ctx, opts.Namespace, opts.Profile)
		if err != nil {
			return err
		}
		goes := 0
		for _, d := range plan.Items {
			if !d.Keep {
				goes++
			}
		}
		if opts.DryRun {
			st.Notef("snapshots that would be removed: %d of %d", goes, len(plan.Items))
			return showDecisions(st, plan, plan.Items)
		}
		if goes == 0 {
			if len(plan.Items) == 0 {
				st.Notef("nothing is to be removed: there are no snapshots by a profile with a retention; --dry-run says of each why it stays")
			} else {
				st.Notef("nothing is to be removed of %s", output.Count(len(plan.Items), "snapshot"))
			}
			return showDecisions(st, plan, plan.Items)
		}
		if err := st.Confirm(opts.Yes, fmt.Sprintf("Remove %d of %s of %s?", goes, output.Count(len(plan.Items), "snapshot"), opts.Namespace)); err != nil {
			return err
		}
	}
	return opts.Wait.Run(ctx, st, c, opts.Namespace, func(ctx context.Context) (*api.Run, error) {
		return c.PruneSnapshots(ctx, opts.Namespace, opts.Profile)
	})
}

// showDecisions prints what becomes of snapshots, and why.
func showDecisions(st *command.State, value any, list []api.SnapshotDecision) error {
	p := st.Printer()
	t := output.NewTable("ID", "PROFILE", "AGE", "DECISION", "REASONS")
	result := output.Result{Value: value, Table: t}
	for _, d := range list {
		decision := p.Style.Toned("keep", output.ToneGood)
		if !d.Keep {
			decision = p.Style.Toned("remove", output.ToneWarn)
			result.Names = append(result.Names, command.SnapshotName+d.ID)
		}
		t.Row(d.ID, d.Profile, output.Age(st.Now(), d.ConsistentAt.Time), decision, strings.Join(d.Reasons, "; "))
	}
	st.FitTable(t)
	return p.Print(result)
}

// showRemoved prints what a run has pruned.
func showRemoved(st *command.State, result *api.SnapshotResult) error {
	st.Notef("removed: %d, kept: %d", len(result.Removed), len(result.Kept))
	return showDecisions(st, result, result.Removed)
}
