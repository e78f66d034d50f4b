package service

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type checkOptions struct {
	st         *command.State
	Namespaces []string
	Pre        bool
	Strict     bool
	Rights     []string
}

// NewCheck makes svcctl check.
func NewCheck(st *command.State) *cobra.Command { return newCheck(st, nil) }

func newCheck(st *command.State, runF func(context.Context, *checkOptions) error) *cobra.Command {
	opts := &checkOptions{st: st}
	cmd := &cobra.Command{
		Use:   "check [NAMESPACE...]",
		Short: "Say whether this machine and the service are ready to work with",
		Long: `Say whether this machine and the service are ready to work with, before a pipeline or a person finds out in the middle of something:
the file with the contexts, the credential, whether the service answers and takes requests, versions, clocks, who you are to it, for how long,
with which rights, and whether the projects are Ready: those that are named, else all that you may see.

With --pre only what needs no service is looked at: this machine, before there is one.

The exit code is 0 when nothing failed. Else it is that of the first check that did: 7 when the service can't be reached, 4 when it does
not take the credential or a right is missing, 5 for a project that is not there, 1 for the rest; with --strict also for warnings.`,
		Example: `  svcctl check
  svcctl check --pre
  svcctl check blog --right project.reload --strict -o json`,
		Args:              command.Args(cobra.ArbitraryArgs),
		ValidArgsFunction: st.CompleteNamespaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Namespaces = args
			if opts.Pre && len(args)+len(opts.Rights) > 0 {
				return command.Usagef("--pre asks no service: it goes without namespaces and --right")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCheck(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Pre, "pre", false, "only what needs no service")
	cmd.Flags().BoolVar(&opts.Strict, "strict", false, "warnings fail too")
	cmd.Flags().StringSliceVar(&opts.Rights, "right", nil, "right that you have to have, such as project.reload (repeat, or separate by commas)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"right": command.CompleteFlag(st.CompleteScopes)})
	return cmd
}

// What a check came to.
const (
	ok     = api.CheckOK
	warn   = "warning"
	failed = api.CheckFailed
)

// finding is what one check came to.
type finding struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"` // what to do about it

	exit int // of a check that failed
}

// checker collects findings.
type checker struct {
	opts  *checkOptions
	found []finding
}

func (c *checker) add(f finding) { c.found = append(c.found, f) }

// fail adds what an error means.
func (c *checker) fail(ctx context.Context, name string, err error) {
	message, hint := c.opts.st.Explain(ctx, err)
	c.add(finding{Name: name, Status: failed, Message: message, Hint: hint, exit: c.opts.st.ExitOf(ctx, err)})
}

func runCheck(ctx context.Context, opts *checkOptions) error {
	c := &checker{opts: opts}
	c.machine(ctx)
	if !opts.Pre {
		c.service(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := c.print(); err != nil {
		return err
	}
	exit, bad := command.ExitOK, ""
	for _, f := range c.found {
		if f.Status == failed && exit == command.ExitOK {
			exit, bad = f.exit, failed
		}
	}
	if exit == command.ExitOK && opts.Strict {
		for _, f := range c.found {
			if f.Status == warn {
				exit, bad = command.ExitFailed, warn
			}
		}
	}
	if bad != "" {
		return command.Told(exit)
	}
	return nil
}

func (c *checker) print() error {
	st := c.opts.st
	p := st.Printer()
	t := output.NewTable("CHECK", "STATUS", "MESSAGE")
	result := output.Result{Value: map[string]any{"items": c.found}, Table: t}
	for _, f := range c.found {
		t.Row(f.Name, p.Style.Toned(f.Status, toneOf(f.Status)), f.Message)
		result.Names = append(result.Names, "check/"+f.Name)
	}
	if p.Format == output.FormatTable && st.OutWidth > 0 {
		t.Fit(st.OutWidth)
	}
	if err := p.Print(result); err != nil || p.Structured() {
		return err
	}
	for _, f := range c.found {
		if f.Hint != "" {
			st.Notef("%s: %s", f.Name, f.Hint)
		}
	}
	return nil
}
