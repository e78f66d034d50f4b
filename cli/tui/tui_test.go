package tui_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// shows fails unless all of these are shown, in this order.
func (term terminal) shows(t *testing.T, wants ...string) {
	t.Helper()
	rest := ansi.Strip(term.View())
	for _, want := range wants {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is not shown (or not in that place):\n%s", want, ansi.Strip(term.View()))
		}
		rest = after
	}
}

func (term terminal) hides(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(ansi.Strip(term.View()), word) {
			t.Fatalf("%q is shown:\n%s", word, ansi.Strip(term.View()))
		}
	}
}

func TestWithoutATerminal(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*command.State{
		"no input":  {OutTTY: true},
		"no output": {InTTY: true},
		"dumb":      {InTTY: true, OutTTY: true, Env: func(name string) (string, bool) { return map[string]string{"TERM": "dumb"}[name], name == "TERM" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			st.Out, st.Err, st.Home, st.Now, st.Version = &out, &err, t.TempDir(), time.Now, "test"
			if st.Env == nil {
				st.Env = func(string) (string, bool) { return "", false }
			}
			if code := cli.Run(t.Context(), st, []string{"tui"}); code != command.ExitUsage {
				t.Errorf("exit code %d", code)
			}
			if out.Len() > 0 || !strings.Contains(err.String(), "hint: without one, svcctl project list") {
				t.Errorf("stdout %q, stderr %q", out.String(), err.String())
			}
		})
	}
}

func TestWays(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "", false, func(t *testing.T, term terminal) {
		term.shows(t, "Projects\n", "▸ blog")
		term.Press("4") // of which collection?
		term.shows(t, "Projects\n", "▸ blog", "error: which collection?", "hint: 3 shows those that there are")
		term.Press("down", "7") // of the project with the cursor
		term.shows(t, "Projects › shop › Search\n")
		term.Press("esc")
		term.shows(t, "Projects › shop\n")
		term.Press("esc")
		term.shows(t, "Projects\n", "▸ shop")
		term.Press("k", "enter")
		term.shows(t, "Projects › blog\n", "blog: A sample project", "Conditions")
		term.Press(":")
		term.Type("search shop")
		term.Press("enter")
		term.shows(t, "Projects › shop › Search\n")
		term.Press("2")
		term.shows(t, "Projects › shop\n")
		term.Press("1")
		term.shows(t, "Projects\n")
		term.Press("esc")
		term.shows(t, "Projects\n")
		if term.Press("q"); !term.Quit {
			t.Error("q does not quit")
		}
	})
}

func TestReload(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "", false, func(t *testing.T, term terminal) {
		term.Press("r")
		term.shows(t, "Reload blog? Its files are read again, and served if they are valid. (y/n)")
		term.Press("x", "n")
		term.hides(t, "Reload blog?")
		if got := term.requests(); got != "" {
			t.Fatalf("without a yes it asks %s", got)
		}
		term.Press("r", "y")
		term.shows(t, "blog: generation 5 is served")
		if got := term.requests(); got != "POST /_/blog/_/admin/reload?wait=true" {
			t.Errorf("it asks %s", got)
		}
		term.Wait(11 * time.Second)
		term.hides(t, "generation 5 is served")
		term.change(func() { term.reloaded.Changed = false })
		term.Press("2", "r", "y")
		term.shows(t, "blog: the files are those that are served already")
		term.change(func() {
			term.fail = map[string]api.Problem{"/_/blog/_/admin/reload": {Status: 422, Code: "invalid_config", Detail: "the config is not valid", Problems: []api.ConfigProblem{
				{File: "a.yaml", Line: 1, Message: "one"}, {File: "b.yaml", Line: 2, Message: "two"}, {File: "c.yaml", Message: "three"}, {File: "d.yaml", Message: "four"},
			}}}
		})
		term.Press("r", "y")
		term.shows(t, "error: the config is not valid: a.yaml:1: one; b.yaml:2: two; c.yaml: three; and\n1 more")
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("end")
		events := sampleEvents()
		for _, e := range events {
			term.events <- e
		}
		term.Settle()
		term.shows(t, "40s  Warning  Invalid", "2m  Warning  JobFailed      3", "60m  Normal   Serving")
		again := events[1]
		again.ID, again.Count, again.LastSeen = 4, 4, ago(0)
		term.events <- again
		term.Settle()
		term.shows(t, "0s  Warning  JobFailed      4", "40s  Warning  Invalid", "60m  Normal   Serving")
		if n := strings.Count(term.View(), "JobFailed"); n != 1 {
			t.Errorf("an event that comes again is shown %d times", n)
		}
		// What the status says is read again and again.
		term.change(func() { term.statuses["p1"] = sampleBroken() })
		term.Wait(2 * time.Second)
		term.shows(t, "Phase Degraded", "Problems of the files")
		term.breaksEvents(t)
	})
}

// breaksEvents breaks the streams of events: they are opened again, and what comes then is shown.
func (term terminal) breaksEvents(t *testing.T) {
	t.Helper()
	close(term.events)
	term.Settle()
	term.change(func() { term.service.events = make(chan api.ProjectEvent, 1) })
	term.service.events <- api.ProjectEvent{ID: 5, Type: "Normal", Reason: "Back", Message: "again", Count: 1, LastSeen: ago(0)}
	term.Wait(20 * time.Second)
	term.shows(t, "Back")
	term.hides(t, "error:")
}

func TestServiceThatGoesAway(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7")
		term.shows(t, "ready", "articles/main   rebuilding 40%")
		term.change(func() { term.down = true })
		term.Wait(10 * time.Second)
		term.shows(t, "no answer", "articles/main   rebuilding 40%", "error, trying again in", "no answer from http://127.0.0.1:8080", "hint: is the service running there?")
		term.Wait(time.Minute)
		term.shows(t, "trying again in 15s")
		term.change(func() {
			term.down = false
			term.worker.Collections[0].Searches[0].State = "ready"
		})
		term.Wait(5 * time.Second) // long before the next try, since its health is looked at
		term.shows(t, "v1.2.3", "ann  ready", "articles/main   ready")
		term.hides(t, "error")
	})
}

// TestCredentialThatEnds: that is said, and not that the service is not well.
func TestCredentialThatEnds(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.shows(t, "v1.2.3", "ann  ready")
		denied := api.Problem{Status: 403, Code: "permission_denied", Detail: "permission denied"}
		term.change(func() {
			term.fail = map[string]api.Problem{api.RootReady: denied, "/version": denied, "/project": denied, "/me": denied}
		})
		term.Wait(10 * time.Second)
		term.shows(t, "v1.2.3", "ann  credential refused", "Phase Ready", "error, trying again in", "permission denied")
		term.change(func() { term.fail = nil }) // as of a program that gives tokens, which is asked again
		term.Wait(20 * time.Second)
		term.shows(t, "v1.2.3", "ann  ready")
		term.hides(t, "error")
	})
}

func TestRegenerate(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "down", "r")
		term.shows(t, "Make the index of articles/shelf anew? The one before answers until it is made.")
		term.Press("y")
		if got := term.requests(); got != "POST /_/blog/_/admin/regenerate-search?collection=articles&search=shelf" {
			t.Errorf("it asks %s", got)
		}
		term.shows(t, "Making articles/shelf anew", "running", "esc leaves it running")
		term.run <- sampleProgress(60)
		term.Settle()
		term.shows(t, "25%  60 of 240  600ms  1.8s left")
		term.Press("esc")
		term.shows(t, "the run goes on; w shows it again")
		term.hides(t, "Making")

		term.run <- sampleProgress(120) // meanwhile
		term.Press("r")                 // of what is being made already
		term.hides(t, "(y/n)")
		term.shows(t, "50%  120 of 240")
		term.Press("f") // another screen for a while
		term.hides(t, "Making")
		term.run <- sampleProgress(180)
		term.Press("esc")
		term.shows(t, "Making articles/shelf anew", "75%  180 of 240")
		term.run <- sampleDone()
		term.Settle()
		term.shows(t, "succeeded", "100%", "esc closes")
		term.Press("esc")
		term.hides(t, "Making", "the run goes on")
		term.Press("w")
		term.shows(t, "succeeded")

		term.Press("r", "y") // once more, which fails
		term.run <- api.RunEvent{Event: api.EventError, Data: api.RunEventData{Message: "the disk is full", Code: "internal"}}
		term.Settle()
		term.shows(t, "failed", "the disk is full")

		term.Press("esc", "down", "down", "r") // of mode rrf
		term.shows(t, "articles/both has no index of its own")
	})
}

func TestRunThatIsLost(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "r", "y")
		term.change(func() { term.down = true })
		close(term.run)
		term.Wait(3 * time.Second)
		term.shows(t, "looking for it again")
		term.change(func() {
			term.down, term.service.run = false, make(chan api.RunEvent, 1)
		})
		term.service.run <- sampleProgress(120)
		term.Wait(10 * time.Second)
		term.shows(t, "50%  120 of 240", "esc leaves it running")
	})
}

func TestRegenerateThatIsRefused(t *testing.T) {
	t.Parallel()
	s := sample()
	s.fail = map[string]api.Problem{"/_/blog/_/admin/regenerate-search": {Status: 403, Detail: "permission denied: no", Right: "project.regenerate-search"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "r", "y")
		term.shows(t, "error: permission denied: no", "hint: you lack the right project.regenerate-search")
		term.Press("esc")
		term.hides(t, "error:")
	})
}

// TestToldOfARegeneration has events come of a run that makes an index anew.
func TestToldOfARegeneration(t *testing.T) {
	t.Parallel()
	progress := func(done, total int64, elapsed float64, left *float64) api.RunEvent {
		return api.RunEvent{ID: 1, Event: api.EventProgress, Data: api.RunEventData{Done: done, Total: total, ElapsedSeconds: elapsed, ETASeconds: left}}
	}
	log := func(text string) api.RunEvent {
		return api.RunEvent{ID: 2, Event: api.EventLog, Data: api.RunEventData{Level: "info", Message: text}}
	}
	end := func(event, status, message string) api.RunEvent {
		return api.RunEvent{ID: 3, Event: event, Data: api.RunEventData{Status: status, Message: message, ElapsedSeconds: 12.4}}
	}
	for name, tc := range map[string]struct {
		events       []api.RunEvent
		shows, hides []string
	}{
		"nothing yet":               {nil, []string{"running", "esc leaves it running; run 6b01a2b3c4d5e6f708192a3b"}, []string{"%", " of ", "left\n"}},
		"without a total":           {[]api.RunEvent{progress(7, 0, 0, nil)}, []string{"running"}, []string{"%", "7 of", "0s"}},
		"how far it is":             {[]api.RunEvent{progress(1, 4, 9.96, new(75.4))}, []string{"25%  1 of 4  10s  1m15s left"}, nil},
		"without an end in sight":   {[]api.RunEvent{progress(1, 4, 0.25, nil)}, []string{"25%  1 of 4  300ms"}, []string{"s left"}},
		"more than there was":       {[]api.RunEvent{progress(6, 4, 1, nil)}, []string{"100%  6 of 6  1s"}, nil},
		"the last lines of its log": {[]api.RunEvent{log("a1"), log("a2"), log("a3"), log("a4")}, []string{"info: a2", "info: a3", "info: a4"}, []string{"info: a1"}},
		"done":                      {[]api.RunEvent{progress(1, 4, 1, new(9.0)), end(api.EventDone, "", "all is well")}, []string{"succeeded", "100%  1 of 4  12s", "esc closes; run"}, []string{"9s left", "all is well", "25%"}},
		"failed":                    {[]api.RunEvent{progress(1, 4, 1, new(9.0)), end(api.EventError, "", "the disk is full")}, []string{"failed", "25%  1 of 4  12s", "the disk is full", "esc closes; run"}, []string{"9s left", "100%"}},
		"cancelled":                 {[]api.RunEvent{end(api.EventError, api.RunCancelled, "by ann")}, []string{"cancelled", "by ann", "esc closes; run"}, []string{"failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
				term.Press("7", "down", "r", "y")
				for _, e := range tc.events {
					term.run <- e
					term.Settle()
				}
				term.shows(t, append([]string{"Making articles/shelf anew"}, tc.shows...)...)
				_, pane, _ := strings.Cut(ansi.Strip(term.View()), "Making articles/shelf anew")
				for _, text := range tc.hides {
					if strings.Contains(pane, text) {
						t.Errorf("%q is shown: %s", text, pane)
					}
				}
			})
		})
	}
}

// TestRegenerationThatIsNotToldOf: where the service refuses to tell of a run, the pane says so, and it can be made anew once more.
func TestRegenerationThatIsNotToldOf(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "down", "r", "y", "esc")
		term.change(func() {
			term.fail = map[string]api.Problem{"/_/blog/_/admin/regenerate-search/6b01a2b3c4d5e6f708192a3b/events": {Status: 404, Detail: "run not found"}}
		})
		term.Press("w")
		term.Wait(time.Second)
		term.shows(t, "esc closes; the service does not tell of it any more; run 6b01a2b3")
		term.Press("esc")
		term.hides(t, "the run goes on")
		term.change(func() { term.fail = nil })
		term.Press("r")
		term.shows(t, "Make the index of articles/shelf anew?")
	})
}

// TestWhoSeesWhat asks as those who may see less.
func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	denied := api.Problem{Status: 403, Code: "permission_denied", Detail: "permission denied"}
	const said = "10.0.0.7"
	for _, tc := range []struct {
		name         string
		refused      []string
		shows, hides []string
	}{
		{"all", nil, []string{"articles/both", said, "no member was verified yet"}, nil},
		{"who runs the project", []string{"/admin/embedding/status"}, []string{"articles/both", "without what providers said", "degraded"}, []string{said}},
		{
			"who reads it",
			[]string{"/admin/embedding/status", "/_/blog/_/admin/embedding/status", "/_/blog/_/admin/search-worker/status"},
			[]string{"articles/main", "rebuilding 40%", "articles/both", "you may not see them: that takes the right project.regenerate-search"}, []string{said},
		},
		{"who may not know what it has", []string{"/_/blog/_/collections"}, []string{"articles/main", "rebuilding 40%", "authors/names"}, []string{"articles/both"}},
		{
			"who may see nothing", []string{"/_/blog/_/collections", "/_/blog/_/admin/search-worker/status"},
			[]string{"error, trying again in", "permission denied"}, []string{"articles"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := sample()
			s.fail = map[string]api.Problem{}
			for _, path := range tc.refused {
				s.fail[path] = denied
			}
			inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
				term.Resize(160, 40)
				term.Press("7")
				term.shows(t, tc.shows...)
				term.hides(t, tc.hides...)
				term.Wait(10 * time.Second) // and again
				term.shows(t, tc.shows...)
			})
		})
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "f", "enter")
		term.shows(t, "Query articles/main", "type what to look for")
		term.Type("q1 ?:/") // which are keys elsewhere
		term.Press("enter")
		term.shows(t, "1 to 2 of 2 that are found for q1 ?:/", "How to mend the garden gate")
		want := "GET /_/blog/articles?count=true&explain=true&highlight=true&limit=20&q=q1+%3F%3A%2F&qName=main"
		if got := term.requests(); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		term.Press("down", "enter")
		term.shows(t, "Before you throw out the gate", "mode text", "title    gate: 1×, in 7 of 240 records, 5.5 (67 %)", "Recency  times 0.5")
		term.Press("esc")
		term.shows(t, "▸   2  8.25     Before you throw out the gate")
		term.Press("f", "backspace", "backspace", "enter")
		term.shows(t, "that are found for q1 ?")

		term.change(func() { term.records = nil })
		term.Press("f", "enter")
		term.shows(t, "nothing is found for q1 ?")
		term.change(func() {
			term.fail = map[string]api.Problem{"/_/blog/articles": {Status: 503, Code: "embedding_offline", Detail: "the embedding group texts is offline"}}
		})
		term.Press("enter")
		term.shows(t, "error: the embedding group texts is offline")
		term.Press("esc", "f")
		term.shows(t, "> q1 ?") // it keeps the words of each search
	})
}

func TestQueryPages(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.change(func() { term.more = true })
		term.Press("7", ":")
		term.Type("query garden gate")
		term.Press("enter", "n", "n")
		term.shows(t, "41 to 42 of 2", "41  0.03226", "p previous page")
		if got := term.requests(); !strings.HasSuffix(got, "&limit=20&offset=40&q=garden+gate&qName=main") {
			t.Errorf("it asks %s", got)
		}
		term.Press("p", "p", "p")
		term.shows(t, "1 to 2 of 2")
		term.hides(t, "previous page")
		term.Press("esc", "end", ":")
		term.Type("query gate")
		term.Press("enter")
		term.shows(t, "move to a search first")
	})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("7", "/")
		term.Type("MEAN")
		term.shows(t, "▸ articles/means", "nothing that the filter leaves")
		term.hides(t, "articles/main")
		term.Press("enter")
		term.shows(t, "Search  /MEAN", "▸ articles/means")
		term.Press("esc")
		term.shows(t, "Search\n", "articles/main", "▸ articles/means")
		term.Press("/", "x", "y", "esc")
		term.shows(t, "Search\n", "articles/main")
	})
}

// TestRightsAreNamed: what takes a right that the user lacks is not offered, and help says which one it is.
func TestRightsAreNamed(t *testing.T) {
	t.Parallel()
	s := sample()
	s.me = &api.Me{Kind: "user", Username: "ben", Scopes: []string{"project.read"}}
	inTerminal(t, s, "", false, func(t *testing.T, term terminal) {
		term.Resize(120, 40)
		for _, way := range []struct{ open, key, does, right string }{
			{"1", "r", "reload", "project.reload"}, {"1", "v", "validate", "project.reload"}, {"2", "D", "diff", "project.reload"}, {"2", "r", "reload", "project.reload"}, {"7", "r", "regenerate", "project.regenerate-search"}, {"5", "x", "run", "project.reload"},
		} {
			term.Press(way.open)
			term.hides(t, way.key+" "+way.does)
			term.Press(way.key)
			term.shows(t, "you lack the right "+way.right)
			term.Press("?")
			term.shows(t, way.does+", when you have the right "+way.right)
			term.Press("esc")
		}
		if got := term.requests(); got != "" {
			t.Errorf("it asks %s", got)
		}
	})
}

// TestTooSmall says what is needed, and shows all again when there is room.
func TestTooSmall(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "", false, func(t *testing.T, term terminal) {
		for _, size := range [][2]int{{39, 20}, {80, 9}, {20, 5}} {
			term.Resize(size[0], size[1])
			text := strings.Join(strings.Fields(ansi.Strip(term.View())), " ")
			if want := fmt.Sprintf("This terminal has %d×%d characters. Make it 40×10 or larger; q quits.", size[0], size[1]); text != want {
				t.Errorf("it shows %q, want %q", text, want)
			}
		}
		term.Resize(60, 15)
		term.shows(t, "▸ blog")
	})
}
