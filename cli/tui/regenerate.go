package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// regeneration is a run that makes an index anew, as far as it was told of.
type regeneration struct {
	row, place string // the search
	id         string // of the run
	status     string
	last       api.RunEventData // of the latest event that says how far it is
	after      int64            // ID of the latest event
	log        []string
	message    string // of its end
	stop       func() // ends watching; nil: nobody watches
	lost       bool   // the service tells no more of it
}

// ended says that there is nothing more to be told.
func (r *regeneration) ended() bool {
	return r.lost || r.status != api.RunQueued && r.status != api.RunRunning
}

type (
	runStarted struct {
		row, place string
		run        *api.Run
	}
	runTold struct {
		of    *regeneration
		event api.RunEvent
	}
	runLeft struct {
		of  *regeneration
		err error
	}
)

// rightToRegenerate is what making an index anew takes.
const rightToRegenerate = "project.regenerate-search"

// askRegenerate asks whether an index is to be made anew. Where that is being done already, it shows that.
func (s *search) askRegenerate(row *searchRow) tea.Cmd {
	if !row.indexed {
		return s.host.Say(row.place() + " has no index of its own")
	}
	if run := s.runs[row.id()]; run != nil && !run.ended() {
		return s.watch(run)
	}
	if !s.host.May(rightToRegenerate) {
		return s.host.Lack(rightToRegenerate)
	}
	id, place, collection, name := row.id(), row.place(), row.collection, row.name
	s.host.Confirm("Make the index of "+place+" anew? The one before answers until it is made.", func() tea.Cmd {
		return s.host.Ask(func(ctx context.Context) (tea.Msg, error) {
			run, err := s.host.Client.RegenerateSearch(ctx, s.namespace, collection, name)
			return runStarted{id, place, run}, err
		})
	})
	return nil
}

func (s *search) started(msg runStarted) tea.Cmd {
	s.leave()
	s.pane = &regeneration{row: msg.row, place: msg.place, id: msg.run.ID, status: msg.run.Status}
	s.runs[msg.row] = s.pane
	return tea.Batch(s.attach(), s.host.Refresh())
}

// known is the run of the search with the cursor.
func (s *search) known() *regeneration { return s.runs[s.list.Selected()] }

// watch shows a run.
func (s *search) watch(run *regeneration) tea.Cmd {
	if s.pane != run {
		s.leave()
		s.pane = run
	}
	return s.attach()
}

// attach watches the run that is shown, if it goes on and is not watched.
func (s *search) attach() tea.Cmd {
	run := s.pane
	if run == nil || run.ended() || run.stop != nil {
		return nil
	}
	after := run.after
	var cmd tea.Cmd
	cmd, run.stop = s.host.Stream(func(ctx context.Context, emit func(tea.Msg)) error {
		return s.host.Client.FollowRegeneration(ctx, s.namespace, run.id, after, func(e api.RunEvent) error {
			emit(runTold{run, e})
			return nil
		})
	}, func(err error) tea.Msg { return runLeft{run, err} })
	return cmd
}

// leave stops watching. The run goes on.
func (s *search) leave() {
	if s.pane != nil && s.pane.stop != nil {
		s.pane.stop()
		s.pane.stop = nil
	}
	s.pane = nil
}

// detach is leave for the user.
func (s *search) detach() tea.Cmd {
	goesOn := !s.pane.ended()
	s.leave()
	if !goesOn {
		return nil
	}
	return s.host.Say("the run goes on; w shows it again")
}

// keptLog is how many lines of a run's log are shown.
const keptLog = 3

func (s *search) told(msg runTold) tea.Cmd {
	run, e := msg.of, msg.event
	run.after = max(run.after, e.ID)
	switch e.Event {
	case api.EventProgress:
		run.status, run.last = api.RunRunning, e.Data
	case api.EventLog:
		run.log = append(run.log, e.Data.Level+": "+e.Data.Message)
		run.log = run.log[max(len(run.log)-keptLog, 0):]
	case api.EventDone, api.EventError:
		run.message = e.Data.Message
		run.last.ElapsedSeconds = e.Data.ElapsedSeconds
		if run.status = e.Data.Status; run.status == "" {
			run.status = map[string]string{api.EventDone: api.RunSucceeded, api.EventError: api.RunFailed}[e.Event]
		}
		return s.host.Refresh()
	}
	return nil
}

// left takes notice that a run is not watched any more. One that has not ended is looked for again with the next read, unless the
// service has refused that.
func (s *search) left(msg runLeft) tea.Cmd {
	msg.of.stop = nil
	if _, refused := errors.AsType[*client.Error](msg.err); refused {
		msg.of.lost = true
	}
	return nil
}

// draw draws the run.
func (r *regeneration) draw(width int, t widget.Theme) []string {
	tone := output.ToneOf(r.status)
	parts := []string{t.Paint(tone, r.status)}
	cells := max(min(width/3, 40), 5)
	switch {
	case r.status == api.RunSucceeded:
		parts = append(parts, widget.Bar(cells, 1, 1)+" "+widget.Percent(1, 1))
	case r.last.Total > 0:
		parts = append(parts, widget.Bar(cells, r.last.Done, r.last.Total)+" "+widget.Percent(r.last.Done, r.last.Total))
	}
	if r.last.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", r.last.Done, max(r.last.Done, r.last.Total)))
	}
	if seconds := r.last.ElapsedSeconds; seconds > 0 {
		parts = append(parts, span(seconds))
		if left := r.last.ETASeconds; left != nil && !r.ended() {
			parts = append(parts, span(*left)+" left")
		}
	}
	title := "Making " + output.Escape(r.place) + " anew"
	out := []string{
		t.Title.Render(widget.Cut(title+" "+strings.Repeat("─", max(width-widget.Width(title)-1, 0)), width)),
		widget.Fit(parts, "  ", width),
	}
	for _, line := range r.log {
		out = append(out, widget.Cut(output.Escape(line), width))
	}
	if r.message != "" && r.status != api.RunSucceeded {
		for _, line := range widget.Wrap(output.Escape(r.message), width) {
			out = append(out, t.Paint(output.ToneBad, line))
		}
	}
	return append(out, t.Faint.Render(widget.Cut(r.hint(), width)))
}

// hint says what can be done now.
func (r *regeneration) hint() string {
	run := "; run " + output.Escape(r.id)
	switch {
	case r.lost:
		return "esc closes; the service does not tell of it any more" + run
	case r.ended():
		return "esc closes" + run
	case r.stop == nil:
		return "esc leaves it running; looking for it again …" + run
	}
	return "esc leaves it running" + run
}

// span is a number of seconds for people: with less of it than runs.Span, as it grows before their eyes.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
