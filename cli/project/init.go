package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/schema"
)

// The files of a new project. NAMESPACE stands for its namespace.
const (
	initProject = `# yaml-language-server: $schema=.svc/project.schema.json
namespace: NAMESPACE

# Fields that a collection does not declare are refused, so that a typo is an error and not a new field.
strictFields: true

# A string where an object may stand is the path of a file, relative to the file it stands in.
collections:
  - notes.yaml

# Who wrote what: svcctl audit list -n NAMESPACE
audit: {enabled: true}

# Taken by hand: svcctl snapshot create NAMESPACE daily. With schedule: "@daily" and enabled: true it is by itself.
snapshots:
  - name: daily
`
	initCollection = `# yaml-language-server: $schema=.svc/collection.schema.json
name: notes

# Everybody may read; users may do everything.
permissions:
  public:
    methods: {get: true}
  user:
    methods: {get: true, post: true, put: true, delete: true}

fields:
  - name: title
    type: string
    validator: {required: true, max: 200}
  - name: text
    type: string
`
)

func newInit(st *command.State) *cobra.Command {
	namespace := ""
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a small project to start from",
		Long: `Write the config of a small project into DIR, which is made if it is not there: a project file, a collection, and below
.svc the JSON Schemas that the first lines of both name, by which editors complete and check. The namespace is the name of
the directory, or --name. A file that is there already is left alone, and nothing is written then.`,
		Example: `  svcctl project init projects/notes
  svcctl project init . --name notes`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: command.CompleteDir,
		RunE:              func(_ *cobra.Command, args []string) error { return runInit(st, args[0], namespace) },
	}
	cmd.Flags().StringVar(&namespace, "name", "", "namespace of the project")
	return cmd
}

func runInit(st *command.State, dir, namespace string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return command.Usagef("%s: %v", dir, err)
	}
	if namespace == "" {
		namespace = filepath.Base(abs)
	}
	files := map[string]string{
		"project.yaml": strings.ReplaceAll(initProject, "NAMESPACE", namespace),
		"notes.yaml":   initCollection,
	}
	names := []string{"project.yaml", "notes.yaml"}
	if !schema.IsNamespace(namespace) {
		return command.Usagef("%q can't be a namespace, which is 1 to 40 lowercase letters, digits, _ or -, the first a letter: say one with --name", namespace)
	}
	for _, kind := range []string{"project", "collection"} {
		data, err := schema.JSONSchema(kind)
		if err != nil {
			return err
		}
		name := ".svc/" + kind + ".schema.json"
		files[name], names = string(data), append(names, name)
	}
	for _, name := range append(names, "project.yml", "project.json") {
		if _, err := os.Lstat(filepath.Join(abs, filepath.FromSlash(name))); !errors.Is(err, fs.ErrNotExist) {
			return &command.Error{
				Exit: command.ExitConflict, Code: "file_exists", Message: filepath.Join(dir, filepath.FromSlash(name)) + " is there already",
				Hint: "give a directory without a project",
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(abs, ".svc"), 0o755); err != nil { //nolint:gosec // a project is no secret
		return err
	}
	t := output.NewTable("FILE")
	var written []string
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(abs, filepath.FromSlash(name)), []byte(files[name]), 0o644); err != nil { //nolint:gosec // nor are its files
			return err
		}
		path := filepath.ToSlash(filepath.Join(dir, name))
		t.Row(path)
		written = append(written, path)
	}
	if err := st.Printer().Print(output.Result{Value: map[string]any{"namespace": namespace, "files": written}, Table: t, Names: []string{"project/" + namespace}}); err != nil {
		return err
	}
	st.Notef("svcctl project validate %s checks it, svcctl project apply %s serves it", dir, dir)
	return nil
}
