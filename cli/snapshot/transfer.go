package snapshot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// OnArchive makes a verb that takes in an archive: its arguments are a namespace, which may be known, and a file. Where one of them is missing, it says which.
func OnArchive(st *command.State, cmd *cobra.Command, run func(ctx context.Context, namespace, file string) error) *cobra.Command {
	form := cmd.Use + " [NAMESPACE] FILE"
	verb := func(cmd *cobra.Command, namespace string) string { return cmd.CommandPath() + " " + namespace + " " }
	cmd.Use, cmd.Args = form, command.Args(cobra.MaximumNArgs(2))
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if known, err := st.Namespace(); len(args) > 0 || err == nil && known != "" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return st.CompletePlace(false)(cmd, args, prefix)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		known, err := st.Namespace()
		if err != nil {
			return err
		}
		e := &command.Error{Exit: command.ExitUsage, Code: "usage", Message: "which archive? the argument FILE is missing"}
		switch {
		case len(args) == 0 && known == "":
			e.Message, e.Hint = "which project, and which archive? the arguments NAMESPACE and FILE are missing", "such as: "+verb(cmd, "blog")+"blog.tar.zst; - is stdin"
			return e
		case len(args) == 0:
			e.Hint = "such as: " + verb(cmd, known) + known + ".tar.zst; - is stdin"
			return e
		case len(args) == 1 && (known == "" || args[0] == known) && !looksLikeFile(args[0]):
			e.Hint = "such as: " + verb(cmd, args[0]) + args[0] + ".tar.zst; - is stdin"
			return e
		case len(args) == 1 && known == "":
			e.Message, e.Hint = "which project? the argument NAMESPACE is missing", "such as: "+verb(cmd, "blog")+args[0]+"; -n, SVCCTL_NAMESPACE or a context give it, too"
			return e
		}
		namespace, rest, err := st.Place(args, 1)
		if err != nil {
			return err
		}
		return run(cmd.Context(), namespace, rest[0])
	}
	return cmd
}

// looksLikeFile says that an argument is meant as a file, and not as a namespace: it is there, or has a name that no namespace has.
func looksLikeFile(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && !info.IsDir() || arg == "-" || strings.ContainsAny(arg, "./\\")
}

func newImport(st *command.State) *cobra.Command {
	var profile string
	cmd := OnArchive(st, &cobra.Command{
		Use: "import", Aliases: []string{"upload"}, Short: "Take in an archive as a snapshot of a project",
		Long: `Take in an archive that svcctl snapshot export or svcctl backup download has made, as a snapshot of a project; - is stdin. It is unpacked and checked as
it comes, and is refused whole if it is not what was written, or there is a snapshot with its id. Nothing that is live changes: svcctl snapshot restore
does that.

--profile has it come to be of another profile than the one that it was taken by: one of the config, backup, or one that there are snapshots of.`,
		Example: `  svcctl snapshot import blog blog.tar.zst
  ssh backups 'cat blog.tar.zst' | svcctl snapshot import blog - --profile daily`,
	}, func(ctx context.Context, namespace, name string) error {
		c, err := st.Client()
		if err != nil {
			return err
		}
		var s *api.Snapshot
		err = SendArchive(ctx, st, name, func(ctx context.Context, r io.Reader, size int64) (err error) {
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
	})
	cmd.Flags().StringVar(&profile, "profile", "", "the profile that it comes to be of (default that which it was taken by)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"profile": st.CompleteProfileFlag})
	return cmd
}

// HasArchive refuses the name of an archive that can't be sent, before anything is asked.
func HasArchive(st *command.State, name string) error {
	if name == "-" {
		if st.InTTY {
			return command.Usagef("- means stdin, which is a terminal here: give the name of the archive, or pipe it in")
		}
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && command.IsSnapshotID(name):
		return command.Usagef("there is no file %s: to restore a snapshot that is on the service, use svcctl snapshot restore; an archive of it is what svcctl snapshot export writes", name)
	case errors.Is(err, fs.ErrNotExist):
		return command.Usagef("there is no file %s", name)
	case err != nil:
		return command.Usagef("%v", err)
	case info.IsDir():
		return command.Usagef("%s is a folder: give the archive, as svcctl snapshot export has made it", name)
	}
	return nil
}

// SendArchive has send send an archive: a file, or stdin for "-".
func SendArchive(ctx context.Context, st *command.State, name string, send func(ctx context.Context, r io.Reader, size int64) error) error {
	r, size := st.Stdin(), int64(-1)
	if err := HasArchive(st, name); err != nil {
		return err
	}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return command.Usagef("%v", err)
		}
		defer file.Close() //nolint:errcheck // it is only read
		info, err := file.Stat()
		if err != nil {
			return command.Usagef("%v", err)
		}
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		r = file
	}
	return st.Upload(ctx, filepath.Base(name), r, size, func(ctx context.Context, r io.Reader) error { return send(ctx, r, size) })
}
