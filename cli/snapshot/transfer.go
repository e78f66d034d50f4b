package snapshot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newExport(st *command.State) *cobra.Command {
	var to command.Destination
	cmd := onSnapshot(st, &cobra.Command{
		Use: "export", Aliases: []string{"download"}, Short: "Get a snapshot as one archive",
		Long: `Get a snapshot as one archive, a tar compressed by Zstandard (tar --zstd -tf shows it), into the current folder or where -f says; - is stdout. The file
appears only when it is whole and on the disk. svcctl snapshot import takes it in, here or on another service, whatever its store.`,
		Example: `  svcctl snapshot export blog 20260301T031500Z-k3x9q2 -f blog.tar.zst
  svcctl snapshot export blog 20260301T031500Z-k3x9q2 -f - | ssh backups 'cat > blog.tar.zst'`,
	}, func(ctx context.Context, c *client.Client, namespace, id string) error {
		s, err := c.Snapshot(ctx, namespace, id, false)
		if err != nil {
			return err
		}
		to.About = s.Counts.Bytes // most of which does not get smaller
		return st.Download(ctx, to, namespace+"-"+id+".tar.zst", func(ctx context.Context) (*client.File, error) {
			return c.DownloadSnapshot(ctx, namespace, id)
		})
	})
	to.Register(cmd, ".")
	return cmd
}

func newImport(st *command.State) *cobra.Command {
	var profile string
	cmd := &cobra.Command{
		Use: "import [NAMESPACE] FILE", Aliases: []string{"upload"}, Short: "Take in an archive as a snapshot of a project",
		Long: `Take in an archive that svcctl snapshot export or svcctl backup download has made, as a snapshot of a project; - is stdin. It is unpacked and checked as
it comes, and is refused whole if it is not what was written, or there is a snapshot with its id. Nothing that is live changes: svcctl snapshot restore
does that.`,
		Example: `  svcctl snapshot import blog blog.tar.zst
  ssh backups 'cat blog.tar.zst' | svcctl snapshot import blog - --profile daily`,
		Args: command.PlaceArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if known, err := st.Namespace(); len(args) > 0 || err == nil && known != "" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return st.CompletePlace(false)(cmd, args, prefix)
		},
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			c, err := st.PatientClient()
			if err != nil {
				return err
			}
			var s *api.Snapshot
			err = SendArchive(ctx, st, rest[0], func(ctx context.Context, r io.Reader, size int64) (err error) {
				s, err = c.ImportSnapshot(ctx, namespace, profile, r, size)
				return err
			})
			if err != nil {
				return err
			}
			if st.Notef("took in the snapshot %s, by the run %s", s.ID, s.Run); s.Project != namespace {
				st.Notef("it was taken of the project %s; svcctl snapshot restore %s %s brings its records into %s", s.Project, namespace, s.ID, namespace)
			}
			return Print(st, s, *s)
		}),
	}
	cmd.Flags().StringVar(&profile, "profile", "", "the profile that it comes to be of (default that which it was taken by)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"profile": st.CompleteProfileFlag})
	return cmd
}

// SendArchive has send send an archive: a file, or stdin for "-".
func SendArchive(ctx context.Context, st *command.State, name string, send func(ctx context.Context, r io.Reader, size int64) error) error {
	r, size := st.In, int64(-1)
	if name != "-" {
		file, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && command.IsSnapshotID(name) {
			return command.Usagef("there is no file %s: to restore a snapshot that is on the service, use svcctl snapshot restore; an archive of it is what svcctl snapshot export writes", name)
		}
		if err != nil {
			return command.Usagef("%v", err)
		}
		defer file.Close() //nolint:errcheck // it is only read
		info, err := file.Stat()
		if err != nil {
			return command.Usagef("%v", err)
		}
		if info.IsDir() {
			return command.Usagef("%s is a folder: give the archive, as svcctl snapshot export has made it", name)
		}
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		r = file
	} else if st.InTTY {
		return command.Usagef("- means stdin, which is a terminal here: give the name of the archive, or pipe it in")
	}
	return st.Upload(ctx, filepath.Base(name), r, size, func(ctx context.Context, r io.Reader) error { return send(ctx, r, size) })
}
