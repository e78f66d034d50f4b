package recordtypes

import (
	"context"
	"go/token"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

type options struct {
	st        *command.State
	Namespace string
	Lang      string
	Package   string
}

// NewCmd makes the command.
func NewCmd(st *command.State) *cobra.Command { return newCmd(st, nil) }

func newCmd(st *command.State, runF func(context.Context, *options) error) *cobra.Command {
	opts := &options{st: st}
	cmd := &cobra.Command{
		Use:   "types [NAMESPACE]",
		Short: "Write the records of a project as types of TypeScript or Go",
		Long: `Write types for programs that work with the records of a project: for each collection one of what is read, one of what is sent to create a record, and one
of what is sent to change it, with the types that these need. They are made of the OpenAPI document of the project: as whom you ask decides which
collections and fields they have.

What a field may be without a value is optional. In Go, what is optional is a pointer, a slice or a map, and what may be a record in place of its id is any.
For a whole client, give the document to a generator (svcctl openapi). Types of what hooks are given: svcctl project types.`,
		Example: `  svcctl types blog --lang ts > blog.ts
  svcctl types blog --lang go --package blog > blog/types.go`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			opts.Namespace = namespace
			if err := opts.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return run(ctx, opts)
		}),
	}
	cmd.Flags().StringVar(&opts.Lang, "lang", "", "ts or go")
	cmd.Flags().StringVar(&opts.Package, "package", "", "name of the Go package (default: made of the namespace)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"lang": cobra.FixedCompletions([]string{"ts", "go"}, cobra.ShellCompDirectiveNoFileComp)})
	return cmd
}

func (opts *options) check() error {
	switch {
	case opts.Lang == "":
		return command.Usagef("--lang is missing: want ts or go")
	case opts.Lang != "ts" && opts.Lang != "go":
		return command.Usagef("--lang %s: want ts or go", opts.Lang)
	case opts.Lang == "ts" && opts.Package != "":
		return command.Usagef("--package is for --lang go")
	case opts.Package == "":
		opts.Package = packageOf(opts.Namespace)
	case !token.IsIdentifier(opts.Package) || opts.Package == "_":
		return command.Usagef("--package %s: want the name of a Go package", opts.Package)
	}
	return nil
}

// packageOf makes the name of a Go package.
func packageOf(namespace string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(namespace))
	if !token.IsIdentifier(name) {
		return "p" + name
	}
	return name
}

func run(ctx context.Context, opts *options) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	raw, err := c.OpenAPI(ctx, opts.Namespace, "")
	if err != nil {
		return err
	}
	doc, err := read(raw)
	if err != nil {
		return &command.Error{Exit: command.ExitFailed, Code: "openapi_unreadable", Message: "the OpenAPI document of the service can't be read", Cause: err,
			Hint: "svcctl openapi " + opts.Namespace + " shows it"}
	}
	if len(doc.types) == 0 {
		opts.st.Notef("no collections that you may read or write; svcctl whoami shows who you are")
	}
	text := typescript(opts.Namespace, doc)
	if opts.Lang == "go" {
		if text, err = golang(opts.Namespace, opts.Package, doc); err != nil {
			return err
		}
	}
	_, err = io.WriteString(opts.st.Stdout(), text)
	return err
}
