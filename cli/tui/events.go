package tui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// events shows what the service does with a project, or with all that the user may see, as it happens.
type events struct {
	table

	project string // "": all
	names   eventNames
	known   map[string]namedEvent
	order   []namedEvent // latest first, as they are shown
	dirty   bool         // known has what order has not
	held    bool         // what comes is not shown
	warns   bool         // warnings alone
	left    int          // projects that are not listened to
}

// namedEvent is an event of a project.
type namedEvent struct {
	api.ProjectEvent

	namespace string
}

func (e namedEvent) id() string { return e.namespace + "/" + eventID(e.ProjectEvent) }

// eventNames are the projects that are listened to. They are for several goroutines.
type eventNames struct {
	mu  sync.Mutex
	all []string
}

func (n *eventNames) get() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all
}

func (n *eventNames) set(all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = all
}

// Bounds of what is listened to, and kept.
const (
	mostStreams = 30
	mostEvents  = 2000
)

func newEvents(h *frame.Host, of frame.Place) frame.Screen {
	e := &events{table: table{host: h}, project: of.Namespace, known: map[string]namedEvent{}, dirty: true}
	if of.Namespace != "" {
		e.names.set([]string{of.Namespace})
	}
	e.value = func(id string) any {
		if one, ok := e.known[id]; ok {
			return one.ProjectEvent
		}
		return nil
	}
	return e
}

func (e *events) Title() string { return "Events" }

// Every implements frame.Reader: there may be other projects.
func (e *events) Every() time.Duration { return 30 * time.Second }

type eventProjects struct{ names []string }

func (e *events) Read(ctx context.Context) (tea.Msg, error) {
	if e.project != "" {
		return eventProjects{[]string{e.project}}, nil
	}
	var names []string
	for one, err := range e.host.Client.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		if one.Enabled {
			names = append(names, one.Namespace)
		}
	}
	slices.Sort(names)
	return eventProjects{names}, nil
}

// Follow implements frame.Follower: it listens to all projects at once.
func (e *events) Follow(ctx context.Context, emit func(tea.Msg)) error {
	names := e.names.get()
	if len(names) == 0 {
		<-ctx.Done()
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			err := e.host.Client.FollowProjectEvents(ctx, name, 0, func(event api.ProjectEvent) error {
				emit(namedEvent{event, name})
				return nil
			})
			if e.project == "" && (client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound)) { // of this one alone
				<-ctx.Done()
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

func (e *events) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case eventProjects:
		e.left = max(len(msg.names)-mostStreams, 0)
		names := msg.names[:len(msg.names)-e.left]
		if !slices.Equal(names, e.names.get()) {
			e.names.set(names)
			return e.host.Refollow()
		}
	case namedEvent:
		if old, ok := e.known[msg.id()]; !ok || msg.Count >= old.Count {
			e.known[msg.id()] = msg
			e.dirty = true
		}
	case tea.KeyPressMsg:
		e.sync()
		return e.press(msg.String())
	}
	return nil
}

// Filter implements frame.Filterer.
func (e *events) Filter(text string) {
	e.sync()
	e.table.Filter(text)
}

// sync shows what has come, unless that is held.
func (e *events) sync() {
	if e.dirty && !e.held {
		e.set()
	}
}

func (e *events) set() {
	e.dirty = false
	first := e.list.At() == 0
	e.order = e.order[:0]
	for _, one := range e.known {
		e.order = append(e.order, one)
	}
	slices.SortFunc(e.order, func(a, b namedEvent) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen.Time), cmp.Compare(b.ID, a.ID), strings.Compare(a.id(), b.id()))
	})
	for _, old := range e.order[min(len(e.order), mostEvents):] {
		delete(e.known, old.id())
	}
	e.order = e.order[:min(len(e.order), mostEvents)]
	e.list.Set(e.section())
	if first && len(e.order) > 0 { // a cursor on the latest one stays there
		e.list.Home()
	}
}

func (e *events) press(pressed string) tea.Cmd {
	if e.key(pressed) || e.of != "" {
		return nil
	}
	switch pressed {
	case "enter":
		if e.list.Selected() != "" {
			e.open()
		}
	case "f":
		e.held = !e.held
		e.sync()
	case "w":
		e.warns = !e.warns
		e.set()
	case "tab":
		if e.project != "" {
			return e.host.Open("events", frame.Place{})
		}
		if one, ok := e.known[e.list.Selected()]; ok {
			return e.host.Open("events", frame.Place{Namespace: one.namespace})
		}
	}
	return nil
}

func (e *events) Keys() []key.Binding {
	if e.of != "" {
		return e.pageKeys()
	}
	there := e.list.Selected() != ""
	hold, warns := "hold", "warnings alone"
	if e.held {
		hold = "follow"
	}
	if e.warns {
		warns = "all events"
	}
	other := "all projects"
	if e.project == "" {
		other = "its project alone"
	}
	return []key.Binding{
		frame.When(there, "enter", "details", "there is an event"), frame.When(there || e.project != "", "tab", other, "there is an event"), frame.Binding("f", hold), frame.Binding("w", warns), frame.When(there, "y", "YAML", "there is an event"),
	}
}

func (e *events) View(width, height int) string {
	e.sync()
	if e.of != "" {
		return e.view(width, height, e.doc)
	}
	return lines([]string{e.summary(width), e.view(width, height-1, e.doc)})
}

// summary says what is shown.
func (e *events) summary(width int) string {
	of := e.project
	if of == "" {
		of = output.Count(len(e.names.get()), "project")
	}
	parts := []string{"events of " + output.Escape(of)}
	if e.left > 0 {
		parts = append(parts, fmt.Sprintf("%d more are not listened to: :events NAMESPACE shows one", e.left))
	}
	if e.warns {
		parts = append(parts, "warnings alone")
	}
	if e.held {
		parts = append(parts, "held")
	} else {
		parts = append(parts, "following")
	}
	return e.host.Theme().Faint.Render(widget.Cut(strings.Join(parts, "  "), width))
}

func (e *events) section() widget.Section {
	s := widget.Section{None: "none yet", Columns: []widget.Column{
		{Name: "LAST"}, {Name: "PROJECT", Rank: 2}, {Name: "TYPE", Rank: 4}, {Name: "REASON"}, {Name: "COUNT", Right: true, Rank: 6}, {Name: "OBJECT", Rank: 5, Least: 10}, {Name: "MESSAGE", Rank: 1, Least: 12},
	}}
	for _, one := range e.order {
		kind := widget.Cell{Text: one.Type}
		if one.Type == "Warning" {
			kind.Tone = output.ToneWarn
		} else if e.warns {
			continue
		}
		project := one.namespace
		if e.project != "" {
			project = ""
		}
		s.Rows = append(s.Rows, widget.Row{ID: one.id(), Cells: []widget.Cell{
			widget.Text(one.LastSeen.UTC().Format(time.DateTime)), widget.Text(project), kind, {Text: one.Reason, Tone: kind.Tone}, widget.Text(strconv.FormatInt(one.Count, 10)), widget.Text(one.Object), widget.Text(one.Message),
		}})
	}
	return s
}

// doc is the page about an event.
func (e *events) doc(id string) (d widget.Doc, ok bool) {
	one, ok := e.known[id]
	if !ok {
		return d, false
	}
	eventDoc(&d, one.ProjectEvent)
	d.Field("Project", one.namespace)
	return d, true
}
