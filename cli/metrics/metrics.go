package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

type options struct {
	st    *command.State
	Words []string
	All   bool
	Watch bool
	Every time.Duration
}

// NewCmd makes the command.
func NewCmd(st *command.State) *cobra.Command { return newCmd(st, nil) }

func newCmd(st *command.State, runF func(context.Context, *options) error) *cobra.Command {
	opts := &options{st: st}
	cmd := &cobra.Command{
		Use:   "metrics [WORD…]",
		Short: "Show what the service measures of itself",
		Long: `Show what the service measures of itself since it has started, by group: requests, hooks, searches, snapshots and the like. Words pick the
metrics whose name has one of them. Of what is spread over a range, the number, the mean, and what half and 99 % of them don't exceed
are shown. Counters that are 0, and the Go runtime, are left out unless words ask for them, or --all.

With --watch, what has changed is shown again every few seconds, with its change, until you interrupt it; -o json gives an object a line then.
On the machine of the service anybody may, from elsewhere it takes the admin token, or the setting metrics.public. "svcctl api GET /metrics" prints the
text that Prometheus reads.`,
		Example: `  svcctl metrics
  svcctl metrics request hook
  svcctl metrics snapshot -o json
  svcctl metrics request --watch`,
		Args:              command.Args(cobra.ArbitraryArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Words = args
			if opts.Every < time.Second {
				return command.Usagef("--every %s: want 1s or more", opts.Every)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVarP(&opts.All, "all", "a", false, "with counters that are 0, and those of the Go runtime")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "go on, and show what has changed")
	cmd.Flags().DurationVar(&opts.Every, "every", 5*time.Second, "how often --watch looks, 1s or more")
	return cmd
}

func run(ctx context.Context, opts *options) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	var before *metrics
	for {
		now, err := fetch(ctx, c, opts)
		if err != nil {
			return err
		}
		if err := opts.show(now, before); err != nil || !opts.Watch {
			return err
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(opts.Every):
		}
	}
}

// maxText is how long the text of a service may be, in bytes.
const maxText = 64 << 20

func fetch(ctx context.Context, c *client.Client, opts *options) (*metrics, error) {
	ctx, cancel := command.WithTimeout(ctx, opts.st.Flags.RequestTimeout)
	defer cancel()
	res, err := c.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	m, err := read(io.LimitReader(res.Body, maxText))
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &command.Error{Exit: command.ExitFailed, Code: "metrics_unreadable", Message: "what the service gives as its metrics can't be read", Cause: err,
			Hint: "svcctl api GET /metrics shows it"}
	}
	return m.only(opts.Words, opts.All), nil
}

// show prints what there is, or with before what has changed since.
func (opts *options) show(now, before *metrics) error {
	st := opts.st
	p := st.Printer()
	switch {
	case p.Structured() && opts.Watch:
		return output.JSONLine(p.W, now)
	case p.Structured(), p.Format == output.FormatName:
		return p.Print(output.Result{Value: now, Names: now.names()})
	}
	if len(now.Groups) == 0 {
		if len(opts.Words) == 0 {
			return errors.New("the service measures nothing")
		}
		return &command.Error{Exit: command.ExitNotFound, Code: "no_such_metric", Message: fmt.Sprintf("no metric has any of %q in its name", opts.Words),
			Hint: "svcctl metrics --all -o name lists all"}
	}
	for _, g := range now.Groups {
		t := output.NewTable("METRIC", "VALUE", "LABELS")
		if before != nil {
			t = output.NewTable("METRIC", "VALUE", "CHANGE", "LABELS")
		}
		for _, m := range g.Metrics {
			for _, s := range m.Series {
				value := m.text(s, st.Now())
				switch was, ok := before.find(m.Name, s.labels()); {
				case before == nil:
					t.Row(m.Name, value, s.labels())
				case !ok || was.amount() != s.amount():
					t.Row(m.Name, value, fmt.Sprintf("%+.6g", s.amount()-was.amount()), s.labels())
				}
			}
		}
		if err := p.Section(g.Name, st.FitTable(t)); err != nil {
			return err
		}
	}
	return nil
}
