package tui

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// Editor is what records are edited with.
type Editor interface {
	// Editor is the command line of it.
	Editor() (string, error)
	// Process runs it on a file, with the terminal.
	Process(line, file string) tea.ExecCommand
	// Begun says that there is a draft now, and which command goes on with it. It goes when it has been saved.
	Begun(file, goOn string)
}

// process is a program that the terminal is given to.
type process struct{ *exec.Cmd }

// SetStdin implements tea.ExecCommand.
func (p process) SetStdin(r io.Reader) { p.Stdin = r }

// SetStdout implements tea.ExecCommand.
func (p process) SetStdout(w io.Writer) { p.Stdout = w }

// SetStderr implements tea.ExecCommand: what it says there is for who looks at the terminal.
func (p process) SetStderr(io.Writer) { p.Stderr = p.Stdout }

// What becomes of an edit.
type (
	editReady   struct{ editing *doc.Editing }
	editorEnded struct{ err error }
	editSaved   struct {
		id            string
		nothing       bool // was changed
		err           error
		message, hint string // what err means
		differences   []doc.Difference
	}
)

// edit opens the record with the cursor in the user's editor.
func (d *documents) edit() tea.Cmd {
	one := d.document(d.list.Selected())
	if one == nil {
		return d.host.Say("move to a record first")
	}
	if !d.may("put") {
		return d.host.Lack("update of " + d.place.Collection)
	}
	d.opening = true
	id := one.id
	return d.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		e, err := doc.OpenEditing(ctx, d.host.Client, d.place.Namespace, d.place.Collection, id)
		return editReady{e}, err
	})
}

// create opens a record that there is not yet.
func (d *documents) create() tea.Cmd {
	if !d.may("post") {
		return d.host.Lack("create of " + d.place.Collection)
	}
	var fields []api.FieldDescription
	if d.about != nil {
		fields = d.about.Fields
	}
	e, err := doc.NewEditing(d.host.Client, d.place.Namespace, d.place.Collection, fields)
	if err != nil {
		d.host.Fail("the draft can't be written: "+err.Error(), "")
		return nil
	}
	return d.launch(e)
}

// launch gives the terminal to the editor.
func (d *documents) launch(e *doc.Editing) tea.Cmd {
	d.editing = e
	line, err := d.editor.Editor()
	if err == nil {
		err = e.Write()
	}
	if e.Path() != "" {
		d.editor.Begun(e.Path(), d.goOn(e))
	}
	if err != nil && e.Path() == "" { // nothing of the user's is lost
		d.editing = nil
		d.host.Fail(err.Error(), "")
		return nil
	}
	if err != nil {
		d.kept(err.Error())
		return nil
	}
	return d.host.Exec(d.editor.Process(line, e.Path()), func(err error) tea.Msg { return editorEnded{doc.EditorFailed(err, line)} })
}

// edits goes on with an edit.
func (d *documents) edits(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case editReady:
		if d.opening = false; d.editing != nil {
			return nil
		}
		return d.launch(msg.editing)
	case editorEnded:
		return d.edited(msg.err)
	case editSaved:
		return d.saved(msg)
	}
	return nil
}

// edited sends what the editor has left.
func (d *documents) edited(err error) tea.Cmd {
	e := d.editing
	if e == nil {
		return nil
	}
	if err != nil {
		if e.Unchanged() {
			d.editing = nil
			if removed := e.Remove(); removed != nil {
				err = fmt.Errorf("%w; the draft stays: %w", err, removed)
			}
			d.host.Fail(err.Error(), "SVCCTL_EDITOR, VISUAL or EDITOR say which one is used")
			return nil
		}
		d.kept(err.Error())
		return nil
	}
	d.saving = true
	return d.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		record, fields, err := e.Save(ctx)
		out := editSaved{id: e.ID(), nothing: err == nil && fields == nil, err: err}
		switch {
		case err == nil && record != nil && out.id == "":
			out.id = doc.RecordID(record)
		case err == nil:
		default:
			out.message, out.hint = d.host.Explain(ctx, err)
			if doc.Changed(err) && out.id != "" {
				if out.differences, err = e.Differences(ctx); err != nil { // it is told without them
					out.differences = nil
				}
			}
		}
		return out, nil
	})
}

// saved tells what has become of an edit.
func (d *documents) saved(msg editSaved) tea.Cmd {
	d.saving = false
	e := d.editing
	switch {
	case msg.nothing:
		d.editing = nil
		return d.host.Say("nothing was changed")
	case msg.err == nil:
		did := "saved "
		if e.ID() == "" {
			did = "created "
		}
		d.editing = nil
		return tea.Batch(d.host.Say(did+msg.id), d.changed())
	case msg.differences != nil:
		return d.host.Push(func(h *frame.Host) frame.Screen { return &conflict{host: h, of: d, differences: msg.differences} })
	case e.Again(msg.err):
		return d.launch(e)
	}
	d.keptBy(msg.message, msg.hint)
	return nil
}

// kept tells of an error, and where the draft is.
func (d *documents) kept(message string) { d.keptBy(message, "") }

func (d *documents) keptBy(message, hint string) {
	where := d.goOn(d.editing) + " goes on with your draft"
	d.editing = nil
	if hint != "" {
		where = hint + "; " + where
	}
	d.host.Fail(message, where)
}

// goOn is the command that goes on with a draft.
func (d *documents) goOn(e *doc.Editing) string {
	if e.ID() == "" {
		return "svcctl doc create " + d.place.Namespace + " " + d.place.Collection + " -f " + e.Path()
	}
	return "svcctl doc edit " + d.place.Namespace + " " + d.place.Collection + " " + e.ID() + " --draft " + e.Path()
}

// conflict shows what others have changed in a record while it was edited.
type conflict struct {
	host        *frame.Host
	of          *documents
	differences []doc.Difference
	pager       widget.Pager
}

func (c *conflict) Title() string { return "Changed meanwhile" }

type conflictRenewed struct{}

func (c *conflict) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case conflictRenewed:
		e := c.of.editing
		c.of.editing = nil // it goes on, and is not left
		back := c.host.Back()
		return tea.Batch(back, c.of.launch(e))
	case tea.KeyPressMsg:
		if msg.String() == "e" {
			e := c.of.editing
			return c.host.Ask(func(ctx context.Context) (tea.Msg, error) { return conflictRenewed{}, e.Renew(ctx) })
		}
		c.pager.Key(msg.String())
	}
	return nil
}

// Back implements frame.Backer: the draft stays in its file, of which the records tell when they are shown again.
func (c *conflict) Back() (cmd tea.Cmd, used bool) { return c.host.Back(), true }

func (c *conflict) Keys() []key.Binding {
	return []key.Binding{frame.Binding("e", "go on with your draft in the record as it is now"), frame.Binding("esc", "leave the draft"), keyScroll()}
}

func (c *conflict) View(width, height int) string {
	var d widget.Doc
	d.Heading("Others have changed the record while you did. Nothing was saved.")
	for _, x := range c.differences {
		d.Heading(x.Path)
		d.Field("It was", nothing(x.Was))
		d.State("Yours", nothing(x.Yours), toneIf(x.Yours != x.Was, output.ToneGood))
		d.State("Stored now", nothing(x.Now), toneIf(x.Now != x.Was, output.ToneWarn))
	}
	d.Text("")
	d.Text("Your draft stays in its file when you leave.")
	return c.pager.View(d, width, height, c.host.Theme())
}

// nothing is a text for a value that may not be there.
func nothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func toneIf(is bool, tone output.Tone) output.Tone {
	if is {
		return tone
	}
	return output.ToneNone
}
