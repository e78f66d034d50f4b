package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// auditLog shows who did what: the log of a project's records, or that of the service itself, as it is written.
type auditLog struct {
	table

	project string // that it was opened for; "": none
	reader  *auditReader
	query   auditQuery
	entries []api.AuditEntry // newest first
	next    string           // cursor of the page behind them
	more    bool
	asking  bool
	held    bool // what comes is not shown
	waiting int  // entries that have come meanwhile, as far as they were counted
	box     box
}

func newAudit(h *frame.Host, of frame.Place) frame.Screen {
	a := &auditLog{table: table{host: h}, project: of.Namespace, query: auditQuery{namespace: of.Namespace}}
	a.reader = &auditReader{client: h.Client, now: h.Now, query: a.query}
	a.value = func(id string) any {
		if e := a.entry(id); e != nil {
			return e
		}
		return nil
	}
	return a
}

func (a *auditLog) Title() string { return "Audit" }

// Every implements frame.Reader: there is no stream of entries, so it looks.
func (a *auditLog) Every() time.Duration { return 2 * time.Second }

func (a *auditLog) Read(ctx context.Context) (tea.Msg, error) {
	return a.reader.page(ctx, a.reader.current(), "")
}

// Typing implements frame.Typer.
func (a *auditLog) Typing() bool { return a.box.open() }

// Filters implements frame.Filterer: it is the service that filters.
func (a *auditLog) Filters() bool { return false }

func (a *auditLog) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		a.asking = false
	case frame.Failed:
		a.asking = false
	case *auditPage:
		return a.took(msg)
	case auditVerified:
		return a.verified(msg)
	case tea.PasteMsg:
		if a.box.open() {
			return a.box.take(msg)
		}
	case tea.KeyPressMsg:
		if a.box.open() {
			return a.box.take(msg)
		}
		return a.press(msg.String())
	}
	return nil
}

// took takes a page: the newest one, or one behind what is shown.
func (a *auditLog) took(page *auditPage) tea.Cmd {
	if page.query != a.query {
		if !a.asking || page.behind != "" {
			return nil
		}
		a.query, a.entries, a.of, a.list = page.query, nil, "", widget.List{} // which the service has taken
	}
	switch {
	case page.behind != "" && page.behind == a.next:
		a.asking = false
		a.entries = append(a.entries, page.list.Items...)
		a.next, a.more = page.list.Next, page.list.HasMore
	case page.behind != "":
		return nil
	default:
		a.asking = false
		a.newest(page.list)
	}
	a.show()
	return a.ask()
}

// newest puts the newest entries before the others. Where there is a gap between them, they are all there is.
func (a *auditLog) newest(list *api.List[api.AuditEntry]) {
	at := map[string]int{}
	for i := range a.entries {
		at[a.entries[i].ID] = i
	}
	var fresh []api.AuditEntry
	for _, e := range list.Items {
		if i, known := at[e.ID]; known {
			a.entries[i] = e // it may have been sealed meanwhile
		} else {
			fresh = append(fresh, e)
		}
	}
	switch {
	case len(a.entries) > 0 && a.held:
		a.waiting = len(fresh)
	case len(a.entries) == 0, len(fresh) == len(list.Items) && list.HasMore:
		a.entries, a.next, a.more = list.Items, list.Next, list.HasMore
	default:
		a.entries = append(fresh, a.entries...)
	}
}

// show shows the entries. A cursor on the newest one stays there.
func (a *auditLog) show() {
	first := len(a.entries) > 0 && a.list.At() == 0
	a.list.Set(a.section())
	if first && !a.held {
		a.list.Select(a.entries[0].ID)
	}
}

// mostEntries is how many entries are shown.
const mostEntries = 10_000

// ask asks for the page behind what is shown, where the cursor comes near the end.
func (a *auditLog) ask() tea.Cmd {
	if a.asking || !a.more || a.next == "" || a.list.Left() > nearEnd || len(a.entries) >= mostEntries {
		return nil
	}
	a.asking = true
	q, after := a.query, a.next
	return a.host.Ask(func(ctx context.Context) (tea.Msg, error) { return a.reader.page(ctx, q, after) })
}

// by shows what another query gives, once the service has taken it.
func (a *auditLog) by(q auditQuery) tea.Cmd {
	if q == a.query {
		return nil
	}
	a.asking, a.held, a.waiting = true, false, 0
	a.reader.set(q)
	before := a.query
	return a.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		page, err := a.reader.page(ctx, q, "")
		if err != nil {
			a.reader.set(before)
		}
		return page, err
	})
}

func (a *auditLog) press(pressed string) tea.Cmd {
	if a.key(pressed) {
		return a.ask()
	}
	if a.of != "" {
		return nil
	}
	switch pressed {
	case "enter":
		if a.list.Selected() != "" {
			a.open()
		}
	case "/":
		a.box.start("/ ", a.query.line, "op=delete actor=ann since=1d until=2026-01-31 collection=articles record=ID, or a filter in JSON; nothing is all", auditWords(), a.find)
	case "tab":
		return a.other()
	case "f":
		a.held, a.waiting = !a.held, 0
		return a.host.Refresh()
	case "v":
		return a.verify()
	}
	return nil
}

// other changes between the log of the project and that of the service.
func (a *auditLog) other() tea.Cmd {
	if a.project == "" {
		return a.host.Say("this is the log of the service itself: open that of a project by :audit NAMESPACE")
	}
	q := a.query
	if q.namespace = ""; a.query.namespace == "" {
		q.namespace = a.project
	}
	return a.by(q)
}

func (a *auditLog) find(line string) tea.Cmd {
	which, err := parseAudit(line, a.host.Now())
	if err != nil {
		a.host.Fail(err.Error(), "such as op=delete actor=ann since=1d collection=articles")
		return nil
	}
	q := a.query
	q.line, q.which = strings.TrimSpace(line), which
	return a.by(q)
}
