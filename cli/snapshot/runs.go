package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newRuns(st *command.State) *cobra.Command {
	var which client.SnapshotRunsQuery
	cmd := &cobra.Command{
		Use: "runs [NAMESPACE]", Aliases: []string{"history"}, Short: "List the runs of a project's snapshots and backups, newest first",
		Long: `List the runs of a project's snapshots and backups, newest first: what was taken, checked, restored, pruned and imported, by whom, and how it ended.
The service keeps the newest 100 of each kind and profile, for 30 days.`,
		Example: `  svcctl snapshot runs blog
  svcctl snapshot runs blog --kind restore
  svcctl snapshot runs -A --watch
  svcctl snapshot runs blog --profile daily --status failed -o json`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			if which.Kind != "" && !slices.Contains(runKinds(), which.Kind) {
				return command.Usagef("--kind %s: want one of %s", which.Kind, strings.Join(runKinds(), ", "))
			}
			if err := runs.CheckStatus(which.Status); err != nil {
				return err
			}
			c, err := st.Client()
			if err != nil {
				return err
			}
			page, err := c.ListSnapshotRuns(ctx, namespace, which)
			if err != nil {
				return err
			}
			if len(page.Items) == 0 {
				st.Notef("no runs")
			}
			return printRuns(st, page, page.Items...)
		}),
	}
	runs.ListFlags(cmd, &which.Status, &which.Limit)
	cmd.Flags().StringVar(&which.Kind, "kind", "", "only those of a kind: "+strings.Join(runKinds(), ", "))
	cmd.Flags().StringVar(&which.Profile, "profile", "", "only those of this profile")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"kind": cobra.FixedCompletions(runKinds(), cobra.ShellCompDirectiveNoFileComp), "profile": st.CompleteProfileFlag,
	})
	return st.WatchFlag(st.AllFlag(cmd))
}

// runKinds are the kinds of runs of snapshots.
func runKinds() []string {
	return []string{
		api.RunKindSnapshot, api.RunKindVerify, api.RunKindRestore, api.RunKindPrune, api.RunKindImport, api.RunKindDrill, api.RunKindBackup,
	}
}

// printRuns prints runs; value is what structured formats get.
func printRuns(st *command.State, value any, list ...api.Run) error {
	p := st.Printer()
	t := output.NewTable("ID", "KIND", "PROFILE", "STATUS", "BEGAN", "TOOK", "MESSAGE", "+SNAPSHOT", "+TRIGGER", "+BY", "+INSTANCE")
	result := output.Result{Value: value, Table: t}
	for i := range list {
		r := &list[i]
		t.Row(r.ID, r.Kind, r.Name, p.Style.State(r.Status), runs.At(r.StartedAt), runs.Took(r), MessageOf(r), dash(r.Subject), r.Trigger, runs.Who(r.By), r.Instance)
		result.Names = append(result.Names, command.RunName+r.ID)
	}
	st.FitTable(t)
	return p.Print(result)
}

// MessageOf says how a run has failed, how far it is, or what it has come to, and whether it is a dry run.
func MessageOf(r *api.Run) string {
	text := messageOf(r)
	if !DryRun(r) {
		return text
	}
	what := "dry run"
	if into := askedOf(r).Into; into != "" {
		what += " into " + into
	}
	return strings.TrimSuffix(what+": "+text, ": ")
}

// DryRun says that a run is that of a restore which changes nothing.
func DryRun(r *api.Run) bool { return r.Kind == api.RunKindRestore && askedOf(r).DryRun }

func messageOf(r *api.Run) string {
	if r.Active() {
		var phases runs.Phases
		phases.Run(r)
		if now := phases.Now(); now != nil {
			return strings.Join(append([]string{strings.TrimSpace(now.Name + " " + now.Collection)}, now.Facts()...), ", ")
		}
	}
	if r.Status != api.RunSucceeded {
		return runs.MessageOf(r)
	}
	var facts []string
	if n := r.Progress.Warnings; n > 0 {
		facts = append(facts, output.Count(n, "warning"))
	}
	return strings.Join(append(facts, comeTo(r)...), ", ")
}

// comeTo says what a run has come to: of one that has made a snapshot, what it did with files.
func comeTo(r *api.Run) []string {
	result, err := client.SnapshotResultOf(r)
	switch {
	case err != nil:
	case result.Diff != nil:
		return wouldDo(&result)
	case result.Restored != nil:
		var records int64
		for _, c := range result.Restored.Collections {
			records += c.FromSnapshot
		}
		return []string{output.Count(records, "record") + " into " + result.Restored.Into}
	case r.Kind == api.RunKindVerify && result.Verified != nil:
		return []string{output.Count(result.Verified.Files, "file"), "no problems" + ofSample(result.Verified.Sample)}
	case result.Checked != nil:
		return []string{output.Count(result.Checked.Snapshots, "snapshot"), "no problems" + ofSample(askedOf(r).Sample)}
	case result.Drill != nil:
		return []string{output.Count(result.Drill.Documents, "record") + " on trial"}
	case r.Kind == api.RunKindPrune:
		return []string{fmt.Sprintf("removed %d", len(result.Removed))}
	}
	var phases runs.Phases
	phases.Run(r)
	return phases.Files()
}

// wouldDo says what a restore would change, of which there was a dry run.
func wouldDo(result *api.SnapshotResult) (facts []string) {
	var added, changed, removed, files int64
	for _, c := range result.Diff.Collections {
		added, changed, removed, files = added+c.Added, changed+c.Changed, removed+c.Removed, files+c.Files
	}
	for _, one := range []struct {
		does string
		n    int64
		what string
	}{{"add", added, "record"}, {"change", changed, "record"}, {"remove", removed, "record"}, {"bring", files, "file"}} {
		if one.n > 0 {
			facts = append(facts, one.does+" "+output.Count(one.n, one.what))
		}
	}
	if len(facts) == 0 {
		return []string{"nothing would change"}
	}
	facts[0] = "would " + facts[0]
	return facts
}

// ofSample says that a check has read a part only; "" where it has read all.
func ofSample(part float64) string {
	if part <= 0 || part >= 1 {
		return ""
	}
	return fmt.Sprintf(" in a sample of %.3g%%", part*100)
}

func newCancel(st *command.State) *cobra.Command {
	cmd := MaybeOne(st, &cobra.Command{
		Use: "cancel", Short: "Cancel a run of snapshots",
		Long: `Cancel a run of snapshots, by its id or that of its snapshot; without one, that which goes on. It ends soon, and leaves nothing half: a snapshot that
is not whole is removed, a restore that has not come to its last step leaves everything as it was.`,
		Example: `  svcctl snapshot cancel blog
  svcctl snapshot cancel blog 6b01a2b3c4d5e6f708192a3b`,
	}, "RUN", func(ctx context.Context, c *client.Client, namespace, id string) error {
		if id == "" {
			active, err := newest(ctx, c, namespace, (*api.Run).Active)
			if err != nil {
				return err
			}
			if active == nil {
				return &command.Error{
					Exit: command.ExitNotFound, Code: "run_not_found", Message: "no run of snapshots of " + namespace + " goes on",
					Hint: "svcctl snapshot runs " + namespace + " shows those that have ended",
				}
			}
			id = active.ID
		}
		run, err := c.CancelSnapshotRun(ctx, namespace, runOf(id))
		if err != nil {
			return err
		}
		if err := printRuns(st, run, *run); err != nil || !run.Active() {
			return err
		}
		st.Notef("the run was asked to end, and does so soon; svcctl snapshot attach %s %s waits for that", namespace, run.ID)
		return nil
	})
	cmd.ValidArgsFunction = st.CompleteSnapshotRuns()
	return cmd
}

// runOf is the id of a run or a snapshot, as lists and -o name have it.
func runOf(arg string) string { return strings.TrimPrefix(IDOf(arg), command.RunName) }

// newest gives the newest run that is wanted; nil: there is none among the latest.
func newest(ctx context.Context, c *client.Client, namespace string, wanted func(*api.Run) bool) (*api.Run, error) {
	page, err := c.ListSnapshotRuns(ctx, namespace, client.SnapshotRunsQuery{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(page.Items, func(r api.Run) bool { return wanted(&r) })
	if i < 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return &page.Items[i], nil
}

func newAttach(st *command.State) *cobra.Command {
	var after int64
	var timeout time.Duration
	cmd := MaybeOne(st, &cobra.Command{
		Use: "attach", Aliases: []string{"watch", "follow"}, Short: "Come back to a run of snapshots, and wait for its end",
		Long: `Come back to a run of snapshots, by its id or that of its snapshot, and show how far it is until it ends, as the command that has started it did;
without one, that which goes on, or else the newest. One that has ended is shown as it did.

With -o json, --after takes the id of the last event that is known already: what follows it is printed.` + strings.Replace(Waiting, ";\nsvcctl snapshot attach comes back to it. While another run of snapshots of the project goes on, it is refused (exit code 6)", "", 1),
		Example: `  svcctl snapshot attach blog
  svcctl snapshot attach blog 6b01a2b3c4d5e6f708192a3b
  svcctl snapshot attach blog 6b01a2b3c4d5e6f708192a3b --after 17 -o json`,
	}, "RUN", func(ctx context.Context, c *client.Client, namespace, id string) error {
		bounded, cancel := command.WithTimeout(ctx, timeout)
		defer cancel()
		run, err := find(bounded, c, namespace, runOf(id))
		if err != nil {
			return runs.Late(bounded, err, "the service has not told of the run within --timeout", strings.TrimSpace(attachCommand(namespace, runOf(id)))+" comes back to it")
		}
		f := newFollower(ctx, st, c, namespace, run.ID)
		if f.after = after; st.Flags.Output != output.FormatJSON {
			if err := f.take(run); err != nil {
				return err
			}
		}
		return f.follow(ctx, bounded)
	})
	cmd.ValidArgsFunction = st.CompleteSnapshotRuns()
	cmd.Flags().Int64Var(&after, "after", 0, "with -o json: print the events behind this one")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "longest wait, 0 for no limit")
	return cmd
}

// find gives a run with its events: by its id, by that of a snapshot, or with "" that which goes on, or else the newest.
func find(ctx context.Context, c *client.Client, namespace, id string) (*api.Run, error) {
	var listed *api.Run
	var err error
	switch {
	case id == "":
		if listed, err = newest(ctx, c, namespace, (*api.Run).Active); err == nil && listed == nil {
			listed, err = newest(ctx, c, namespace, func(*api.Run) bool { return true })
		}
	case command.IsSnapshotID(id):
		listed, err = newest(ctx, c, namespace, func(r *api.Run) bool { return r.Subject == id })
	default:
		return c.SnapshotRun(ctx, namespace, id)
	}
	if err != nil {
		return nil, err
	}
	if listed == nil {
		return nil, &command.Error{
			Exit: command.ExitNotFound, Code: "run_not_found", Message: "there is no run of " + cmp.Or(id, "snapshots of "+namespace),
			Hint: "svcctl snapshot runs " + namespace + " shows those that are kept",
		}
	}
	run, err := c.SnapshotRun(ctx, namespace, listed.ID)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound { // it was let go of meanwhile
		return listed, nil
	}
	return run, err
}

// take shows how far a run is that has gone on for a while, so that what is listened to comes behind it.
func (f *follower) take(run *api.Run) error {
	f.display.Phases.Run(run)
	for _, e := range run.Events {
		if f.after = max(f.after, e.ID); e.Event == api.EventLog {
			if err := f.display.Event(e); err != nil {
				return err
			}
		}
	}
	return nil
}
