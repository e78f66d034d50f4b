package project

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newWatch(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [NAMESPACE...]",
		Short: "Follow how projects do, a line for each change",
		Long: `Show how projects are, and a line whenever one of them has changed, until you interrupt it: those that are named, else all that you may see. -o json
gives the status of a project as an object a line. svcctl project events --watch tells what the service did, and why.`,
		Example: `  svcctl project watch
  svcctl project watch blog shop
  svcctl project watch -o json --jq '[.namespace, .phase] | @tsv'`,
		Args:              command.Args(cobra.ArbitraryArgs),
		ValidArgsFunction: st.CompleteNamespaces,
		RunE:              func(cmd *cobra.Command, args []string) error { return runWatch(cmd.Context(), st, args) },
	}
}

// watchPause is how long a watch waits before it looks again.
const watchPause = 2 * time.Second

// runWatch shows the status of projects, and again whenever it is another one. Those that are named have to be there at first.
func runWatch(ctx context.Context, st *command.State, names []string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, _, err := find(ctx, st, name); err != nil {
			return err
		}
	}
	w := projectWatch{st: st, names: names, last: map[string]*api.ProjectStatus{}}
	for {
		if err := w.look(ctx, c); err != nil {
			return err
		}
		timer := time.NewTimer(watchPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

type projectWatch struct {
	st     *command.State
	names  []string
	last   map[string]*api.ProjectStatus // by namespace
	headed bool
}

// look shows what has changed since the look before.
func (w *projectWatch) look(ctx context.Context, c *client.Client) error {
	seen := map[string]bool{}
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return err
		}
		if len(w.names) > 0 && !slices.Contains(w.names, p.Namespace) && !slices.Contains(w.names, p.ID) {
			continue
		}
		status, err := c.ProjectStatus(ctx, p.ID)
		if client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		seen[p.Namespace] = true
		if last := w.last[p.Namespace]; last != nil && reflect.DeepEqual(last, status) {
			continue
		}
		w.last[p.Namespace] = status
		if err := w.show(status); err != nil {
			return err
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.last)) {
		if !seen[namespace] {
			delete(w.last, namespace)
			w.st.Notef("%s is no longer there", namespace)
		}
	}
	return nil
}

func (w *projectWatch) show(s *api.ProjectStatus) error {
	p := w.st.Printer()
	switch {
	case p.Structured():
		return output.JSONLine(p.W, s)
	case p.Format == output.FormatName:
		_, err := fmt.Fprintln(p.W, "project/"+output.Escape(s.Namespace))
		return err
	}
	ready := s.Condition("Ready")
	state := printerState(p, ready)
	line := func(namespace, ready, phase, generation, problems, message string) error {
		_, err := io.WriteString(p.W, strings.TrimRight(fmt.Sprintf("%-20s   %s   %-10s   %-10s   %-8s   %s", namespace, ready, phase, generation, problems, message), " ")+"\n")
		return err
	}
	if !w.headed && !p.NoHeaders {
		if err := line("NAMESPACE", "READY  ", "PHASE", "GENERATION", "PROBLEMS", "MESSAGE"); err != nil {
			return err
		}
	}
	w.headed = true
	text := fmt.Sprintf("%-7s", state.Text)
	if state.Paint != nil {
		text = state.Paint(text)
	}
	return line(output.Escape(s.Namespace), text, string(s.Phase), fmt.Sprint(s.ObservedGeneration), fmt.Sprint(len(s.Problems)), output.Escape(ready.Message))
}
