package project

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type waitOptions struct {
	st        *command.State
	Namespace string
	For       string
	Timeout   time.Duration
}

func newWait(st *command.State, runF func(context.Context, *waitOptions) error) *cobra.Command {
	opts := &waitOptions{st: st}
	cmd := &cobra.Command{
		Use:   "wait [NAMESPACE]",
		Short: "Wait until a condition of a project has a status",
		Long: `Wait until a condition of a project is True, or has the status given. It goes by what the service says at that moment: right
after a change of the files it may still tell of what was before, which svcctl project reload --wait and apply don't.

Unlike status --wait it goes on waiting when the condition fails: what is wrong may be mended meanwhile. The exit code is 8
when it takes longer than --timeout.`,
		Example: `  svcctl project wait blog --for condition=Ready --timeout 60s
  svcctl project wait blog --for condition=ConfigValid=False`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				args = []string{strings.TrimPrefix(args[0], "project/")}
			}
			return st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
				opts.Namespace = namespace
				if _, _, err := parseFor(opts.For); err != nil {
					return err
				}
				if runF != nil {
					return runF(ctx, opts)
				}
				return runWait(ctx, opts)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&opts.For, "for", "condition=Ready", "what to wait for: condition=TYPE or condition=TYPE=STATUS")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "longest wait, 0 for no limit")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"for": cobra.FixedCompletions([]string{
			"condition=Ready", "condition=ConfigValid", "condition=OutOfDate=False", "condition=IndexesConverged", "condition=JobsScheduled", "condition=SearchReady", "condition=EmbeddingReady",
			"condition=SnapshotsScheduled", "condition=SnapshotsVerified",
			"condition=Reconciling=False", "condition=Stalled",
		}, cobra.ShellCompDirectiveNoFileComp),
	})
	return cmd
}

// parseFor reads condition=TYPE[=STATUS], also without its first word.
func parseFor(text string) (typ, status string, err error) {
	rest, ok := strings.CutPrefix(text, "condition=")
	typ, status, given := strings.Cut(rest, "=")
	ok = ok || typ != "" && unicode.IsUpper(rune(typ[0]))
	if !given {
		status = "True"
	}
	for _, known := range []string{"True", "False", "Unknown"} {
		if ok && typ != "" && strings.EqualFold(status, known) {
			return typ, known, nil
		}
	}
	return "", "", command.Usagef("--for %s: want condition=TYPE or condition=TYPE=STATUS, where STATUS is True, False or Unknown", text)
}

func runWait(ctx context.Context, opts *waitOptions) error {
	st := opts.st
	typ, want, err := parseFor(opts.For)
	if err != nil {
		return err
	}
	ctx, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	c, p, err := find(ctx, st, opts.Namespace)
	if err != nil {
		return err
	}
	var last *api.ProjectStatus
	err = watchStatus(ctx, c, p, func(status *api.ProjectStatus) (bool, error) {
		last = status
		return status.Condition(typ).Status == want, nil
	})
	if err == nil {
		return showStatus(st, p, last)
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || last == nil {
		return err
	}
	is := last.Condition(typ)
	var there []string
	for _, c := range last.Conditions {
		there = append(there, c.Type)
	}
	if len(there) > 0 && is.Message != "" && !slices.Contains(there, typ) { // perhaps it is a slip
		is.Message = "the project has no such condition now; there are " + strings.Join(there, ", ")
	}
	return &command.Error{
		Exit: command.ExitTimeout, Code: "timeout", Hint: "allow more with --timeout; svcctl project status " + p.Namespace + " shows everything",
		Message: p.Namespace + ": " + typ + " is " + is.Status + ", not " + want + ": " + is.Message,
	}
}

// watchStatus shows fn a project's status again and again, until it says that this was the last or fails, or ctx ends.
func watchStatus(ctx context.Context, c *client.Client, p *api.Project, fn func(*api.ProjectStatus) (done bool, err error)) error {
	for pause := minPoll; ; pause = min(2*pause, maxPoll) {
		status, err := c.ProjectStatus(ctx, p.ID)
		if err != nil {
			return err
		}
		if done, err := fn(status); done || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
