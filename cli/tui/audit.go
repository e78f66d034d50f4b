package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
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

// auditQuery is which log is shown, and what of it. It is compared.
type auditQuery struct {
	namespace string // "": the log of the service itself
	line      string // as it was typed
	which     audit.Which
}

// auditReader asks for entries. It is for several goroutines.
type auditReader struct {
	client *client.Client
	now    func() time.Time

	mu    sync.Mutex
	query auditQuery
}

func (r *auditReader) current() auditQuery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.query
}

func (r *auditReader) set(q auditQuery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.query = q
}

// auditPage is a part of a log.
type auditPage struct {
	query  auditQuery
	behind string // cursor that it is behind; "": it is the newest
	list   *api.List[api.AuditEntry]
}

func (r *auditReader) page(ctx context.Context, q auditQuery, after string) (*auditPage, error) {
	filter, err := q.which.JSON(r.now())
	if err != nil {
		return nil, err
	}
	by := client.Query{Filter: filter, After: after}
	list := r.client.ListAudit
	if q.namespace != "" {
		list = func(ctx context.Context, by client.Query) (*api.List[api.AuditEntry], error) {
			return r.client.ListProjectAudit(ctx, q.namespace, by)
		}
	}
	page, err := list(ctx, by)
	if err != nil {
		return nil, err
	}
	return &auditPage{q, after, page}, nil
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

// auditWords are what a query can begin with.
func auditWords() []string {
	return []string{"actor=", "collection=", "op=create", "op=delete", "op=login", "op=update", "record=", "since=1d", "since=1h", "until="}
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

// parseAudit reads a query: a filter in JSON, or words such as op=delete.
func parseAudit(line string, now time.Time) (audit.Which, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		if !json.Valid([]byte(line)) {
			return audit.Which{}, command.Usagef("the filter is not JSON")
		}
		return audit.Which{Filter: line}, nil
	}
	var w audit.Which
	filter := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		name, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return w, command.Usagef("%q: want NAME=VALUE", word)
		}
		switch name {
		case "op":
			w.Op = value
		case "actor":
			w.Actor = value
		case "since":
			w.Since = value
		case "until":
			w.Until = value
		case "collection":
			filter["collection"] = value
		case "record":
			filter["recordId"] = value
		default:
			return w, command.Usagef("there is no %s: there are op, actor, since, until, collection and record", name)
		}
	}
	if len(filter) > 0 {
		raw, err := json.Marshal(filter)
		if err != nil {
			return w, err
		}
		w.Filter = string(raw)
	}
	_, err := w.JSON(now)
	return w, err
}

// auditVerified is what a check of the log has found.
type auditVerified struct{ report *api.AuditReport }

// verify has the service check the log.
func (a *auditLog) verify() tea.Cmd {
	if me := a.host.Me(); me != nil && !me.IsAdmin {
		return a.host.Say("only administrators may check the log")
	}
	namespace := a.query.namespace
	say := a.host.Say("checking the log …")
	return tea.Batch(say, a.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		report, err := a.host.Patient.VerifyAudit(ctx, namespace, nil)
		return auditVerified{report}, err
	}))
}

func (a *auditLog) verified(msg auditVerified) tea.Cmd {
	r := msg.report
	if r.OK {
		return a.host.Say(fmt.Sprintf("the log is intact: entries %d, the newest is %d:%s", r.Entries, r.Head.Seq, output.Cut(r.Head.Hash, 16)))
	}
	first := "it is not what the service wrote"
	if len(r.Problems) > 0 {
		first = fmt.Sprintf("%s: entry %d: %s", r.Problems[0].Problem, r.Problems[0].Seq, r.Problems[0].Message)
	}
	a.host.Fail(fmt.Sprintf("the log has %s: %s", output.Count(len(r.Problems), "problem"), first), "svcctl audit verify lists them")
	return nil
}

// Back implements frame.Backer.
func (a *auditLog) Back() (cmd tea.Cmd, used bool) {
	switch {
	case a.box.close():
		return nil, true
	case a.of != "":
		return a.table.Back()
	case a.query.line != "":
		q := a.query
		q.line, q.which = "", audit.Which{}
		return a.by(q), true
	}
	return nil, false
}

// Commands implements frame.Commander.
func (a *auditLog) Commands() []frame.Command {
	return []frame.Command{{Name: "find", Help: "find op=delete actor=ann since=1d, or a filter in JSON; nothing is all", Run: a.find, Args: auditWords()}}
}

func (a *auditLog) entry(id string) *api.AuditEntry {
	if i := slices.IndexFunc(a.entries, func(e api.AuditEntry) bool { return e.ID == id }); i >= 0 {
		return &a.entries[i]
	}
	return nil
}

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
	state := output.Count(len(a.entries), "entry")
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
