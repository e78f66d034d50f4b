package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

// found is a plugin on PATH.
type found struct {
	Name    string `json:"name"` // as it is called, such as "foo bar"
	Path    string `json:"path"`
	Problem string `json:"problem,omitempty"` // why it is not the one that runs
}

func newList(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the plugins that there are",
		Long: `List the programs on PATH whose names begin with svcctl-: svcctl-foo is run by svcctl foo, svcctl-foo-bar by svcctl foo bar, with the arguments
that follow. One that has the name of a command of svcctl, or of a plugin that comes before it in PATH, is never run, and told.`,
		Example:           `  svcctl plugin list`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, _ := st.Env("PATH")
			list := search(cmd.Root(), filepath.SplitList(path))
			t := output.NewTable("NAME", "PATH", "PROBLEM")
			result := output.Result{Value: map[string]any{"items": list}, Table: t}
			for _, p := range list {
				t.Row(p.Name, p.Path, p.Problem)
				result.Names = append(result.Names, "plugin/"+p.Name)
			}
			if len(list) == 0 {
				st.Notef("no plugins: a program on PATH that is named svcctl-foo is run by svcctl foo")
			}
			return st.Printer().Print(result)
		},
	}
}

// search looks through folders. One that can't be read has none.
func search(root *cobra.Command, folders []string) []found {
	list := []found{}
	first := map[string]string{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), prefix)
			path := filepath.Join(folder, e.Name())
			if !ok || name == "" || e.IsDir() {
				continue
			}
			if runtime.GOOS == "windows" {
				name = strings.TrimSuffix(name, filepath.Ext(name))
			}
			p := found{Name: strings.ReplaceAll(name, "-", " "), Path: path}
			word, _, _ := strings.Cut(p.Name, " ")
			switch _, err := exec.LookPath(path); {
			case err != nil:
				p.Problem = "it can't be run"
			case has(root, word):
				p.Problem = "svcctl has a command " + word
			case first[name] != "":
				p.Problem = first[name] + " comes before it"
			default:
				first[name] = path
			}
			list = append(list, p)
		}
	}
	return list
}
