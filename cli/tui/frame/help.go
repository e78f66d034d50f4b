package frame

import (
	"charm.land/bubbles/v2/key"

	"github.com/svcctl/svc/cli/tui/widget"
)

func (m *Model) helpKey(pressed string) {
	switch pressed {
	case "esc", "q", "?", "enter":
		m.help = nil
	default:
		m.help.Key(pressed)
	}
}

// helpDoc says what can be done: on the screen that is shown, and everywhere.
func (m *Model) helpDoc() widget.Doc {
	var d widget.Doc
	top := m.top()
	d.Heading(top.screen.Title())
	fields(&d, top.screen.Keys()...)
	fields(&d, Binding("↑↓ j k", "move"), Binding("pgup pgdn g G", "move by pages, to the first and the last"))
	if top.filters() {
		fields(&d, Binding("/", "show the rows that have a text"))
	}
	d.Heading("Screens")
	for _, s := range m.cfg.Screens {
		d.Field(s.Key, s.Title)
	}
	d.Heading("Commands")
	for _, c := range m.commands() {
		d.Text("  :" + c.Help)
	}
	d.Heading("Everywhere")
	fields(&d, Binding(":", "type a command; tab completes it"), Binding("esc", "one step back"), Binding("ctrl+r", "read anew what is shown"),
		Binding("ctrl+l", "draw the screen anew"), Binding("ctrl+z", "suspend, until the shell's fg"), Binding("q ctrl+c", "quit; what the service is doing goes on"))
	return d
}

// fields lists keys, those that there is nothing for now dimmed.
func fields(d *widget.Doc, keys ...key.Binding) {
	for _, k := range keys {
		if k.Enabled() {
			d.Field(k.Help().Key, k.Help().Desc)
		} else {
			d.Dimmed(k.Help().Key, k.Help().Desc)
		}
	}
}
