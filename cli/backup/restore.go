package backup

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/pkg/api"
)

type restoreOptions struct {
	Namespace, File string
	How             snapshot.How
}

func newRestore(st *command.State, runF func(context.Context, *restoreOptions) error) *cobra.Command {
	opts := &restoreOptions{}
	cmd := snapshot.OnArchive(st, &cobra.Command{
		Use: "restore", Short: "Have the records and files of a project be those of a backup",
		Long: `Send a backup, and have the records and files of a project be those that it has, as svcctl snapshot restore does with a snapshot that is on the service: this may be
another one than that which has made it, with another store. - is stdin. The archive is checked as it comes, and refused whole if it is not what was written.

It asks for the name of the namespace first; --yes goes without. --dry-run shows record by record what would change, and changes nothing. What was there
before is kept as a snapshot. --to-namespace restores into another project; where none is registered by that name, one is made of the config of the backup.` + snapshot.Waiting,
		Example: `  svcctl backup restore blog blog.tar.zst --dry-run
  svcctl backup restore blog blog.tar.zst --collections articles,authors --yes`,
	}, func(ctx context.Context, namespace, file string) error {
		opts.Namespace, opts.File = namespace, file
		if err := opts.How.Check(); err != nil {
			return err
		}
		if opts.File == "-" && !opts.How.Yes && !opts.How.DryRun {
			return command.Usagef("- means stdin, which the archive comes from, so that you can't be asked: say --yes")
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return runRestore(ctx, st, opts)
	})
	opts.How.Register(st, cmd)
	return cmd
}

func runRestore(ctx context.Context, st *command.State, opts *restoreOptions) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	if err := snapshot.HasArchive(st, opts.File); err != nil {
		return err
	}
	if err := opts.How.Confirm(ctx, st, c, "the backup "+opts.File, opts.Namespace); err != nil {
		return err
	}
	return opts.How.Wait.Run(ctx, st, c, opts.Namespace, func(ctx context.Context) (run *api.Run, err error) {
		err = snapshot.SendArchive(ctx, st, opts.File, func(ctx context.Context, r io.Reader, size int64) (err error) {
			run, err = c.RestoreBackup(ctx, opts.Namespace, opts.How.Options(), r, size)
			return err
		})
		return run, err
	})
}
