package snapshot

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// How says what of a snapshot or a backup is restored, and how.
type How struct {
	Collections []string
	NoMedia     bool
	Mode        string
	Into        string // another namespace; "": that of the command
	DryRun      bool
	Yes         bool
	Wait        Wait
}

// Register adds the flags.
func (h *How) Register(st *command.State, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&h.Collections, "collections", nil, "only these, with commas in between (default all that it has)")
	fl.BoolVar(&h.NoMedia, "no-media", false, "leave the files of records as they are")
	fl.StringVar(&h.Mode, "mode", api.RestoreReplace, "replace: records that it does not have go; merge: they stay")
	fl.StringVar(&h.Into, "to-namespace", "", "restore into this project, which is made if it is not registered (default the project itself)")
	command.DryRunFlag(cmd, &h.DryRun, "show what would change, and change nothing")
	fl.BoolVarP(&h.Yes, "yes", "y", false, "don't ask")
	h.Wait.Register(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error { // a variable that is not set would have everything restored, and here
		for name, empty := range map[string]bool{"collections": len(h.Collections) == 0, "to-namespace": h.Into == ""} {
			if fl.Changed(name) && empty {
				return command.Usagef("--%s is empty: give it a value, or leave it out", name)
			}
		}
		return nil
	}
	cmd.MarkFlagsMutuallyExclusive("dry-run", "no-wait")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"collections":  collectionsFlag(st),
		"to-namespace": st.CompleteNamespaces,
		"mode":         cobra.FixedCompletions([]string{api.RestoreReplace, api.RestoreMerge}, cobra.ShellCompDirectiveNoFileComp),
	})
}

var isNamespace = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// Check refuses what makes no sense.
func (h *How) Check() error {
	if h.Mode != api.RestoreReplace && h.Mode != api.RestoreMerge {
		return command.Usagef("--mode %s: want replace or merge", h.Mode)
	}
	if h.Into != "" && !isNamespace.MatchString(h.Into) {
		return command.Usagef("--to-namespace %s: want a namespace: 1 to 40 lowercase letters, digits, _ or -, the first a letter", h.Into)
	}
	return nil
}

// Options are those of the API.
func (h *How) Options() api.SnapshotRestore {
	media := !h.NoMedia
	return api.SnapshotRestore{Collections: h.Collections, Media: &media, Mode: h.Mode, DryRun: h.DryRun, Into: h.Into}
}

// Confirm asks whether what is live is to be replaced, which takes the name of the namespace.
func (h *How) Confirm(ctx context.Context, st *command.State, c *client.Client, what, namespace string) error {
	if h.DryRun || h.Yes {
		return nil
	}
	scope := "all collections that it has"
	if len(h.Collections) > 0 {
		scope = strings.Join(h.Collections, ", ")
	}
	does := "Their records become those of the snapshot; others go"
	if h.Mode == api.RestoreMerge {
		does = "Their records become those of the snapshot; others stay"
	}
	if h.Into != "" {
		namespace = h.Into
	}
	question := fmt.Sprintf("Restore %s into %s at %s: %s. %s. What is there before is kept as a snapshot.", what, namespace, c.Server(), scope, does)
	if h.makes(ctx, c) {
		question = fmt.Sprintf("Restore %s into %s at %s, a project that is made for it: %s.", what, namespace, c.Server(), scope)
	}
	return st.ConfirmTyped(false, question, namespace)
}

// makes says that a project is made, as far as the service tells.
func (h *How) makes(ctx context.Context, c *client.Client) bool {
	if h.Into == "" {
		return false
	}
	there, err := c.ProjectOf(ctx, h.Into)
	return err == nil && there == nil
}

type restoreOptions struct {
	Namespace, ID string
	How           How
}

func newRestore(st *command.State, runF func(context.Context, *restoreOptions) error) *cobra.Command {
	opts := &restoreOptions{}
	cmd := onSnapshot(st, &cobra.Command{
		Use: "restore", Short: "Have the records and files of a project be those of a snapshot",
		Long: `Have the records and files of a project be those of a snapshot: of all collections that it has, or of some. The collections are made aside and checked, a
snapshot of what is there is taken, and then they take its place in one step; until then nothing changes, and a failure or a crash leaves what
was there. Whoever writes meanwhile is told to come again. Users, teams and tokens are in no snapshot and stay.

It asks for the name of the namespace first; --yes goes without. --dry-run shows record by record what would change, and changes nothing.

--to-namespace restores into another project, such as to look at it. Where none is registered by that name, one is made of the config of the snapshot, without
its tokens, in a folder of that name in the service's projects directory; that takes the right project.create. Its jobs with a schedule and its snapshot profiles
that are enabled act there, too: a warning names them, also with --dry-run.` + Waiting,
		Example: `  svcctl snapshot restore blog 20260301T031500Z-k3x9q2 --dry-run
  svcctl snapshot restore blog 20260301T031500Z-k3x9q2 --collections articles --mode merge
  svcctl snapshot restore blog 20260301T031500Z-k3x9q2 --to-namespace blog-copy --yes`,
	}, func(ctx context.Context, c *client.Client, namespace, id string) error {
		opts.Namespace, opts.ID = namespace, id
		if err := opts.How.Check(); err != nil {
			return err
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return runRestore(ctx, st, c, opts)
	})
	opts.How.Register(st, cmd)
	return cmd
}

func runRestore(ctx context.Context, st *command.State, c *client.Client, opts *restoreOptions) error {
	s, err := c.Snapshot(ctx, opts.Namespace, opts.ID, false)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("the snapshot %s of %s (%s ago, %s)", s.ID, opts.Namespace, output.Age(st.Now(), s.ConsistentAt.Time), output.Count(s.Counts.Documents, "record"))
	if err := opts.How.Confirm(ctx, st, c, what, opts.Namespace); err != nil {
		return err
	}
	return opts.How.Wait.Run(ctx, st, c, opts.Namespace, func(ctx context.Context) (*api.Run, error) {
		return c.RestoreSnapshot(ctx, opts.Namespace, opts.ID, opts.How.Options())
	})
}

// maxSafetyTold is how many warnings of the snapshot of what was replaced are told.
const maxSafetyTold = 5

// showRestored prints what a run has restored.
func showRestored(st *command.State, namespace string, run *api.Run, result *api.SnapshotResult) error {
	r := result.Restored
	t := output.NewTable("COLLECTION", "RECORDS", "FROM SNAPSHOT", "SIZE")
	out := output.Result{Value: r, Table: t}
	for _, c := range r.Collections {
		t.Row(c.Name, c.Documents, c.FromSnapshot, output.Size(c.Bytes))
		out.Names = append(out.Names, "collection/"+c.Name)
	}
	if err := st.Printer().Print(out); err != nil {
		return err
	}
	noteRestored(st, r)
	st.Notef("the run %s restored the snapshot %s into %s", run.ID, result.Snapshot, r.Into)
	if askedOf(run).Snapshot == "" {
		st.Notef("the backup stays here as the snapshot %s: svcctl snapshot list %s --profile %s shows it", result.Snapshot, namespace, result.Profile)
	}
	if r.Made {
		st.Notef("the project %s was made of the snapshot's config, which is in the folder %s of the service's projects directory now", r.Into, r.Into)
	}
	if r.Safety != "" {
		st.Notef("what was there before is the snapshot %s: svcctl snapshot restore %s %s brings it back", r.Safety, r.Into, r.Safety)
	}
	for i, text := range r.SafetyWarnings { // which are none of the restore
		if i == maxSafetyTold {
			st.Notef("and more, which svcctl snapshot show %s %s names", r.Into, r.Safety)
			break
		}
		st.Notef("of that snapshot: %s", text)
	}
	return nil
}

// showDryRun prints what a restore would change.
func showDryRun(st *command.State, run *api.Run, result *api.SnapshotResult) error {
	more, err := showDiff(st, result.Diff, result.Diff)
	if err != nil {
		return err
	}
	if in := askedOf(run); more && in.Snapshot != "" && in.Into == "" {
		st.Notef("there is more that would change; svcctl snapshot diff --limit names more of it, the other way round")
	} else if more { // there is nothing that could be asked for them
		st.Notef("there is more that would change")
	}
	if result.Would != nil {
		warnDrift(st, result.Would.Drift)
	}
	if result.Diff.Same {
		st.Notef("nothing would change; nothing was changed by the run %s", run.ID)
	} else {
		st.Notef("that is what a restore would change; nothing was changed by the run %s", run.ID)
	}
	return nil
}

// FilesOf says what a restore has done with files; "": it has not looked at any.
func FilesOf(r *api.SnapshotRestored) string {
	var facts []string
	for _, one := range []struct {
		what string
		n    int64
	}{{"hardlinked", r.Files.Linked}, {"copied", r.Files.Copied}, {"there already", r.Files.WereThere}, {"missing", r.Files.Missing}} {
		if one.n > 0 {
			facts = append(facts, fmt.Sprintf("%s %d", one.what, one.n))
		}
	}
	return strings.Join(facts, ", ")
}

// warningsOf counts the drift that is to be looked at.
func warningsOf(drift []api.RestoreDrift) (n int64) {
	for _, d := range drift {
		if d.Warns() {
			n++
		}
	}
	return n
}

// noteRestored tells of files, and of where a snapshot and the config do not go together.
func noteRestored(st *command.State, r *api.SnapshotRestored) {
	if f := FilesOf(r); f != "" {
		st.Notef("files: %s", f)
	}
	warnDrift(st, r.Drift)
}

func warnDrift(st *command.State, drift []api.RestoreDrift) {
	for _, d := range drift {
		where := ""
		if d.Collection != "" {
			where = d.Collection + ": "
		}
		if !d.Warns() {
			st.Notef("%s%s", where, d.Text)
			continue
		}
		st.Warnf("%s%s", where, d.Text)
	}
}
