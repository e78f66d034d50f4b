package output

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress tells how far a long transfer is: to a person by a bar that redraws itself on a terminal, else by a line every
// 5 seconds; to a program by an object a second. It writes nothing for a transfer that ends before its first line is due, has no goroutine, and is not safe
// for concurrent use.
type Progress struct {
	w     io.Writer
	bar   bool
	lines bool // objects for programs
	now   func() time.Time
	what  string // such as "importing"
	unit  string // such as "records"
	total int64  // in bytes; 0 when unknown
	width int    // columns of the terminal, for a bar; 0: unknown

	start, drawn time.Time
	done         int64
	bytes        int64
	open         bool // a bar stands on the current line
}

// Intervals of redrawing.
const (
	barInterval    = 100 * time.Millisecond
	lineInterval   = 5 * time.Second
	objectInterval = time.Second
)

// UnitBytes is the unit of what is measured in bytes alone.
const UnitBytes = "bytes"

// NewProgress starts to measure. totalBytes is 0 when unknown; bar is whether w is a terminal.
func NewProgress(w io.Writer, bar bool, now func() time.Time, what, unit string, totalBytes int64) *Progress {
	t := now()
	return &Progress{w: w, bar: bar, now: now, what: what, unit: unit, total: totalBytes, start: t, drawn: t}
}

// Within has a bar keep to so many columns, so that it stays on its line; 0 is not known. It gives the display back.
func (p *Progress) Within(columns int) *Progress {
	p.width = columns
	return p
}

// NewProgressLines starts to measure for a program, which gets NDJSON.
func NewProgressLines(w io.Writer, now func() time.Time, totalBytes int64) *Progress {
	p := NewProgress(w, false, now, "", "", totalBytes)
	p.lines = true
	return p
}

// Add counts items and sets how many bytes of the whole are through.
func (p *Progress) Add(items int, bytesDone int64) {
	p.done += int64(items)
	p.bytes = bytesDone
	p.draw()
}

// Set sets how many items are through, of about how many. It is for what is not measured in bytes.
func (p *Progress) Set(done, total int64) {
	p.done, p.bytes, p.total = done, done, total
	p.draw()
}

// SetBytes sets how many bytes are through. It is for UnitBytes.
func (p *Progress) SetBytes(done int64) {
	p.done, p.bytes = done, done
	p.draw()
}

func (p *Progress) draw() {
	t := p.now()
	interval := lineInterval
	switch {
	case p.bar:
		interval = barInterval
	case p.lines:
		interval = objectInterval
	}
	if t.Sub(p.drawn) < interval {
		return
	}
	p.drawn = t
	if p.lines {
		_ = JSONLine(p.w, struct { // when it fails, so will the result
			Event string `json:"event"`
			Done  int64  `json:"done"`
			Bytes int64  `json:"bytes,omitempty"`
			Total int64  `json:"totalBytes,omitempty"`
		}{"progress", p.done, p.bytes, p.total})
		return
	}
	line := p.line(p.what, t.Sub(p.start))
	if p.bar {
		if most := p.width - 1; most > 0 { // a full line would go on below
			if over := Width(line) - most; over > 0 {
				line = Cut(p.line(Cut(p.what, max(Width(p.what)-over, 8)), t.Sub(p.start)), most)
			}
		}
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.open = true
		return
	}
	_, _ = fmt.Fprintln(p.w, line)
}

// Clear takes the bar away, so that other text can be written.
func (p *Progress) Clear() {
	if p.open {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

func (p *Progress) line(what string, elapsed time.Duration) string {
	var b strings.Builder
	b.WriteString(what)
	fraction := 0.0
	if p.total > 0 {
		fraction = min(float64(p.bytes)/float64(p.total), 1)
	}
	if p.bar && p.total > 0 {
		const width = 26
		b.WriteString(" " + Bar(width, fraction))
	}
	if p.total > 0 {
		fmt.Fprintf(&b, " %d%%", int(fraction*100))
	}
	done, rate := fmt.Sprintf("%d %s", p.done, p.unit), func(perSecond float64) string { return fmt.Sprintf("%.0f", perSecond) }
	if p.unit == UnitBytes {
		done, rate = Size(p.done), func(perSecond float64) string { return Size(int64(perSecond)) }
	}
	b.WriteString(" " + done)
	if s := elapsed.Seconds(); s > 0 {
		b.WriteString(", " + rate(float64(p.done)/s) + "/s")
	}
	if fraction > 0 && fraction < 1 {
		left := time.Duration(float64(elapsed) * (1 - fraction) / fraction).Round(time.Second)
		fmt.Fprintf(&b, ", %s left", left)
	}
	return b.String()
}
