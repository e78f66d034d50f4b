package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

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

// auditWords are what a query can begin with.
func auditWords() []string {
	return []string{"actor=", "collection=", "op=create", "op=delete", "op=login", "op=update", "record=", "since=1d", "since=1h", "until="}
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
	return first(a.entries, func(e *api.AuditEntry) bool { return e.ID == id })
}
