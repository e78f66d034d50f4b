package tui_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// listAudit gives a page of entries.
func (s *service) listAudit(r *http.Request) any {
	from, _ := strconv.Atoi(r.URL.Query().Get(api.ParamAfter)) // none is the beginning
	rest := s.audit[min(from, len(s.audit)):]
	list := api.List[api.AuditEntry]{Items: rest[:min(len(rest), 100)], Limit: 100, HasMore: len(rest) > 100}
	if list.HasMore {
		list.Next = strconv.Itoa(from + 100)
	}
	return list
}

func auditEntry(i int, op string) api.AuditEntry {
	return api.AuditEntry{
		ID: fmt.Sprintf("7a00c2a1b3d4e5f6%08x", i), At: ago(time.Duration(1000-i) * time.Minute), Kind: "records", Op: op, Namespace: "blog", Collection: "articles", RecordID: docID(i),
		Actor: api.AuditActor{Kind: "user", ID: "u1", Name: "ann"}, Address: "10.0.0.9", RequestID: "req-" + strconv.Itoa(i),
		Before: []byte(`{"title":"Old ` + strconv.Itoa(i) + `","slug":"s","gone":1}`), After: []byte(`{"title":"New ` + strconv.Itoa(i) + `","slug":"s","fresh":2}`), Seq: int64(i), Hash: "9f86d081884c7d65",
	}
}

func sampleAudit(n int) (entries []api.AuditEntry) {
	for i := n; i > 0; i-- {
		entries = append(entries, auditEntry(i, []string{"update", "create", "delete"}[i%3]))
	}
	return entries
}

func TestAudit(t *testing.T) {
	t.Parallel()
	s := sample()
	s.audit = sampleAudit(150)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 30)
		term.Press("9")
		term.shows(t, "Projects › blog › Audit\n", "the log of the records of blog\n", "the latest 100  following", "▸ 1999-12-31 09:50:00  update  articles/"+docID(150), "ann", "10.0.0.9")
		term.Press("end")
		term.shows(t, "150 entries  following")
		term.Press("home")
		term.change(func() { term.audit = append([]api.AuditEntry{auditEntry(151, "delete")}, term.audit...) })
		term.Wait(3 * time.Second)
		term.shows(t, "151 entries  following", "▸ 1999-12-31 09:51:00  delete") // the cursor follows
		term.Press("f")
		term.change(func() { term.audit = append([]api.AuditEntry{auditEntry(152, "create")}, term.audit...) })
		term.Wait(3 * time.Second)
		term.shows(t, "151 entries  held: 1 new", "▸ 1999-12-31 09:51:00  delete")
		term.Press("f")
		term.shows(t, "152 entries  following", "▸ 1999-12-31 09:52:00  create")
		term.Press("enter")
		term.shows(t, "create blog articles/"+docID(152), "By", "ann", "In the chain", "152:9f86", "Changes", "fresh", "+ 2", "gone", "- 1", "title", `- "Old 152"`, `+ "New 152"`)
		term.hides(t, "slug")
		term.Press("y")
		term.shows(t, "op: create\n")
		term.Press("esc", "tab")
		term.shows(t, "the log of the service itself", "the latest 100")
		term.Press("tab")
		term.shows(t, "the log of the records of blog")
	})
}

func TestAuditFind(t *testing.T) {
	t.Parallel()
	s := sample()
	s.audit = sampleAudit(3)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("9", "/")
		term.Type("op=delete actor=ann since=1d collection=articles")
		term.Press("enter")
		term.shows(t, "the log of the records of blog  op=delete actor=ann since=1d collection=articles")
		want := "GET /_/blog/_/audit?filter=%7B%22%24and%22%3A%5B%7B%22collection%22%3A%22articles%22%7D%2C%7B%22actor.name%22%3A%22ann%22%2C%22at%22%3A%7B%22%24gte%22%3A%221999-12-31T00%3A00%3A00Z%22%7D%2C%22op%22%3A%22delete%22%7D%5D%7D"
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		for line, wrong := range map[string]string{"when=1d": "there is no when: there are op, actor", "since=x": "x: want an age such as", "{": "the filter is not JSON", "ann": `"ann": want NAME=VALUE`} {
			term.Press("/")
			for range 60 {
				term.Press("backspace")
			}
			term.Type(line)
			term.Press("enter")
			term.shows(t, "op=delete actor=ann", "error: "+wrong)
		}
		term.Press("esc") // takes the error away, and nothing else
		term.shows(t, "op=delete actor=ann")
		term.hides(t, "error:")
		term.Press("esc")
		term.shows(t, "the log of the records of blog\n")
	})
}

func TestAuditOfOthers(t *testing.T) {
	t.Parallel()
	s := sample()
	s.me = &api.Me{Kind: "user", Username: "ben", Scopes: []string{"project.read"}}
	s.fail = map[string]api.Problem{"/_/blog/_/audit": {Status: 403, Code: "permission_denied", Detail: "permission denied: ben lacks permission audit.read", Right: "audit.read"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("9")
		term.shows(t, "error, trying again in", "ben lacks permission audit.read", "hint: you lack the right audit.read")
		term.change(func() { term.fail, term.audit = nil, nil })
		term.Wait(20 * time.Second)
		term.Press("v")
		term.shows(t, "only administrators may check the log")
		term.Press("tab")
		term.shows(t, "none that you may see: the service's own log is for administrators")
	})
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	s := sample()
	s.report = api.AuditReport{OK: true, Entries: 150, Head: api.AuditPlace{Seq: 150, Hash: strings.Repeat("9f", 32)}}
	inTerminal(t, s, "", false, func(t *testing.T, term terminal) {
		term.Press("9", "v")
		term.shows(t, "the log is intact: entries 150, the newest is 150:9f9f9f9f")
		term.change(func() {
			term.report = api.AuditReport{Problems: []api.AuditProblem{{Problem: "changed", Seq: 7, Message: "its hash is another one"}}}
		})
		term.Press("v")
		term.shows(t, "error: the log has 1 problem: changed: entry 7: its hash is another one", "hint: svcctl audit verify")
	})
}

func TestAllEvents(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(120, 30)
		term.Press("0")
		term.shows(t, "Projects › blog › Events\n", "events of blog  following", "none yet")
		events := sampleEvents()
		for _, e := range events {
			term.events <- e
		}
		term.Settle()
		term.shows(t, "▸ 1999-12-31 23:59:20  Warning  Invalid", "1999-12-31 23:58:00  Warning  JobFailed      3  job/cleanup", "1999-12-31 23:00:00  Normal   Serving")
		again := events[1]
		again.ID, again.Count, again.LastSeen = 4, 4, ago(0)
		term.Press("f")
		term.events <- again
		term.Settle()
		term.shows(t, "held", "▸ 1999-12-31 23:59:20  Warning  Invalid")
		term.Press("f")
		term.shows(t, "following", "▸ 2000-01-01 00:00:00  Warning  JobFailed      4")
		term.Press("w")
		term.shows(t, "warnings alone")
		term.hides(t, "Serving")
		term.Press("enter")
		term.shows(t, "JobFailed", "Object   job/cleanup", "Count    4", "Project  blog")
		term.Press("esc", "tab")
		term.shows(t, "Projects › Events\n", "events of 2 projects  following")
		term.events <- events[0] // one of the two streams has it
		term.Settle()
		term.shows(t, "PROJECT", "▸ 1999-12-31 23:00:00", "Normal  Serving")
		term.Press("tab")
		term.shows(t, "› Events\n", "events of ")
		term.breaksEvents(t) // each stream of several
	})
}
