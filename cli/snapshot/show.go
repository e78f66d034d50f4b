package snapshot

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newShow(st *command.State) *cobra.Command {
	var files bool
	cmd := onSnapshot(st, &cobra.Command{
		Use: "show", Aliases: []string{"describe", "get"}, Short: "Show what is in a snapshot, and how it was checked last",
		Long: `Show what is in a snapshot, and how it was checked last. Sizes on disk are those of its files, in which records are compressed; of each collection it is
told beside that how large its records are uncompressed, as they are in the store. With --files each of its files, with its sum, and whether it was written, or is a
link to one that was there already.`,
		Example: `  svcctl snapshot show blog 20260301T031500Z-k3x9q2
  svcctl snapshot show blog 20260301T031500Z-k3x9q2 --files -o json`,
	}, func(ctx context.Context, c *client.Client, namespace, id string) error {
		s, err := c.Snapshot(ctx, namespace, id, files)
		if err != nil {
			return err
		}
		return show(st, s, files)
	})
	cmd.Flags().BoolVar(&files, "files", false, "with the list of its files")
	return cmd
}

func show(st *command.State, s *api.Snapshot, files bool) error {
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: s, Names: []string{command.SnapshotName + s.ID}})
	}
	f := output.NewFields()
	f.Add("ID", s.ID)
	f.Add("Profile", s.Profile)
	f.Add("State", painted(p, s))
	f.Add("Problem", s.Problem)
	if s.Problem == "" {
		addFacts(st, f, s)
	}
	if err := f.Write(p.W); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		table *output.Table
	}{{"Collections", collectionTable(s)}, {"Damage", findings(s)}, {"Files that records name and that are not in it", dangling(s)}, {"Warnings", lines(s.Warnings)}} {
		if err := p.Section(part.title, part.table); err != nil {
			return err
		}
	}
	if !files {
		return nil
	}
	t := output.NewTable("PATH", "ON DISK", "RECORDS", "HOW", "SHA-256")
	for _, x := range s.Files {
		records := ""
		if x.Count > 0 {
			records = fmt.Sprint(x.Count)
		}
		t.Row(x.Path, output.Size(x.Size), records, howOf(x.How), x.SHA256)
	}
	return p.Section("Files", t)
}

// howOf is the word for how a file came to be that counters have, too.
func howOf(how string) string {
	if how == "linked" {
		return "hardlinked"
	}
	return how
}

func addFacts(st *command.State, f *output.Fields, s *api.Snapshot) {
	f.Add("Of", s.Project)
	f.Add("Moment", runs.At(s.ConsistentAt))
	if s.ImportedAt != nil {
		f.Add("Imported", runs.At(*s.ImportedAt))
	}
	if s.LostAt != nil {
		f.Add("Origin", "not known since "+runs.At(*s.LostAt)+", when what was known of it could not be read any more: it counts as one that has come in as an archive")
	}
	f.Add("Config", fmt.Sprintf("generation %d, revision %s", s.Generation, output.Cut(dash(s.Revision), 12)))
	f.Add("Made by", fmt.Sprintf("svcd %s, store %s", s.Tool, s.Store))
	f.Add("Mode", s.Mode)
	f.Add("Records", fmt.Sprintf("%d, %s uncompressed", s.Counts.Documents, output.Size(uncompressed(s))))
	if s.Media {
		f.Add("Media", output.Count(s.Counts.MediaFiles, "file")+", "+output.Size(s.Counts.MediaBytes))
	} else {
		f.Add("Media", "left out")
	}
	f.Add("Size", fmt.Sprintf("%s on disk, of which %s are new", output.Size(s.Counts.Bytes), output.Size(s.Counts.NewBytes)))
	where := ""
	if s.ImportedAt != nil {
		where = ", where it was taken"
	}
	f.Add("Files", fmt.Sprintf("written %d, hardlinked %d, copied %d, deduplicated %d", s.Counts.Written, s.Counts.Linked, s.Counts.Copied, s.Counts.Deduplicated)+where)
	if s.Counts.Missing > 0 {
		f.Add("Missing", output.Count(s.Counts.Missing, "file")+" of records")
	}
	checked := verified(st, s.Verified)
	if s.Verified != nil && s.Verified.Sample > 0 && !s.WholeAt.IsZero() {
		checked += "; all files " + output.Age(st.Now(), s.WholeAt.Time) + " ago"
	}
	f.Add("Verified", checked)
}

// uncompressed is how much the records of a snapshot take before they are compressed.
func uncompressed(s *api.Snapshot) (sum int64) {
	for _, c := range s.Collections {
		sum += c.Bytes
	}
	return sum
}

func collectionTable(s *api.Snapshot) *output.Table {
	t := output.NewTable("COLLECTION", "RECORDS", "UNCOMPRESSED", "ON DISK", "")
	for _, c := range s.Collections {
		note := ""
		if c.Undeclared {
			note = "not in the config"
		}
		onDisk := output.Size(c.DiskBytes)
		if c.DiskBytes == 0 { // none is so small: the list of its files can't be read
			onDisk = "unknown"
		}
		t.Row(c.Name, c.Documents, output.Size(c.Bytes), onDisk, note)
	}
	return t
}

// findings are the problems that are known.
func findings(s *api.Snapshot) *output.Table {
	t := output.NewTable("FILE", "PROBLEM")
	if damage := DamageOf(s); damage != nil {
		for _, x := range damage.Found {
			t.Row(x.Path, x.Text)
		}
	}
	return t
}

func dangling(s *api.Snapshot) *output.Table {
	t := output.NewTable("NAMED BY", "FILE")
	if s.Verified != nil {
		for _, x := range s.Verified.Without {
			t.Row(x.Path, x.Text)
		}
	}
	return t
}

func lines(all []string) *output.Table {
	t := output.NewTable("WARNING")
	for _, text := range all {
		t.Row(text)
	}
	return t
}
