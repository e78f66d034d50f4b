package project

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

type fmtOptions struct {
	st    *command.State
	Path  string
	Write bool
	Check bool
}

func newFmt(st *command.State, runF func(context.Context, *fmtOptions) error) *cobra.Command {
	opts := &fmtOptions{st: st}
	cmd := &cobra.Command{
		Use:   "fmt [DIR]",
		Short: "Give a project's config files one form",
		Long: `List the config files of a project in DIR (default: here), or of the project file given, that have another form than svcctl gives
them, without a service; with --write bring them into it. JSON is indented anew. YAML loses spaces at the ends of lines,
empty lines in a row and carriage returns. Comments and the order of keys stay, and so does what the files say.

With --check the exit code is 1 when there is such a file; it is 2 when one can't be parsed, and none is written then.`,
		Example: `  svcctl project fmt projects/blog --check
  svcctl project fmt projects/blog -w`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: command.CompleteDir,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Path = "."
			if len(args) == 1 {
				opts.Path = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runFmt(opts)
		},
	}
	cmd.Flags().BoolVarP(&opts.Write, "write", "w", false, "write the files")
	cmd.Flags().BoolVar(&opts.Check, "check", false, "fail when there is one")
	cmd.MarkFlagsMutuallyExclusive("write", "check")
	return cmd
}

func runFmt(opts *fmtOptions) error {
	st := opts.st
	dir, entry, err := locate(opts.Path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return command.Usagef("%s: %v", opts.Path, err)
	}
	defer root.Close() //nolint:errcheck // opened for reading
	reader := project.Files(root)
	standIn := func(name string) (string, bool) { return name, true }
	loaded, problems := schema.LoadProject(reader, entry, standIn, nil)
	if loaded == nil {
		return command.Usagef("%s", problems[0])
	}
	changed := map[string][]byte{}
	t := output.NewTable("FILE")
	names := []string{}
	for _, f := range loaded.Files {
		before, err := reader.ReadFile(f.Name)
		if err != nil {
			return command.Usagef("%s: %v", f.Name, err)
		}
		after, err := schema.Format(f.Name, before)
		if err != nil {
			return command.Usagef("%v", err)
		}
		if !bytes.Equal(before, after) {
			changed[f.Name] = after
			names = append(names, f.Name)
			t.Row(f.Name)
		}
	}
	if opts.Write {
		for _, name := range names {
			if err := replace(filepath.Join(dir, filepath.FromSlash(name)), changed[name]); err != nil {
				return err
			}
		}
	}
	if len(names) > 0 || st.Printer().Structured() {
		if err := st.Printer().Print(output.Result{Value: map[string]any{"files": names}, Table: t, Names: names}); err != nil {
			return err
		}
	}
	if opts.Check && len(names) > 0 {
		return command.Told(command.ExitFailed)
	}
	return nil
}

// replace writes a file in one step, with the rights that it has; of a link, what it points at.
func replace(path string, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return output.WriteFile(path, data, info.Mode().Perm())
}
