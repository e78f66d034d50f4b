package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// Display tells whoever waits for a run of several phases how far it is: on a terminal by a bar for each phase that stays, else by a line every
// 5 seconds; with -o json by the events, a line each, on stdout. What the run warns of is told at once. It is not safe for concurrent use.
type Display struct {
	// Phases are what it has been told.
	Phases Phases

	st     *command.State
	block  *output.Block // nil: there is no terminal
	look   func() *api.Run
	lines  bool // events for programs
	drawn  time.Time
	warned int64
}

// Intervals of drawing.
const (
	drawInterval = 100 * time.Millisecond
	lineInterval = 5 * time.Second
)

// NewDisplay makes a Display. look gives how the run stands, nil if that can't be had: it is asked where another phase begins, for events leave
// out what was quick.
func NewDisplay(st *command.State, look func() *api.Run) *Display {
	d := &Display{st: st, look: look, lines: st.Flags.Output == output.FormatJSON, drawn: st.Now()}
	if st.ErrTTY && !st.Flags.Quiet && !d.lines {
		d.block = output.NewBlock(st.Err)
	}
	return d
}

// Event tells of an event.
func (d *Display) Event(e api.RunEvent) error {
	entered := d.Phases.Event(e)
	if d.lines {
		return output.JSONLine(d.st.Stdout(), e)
	}
	if e.Event == api.EventLog {
		d.log(e)
	}
	now := d.st.Now()
	switch {
	case d.block == nil:
		if phase := d.Phases.Now(); phase != nil && now.Sub(d.drawn) >= lineInterval {
			d.drawn = now
			d.st.Notef("%s", strings.Join(append([]string{place(phase)}, d.facts(phase)...), "  "))
		}
	case entered:
		if run := d.look(); run != nil && len(run.Events) > 0 && run.Events[len(run.Events)-1].ID >= e.ID { // another instance may be behind
			d.Phases.Run(run)
		}
		d.draw(now)
	case now.Sub(d.drawn) >= drawInterval:
		d.draw(now)
	}
	return nil
}

// log tells of a line of the run's log.
func (d *Display) log(e api.RunEvent) {
	d.Clear()
	if e.Data.Level == "warn" {
		d.warned++
		d.st.Warnf("%s", e.Data.Message)
	} else {
		Note(d.st, e)
	}
}

// Warned is how many warnings it has told of.
func (d *Display) Warned() int64 { return d.warned }

// Clear takes the bars away, so that other text can be written.
func (d *Display) Clear() {
	if d.block != nil {
		d.block.Clear()
	}
}

// End draws a run that has ended, for good.
func (d *Display) End(run *api.Run) {
	d.Phases.Run(run)
	if d.block != nil {
		d.draw(d.st.Now())
		d.block = nil
	}
}

func (d *Display) draw(now time.Time) {
	d.drawn = now
	width := d.st.ErrWidth
	if width <= 0 {
		width = 80
	}
	width-- // some terminals go on to the next line when the last column is written
	all := d.Phases.All()
	longest := 0
	for i := range all {
		longest = max(longest, output.Width(output.Escape(all[i].Name)))
	}
	lines := make([]string, 0, len(all)+1)
	for i := range all {
		part, known := all[i].Part()
		percent := "    "
		if known {
			percent = fmt.Sprintf("%3d%%", int(part*100))
		}
		name := output.Escape(all[i].Name)
		line := fmt.Sprintf("%s%s  %s %s", name, strings.Repeat(" ", longest-output.Width(name)), output.Bar(min(26, max(width/4, 5)), part), percent)
		for _, fact := range d.facts(&all[i]) {
			if next := line + "  " + fact; output.Width(next) <= width {
				line = next
			}
		}
		lines = append(lines, output.Cut(line, width))
	}
	if files := d.Phases.Files(); len(files) > 0 {
		lines = append(lines, output.Cut(strings.Repeat(" ", longest+2)+"files: "+strings.Join(files, ", "), width))
	}
	d.block.Draw(lines)
}

// facts are what is said of a phase beside its bar.
func (d *Display) facts(phase *Phase) []string {
	facts := phase.Facts()
	if phase.Collection != "" && !phase.Over && d.block != nil {
		facts = append(facts, output.Escape(phase.Collection))
	}
	return facts
}

// place says where the run is, on a line of its own.
func place(phase *Phase) string {
	text := phase.Name
	if phase.Collection != "" {
		text += " " + phase.Collection
	}
	if part, known := phase.Part(); known {
		text += fmt.Sprintf("  %d%%", int(part*100))
	}
	return text
}
