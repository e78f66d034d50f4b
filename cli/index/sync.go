package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newDiff(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [NAMESPACE]",
		Short: "Show which indexes of a project are not as declared",
		Long: `Show which indexes of a project are missing, have another definition, are left over from an earlier config (unexpected), or were
made by other hands, which are left alone. Nothing is changed. What the service is building right now is not as declared yet, and says so.

The exit code is 0 when all are as declared, 1 when not, and another one when it could not be found out.`,
		Example:           "  svcctl index diff shop",
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return command.NotRun(runDiff(ctx, st, namespace))
		}),
	}
}

func runDiff(ctx context.Context, st *command.State, namespace string) error {
	_, d, err := drift(ctx, st, namespace)
	if err != nil {
		return err
	}
	return show(st, d)
}

// drift asks which indexes are not as declared.
func drift(ctx context.Context, st *command.State, namespace string) (*client.Client, *api.Drift, error) {
	c, err := st.Client()
	if err != nil {
		return nil, nil, err
	}
	d, err := c.Drift(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	other := func(it api.DriftItem) bool { return it.Kind != api.DriftIndex }
	d.Items, d.Pending = slices.DeleteFunc(d.Items, other), slices.DeleteFunc(d.Pending, other)
	return c, d, nil
}

// show prints what differs, with what the service is at, and gives the error of exit code 1 when something does.
func show(st *command.State, d *api.Drift) error {
	t := output.NewTable("INDEX", "ACTION", "DETAIL")
	result := output.Result{Table: t, Value: d}
	differs := slices.Concat(d.Items, d.Pending)
	for _, it := range differs {
		t.Row(it.Object, it.Action, it.Detail)
		result.Names = append(result.Names, "index/"+it.Object)
	}
	p := st.Printer()
	if len(differs) == 0 {
		st.Notef("%s: the indexes are as declared", d.Namespace)
	}
	if len(differs) > 0 || p.Structured() {
		if err := p.Print(result); err != nil {
			return err
		}
	}
	if len(differs) > 0 {
		return command.Told(command.ExitFailed)
	}
	return nil
}

func newSync(st *command.State) *cobra.Command {
	opts := syncOptions{}
	cmd := &cobra.Command{
		Use:   "sync [NAMESPACE]",
		Short: "Make the indexes of a project as they are declared, now",
		Long: `Make the indexes of a project as they are declared, and wait until they are built, telling which is. The service does
that by itself, unless the project's config says mode: observe; then this is how it is told to.

What would be dropped, as it is no longer declared or has another definition, is asked about on a terminal. Elsewhere --allow says how
much is fine (breaking: unique ones, too), or --yes that all is. When more would be dropped by then, nothing is done (exit code 6).
Indexes made by other hands are left alone.

The exit code is 1 when some are not as declared in the end, such as a unique one that records violate, and 8 when --timeout was not
enough: the service goes on by itself.`,
		Example: `  svcctl index sync shop --yes
  svcctl index sync shop --allow slow --timeout 10m`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			if err := command.CheckAllow(opts.allow); err != nil {
				return err
			}
			return command.NotRun(runSync(ctx, st, namespace, opts))
		}),
	}
	command.YesFlag(cmd, &opts.yes)
	command.AllowFlag(cmd, &opts.allow)
	cmd.Flags().DurationVar(&opts.timeout, "timeout", 0, "longest wait, 0 for no limit")
	return cmd
}

type syncOptions struct {
	yes     bool
	allow   string
	timeout time.Duration
}

func runSync(ctx context.Context, st *command.State, namespace string, opts syncOptions) error {
	c, d, err := drift(ctx, st, namespace)
	if err != nil {
		return err
	}
	allow := api.Risk(opts.allow)
	if allow == "" {
		var drops []string
		if drops, allow = dropped(d); len(drops) > 0 { // it is held to what was shown
			question := fmt.Sprintf("Drop %s of %s, or build them anew, at %s, with the risk %s?", strings.Join(drops, ", "), namespace, c.Server(), allow)
			if err := st.Confirm(opts.yes, question); err != nil {
				return err
			}
		}
	}
	if len(d.Items)+len(d.Pending) > 0 {
		st.Notef("%s: making the indexes as declared", namespace)
	}
	patient, err := st.PatientClient()
	if err != nil {
		return err
	}
	ctx, cancel := command.WithTimeout(ctx, opts.timeout)
	defer cancel()
	stop := follow(ctx, st, c, namespace)
	left, err := patient.SyncIndexes(ctx, namespace, allow)
	stop()
	if errors.Is(err, context.DeadlineExceeded) {
		return &command.Error{
			Exit: command.ExitTimeout, Code: "timeout", Message: "the indexes of " + namespace + " are not all as declared yet",
			Hint: "the service goes on by itself: svcctl index diff " + namespace + " tells what is left; or allow more with --timeout",
		}
	}
	if err != nil {
		return err
	}
	left.Items = slices.DeleteFunc(left.Items, func(it api.DriftItem) bool { return it.Foreign })
	return show(st, left)
}

// dropped names the indexes that a sync drops or replaces, with the greatest risk of that.
func dropped(d *api.Drift) (names []string, risk api.Risk) {
	for _, it := range slices.Concat(d.Items, d.Pending) {
		if it.Risk == "" {
			continue
		}
		names = append(names, it.Object)
		if risk == "" || it.Risk.Above(risk) {
			risk = it.Risk
		}
	}
	return names, risk
}

// lookEvery is the time between two looks at how far the builds are.
const lookEvery = 500 * time.Millisecond

// follow tells which index is being built, until stop is called: a line each, as the project's status has it. Who may not see that
// is told nothing.
func follow(ctx context.Context, st *command.State, c *client.Client, namespace string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		id, told := "", map[string]bool{} // instances may answer in turn
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookEvery):
			}
			if id == "" {
				p, err := c.ProjectOf(ctx, namespace)
				if err != nil || p == nil {
					return
				}
				id = p.ID
			}
			status, err := c.ProjectStatus(ctx, id)
			if err != nil {
				return
			}
			for _, cond := range status.Conditions {
				if cond.Type == "IndexesConverged" && cond.Reason == "Progressing" && !told[cond.Message] {
					told[cond.Message] = true
					st.Notef("%s: %s", namespace, cond.Message)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
