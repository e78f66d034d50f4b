package tui

import (
	"fmt"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// titleOfRun says what a run does.
func titleOfRun(r *api.Run) string {
	of := func(what string) string {
		if r.Subject != "" {
			return what + " of " + r.Subject
		}
		return what
	}
	switch r.Kind {
	case api.RunKindSnapshot:
		return "snapshot by " + r.Name
	case api.RunKindVerify:
		return of("check")
	case api.RunKindRestore:
		return of("restore")
	case api.RunKindPrune:
		return "pruning of " + r.Name
	case api.RunKindDrill:
		return of("trial restore")
	}
	return r.Kind
}

// draw draws the run.
func (r *snapshotRun) draw(width int, t widget.Theme) []string {
	title := titleOfRun(&r.run)
	title = output.Escape(strings.ToUpper(title[:1]) + title[1:])
	head := []string{t.Paint(output.ToneOf(r.run.Status), output.Escape(r.run.Status))}
	if r.phases.Elapsed > 0 {
		head = append(head, runs.Span(r.phases.Elapsed))
	}
	if r.run.CancelRequested && !r.ended() {
		head = append(head, "it is to end")
	}
	if now := r.phases.Now(); now != nil && !r.ended() {
		if now.Left != nil {
			head = append(head, runs.Left(*now.Left)+" of "+output.Escape(now.Name))
		}
		if now.Collection != "" {
			head = append(head, "at "+output.Escape(now.Collection))
		}
	}
	out := []string{
		t.Title.Render(widget.Cut(title+" "+strings.Repeat("─", max(width-widget.Width(title)-1, 0)), width)),
		widget.Fit(head, "  ", width),
	}
	all := r.phases.All()
	names := 0
	for i := range all {
		names = max(names, widget.Width(output.Escape(all[i].Name)))
	}
	cells := max(min((width-names)/3, 40), 5)
	for i := range all {
		part, known := all[i].Part()
		percent := "    "
		if known {
			percent = fmt.Sprintf("%4s", widget.Percent(int64(part*1000), 1000))
		}
		facts := append([]string{widget.Pad(output.Escape(all[i].Name), names, false) + "  " + widget.Bar(cells, int64(part*1000), 1000) + " " + percent}, all[i].Facts()...)
		out = append(out, widget.Fit(facts, "  ", width))
	}
	files := r.phases.Files()
	if n := r.phases.Counters.Warnings; n > 0 {
		files = append(files, t.Paint(output.ToneWarn, output.Count(n, "warning")))
	}
	if len(files) > 0 {
		out = append(out, widget.Fit(append([]string{"files"}, files...), "  ", width))
	}
	for _, line := range r.log {
		out = append(out, t.Paint(output.ToneWarn, widget.Cut(output.Escape(line), width)))
	}
	if r.run.Error != nil {
		for _, line := range widget.Wrap(output.Escape(r.run.Error.Message), width) {
			out = append(out, t.Paint(output.ToneBad, line))
		}
	}
	return append(out, t.Faint.Render(widget.Cut(r.hint(), width)))
}

// hint says what can be done now.
func (r *snapshotRun) hint() string {
	run := "; run " + output.Escape(r.run.ID)
	switch {
	case r.lost:
		return "esc closes; the service does not tell of it any more" + run
	case r.ended() && len(r.run.Result) > 0 && r.run.Error != nil:
		return "enter shows all that was found, esc closes" + run
	case r.ended():
		return "esc closes" + run
	case r.stop == nil && r.read:
		return "esc leaves it running; looking for it again …" + run
	}
	return "esc leaves it running, x cancels it" + run
}
