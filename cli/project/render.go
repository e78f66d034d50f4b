package project

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
)

type renderOptions struct {
	st          *command.State
	Path        string
	ShowSecrets bool
}

func newRender(st *command.State, runF func(context.Context, *renderOptions) error) *cobra.Command {
	opts := &renderOptions{st: st}
	cmd := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Print a project's config as one file",
		Long: `Print the config of a project in DIR (default: here), or of the project file given, as one document, without a service: the
files that it names stand in their places, and ${env:NAME} and ${file:PATH} are what they are here. What was substituted and
what may be a credential is ***, unless --show-secrets. Defaults are not filled in: svcctl project explain tells them.

It is YAML, or JSON with -o json. The exit code is 1 when the config is not valid: the problems are told in place of it.`,
		Example: `  svcctl project render projects/blog
  svcctl project render projects/blog -o json --show-secrets`,
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
			return runRender(opts)
		},
	}
	cmd.Flags().BoolVar(&opts.ShowSecrets, "show-secrets", false, "print what is secret, too")
	return cmd
}

func runRender(opts *renderOptions) error {
	st := opts.st
	dir, entry, err := locate(opts.Path)
	if err != nil {
		return err
	}
	doc, problems, err := (&project.Loader{Env: st.Env}).Render(dir, entry, opts.ShowSecrets)
	if err != nil {
		return command.Usagef("%s: %v", opts.Path, err)
	}
	for _, problem := range problems {
		if !problem.Warning {
			fmt.Fprintln(st.Err, output.Escape(problem.String()))
		}
	}
	if problems.Err() {
		return command.Told(command.ExitFailed)
	}
	p := st.Printer()
	if p.Format != output.FormatJSON {
		p.Format = output.FormatYAML
	}
	return p.Print(output.Result{Value: doc})
}

func newExplain(st *command.State) *cobra.Command {
	recursive := false
	cmd := &cobra.Command{
		Use:   "explain KIND[.MEMBER]... | MEMBER...",
		Short: "Say what a member of a config file is",
		Long: `Say of a member of a config file what it may be, its default and what it means, and which members it has, without a service. A path
begins with a kind of config file, or with a member of the project file; lists and names are passed through.`,
		Example: `  svcctl project explain collection.fields.meta.widget
  svcctl project explain collection --recursive
  svcctl project explain jobs -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("what is to be explained? a member of the project file, such as collections, or of a kind of file: %s", strings.Join(schema.Kinds(), ", "))
			}
			return command.Args(cobra.ExactArgs(1))(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completePath(prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if recursive {
				return runExplainAll(st, args[0])
			}
			return runExplain(st, args[0])
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "list all members below it, and those of these, with their types")
	return cmd
}

// completePath offers the members behind the last dot of a path.
func completePath(prefix string) []string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != '.' {
			continue
		}
		x, err := schema.Explain(prefix[:i])
		if err != nil {
			return nil
		}
		var out []string
		for _, m := range x.Members {
			if m.Path != "<name>" {
				out = append(out, prefix[:i+1]+m.Path)
			}
		}
		return out
	}
	return schema.Kinds()
}

func runExplain(st *command.State, path string) error {
	x, err := schema.Explain(path)
	if err != nil {
		if errs.KindOf(err) == errs.Invalid {
			return command.Usagef("%v", err)
		}
		return err
	}
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: x, Names: []string{x.Path}})
	}
	f := output.NewFields()
	f.Add("Path", x.Path)
	f.Add("Type", x.Type)
	f.Add("Required", x.Required)
	for _, line := range []struct {
		name  string
		value any
		given bool
	}{
		{"Default", x.Default, x.Default != nil},
		{"Values", wordsOf(x.Values), len(x.Values) > 0},
		{"Pattern", x.Pattern, x.Pattern != ""},
		{"Minimum", x.Minimum, x.Minimum != nil},
		{"Maximum", x.Maximum, x.Maximum != nil},
		{"Meaning", x.Description, x.Description != ""},
	} {
		if line.given {
			f.Add(line.name, fmt.Sprint(line.value))
		}
	}
	if err := f.Write(p.W); err != nil || len(x.Members) == 0 {
		return err
	}
	t := output.NewTable("MEMBER", "TYPE", "REQUIRED", "MEANING")
	for _, m := range x.Members {
		t.Row(m.Path, m.Type, m.Required, m.Description)
	}
	return p.Section("Members", st.FitTable(t))
}

// wordsOf writes a list of values as people do.
func wordsOf(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}
