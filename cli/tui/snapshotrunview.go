package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/snapshot"
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
		if snapshot.DryRun(r) {
			return of("dry run of a restore")
		}
		return of("restore")
	case api.RunKindPrune:
		return "pruning of " + r.Name
	case api.RunKindDrill:
		return of("trial restore")
	case api.RunKindBackup:
		return of("backup")
	case api.RunKindImport:
		return of("import")
	}
	return r.Kind
}

// draw draws the run in so many lines, 4 at least: where there are fewer than it takes, phases that are over make way, and then what was logged.
func (r *snapshotRun) draw(width, room int, t widget.Theme) []string {
	title := titleOfRun(&r.run)
	if first, size := utf8.DecodeRuneInString(title); size > 0 {
		title = output.Escape(string(unicode.ToUpper(first)) + title[size:])
	}
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
	title = t.Title.Render(widget.Cut(title+" "+strings.Repeat("─", max(width-widget.Width(title)-1, 0)), width))
	const around = 3 // the title, the state and the hint
	rest, all := r.restLines(width, t), r.phases.All()
	phases := phaseLines(all, width)
	gone := 0
	for i := 0; i < len(all) && len(phases) > 1 && around+len(phases)+len(rest) > room; i++ {
		if all[i].Over {
			phases = slices.Delete(phases, i-gone, i-gone+1)
			gone++
		}
	}
	if gone > 0 {
		head = append(head, fmt.Sprintf("phases not shown: %d", gone))
	}
	rest = rest[min(max(around+len(phases)+len(rest)-room, 0), len(rest)):]
	out := append([]string{title, widget.Fit(head, "  ", width)}, phases...)
	return append(append(out, rest...), t.Faint.Render(widget.Cut(r.hint(), width)))
}

// phaseLines are the bars.
func phaseLines(all []runs.Phase, width int) (out []string) {
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
	return out
}

// restLines say what was done with files, what was logged, and why it has failed.
func (r *snapshotRun) restLines(width int, t widget.Theme) (out []string) {
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
	return out
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
