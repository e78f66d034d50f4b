package doc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type watchOptions struct {
	st *command.State
	place
	Query    client.Query // its Filter and Select
	After    string
	Limit    int
	RetryFor time.Duration
}

func newWatch(st *command.State, runF func(context.Context, *watchOptions) error) *cobra.Command {
	opts := &watchOptions{st: st}
	cmd := &cobra.Command{
		Use:   "watch [NAMESPACE] COLLECTION",
		Short: "Follow the changes of records",
		Long: `Follow what happens to the records that you may read and that --filter selects, until you interrupt it: create when one
comes into sight, because it is new or has changed, update, and delete when it is gone or out of sight. What is printed as
ready, or noted on stderr, comes first: what changes from then on is told, so a list that is read after it lacks nothing.

When the stream breaks, it is opened again behind the last change, and nothing is left out; --retry-for says how long that
is tried. -o json gives an object a line: event, id, item, and token, which --after takes to go on behind it.`,
		Example: `  svcctl doc watch shop orders
  svcctl doc watch blog articles --filter '{"section": "cooking"}' --select title,status
  svcctl doc watch shop orders -o json | jq -r 'select(.event == "create") | .item.number'`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		Annotations:       map[string]string{command.FormatsAnnotation: formatNDJSON},
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			if opts.Limit < 0 || opts.RetryFor < 0 {
				return command.Usagef("--limit and --retry-for: want 0 or more")
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runWatch(ctx, opts)
		}),
	}
	filterFlag(cmd, &opts.Query.Filter)
	cmd.Flags().StringVar(&opts.Query.Select, "select", "", "fields to show, as in title,seo.title, or to leave out, as in -body")
	cmd.Flags().StringVar(&opts.After, "after", "", "token of the change to go on behind (default: from now on)")
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "end after so many changes, 0 for none")
	cmd.Flags().DurationVar(&opts.RetryFor, "retry-for", 2*time.Minute, "how long a broken stream is opened again")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"select": st.CompleteFieldList(1)})
	return cmd
}

// watcher follows one collection.
type watcher struct {
	opts   *watchOptions
	token  string // of the last event
	events int    // ready ones, too
	shown  int
}

// errEnough ends a watch after --limit.
var errEnough = errors.New("enough")

func runWatch(ctx context.Context, opts *watchOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	w := &watcher{opts: opts, token: opts.After}
	began := st.Now()
	for pause := firstWait; ; pause = min(2*pause, maxWait) {
		before := w.events
		err := c.FollowChanges(ctx, opts.Namespace, opts.Collection, opts.Query, w.token, w.event)
		if errors.Is(err, errEnough) {
			return nil
		}
		after, again := putOff(err)
		if !again || w.events == 0 || ctx.Err() != nil { // what never began is no broken stream
			return lostChanges(err)
		}
		if w.events > before {
			began, pause = st.Now(), firstWait
		}
		after = max(after, pause)
		if st.Now().Add(after).After(began.Add(opts.RetryFor)) {
			return err
		}
		st.Notef("%v; again in %s", err, after)
		if err := wait(ctx, after); err != nil {
			return err
		}
	}
}

// lostChanges says what to do when a feed can't go on.
func lostChanges(err error) error {
	if !errors.Is(err, client.ErrReset) && !client.IsStatus(err, http.StatusGone) {
		return err
	}
	return &command.Error{
		Exit: command.ExitConflict, Code: "changes_lost", Message: "the changes since then are not known any more",
		Hint: "read the records anew (svcctl doc list), and watch without --after",
	}
}

// event tells of one event.
func (w *watcher) event(e api.Change) error {
	w.events++
	if e.Token != "" {
		w.token = e.Token
	}
	if err := w.print(e); err != nil {
		return err
	}
	if e.Event == api.EventReady {
		return nil
	}
	if w.shown++; w.shown == w.opts.Limit {
		return errEnough
	}
	return nil
}

func (w *watcher) print(e api.Change) error {
	st, p := w.opts.st, w.opts.st.Printer()
	line := struct {
		Event string     `json:"event"`
		ID    string     `json:"id,omitempty"`
		Item  api.Record `json:"item,omitempty"`
		Token string     `json:"token,omitempty"`
	}{e.Event, e.ID, e.Item, e.Token}
	switch {
	case p.Format == output.FormatJSON, p.Format == formatNDJSON:
		return output.JSONLine(p.W, line)
	case p.Format == output.FormatYAML:
		if _, err := fmt.Fprintln(p.W, "---"); err != nil {
			return err
		}
		return p.YAML(line)
	case e.Event == api.EventReady && w.events > 1:
		st.Notef("connected again")
		return nil
	case e.Event == api.EventReady:
		st.Notef("watching %s: an interrupt (Ctrl-C) ends it", w.opts.place)
		return nil
	case p.Format == output.FormatName:
		_, err := fmt.Fprintln(p.W, output.Escape(w.opts.Collection+"/"+e.ID))
		return err
	}
	paint := map[string]func(string) string{api.EventCreate: p.Style.Green, api.EventUpdate: p.Style.Yellow, api.EventDelete: p.Style.Red}[e.Event]
	start := st.Now().Format(time.TimeOnly) + "  "
	rest := "  " + output.Escape(strings.Join(append([]string{e.ID}, w.summary(e.Item)...), "  "))
	if st.OutWidth > 0 && p.Format != output.FormatWide {
		rest = output.Cut(rest, max(st.OutWidth-len(start)-len(e.Event), minCell))
	}
	_, err := fmt.Fprintln(p.W, start+paint(e.Event)+rest)
	return err
}

// summary is what a line shows of a record: what --select names, or the first plain members.
func (w *watcher) summary(item api.Record) []string {
	if len(item) == 0 {
		return nil
	}
	l := look{Select: w.opts.Query.Select, Wide: w.opts.st.Flags.Output == output.FormatWide}
	columns, rows, err := l.rows([]api.Record{item})
	if err != nil || len(rows) == 0 {
		return nil
	}
	var out []string
	for _, c := range columns {
		if text := rows[0][c]; text != "" && c != "id" {
			if !l.Wide {
				text = output.Cut(text, maxCell)
			}
			out = append(out, text)
		}
	}
	if l.Select == "" && !l.Wide {
		out = out[:min(len(out), maxColumns)]
	}
	return out
}
