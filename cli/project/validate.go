package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
)

// formatGitHub prints workflow commands, which GitHub shows beside the lines of a change.
const formatGitHub = "github"

type validateOptions struct {
	st     *command.State
	Paths  []string
	Strict bool
}

func newValidate(st *command.State, runF func(context.Context, *validateOptions) error) *cobra.Command {
	opts := &validateOptions{st: st}
	cmd := &cobra.Command{
		Use:   "validate [DIR...]",
		Short: "Check a project's config files, without a service",
		Long: `Check the config files of a project in DIR (default: here), or the project file given, with the loader of the service,
and its golden queries (search/*.golden.yaml), and print every problem as file:line:column: path: message. Variables of
${env:NAME} are taken from the environment.

With -o github, and by default where GITHUB_ACTIONS is true, problems are printed as annotations; with -o sarif as a log that
code scanning takes. The exit code is 0 when
all is valid, 1 when something is not (with --strict: or is warned of), 2 when it could not be checked.`,
		Example: `  svcctl project validate projects/blog
  svcctl project validate projects/* --strict -o json
  svcctl project validate projects/blog -o sarif > validate.sarif`,
		Annotations: map[string]string{command.FormatsAnnotation: formatGitHub + " " + formatSARIF},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Paths = args
			if len(args) == 0 {
				opts.Paths = []string{"."}
			}
			if st.InCI() && !st.FormatGiven() {
				st.Flags.Output = formatGitHub
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runValidate(opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Strict, "strict", false, "warnings fail too")
	return cmd
}

// validation is the outcome for one project. Files of problems are paths from where the user is.
type validation struct {
	Path        string          `json:"path"`
	Valid       bool            `json:"valid"`
	Namespace   string          `json:"namespace,omitempty"`
	Revision    string          `json:"revision,omitempty"`
	Collections int             `json:"collections,omitempty"`
	Problems    schema.Problems `json:"problems"`
}

func runValidate(opts *validateOptions) (err error) {
	st := opts.st
	engine := script.NewEngine(script.Options{WorkerCommand: st.Compiler})
	defer func() { err = errors.Join(err, engine.Close()) }()
	loader := &project.Loader{Env: st.Env, Scripts: project.NewScripts(engine.Compile)}
	results := make([]validation, 0, len(opts.Paths))
	failed := false
	for _, path := range opts.Paths {
		v, err := validate(path, loader)
		if err != nil {
			return err
		}
		if opts.Strict && len(v.Problems) > 0 {
			v.Valid = false
		}
		failed = failed || !v.Valid
		results = append(results, v)
	}
	if err := showValidations(st, results); err != nil {
		return err
	}
	if failed {
		return command.Told(command.ExitFailed)
	}
	return nil
}

func validate(path string, loader *project.Loader) (validation, error) {
	dir, entry, err := locate(path)
	if err != nil {
		return validation{}, err
	}
	p, problems := loader.Load(dir, entry)
	v := validation{Path: path, Valid: p != nil, Problems: schema.Problems{}}
	if p != nil {
		_, bad := project.Goldens(p)
		v.Valid = !bad.Err()
		problems = append(problems, bad...)
	}
	base := path
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		base = filepath.Dir(path)
	}
	for _, problem := range problems {
		problem.File = filepath.ToSlash(filepath.Join(base, filepath.FromSlash(problem.File)))
		v.Problems = append(v.Problems, problem)
	}
	if p != nil {
		v.Namespace, v.Revision, v.Collections = p.Namespace, p.Revision, len(p.Collections)
	}
	return v, nil
}

// locate finds the project file of a path by the rules of the service, with the directory above in the place of the
// service's projects directory.
func locate(path string) (dir, entry string, err error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if errors.Is(err, fs.ErrNotExist) {
		e := &command.Error{Exit: command.ExitUsage, Code: "usage", Message: path + ": there is no such file or directory"}
		if schema.IsNamespace(path) { // of a project, as other verbs take it
			e.Hint = "it takes a directory; svcctl project status " + path + " tells of a project that is registered"
		}
		return "", "", e
	}
	if err != nil {
		return "", "", command.Usagef("%v", err)
	}
	dir, entry, err = project.Locate(filepath.Dir(abs), abs)
	if err != nil && errs.KindOf(err) == errs.Limit {
		return "", "", command.Usagef("%s: there is no project.yaml, project.yml or project.json in it", path)
	}
	if err != nil {
		return "", "", command.Usagef("%s: %v", path, err)
	}
	return dir, entry, nil
}

func showValidations(st *command.State, results []validation) error {
	p := st.Printer()
	switch p.Format {
	case formatSARIF:
		return p.JSON(sarif(st.Version, results))
	case output.FormatJSON, output.FormatYAML, output.FormatName:
		var names []string
		for _, v := range results {
			if v.Namespace != "" {
				names = append(names, "project/"+v.Namespace)
			}
		}
		return p.Print(output.Result{Value: map[string]any{"items": results}, Names: names})
	}
	for _, v := range results {
		for _, problem := range v.Problems {
			line := output.Escape(problem.String())
			if p.Format == formatGitHub {
				line = annotation(problem)
			}
			if _, err := fmt.Fprintln(p.W, line); err != nil {
				return err
			}
		}
		summary(st, v)
	}
	return nil
}

// summary says for a person how it went.
func summary(st *command.State, v validation) {
	bad := 0
	for _, problem := range v.Problems {
		if !problem.Warning {
			bad++
		}
	}
	switch {
	case bad > 0:
		st.Notef("%s: invalid: errors: %d, warnings: %d", v.Path, bad, len(v.Problems)-bad)
	case !v.Valid:
		st.Notef("%s: not valid under --strict: warnings: %d", v.Path, len(v.Problems))
	default:
		st.Notef("%s: valid: project %s, collections: %d", v.Path, v.Namespace, v.Collections)
	}
}

// annotation is a problem as a GitHub workflow command.
func annotation(p schema.Problem) string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	return command.Annotation(p.File, p.Line, p.Column, text, p.Warning)
}
