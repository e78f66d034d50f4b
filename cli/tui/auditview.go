package tui

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/key"

	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

func (a *auditLog) Keys() []key.Binding {
	switch {
	case a.box.open():
		return a.box.keys()
	case a.of != "":
		return a.pageKeys()
	}
	there := a.list.Selected() != ""
	hold, other := "hold", "the service's own log"
	if a.held {
		hold = "follow"
	}
	if a.query.namespace == "" {
		other = "the project's log"
	}
	me := a.host.Me()
	return []key.Binding{
		frame.When(there, "enter", "details", "there is an entry"), frame.Binding("/", "find"), frame.Binding("f", hold),
		frame.When(a.project != "", "tab", other, "it was opened of a project"), frame.When(me == nil || me.IsAdmin, "v", "check the chain", "you are an administrator"),
		frame.When(there, "y", "YAML", "there is an entry"),
	}
}

func (a *auditLog) View(width, height int) string {
	if a.of != "" {
		return a.view(width, height, a.doc)
	}
	t := a.host.Theme()
	head := a.summary(width, t)
	if a.box.open() {
		head = a.box.view(width, t)
	}
	return lines(append(head, a.view(width, height-len(head), a.doc)))
}

// summary says what is shown.
func (a *auditLog) summary(width int, t widget.Theme) []string {
	what := "the log of the service itself: users, projects, logins"
	if a.query.namespace != "" {
		what = "the log of the records of " + a.query.namespace
	}
	if a.query.line != "" {
		what += "  " + a.query.line
	}
	state := "1 entry"
	if len(a.entries) != 1 {
		state = fmt.Sprintf("%d entries", len(a.entries))
	}
	if a.more {
		state = fmt.Sprintf("the latest %d", len(a.entries))
	}
	switch {
	case a.held && a.waiting > 0:
		state += fmt.Sprintf("  held: %d new", a.waiting)
	case a.held:
		state += "  held"
	default:
		state += "  following"
	}
	return []string{widget.Cut(output.Escape(what), width), t.Faint.Render(widget.Cut(state, width))}
}

func (a *auditLog) section() widget.Section {
	s := widget.Section{None: "none that you may see", Columns: []widget.Column{
		{Name: "AT"}, {Name: "OP"}, {Name: "WHAT", Least: 12}, {Name: "BY", Rank: 1, Least: 8}, {Name: "FROM", Rank: 3}, {Name: "NOTE", Rank: 2, Least: 8}, {Name: "REQUEST", Rank: 4},
	}}
	if a.query.namespace == "" {
		s.None = "none that you may see: the service's own log is for administrators"
	} else if a.query.line == "" {
		s.None = "none that you may see: the key audit of the project's config has writes recorded"
	}
	s.Rows = make([]widget.Row, len(a.entries))
	for i, e := range a.entries {
		s.Rows[i] = widget.Row{ID: e.ID, Cells: []widget.Cell{
			widget.Text(e.At.UTC().Format(time.DateTime)), {Text: e.Op, Tone: toneOfOp(e.Op)}, widget.Text(whatOf(e)), widget.Text(audit.Who(e)), widget.Text(e.Address), widget.Text(e.Note), widget.Text(e.RequestID),
		}}
	}
	return s
}

// whatOf says what an entry of one log is about: its namespace is that of all.
func whatOf(e api.AuditEntry) string {
	if e.Kind == "records" {
		e.Namespace = ""
	}
	return audit.What(e)
}

func toneOfOp(op string) output.Tone {
	switch op {
	case "delete":
		return output.ToneBad
	case "create":
		return output.ToneGood
	}
	return output.ToneNone
}

// doc is the page about an entry.
func (a *auditLog) doc(id string) (d widget.Doc, ok bool) {
	e := a.entry(id)
	if e == nil {
		return d, false
	}
	d.Heading(e.Op + " " + audit.What(*e))
	d.Field("At", when(e.At))
	d.Field("By", audit.Who(*e))
	d.Field("Kind", e.Actor.Kind)
	d.Field("Token", e.TokenID)
	d.Field("From", e.Address)
	d.Field("Request", e.RequestID)
	d.Field("Note", e.Note)
	if e.Seq > 0 {
		d.Field("In the chain", fmt.Sprintf("%d:%s", e.Seq, e.Hash))
	}
	changes, err := audit.Changes(*e)
	if err != nil || len(changes) == 0 {
		return d, true
	}
	d.Heading("Changes")
	for _, c := range changes {
		switch {
		case c.Before == "":
			d.State(c.Member, "+ "+c.After, output.ToneGood)
		case c.After == "":
			d.State(c.Member, "- "+c.Before, output.ToneBad)
		default:
			d.State(c.Member, "- "+c.Before, output.ToneBad)
			d.State("", "+ "+c.After, output.ToneGood)
		}
	}
	return d, true
}
