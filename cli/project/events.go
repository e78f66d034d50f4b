package project

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type eventsOptions struct {
	st        *command.State
	Namespace string
	Watch     bool
	For       string
}

func newEvents(st *command.State, runF func(context.Context, *eventsOptions) error) *cobra.Command {
	opts := &eventsOptions{st: st}
	cmd := &cobra.Command{
		Use:   "events [NAMESPACE]",
		Short: "Show what the service did with a project, and why",
		Long: `Show what the service did with a project, and what it found out about it, the latest last: which generation is served, why a
config is refused, indexes, jobs that failed. What comes again is counted. The service keeps the latest 100.

With --for, only what is about one thing of the project is shown, such as job/cleanup. With --watch it goes on, until you interrupt it; -o json gives
an object a line then.`,
		Example: `  svcctl project events blog
  svcctl project events shop --for job/cleanup
  svcctl project events blog --watch`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			opts.Namespace = namespace
			if runF != nil {
				return runF(ctx, opts)
			}
			return runEvents(ctx, opts)
		}),
	}
	cmd.Flags().StringVar(&opts.For, "for", "", "only what is about this: KIND/NAME, such as job/cleanup, or project")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "go on with what comes")
	return cmd
}

func runEvents(ctx context.Context, opts *eventsOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.Watch {
		return c.FollowProjectEvents(ctx, opts.Namespace, 0, func(e api.ProjectEvent) error {
			if !opts.about(e) {
				return nil
			}
			return showEvent(st, e)
		})
	}
	page, err := c.ProjectEvents(ctx, opts.Namespace)
	if err != nil {
		return err
	}
	page.Items = slices.DeleteFunc(page.Items, func(e api.ProjectEvent) bool { return !opts.about(e) })
	t := output.NewTable("LAST", "TYPE", "REASON", "COUNT", "MESSAGE", "+OBJECT", "+FIRST")
	result := output.Result{Value: page, Table: t}
	for _, e := range slices.Backward(page.Items) {
		t.Row(output.Age(st.Now(), e.LastSeen.Time), eventType(st.Printer(), e), e.Reason, e.Count, e.Message, e.Object, output.Age(st.Now(), e.FirstSeen.Time))
		result.Names = append(result.Names, "event/"+strconv.FormatInt(e.ID, 10))
	}
	if len(page.Items) == 0 {
		st.Notef("%s has no events%s", opts.Namespace, strings.TrimSuffix(" for "+opts.For, " for "))
	}
	st.FitTable(t)
	return st.Printer().Print(result)
}

// about says whether an event is about what --for names. Events of the project itself name nothing.
func (opts *eventsOptions) about(e api.ProjectEvent) bool {
	switch opts.For {
	case "", e.Object:
		return true
	case "project", "project/" + opts.Namespace:
		return e.Object == ""
	}
	return false
}

// showEvent prints one event of a watch: a line of text, or of JSON.
func showEvent(st *command.State, e api.ProjectEvent) error {
	p := st.Printer()
	if p.Structured() {
		return output.JSONLine(p.W, e)
	}
	times := ""
	if e.Count > 1 {
		times = fmt.Sprintf(" (%d times)", e.Count)
	}
	_, err := fmt.Fprintf(p.W, "%s %s %s: %s%s\n", e.LastSeen.Format(time.RFC3339), e.Type, e.Reason, output.Escape(e.Message), times)
	return err
}

func eventType(p output.Printer, e api.ProjectEvent) output.Painted {
	if e.Type == "Warning" {
		return p.Style.Toned(e.Type, output.ToneWarn)
	}
	return output.Painted{Text: e.Type} // it is as it should be
}
