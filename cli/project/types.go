package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/hooks"
)

// typesFile is where editors find the types of scripts, and editorFile what else they have to know: without it they take
// scripts for pages of a browser, whose crypto and console are others.
const (
	typesFile  = "svc.d.ts"
	editorFile = "tsconfig.json"
)

const editorConfig = `{
  "compilerOptions": {
    "strict": true,
    "noEmit": true,
    "target": "es2022",
    "lib": ["es2023"],
    "types": [],
    "module": "esnext",
    "moduleResolution": "bundler",
    "allowImportingTsExtensions": true,
    "resolveJsonModule": true,
    "allowJs": true
  },
  "include": ["**/*.ts", "**/*.js"]
}
`

func newTypes(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "types [DIR]",
		Short: "Write the types of scripts for editors",
		Long: `Write svc.d.ts into a project's directory: the modules that scripts have, and ctx in each stage, so that editors complete
and check. Where there is no tsconfig.json, one is written, too: scripts run neither in a browser nor in Node.js, and editors
have to know. One that is there stays as it is. Without DIR the types are printed.`,
		Example:           `  svcctl project types ./projects/blog`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: command.CompleteDir,
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
	path = filepath.Join(args[0], editorFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // for everybody who works on the project
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString(editorConfig)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return command.Usagef("%s can't be written: name a directory that you may write to", path)
	}
	st.Notef("%s written", path)
	return nil
}
