package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Wait says whether a verb waits for the run that it starts, as it does unless it is told not to.
type Wait struct {
	No      bool
	Timeout time.Duration
}

// Register adds the flags.
func (w *Wait) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&w.No, "no-wait", false, "start the run, and don't wait for its end")
	fl.DurationVar(&w.Timeout, "timeout", 0, "longest wait, 0 for no limit")
	var wait bool // what other nouns have, and what is the rule here
	fl.BoolVar(&wait, "wait", true, "wait until the run has ended, which is the rule")
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "watch" {
			name = "wait"
		}
		return pflag.NormalizedName(name)
	})
	if err := fl.MarkHidden("wait"); err != nil {
		panic(err) // it is there
	}
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
}

// Waiting is what every verb with Wait says of it, but for those that only read snapshots: these have waitingBeside.
const (
	Waiting       = waiting + ` While another run takes, imports, restores or removes snapshots of the project, it is refused (exit code 6).`
	waitingBeside = waiting + ` While another check or drill of the project goes on, it is refused (exit code 6); it goes on beside all else.`
)

const waiting = `

The command shows on stderr how far it is, with -o json as one event a line on stdout and the run behind them, and ends with the run: with exit code 3
where there were warnings, 1 if it did not succeed, 8 when it takes longer than --timeout. It goes on when the command is interrupted;
svcctl snapshot attach comes back to it.`

// follower follows one run.
type follower struct {
	st        *command.State
	client    *client.Client
	namespace string
	id        string // of the run
	after     int64  // the latest event
	display   *runs.Display
}

// Run has start start a run, waits for it, and prints what it has come to: --timeout bounds all of that. With No it prints the run.
func (w Wait) Run(ctx context.Context, st *command.State, c *client.Client, namespace string, start func(context.Context) (*api.Run, error)) error {
	bounded, cancel := command.WithTimeout(ctx, w.Timeout)
	defer cancel()
	run, err := start(bounded)
	switch {
	case err != nil:
		return runs.NotStarted(bounded, err, "svcctl snapshot runs "+namespace)
	case w.No:
		st.Notef("the run goes on; %s comes back to it", attachCommand(namespace, run.ID))
		return printRuns(st, run, *run)
	}
	return newFollower(ctx, st, c, namespace, run.ID).follow(ctx, bounded)
}

func newFollower(ctx context.Context, st *command.State, c *client.Client, namespace, id string) *follower {
	f := &follower{st: st, client: c, namespace: namespace, id: id}
	f.display = runs.NewDisplay(st, func() *api.Run {
		run, err := c.SnapshotRun(ctx, namespace, id)
		if err != nil { // the events go on all the same
			return nil
		}
		return run
	})
	return f
}

func attachCommand(namespace, id string) string {
	return "svcctl snapshot attach " + namespace + " " + id
}

// follow waits for the end of the run until bounded ends, and prints what it has come to.
func (f *follower) follow(ctx, bounded context.Context) error {
	err := f.listen(bounded)
	run := (*api.Run)(nil)
	if err == nil {
		run, err = f.client.SnapshotRun(ctx, f.namespace, f.id)
	}
	if err != nil {
		return f.left(ctx, err)
	}
	f.display.End(run)
	return f.print(ctx, run)
}

// How long a stream that breaks is opened again, beyond what the client tries by itself.
const (
	retryFor   = 2 * time.Minute
	firstRetry = time.Second
	maxRetry   = 15 * time.Second
)

// listen shows the events of the run until the last one.
func (f *follower) listen(ctx context.Context) error {
	began, pause := f.st.Now(), firstRetry
	for {
		before := f.after
		err := f.client.FollowSnapshotRun(ctx, f.namespace, f.id, f.after, func(e api.RunEvent) error {
			f.after = max(f.after, e.ID)
			return f.display.Event(e)
		})
		unreachable, broken := errors.AsType[*client.UnreachableError](err)
		if !broken || unreachable.Permanent() || ctx.Err() != nil {
			return err
		}
		if f.after > before {
			began, pause = f.st.Now(), firstRetry
		}
		if f.st.Now().Add(pause).After(began.Add(retryFor)) {
			return err
		}
		f.display.Clear()
		f.st.Notef("%v; again in %s", err, pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		pause = min(2*pause, maxRetry)
	}
}

// left is the error of who does not see the run's end, which says how to come back to it.
func (f *follower) left(ctx context.Context, err error) error {
	back := attachCommand(f.namespace, f.id) + " comes back to it"
	_, unreachable := errors.AsType[*client.UnreachableError](err)
	switch {
	case ctx.Err() != nil:
		return &command.Error{
			Exit: command.ExitInterrupted, Code: "interrupted", Message: "interrupted; the run " + f.id + " goes on",
			Hint: back + ", svcctl snapshot cancel " + f.namespace + " " + f.id + " ends it",
		}
	case errors.Is(err, context.DeadlineExceeded):
		return runs.GoesOn(f.id, back)
	case unreachable:
		return &command.Error{
			Exit: command.ExitUnreachable, Code: "unreachable", Message: fmt.Sprintf("the service does not answer any more, so that it is not known how the run %s ends: %v", f.id, err), Hint: back,
		}
	}
	return err
}

// print prints what a run has come to, and gives the error that the exit code is from.
func (f *follower) print(ctx context.Context, run *api.Run) error {
	result, err := client.SnapshotResultOf(run)
	if err != nil {
		return fmt.Errorf("the result of the run %s: %w", run.ID, err)
	}
	switch format := f.st.Flags.Output; {
	case format == output.FormatJSON:
		events := run.Events
		run.Events = nil // they were printed
		err = output.JSONLine(f.st.Stdout(), run)
		run.Events = events
	case format == output.FormatYAML:
		err = f.st.Printer().YAML(run)
	default:
		err = f.show(ctx, run, &result)
	}
	if err != nil {
		return err
	}
	if run.Status != api.RunSucceeded {
		told := *run
		if f.st.Printer().ForPeople() {
			told.Error = withoutFound(run, &result)
		}
		err := runs.Failed(&told, hintOf(run, f.namespace))
		if run.Kind == api.RunKindVerify && !isDamaged(run) { // 1 is for damage
			return command.NotRun(err)
		}
		return err
	}
	warnings := max(run.Progress.Warnings, int64(len(result.Warnings)))
	if warnings > 0 {
		if f.display.Warned() == 0 && f.st.Flags.Output != output.FormatJSON {
			for _, text := range result.Warnings {
				f.st.Warnf("%s", text)
			}
		}
	}
	if result.Restored != nil { // what does not go together was told as warnings, too
		warnings += warningsOf(result.Restored.Drift)
	}
	if result.Would != nil {
		warnings += warningsOf(result.Would.Drift)
	}
	if v := result.Verified; v != nil {
		warnings += v.Dangling
	}
	if warnings > 0 {
		f.st.Notef("warnings: %d", warnings)
		return command.Told(command.ExitPartial)
	}
	return nil
}

// hintOf says what to do next when a run has not succeeded.
func hintOf(run *api.Run, namespace string) string {
	snapshot := "svcctl snapshot "
	code := ""
	if run.Error != nil {
		code = run.Error.Code
	}
	switch {
	case run.Status == api.RunCancelled:
		return "nothing of it is left; " + snapshot + "runs " + namespace + " shows what it has come to"
	case code == "run_left": // it may have been decided, and is then done by whoever comes next
		return "its instance is gone, and what it has begun is not ended yet: " + snapshot + "runs " + namespace + " tells what has become of it as soon as an instance serves the project"
	case code == "restore_undone":
		return "nothing was changed: start it again"
	case run.Status == api.RunLost:
		return snapshot + "runs " + namespace + " shows what has gone on since"
	case code == "snapshots_full":
		return snapshot + "prune " + namespace + " removes what no retention keeps, --dry-run shows which; " + snapshot + "list " + namespace + " shows their sizes"
	case code == "snapshot_damaged" && run.Subject == "" && run.Kind == api.RunKindRestore: // an archive that is there already, since what comes in is whole
		return snapshot + "delete " + namespace + " ID removes the one that is damaged; then send the archive again"
	case code == "snapshot_damaged" && run.Subject != "" && run.Kind != api.RunKindVerify: // which has stopped at the first
		return snapshot + "verify " + namespace + " " + run.Subject + " reads all of it, and names each file that is damaged; " + snapshot + "list " + namespace + " shows others"
	case code == "snapshot_damaged":
		return snapshot + "list " + namespace + " shows others; " + uploadsFirst(run) + "take a new one (" + takeCommand(namespace, run.Name) + "), and look at the disk"
	case code == "drill_differs":
		return uploadsFirst(run) + "take another one (" + takeCommand(namespace, run.Name) + "), and look at the disk"
	case code == "store_full":
		return "nothing that is served was changed: start it again when there is room"
	case code == "config_foreign": // its files are in the archive
		return "tar --zstd -xf has its files in the folder config: give them another namespace in a folder of the service's projects directory, svcctl project register makes them a project"
	case code == "view_expired":
		return "it has taken longer than the store keeps a view: take it when less goes on, or by a profile with fewer collections"
	case code == "restore_unfinished":
		return "svcctl project status " + namespace + " and the service's log say what fails; it goes on by itself as soon as that is mended"
	}
	return snapshot + "runs " + namespace + " shows those that are kept"
}

// uploadsFirst says that files have to be uploaded before a snapshot has them whole; "": what was found is none of them.
func uploadsFirst(run *api.Run) string {
	result, err := client.SnapshotResultOf(run)
	if err == nil {
		found, all := FoundBy(run, &result)
		if all > 0 && all == int64(len(found)) && !slices.ContainsFunc(found, func(f Found) bool { return strings.Contains(f.Text, "upload it anew") }) {
			return ""
		}
	}
	return "upload anew what is said to be damaged where it is served, too (its address may change), "
}

// asked is what of the input of a restore or a check says how to speak of it.
type asked struct {
	Snapshot string  `json:"snapshot"` // "": one that comes in, and of which a dry run leaves nothing
	Into     string  `json:"into"`     // "": the project that it is of
	DryRun   bool    `json:"dryRun"`
	Sample   float64 `json:"sample"` // of a check: the part of the files that it reads; 0: all
}

func askedOf(run *api.Run) (in asked) {
	_ = json.Unmarshal(run.Input, &in) // what can't be read has neither
	return in
}

// takeCommand takes a snapshot by a profile.
func takeCommand(namespace, profile string) string {
	if profile == api.ProfileBackup {
		return "svcctl backup create " + namespace
	}
	return "svcctl snapshot create " + namespace + " " + profile
}

// show prints for people what a run has come to: that which it was about.
func (f *follower) show(ctx context.Context, run *api.Run, result *api.SnapshotResult) error {
	st, id := f.st, cmp.Or(result.Snapshot, run.Subject)
	switch {
	case run.Kind == api.RunKindVerify && result.Checked == nil:
		return f.showVerified(ctx, run, result, id)
	case run.Status != api.RunSucceeded:
		_, err := showFound(st, run, result)
		return err
	case result.Diff != nil:
		return showDryRun(st, run, result)
	case result.Restored != nil:
		return showRestored(st, f.namespace, run, result)
	case run.Kind == api.RunKindPrune:
		return showRemoved(st, result)
	case result.Drill != nil:
		d := result.Drill
		st.Notef("restored %s on trial: %s, %s, %s", id, output.Count(d.Documents, "record"), output.Count(d.Files, "file"), output.Size(d.Bytes))
		return printRuns(st, run, *run)
	case result.Checked != nil, id == "":
		return printRuns(st, run, *run)
	}
	s, err := f.client.Snapshot(ctx, f.namespace, id, false)
	if client.IsStatus(err, 403) || client.IsStatus(err, 404) { // it may have been removed since
		return printRuns(st, run, *run)
	}
	if err != nil {
		return err
	}
	return Print(st, s, *s)
}
