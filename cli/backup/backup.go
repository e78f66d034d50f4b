package backup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl backup.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("backup", "Make and restore backups of everything that a project holds", newCreate(st), newList(st), newDownload(st), newAnalyze(st), newRestore(st, nil))
}

func newCreate(st *command.State) *cobra.Command {
	var wait snapshot.Wait
	cmd := &cobra.Command{
		Use: "create [NAMESPACE]", Short: "Make a backup that stays on the service",
		Long: `Make a backup that stays on the service: a snapshot of everything that the project holds, by the profile backup, which every project has. svcctl backup
download gets it from there, svcctl backup list shows those that there are, and svcctl snapshot delete removes them.` + snapshot.Waiting,
		Example: `  svcctl backup create blog
  svcctl backup create blog -o name`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			c, err := st.Client()
			if err != nil {
				return err
			}
			return wait.Run(ctx, st, c, namespace, func(ctx context.Context) (*api.Run, error) { return c.CreateBackup(ctx, namespace) })
		}),
	}
	wait.Register(cmd)
	return cmd
}

func newList(st *command.State) *cobra.Command {
	profile := api.ProfileBackup
	return snapshot.Listing(st, &profile, &cobra.Command{
		Use: "list [NAMESPACE]", Aliases: []string{"ls"}, Short: "List the backups of a project that are on the service, newest first",
		Long: `List the backups of a project that are on the service, newest first: its snapshots of the profile backup, as svcctl snapshot list shows them. What is done with
snapshots is done with them, too: svcctl snapshot show, verify, restore, pin and delete take their ids.`,
		Example: `  svcctl backup list blog
  svcctl backup list blog -o name`,
	})
}

func newDownload(st *command.State) *cobra.Command {
	var to command.Destination
	cmd := snapshot.MaybeOne(st, &cobra.Command{
		Use: "download", Aliases: []string{"get"}, Short: "Get a backup as one archive",
		Long: `Get a backup as one archive, a tar compressed by Zstandard, into the current folder or where -f says; - is stdout. Without an ID, one is made for it, of
which nothing stays on the service. The file appears only when it is whole and on the disk.`,
		Example: `  svcctl backup download blog -f blog.tar.zst
  svcctl backup download blog 20260301T031500Z-k3x9q2`,
	}, "ID", func(ctx context.Context, c *client.Client, namespace, id string) error {
		id = snapshot.IDOf(id)
		if to.Made = id == ""; to.Made {
			st.Notef("the service makes the backup first, and sends it then")
		} else if about, err := c.AnalyzeBackup(ctx, namespace, id); err != nil {
			return err
		} else {
			to.About = about.Bytes
		}
		return st.Download(ctx, to, namespace+"-backup.tar.zst", func(ctx context.Context) (*client.File, error) {
			return c.DownloadBackup(ctx, namespace, id)
		})
	})
	cmd.ValidArgsFunction = st.CompleteSnapshots(api.ProfileBackup, 1)
	to.Register(cmd, ".")
	return cmd
}

func newAnalyze(st *command.State) *cobra.Command {
	cmd := snapshot.MaybeOne(st, &cobra.Command{
		Use: "analyze", Short: "Show what a backup has, before it is downloaded",
		Long: `Show what the download of a backup has, before it is made: its collections, and how many records, files and bytes there are, before they are compressed.
Without an ID, it is one that would be made now.`,
		Example: `  svcctl backup analyze blog
  svcctl backup analyze blog 20260301T031500Z-k3x9q2 -o json`,
	}, "ID", func(ctx context.Context, c *client.Client, namespace, id string) error {
		a, err := c.AnalyzeBackup(ctx, namespace, snapshot.IDOf(id))
		if err != nil {
			return err
		}
		return show(st, namespace, a)
	})
	cmd.ValidArgsFunction = st.CompleteSnapshots(api.ProfileBackup, 1)
	return cmd
}

func show(st *command.State, namespace string, a *api.BackupAnalysis) error {
	p := st.Printer()
	if !p.ForPeople() {
		name := "backup/" + namespace
		if a.ID != "" {
			name = command.SnapshotName + a.ID
		}
		return p.Print(output.Result{Value: a, Names: []string{name}})
	}
	about := ""
	if a.ID == "" {
		about = "about "
	}
	f := output.NewFields()
	f.Add("Backup", a.ID)
	f.Add("Moment", runs.At(a.ConsistentAt))
	f.Add("Records", a.Documents)
	f.Add("Media", output.Count(a.MediaFiles, "file")+", "+output.Size(a.MediaBytes))
	f.Add("Archive", fmt.Sprintf("%s%s, %s before they are compressed", about, output.Count(a.Files, "file"), output.Size(a.Bytes)))
	if err := f.Write(p.W); err != nil {
		return err
	}
	t := output.NewTable("COLLECTION", "RECORDS", "UNCOMPRESSED")
	for _, c := range a.Collections {
		t.Row(c.Name, c.Documents, output.Size(c.Bytes))
	}
	return p.Section("Collections", t)
}
