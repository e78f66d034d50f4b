package project

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/hooks"
)

// typesFile is where editors find the types of scripts.
const typesFile = "svc.d.ts"

func newTypes(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "types [DIR]",
		Short: "Write the types of scripts for editors",
		Long: `Write svc.d.ts into a project's directory: the modules that scripts have, and ctx in each stage, so that editors complete
and check. Without DIR they are printed.`,
		Example: `  svcctl project types ./projects/blog`,
		Args:    command.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return runTypes(st, args)
		},
	}
}

func runTypes(st *command.State, args []string) error {
	if len(args) == 0 {
		_, err := fmt.Fprint(st.Stdout(), hooks.Types())
		return err
	}
	path := filepath.Join(args[0], typesFile)
	if err := os.WriteFile(path, []byte(hooks.Types()), 0o644); err != nil { //nolint:gosec // for everybody who works on the project
		return command.Usagef("%s can't be written: name a directory that you may write to", path)
	}
	st.Notef("%s written", path)
	return nil
}
