package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

func (j *jobRuns) Keys() []key.Binding {
	if j.of != "" {
		return j.pageKeys()
	}
	does := "run now"
	if j.active() != nil {
		does = "cancel the run"
	}
	there := j.list.Selected() != ""
	return []key.Binding{
		frame.When(there, "enter", "the whole log", "there is a run"), j.host.Allowed(rightToRun, "x", does), frame.When(there, "y", "YAML", "there is a run"),
	}
}

func (j *jobRuns) section() widget.Section {
	now := j.host.Now()
	s := widget.Section{Title: "Runs, the latest first", None: "it has not run: x runs it", Columns: []widget.Column{
		{Name: "BEGAN", Right: true}, {Name: "STATUS"}, {Name: "TOOK", Right: true, Rank: 2}, {Name: "TRIGGER", Rank: 4}, {Name: "BY", Rank: 5, Least: 6}, {Name: "MESSAGE", Rank: 1, Least: 12}, {Name: "ID", Rank: 6},
	}}
	for i := range j.runs {
		r := &j.runs[i]
		s.Rows = append(s.Rows, widget.Row{ID: r.ID, Cells: []widget.Cell{
			widget.Text(output.Age(now, r.CreatedAt.Time)), widget.State(r.Status), widget.Text(tookOf(r, now)), widget.Text(r.Trigger), widget.Text(runs.Who(r.By)), messageOf(r), widget.Text(r.ID),
		}})
	}
	return s
}

// linesForLog is how many lines a terminal has for the log to be shown beside the list.
const linesForLog = 9

func (j *jobRuns) View(width, height int) string {
	if j.of != "" || j.shown == nil || height < linesForLog {
		return j.view(width, height, j.doc)
	}
	above := min(height/2, len(j.runs)+3)
	list := fill(j.view(width, above, j.doc), above)
	return lines(append(list, j.shown.draw(width, height-above, j.host.Theme())...))
}

// draw draws the end of the log.
func (r *runLog) draw(width, height int, t widget.Theme) []string {
	title := "Log of " + output.Escape(r.run.ID) + "  " + output.Escape(r.run.Status) + " "
	out := []string{t.Title.Render(widget.Cut(title+strings.Repeat("─", max(width-widget.Width(title), 0)), width))}
	var text []string
	for _, e := range r.events[max(len(r.events)-height, 0):] {
		line, tone := eventLine(e)
		for _, part := range widget.Wrap(output.Escape(line), width) {
			text = append(text, t.Paint(tone, part))
		}
	}
	switch {
	case len(text) > 0:
	case r.asked || !r.read:
		text = []string{t.Faint.Render("asking the service …")}
	case r.run.Active():
		text = []string{t.Faint.Render("nothing yet")}
	default:
		text = []string{t.Faint.Render("it has logged nothing")}
	}
	return append(out, text[max(len(text)-height+1, 0):]...)
}

// eventLine is an event of a run in a line.
func eventLine(e api.RunEvent) (text string, tone output.Tone) {
	what, text := e.Event, e.Data.Message
	switch {
	case e.Event == api.EventProgress:
		text = runs.ProgressOf(e)
	case e.Event == api.EventLog:
		what = e.Data.Level
		tone = map[string]output.Tone{"warn": output.ToneWarn, "error": output.ToneBad}[what]
	case e.Data.Status != "":
		what = e.Data.Status
		tone = output.ToneOf(what)
	}
	return strings.TrimSpace(fmt.Sprintf("%8.3fs  %-9s %s", e.Data.ElapsedSeconds, what, text)), tone
}

// doc is the page about a run.
func (j *jobRuns) doc(id string) (d widget.Doc, ok bool) {
	one := j.logs[id]
	if one == nil {
		return d, false
	}
	r := &one.run
	d.Heading("Run " + r.ID)
	d.State("Status", r.Status, output.ToneOf(r.Status))
	d.Field("Trigger", r.Trigger)
	d.Field("Due", when(r.Slot))
	d.Field("By", runs.Who(r.By))
	d.Field("Instance", r.Instance)
	d.Field("Began", when(r.StartedAt))
	d.Field("Ended", when(r.FinishedAt))
	if r.Error != nil {
		d.State("Error", r.Error.Message, output.ToneBad)
	}
	if len(r.Result) > 0 {
		d.Field("Result", string(r.Result))
	}
	d.Heading("Log")
	if len(one.events) == 0 {
		d.Text("It has logged nothing.")
	}
	for _, e := range one.events {
		line, tone := eventLine(e)
		d.Painted(j.host.Theme().Paint(tone, output.Escape(line)))
	}
	return d, true
}
