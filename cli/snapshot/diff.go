package snapshot

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type diffOptions struct {
	Namespace, ID string
	Query         client.SnapshotDiffQuery
}

func newDiff(st *command.State, runF func(context.Context, *diffOptions) error) *cobra.Command {
	opts := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [NAMESPACE] ID [ID]",
		Short: "Show how records and their files differ from those of a snapshot",
		Long: `Show how the records of now, or those of a second snapshot, differ from those of a snapshot: for each collection how many were added, removed
and changed since, and the first of them, with the fields that differ. A collection that only one side has is told as added or removed; one that a
snapshot was not taken of, such as by a profile with collections, as not covered: it is not compared. FILES counts
files of records on both sides that one of them does not have, or has with another size: what a file has in it is not read.

The exit code is 0 when nothing differs, 1 when something does, and another one when it could not be found out.`,
		Example: `  svcctl snapshot diff blog 20260301T031500Z-k3x9q2
  svcctl snapshot diff blog 20260301T031500Z-k3x9q2 20260302T031500Z-p7m4aa
  svcctl snapshot diff blog 20260301T031500Z-k3x9q2 --collection articles --limit 100 -o json`,
		Args:              command.Args(cobra.MaximumNArgs(3)),
		ValidArgsFunction: st.CompleteSnapshots("", 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if missing, namespace := isMissing(st, args); missing {
				return missingID(cmd.Context(), st, "diff", namespace)
			}
			want := 1
			if len(args) == 3 || len(args) == 2 && command.IsSnapshotID(args[0]) {
				want = 2
			}
			namespace, ids, err := st.Place(args, want)
			if err != nil {
				return err
			}
			opts.Namespace, opts.ID = namespace, IDOf(ids[0])
			if len(ids) > 1 {
				opts.Query.With = IDOf(ids[1])
			}
			if opts.Query.Limit < 0 {
				return command.Usagef("--limit: want 0 or more")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return command.NotRun(runDiff(cmd.Context(), st, opts))
		},
	}
	cmd.Flags().StringVar(&opts.Query.Collection, "collection", "", "only this collection")
	cmd.Flags().IntVar(&opts.Query.Limit, "limit", 0, "how many records to name of each collection (default as the service has it)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"collection": collectionFlag(st)})
	return cmd
}

// collectionFlag completes a collection in a flag of a command whose first argument may be a namespace.
func collectionFlag(st *command.State) command.CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 || len(args) == 1 && command.IsSnapshotID(args[0]) {
			if args = args[:1]; command.IsSnapshotID(args[0]) {
				args = nil
			}
		}
		return st.CompletePlace(true)(cmd, args, prefix)
	}
}

// collectionsFlag is collectionFlag of several, with commas in between.
func collectionsFlag(st *command.State) command.CompleteFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		names, directive := collectionFlag(st)(cmd, args, prefix[len(before):])
		for i := range names {
			names[i] = before + names[i]
		}
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
}

func runDiff(ctx context.Context, st *command.State, opts *diffOptions) error {
	c, err := st.PatientClient()
	if err != nil {
		return err
	}
	d, err := c.DiffSnapshot(ctx, opts.Namespace, opts.ID, opts.Query)
	if err != nil {
		return err
	}
	more, err := showDiff(st, d, d)
	if err != nil {
		return err
	}
	if more {
		st.Notef("there is more that differs; --limit names more of it")
	}
	if d.Same {
		st.Notef("nothing differs")
		return nil
	}
	return command.Told(command.ExitFailed)
}

// showDiff prints how records and their files differ; value is what structured formats get. more says that not all of them are named.
func showDiff(st *command.State, value any, d *api.SnapshotDiff) (more bool, err error) {
	p := st.Printer()
	counts, records := output.NewTable("COLLECTION", "ADDED", "REMOVED", "CHANGED", "SAME", "FILES", ""), output.NewTable("CHANGE", "RECORD", "FIELDS")
	files := output.NewTable("CHANGE", "FILE")
	result := output.Result{Value: value, Table: counts}
	for _, c := range d.Collections {
		note := map[string]string{"": "", api.DiffBefore: "the collection is removed", api.DiffAfter: "the collection is added"}[c.Only]
		if c.NotCovered {
			note = "not covered by the snapshot, not compared"
		}
		counts.Row(c.Collection, c.Added, c.Removed, c.Changed, c.Same, c.Files, note)
		for _, r := range c.Records {
			fields := strings.Join(r.Paths, ", ")
			if r.More {
				fields += ", …"
			}
			records.Row(changeOf(p, r.Change), c.Collection+"/"+r.ID, fields)
			result.Names = append(result.Names, c.Collection+"/"+r.ID)
		}
		for _, f := range c.FileDiffs {
			record := c.Collection + "/" + f.Record
			files.Row(changeOf(p, f.Change), record+"/"+f.Field+"/"+f.Name)
			if !slices.Contains(result.Names, record) {
				result.Names = append(result.Names, record)
			}
		}
		more = more || c.More
	}
	st.FitTable(counts)
	if err := p.Print(result); err != nil || !p.ForPeople() {
		return more, err
	}
	if st.OutWidth > 0 && p.Format == output.FormatTable {
		records.Fit(st.OutWidth)
		files.Fit(st.OutWidth)
	}
	if err := p.Section("Records", records); err != nil {
		return more, err
	}
	return more, p.Section("Files", files)
}

// changeOf is the word for a change as it is painted.
func changeOf(p output.Printer, change string) output.Painted {
	return p.Style.Toned(change, map[string]output.Tone{
		api.DiffAdded: output.ToneGood, api.DiffRemoved: output.ToneBad, api.DiffChanged: output.ToneWarn,
	}[change])
}
