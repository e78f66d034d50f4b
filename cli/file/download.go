package file

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/client"
)

type downloadOptions struct {
	st *command.State
	place
	Field  string
	Names  []string
	Filter string
	To     command.Destination
}

func newDownload(st *command.State, runF func(context.Context, *downloadOptions) error) *cobra.Command {
	opts := &downloadOptions{st: st}
	cmd := &cobra.Command{
		Use:     "download [NAMESPACE] COLLECTION ID FIELD [NAME…]",
		Aliases: []string{"get"},
		Short:   "Get files of a record",
		Long: `Get the files of a field, or those of them that are named, into the current folder under their own names, or with -f to
somewhere else. FIELD is its path (gallery.image), without positions in lists.

--filter gets what an image filter of the collection makes of a picture. A connection that breaks off is taken up again
where it was, as long as the file is still the same; a file appears only when it is whole, and replaces another one only
with --force or where -f names it.`,
		Example: `  svcctl file download blog medialib 65f0c2a1b3d4e5f60718293a file
  svcctl file download blog medialib 65f0c2a1b3d4e5f60718293a file --filter card -f card.jpg
  svcctl file download shop products 65f0c2a1b3d4e5f60718293a manuals en.pdf de.pdf -f manuals/`,
		Args:              command.Args(cobra.MinimumNArgs(3)),
		ValidArgsFunction: st.CompleteFilesOf(),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := placeOf(st, args, 1)
			if err != nil {
				return err
			}
			opts.place, opts.Field, opts.Names = at, rest[0], rest[1:]
			if opts.To.File != "-" && len(opts.Names) > 1 && !opts.To.IsFolder() || opts.To.File == "-" && len(opts.Names) > 1 {
				return command.Usagef("several files need a folder: give -f FOLDER, which is there already")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runDownload(cmd.Context(), opts)
		},
	}
	opts.To.Register(cmd, ".")
	cmd.Flags().StringVar(&opts.Filter, "filter", "", "image filter of the collection")
	return cmd
}

func runDownload(ctx context.Context, opts *downloadOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	names := opts.Names
	if len(names) == 0 {
		if names, err = inField(ctx, c, opts.place, opts.Field); err != nil {
			return err
		}
	}
	if len(names) > 1 && !opts.To.IsFolder() {
		return command.Usagef("%s has %d files: name one, or give -f FOLDER, which is there already", opts.Field, len(names))
	}
	for _, name := range names {
		err := st.Download(ctx, opts.To, name, func(ctx context.Context) (*client.File, error) {
			return c.RecordFile(ctx, opts.Namespace, opts.Collection, opts.ID, opts.Field, name, opts.Filter)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inField gives the names of the files in a field.
func inField(ctx context.Context, c *client.Client, at place, field string) ([]string, error) {
	files, err := read(ctx, c, at)
	if err != nil {
		return nil, err
	}
	var names, fields []string
	for _, f := range files {
		if f.in == field && !slices.Contains(names, f.Path) {
			names = append(names, f.Path)
		}
		fields = append(fields, f.in)
	}
	if len(names) > 0 {
		return names, nil
	}
	hint := "it has none in any field"
	if fields = slices.Compact(fields); len(fields) > 0 {
		hint = fmt.Sprintf("svcctl file list %s %s %s shows those in others", at.Namespace, at.Collection, at.ID)
	}
	return nil, &command.Error{Exit: command.ExitNotFound, Code: "no_file", Message: fmt.Sprintf("%s has no file in %s", at, field), Hint: hint}
}
