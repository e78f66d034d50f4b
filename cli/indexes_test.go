package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/cli/command"
)

const (
	atIt     = `{"kind":"index","object":"posts/a","action":"missing","detail":"the service is at it"}`
	noJob    = `{"kind":"job","object":"tidy","action":"differs","detail":"suspended"}`
	driftOf  = `{"namespace":"blog","generation":1,"items":[`
	driftEnd = `]}`
)

// What the service is at is not as declared yet: neither a diff nor a sync says that it is.
func TestIndexesThatAreBeingBuilt(t *testing.T) {
	t.Parallel()
	pending := driftOf + noJob + `],"pending":[` + atIt + driftEnd
	done := driftOf + `],"pending":[` + driftEnd
	for name, tc := range map[string]struct {
		drift, sync string // what the service answers
		args        string
		exit        int
		out, err    string // what is told
	}{
		"diff":             {drift: pending, args: "index diff blog", exit: command.ExitFailed, out: "posts/a   missing   the service is at it"},
		"diff in the end":  {drift: done, args: "index diff blog", err: "blog: the indexes are as declared"},
		"names":            {drift: pending, args: "index diff blog -o name", exit: command.ExitFailed, out: "index/posts/a\n"},
		"sync":             {drift: pending, sync: done, args: "index sync blog", err: "blog: making the indexes as declared\nblog: the indexes are as declared"},
		"sync that is not": {drift: pending, sync: driftOf + `],"pending":[` + atIt + driftEnd, args: "index sync blog", exit: command.ExitFailed, out: "posts/a   missing   the service is at it"},
		"sync that takes too long": {
			drift: pending, args: "index sync blog --timeout 300ms", exit: command.ExitTimeout, err: "the indexes of blog are not all as declared yet",
		},
		"drift": {drift: driftOf + `],"pending":[` + atIt + driftEnd, args: "drift blog", err: "blog: missing index posts/a: the service is at it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet:
					answer(http.StatusOK, tc.drift)(w, r)
				case tc.sync == "":
					<-r.Context().Done()
				default:
					answer(http.StatusOK, tc.sync)(w, r)
				}
			}))
			if code := p.run(t, strings.Fields(tc.args)...); code != tc.exit {
				t.Errorf("exit code %d, want %d", code, tc.exit)
			}
			if out, told := p.out.String(), p.err.String(); !strings.Contains(out, tc.out) || !strings.Contains(told, tc.err) {
				t.Errorf("out %q, want %q; err %q, want %q", out, tc.out, told, tc.err)
			}
			if text := p.err.String(); tc.exit != 0 && strings.Contains(text, "are as declared") || strings.Contains(text, "nothing differs") {
				t.Errorf("it says that all is well: %s", text)
			}
		})
	}
}

// A sync tells which index is being built while it waits, each once.
func TestSyncTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	const status = `{"phase":"ready","conditions":[{"type":"IndexesConverged","status":"Unknown","reason":"Progressing","message":"building posts/%s (%d of 2)"}]}`
	messages := []string{fmt.Sprintf(status, "a", 1), fmt.Sprintf(status, "a", 1), fmt.Sprintf(status, "b", 2)}
	var looked atomic.Int64
	over := make(chan struct{})
	p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			<-over
			answer(http.StatusOK, driftOf+`],"pending":[`+driftEnd)(w, r)
		case strings.HasSuffix(r.URL.Path, "/drift"):
			answer(http.StatusOK, driftOf+`],"pending":[`+atIt+driftEnd)(w, r)
		case strings.HasSuffix(r.URL.Path, "/status"):
			answer(http.StatusOK, messages[min(int(looked.Load()), len(messages)-1)])(w, r)
			if looked.Add(1) == int64(len(messages))+1 { // it has read the last one
				close(over)
			}
		default:
			answer(http.StatusOK, `{"items":[{"id":"1","namespace":"shop"},{"id":"2","namespace":"blog"}],"limit":100,"offset":0,"hasMore":false}`)(w, r)
		}
	}))
	if code := p.run(t, "index", "sync", "blog"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := "blog: making the indexes as declared\nblog: building posts/a (1 of 2)\nblog: building posts/b (2 of 2)\nblog: the indexes are as declared\n"
	if got := p.err.String(); got != want {
		t.Errorf("it tells %q, want %q", got, want)
	}
}
