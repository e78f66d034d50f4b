package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// project shows how one project does: its conditions, what is wrong in its files, and what the service did, as it happens.
type project struct {
	table

	namespace string
	read      *projectRead // nil: not yet
	events    []api.ProjectEvent
}

func newProject(h *frame.Host, of frame.Place) frame.Screen {
	p := &project{table: table{host: h}, namespace: of.Namespace}
	p.value = p.valueOf
	return p
}

func (p *project) Title() string { return p.namespace }

func (p *project) Every() time.Duration { return 2 * time.Second }

type projectRead struct {
	project *api.Project
	status  *api.ProjectStatus
}

func (p *project) Read(ctx context.Context) (tea.Msg, error) {
	return readProject(ctx, p.host, p.namespace)
}

// readProject asks for a project, and how it does.
func readProject(ctx context.Context, h *frame.Host, namespace string) (projectRead, error) {
	found, err := h.Client.ProjectOf(ctx, namespace)
	if err != nil {
		return projectRead{}, err
	}
	if found == nil {
		return projectRead{}, &command.Error{
			Exit: command.ExitNotFound, Code: "project_not_found", Message: "project not found: " + namespace, Hint: "1 shows the registered ones",
		}
	}
	status, err := h.Client.ProjectStatus(ctx, found.ID)
	return projectRead{found, status}, err
}

// Follow implements frame.Follower: it listens to the events.
func (p *project) Follow(ctx context.Context, emit func(tea.Msg)) error {
	return p.host.Client.FollowProjectEvents(ctx, p.namespace, 0, func(e api.ProjectEvent) error {
		emit(e)
		return nil
	})
}

// keptEvents is how many events are shown, as many as the service keeps.
const keptEvents = 100

func (p *project) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case projectRead:
		p.read = &msg
		p.list.Set(p.sections()...)
	case api.ProjectEvent:
		p.take(msg)
		p.list.Set(p.sections()...)
	case tea.KeyPressMsg:
		switch {
		case p.key(msg.String()):
		case p.of != "":
		case msg.String() == "enter":
			p.open()
		case msg.String() == "r":
			return confirmReload(p.host, p.namespace)
		case msg.String() == "v", msg.String() == "D":
			return showPlanned(p.host, p.namespace, msg.String() == "D")
		case msg.String() == "tab":
			return p.host.Push(func(h *frame.Host) frame.Screen { return newProjectTree(h, p.namespace) })
		}
	}
	return nil
}

// take puts an event before the others. One that has come again takes the place of what it was.
func (p *project) take(e api.ProjectEvent) {
	p.events = slices.DeleteFunc(p.events, func(x api.ProjectEvent) bool { return eventID(x) == eventID(e) })
	p.events = slices.Insert(p.events, 0, e)
	p.events = p.events[:min(len(p.events), keptEvents)]
}

// eventID is what an event has each time that it comes.
func eventID(e api.ProjectEvent) string {
	return strings.Join([]string{"event", e.Type, e.Reason, e.Object, e.Message}, "/")
}

func (p *project) Keys() []key.Binding {
	if p.of != "" {
		return p.pageKeys()
	}
	keys := append([]key.Binding{
		frame.Binding("tab", "tree"), frame.Binding("3", "collections"), frame.Binding("5", "jobs"), frame.Binding("6", "snapshots"), frame.Binding("7", "search"),
		p.host.Allowed(rightToReload, "r", "reload"),
	}, plannedKeys(p.host)...)
	keys = append(keys, frame.Binding("9", "audit"), frame.Binding("0", "events"), frame.When(p.list.Selected() != "", "y", "YAML", "there is a row"))
	if p.list.Selected() != "" {
		keys = append([]key.Binding{keyDetails()}, keys...)
	}
	return keys
}

func (p *project) View(width, height int) string {
	if p.of != "" {
		return p.view(width, height, p.doc)
	}
	head := p.summary(width)
	if height < len(head)+6 {
		head = head[:1]
	}
	return strings.Join(head, "\n") + "\n\n" + p.view(width, height-len(head)-1, p.doc)
}

// summary is what the project is, in a few lines.
func (p *project) summary(width int) []string {
	t, s, one := p.host.Theme(), p.read.status, p.read.project
	parts := []string{
		"Phase " + t.Paint(output.ToneOf(string(s.Phase)), output.Escape(string(s.Phase))),
		"generation " + generations(s),
	}
	if s.Revision != "" {
		parts = append(parts, "revision "+output.Escape(output.Cut(s.Revision, 12)))
	}
	parts = append(parts, "files "+output.Escape(one.ConfigFile))
	lines := []string{widget.Fit(parts, "  ", width)}
	if one.Name != one.Namespace || one.Description != "" {
		about := one.Name
		if one.Description != "" {
			about += ": " + one.Description
		}
		lines = append(lines, widget.Cut(output.Escape(about), width))
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		counts = append(counts, fmt.Sprintf("%s %d", output.Escape(name), s.Counts[name]))
	}
	if len(counts) > 0 {
		lines = append(lines, t.Faint.Render(widget.Cut("Records  "+strings.Join(counts, "  "), width)))
	}
	return lines
}

func (p *project) sections() []widget.Section {
	if p.read == nil {
		return nil
	}
	sections := []widget.Section{p.conditions()}
	if s := p.problems(); len(s.Rows) > 0 {
		sections = append(sections, s)
	}
	return append(sections, p.eventRows())
}

func (p *project) conditions() widget.Section {
	s := widget.Section{Title: "Conditions", None: "none yet", Columns: []widget.Column{
		{Name: "TYPE"}, {Name: "STATUS"}, {Name: "REASON", Rank: 2}, {Name: "AGE", Right: true, Rank: 3}, {Name: "MESSAGE", Rank: 1, Least: 12},
	}}
	for _, c := range p.read.status.Conditions {
		s.Rows = append(s.Rows, widget.Row{ID: "condition/" + c.Type, Cells: []widget.Cell{
			widget.Text(c.Type), {Text: c.Status, Tone: output.ToneOfCondition(c.Type, c.Status)}, widget.Text(c.Reason),
			widget.Text(output.Age(p.host.Now(), c.LastTransitionTime.Time)), widget.Text(c.Message),
		}})
	}
	return s
}

func (p *project) problems() widget.Section {
	s := widget.Section{Title: "Problems of the files", Columns: []widget.Column{{Name: "KIND"}, {Name: "WHERE", Rank: 1, Least: 12}, {Name: "MESSAGE", Least: 12}}}
	for i, x := range p.read.status.Problems {
		kind := widget.Cell{Text: "error", Tone: output.ToneBad}
		if x.Warning {
			kind = widget.Cell{Text: "warning", Tone: output.ToneWarn}
		}
		where := x.File
		if x.Line > 0 {
			where += ":" + strconv.Itoa(x.Line)
		}
		s.Rows = append(s.Rows, widget.Row{ID: "problem/" + strconv.Itoa(i), Cells: []widget.Cell{kind, widget.Text(where), widget.Text(x.Message)}})
	}
	return s
}

func (p *project) eventRows() widget.Section {
	s := widget.Section{Title: "Events, the latest first", None: "none yet", Columns: []widget.Column{
		{Name: "LAST", Right: true}, {Name: "TYPE", Rank: 2}, {Name: "REASON"}, {Name: "COUNT", Right: true, Rank: 4}, {Name: "OBJECT", Rank: 3}, {Name: "MESSAGE", Rank: 1, Least: 12},
	}}
	for _, e := range p.events {
		kind := widget.Cell{Text: e.Type}
		if e.Type == "Warning" {
			kind.Tone = output.ToneWarn
		}
		s.Rows = append(s.Rows, widget.Row{ID: eventID(e), Cells: []widget.Cell{
			widget.Text(output.Age(p.host.Now(), e.LastSeen.Time)), kind, widget.Text(e.Reason), widget.Text(strconv.FormatInt(e.Count, 10)),
			widget.Text(e.Object), widget.Text(e.Message),
		}})
	}
	return s
}

// doc is the page about a row.
func (p *project) doc(id string) (d widget.Doc, ok bool) {
	for _, c := range p.read.status.Conditions {
		if id == "condition/"+c.Type {
			d.Heading(c.Type)
			d.State("Status", c.Status, output.ToneOfCondition(c.Type, c.Status))
			d.Field("Reason", c.Reason)
			d.Field("Since", when(c.LastTransitionTime))
			d.Field("Generation", strconv.FormatInt(c.ObservedGeneration, 10))
			d.Field("Message", c.Message)
			return d, true
		}
	}
	for i, x := range p.read.status.Problems {
		if id == "problem/"+strconv.Itoa(i) {
			d.Heading("Problem of the files")
			d.Text(command.ProblemLine(x))
			return d, true
		}
	}
	for _, e := range p.events {
		if id == eventID(e) {
			eventDoc(&d, e)
			return d, true
		}
	}
	return d, false
}

// eventDoc tells of an event.
func eventDoc(d *widget.Doc, e api.ProjectEvent) {
	d.Heading(e.Reason)
	d.Field("Type", e.Type)
	d.Field("Object", e.Object)
	if e.Generation > 0 {
		d.Field("Generation", strconv.FormatInt(e.Generation, 10))
	}
	d.Field("Count", strconv.FormatInt(e.Count, 10))
	d.Field("First", when(e.FirstSeen))
	d.Field("Last", when(e.LastSeen))
	d.Field("Message", e.Message)
}

// when is a moment; "" for none.
func when(t api.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (p *project) valueOf(id string) any {
	if p.read == nil {
		return nil
	}
	for _, c := range p.read.status.Conditions {
		if id == "condition/"+c.Type {
			return c
		}
	}
	for i, x := range p.read.status.Problems {
		if id == "problem/"+strconv.Itoa(i) {
			return x
		}
	}
	for _, e := range p.events {
		if id == eventID(e) {
			return e
		}
	}
	return nil
}
