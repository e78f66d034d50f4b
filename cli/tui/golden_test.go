package tui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is something that the terminal shows, and the way to it.
type scene struct {
	name      string
	namespace string // that it begins with
	change    func(s *service)
	way       func(term terminal)
}

func scenes() []scene {
	search := func(keys ...string) func(terminal) {
		return func(term terminal) { term.Press(append([]string{"7"}, keys...)...) }
	}
	snapshots := func(keys ...string) func(terminal) {
		return func(term terminal) { term.Press(append([]string{"6"}, keys...)...) }
	}
	documents := func(keys ...string) func(terminal) {
		return func(term terminal) { term.Press(append([]string{"3", "enter"}, keys...)...) }
	}
	return []scene{
		{name: "snapshots", namespace: "blog", way: snapshots()},
		{name: "snapshots-none", namespace: "blog", change: func(s *service) { s.snapshots, s.snapRuns = nil, nil }, way: snapshots()},
		{name: "snapshots-active", namespace: "blog", change: func(s *service) { s.snapRuns[0].Status, s.snapRuns[0].FinishedAt = api.RunRunning, api.Time{} }, way: snapshots()},
		{name: "snapshot-failed", namespace: "blog", way: snapshots("home", "down")},
		{name: "snapshot-found", namespace: "blog", way: snapshots("home", "down", "enter")},
		{name: "snapshot-run-row", namespace: "blog", way: snapshots("home", "enter")},
		{name: "snapshot-row", namespace: "blog", way: snapshots("end", "up", "enter")},
		{name: "snapshot-take", namespace: "blog", way: snapshots("s")},
		{name: "snapshot-run", namespace: "blog", way: func(term terminal) {
			term.Press("6", "s", "enter")
			term.snaps <- samplePhase("plan", 1, 1)
			term.snaps <- samplePhase("collections", 240, 240)
			term.snaps <- samplePhase("media", 120, 500)
			term.snaps <- api.RunEvent{Event: api.EventLog, Data: api.RunEventData{Level: "warn", Message: "the file cover.jpg of articles/6b01 is missing"}}
			term.Settle()
		}},
		{name: "snapshot-cancel", namespace: "blog", way: snapshots("s", "enter", "x")},
		{name: "snapshot-restore", namespace: "blog", way: snapshots("R", "b", "l", "tab")},
		{name: "snapshot-restore-damaged", namespace: "blog", way: snapshots("end", "up", "R")},
		{name: "snapshot-diff", namespace: "blog", way: snapshots("down", "D")},
		{name: "collections", namespace: "blog", way: func(term terminal) { term.Press("3") }},
		{name: "collection", namespace: "blog", way: func(term terminal) { term.Press("3", "d") }},
		{name: "collection-yaml", namespace: "blog", way: func(term terminal) { term.Press("3", "y") }},
		{name: "documents", namespace: "blog", way: documents()},
		{name: "documents-none", namespace: "blog", change: func(s *service) { s.docs = nil }, way: documents()},
		{name: "documents-marked", namespace: "blog", way: documents(" ", " ")},
		{name: "documents-find", namespace: "blog", way: documents("/", "g", "a")},
		{name: "documents-order", namespace: "blog", way: documents("o", "-", "m")},
		{name: "document", namespace: "blog", way: documents("down", "enter")},
		{name: "document-yaml", namespace: "blog", way: documents("y")},
		{name: "document-delete", namespace: "blog", way: documents(" ", " ", "ctrl+d", "a")},
		{name: "document-conflict", namespace: "blog", change: func(s *service) {
			s.editor = func(file string) error {
				s.docs[0] = strings.Replace(sampleDoc(0, "Title of others"), `"_rev":3`, `"_rev":4`, 1)
				return replaceIn(file, "title: Title 0", "title: Title of mine")
			}
		}, way: documents("e")},
		{name: "jobs", namespace: "blog", way: func(term terminal) { term.Press("5") }},
		{name: "jobs-none", namespace: "blog", change: func(s *service) { s.jobs = nil }, way: func(term terminal) { term.Press("5") }},
		{name: "job", namespace: "blog", way: func(term terminal) { term.Press("5", "d") }},
		{name: "job-runs", namespace: "blog", way: func(term terminal) { term.Press("5", "enter") }},
		{name: "job-run", namespace: "blog", way: func(term terminal) { term.Press("5", "enter", "enter") }},
		{name: "audit", namespace: "blog", way: func(term terminal) { term.Press("9") }},
		{name: "audit-none", change: func(s *service) { s.audit = nil }, way: func(term terminal) { term.Press("9", "tab") }},
		{name: "audit-find", namespace: "blog", way: func(term terminal) { term.Press("9", "/", "o", "p") }},
		{name: "audit-entry", namespace: "blog", way: func(term terminal) { term.Press("9", "enter") }},
		{name: "events", namespace: "blog", way: func(term terminal) {
			term.Press("0")
			for _, e := range sampleEvents() {
				term.events <- e
			}
			term.Settle()
		}},
		{name: "events-all", way: func(term terminal) { term.Press("0", "tab") }},
		{name: "tokens", namespace: "blog", way: func(term terminal) { term.Press("8") }},
		{name: "tokens-none", change: func(s *service) { s.tokens, s.users = nil, nil }, way: func(term terminal) { term.Press("8") }},
		{name: "token", way: func(term terminal) { term.Press("8", "enter") }},
		{name: "token-revoke", way: func(term terminal) { term.Press("8", "ctrl+d", "d") }},
		{name: "token-form", way: func(term terminal) {
			term.Press("8", "c")
			term.Type("deploy")
			term.Press("tab", "tab", " ", " ")
		}},
		{name: "token-made", way: func(term terminal) {
			term.Press("8", "c")
			term.Type("deploy")
			term.Press("tab", "tab", " ", " ", "enter")
		}},
		{name: "user", way: func(term terminal) { term.Press("8", "tab", "enter") }},
		{name: "user-form", way: func(term terminal) {
			term.Press("8", "u")
			term.Type("ben")
			term.Press("tab", "tab", "tab")
			term.Type(typedPassword)
		}},
		{name: "user-form-rights", way: func(term terminal) {
			term.Press("8", "u")
			term.Type("ben")
			term.Press("tab", "tab", "tab", "tab", "tab", "down", "down", " ", "down", " ")
		}},
		{name: "user-password", way: func(term terminal) {
			term.Press("8", "tab", "down", "P")
			term.Type(typedPassword)
			term.Press("tab")
			term.Type("other")
			term.Press("enter")
		}},
		{name: "user-disable", way: func(term terminal) { term.Press("8", "tab", "x") }},
		{name: "projects-describe", way: func(term terminal) { term.Press("down", "d") }},
		{name: "projects-yaml", way: func(term terminal) { term.Press("y") }},
		{name: "validate", change: func(s *service) { s.fail = invalidFiles() }, way: func(term terminal) { term.Press("v") }},
		{name: "validate-valid", way: func(term terminal) { term.Press("v") }},
		{name: "diff", namespace: "blog", way: func(term terminal) { term.Press("D") }},
		{name: "tree", namespace: "blog", way: func(term terminal) { term.Press("tab") }},
		{name: "tree-row", namespace: "blog", way: func(term terminal) { term.Press("tab", "d") }},
		{name: "condition-yaml", namespace: "blog", way: func(term terminal) { term.Press("y") }},
		{name: "search-yaml", namespace: "blog", way: func(term terminal) { term.Press("7", "y") }},
		{name: "snapshot-yaml", namespace: "blog", way: func(term terminal) { term.Press("6", "end", "up", "y") }},
		{name: "projects", way: func(terminal) {}},
		{name: "none", change: func(s *service) { s.projects = nil }, way: func(terminal) {}},
		{name: "project", namespace: "shop", way: func(term terminal) {
			for _, e := range sampleEvents() {
				term.events <- e
			}
			term.Settle()
		}},
		{name: "event", namespace: "blog", way: func(term terminal) {
			term.events <- sampleEvents()[1]
			term.Settle()
			term.Press("end", "enter")
		}},
		{name: "search", namespace: "blog", way: search()},
		{name: "search-row", namespace: "blog", way: search("down", "down", "enter")},
		{name: "member", namespace: "blog", way: search("end", "up", "up", "up", "enter")},
		{name: "filter", namespace: "blog", way: search("/", "s", "h", "e", "enter")},
		{name: "confirm", namespace: "blog", way: search("r")},
		{name: "run", namespace: "blog", way: func(term terminal) {
			term.Press("7", "r", "y")
			term.run <- sampleProgress(96)
			term.run <- api.RunEvent{Event: api.EventLog, Data: api.RunEventData{Level: "warn", Message: "2 records have no text"}}
			term.Settle()
		}},
		{name: "run-done", namespace: "blog", way: func(term terminal) {
			term.Press("7", "r", "y")
			term.run <- sampleProgress(240)
			term.run <- sampleDone()
			term.Settle()
		}},
		{name: "query", namespace: "blog", way: func(term terminal) {
			term.Press("7", "down", "down", "down", "f")
			term.Type("garden gate")
			term.Press("enter")
		}},
		{name: "query-box", namespace: "blog", way: search("f", "g", "a")},
		{name: "hit", namespace: "blog", way: func(term terminal) {
			term.Press("7", ":")
			term.Type("query gate")
			term.Press("enter", "enter")
		}},
		{name: "help", namespace: "blog", way: search("?")},
		{name: "command", namespace: "blog", way: search(":", "p")},
		{name: "refused", change: func(s *service) {
			s.fail = map[string]api.Problem{"/project": {Status: 403, Code: "permission_denied", Detail: "permission denied: ann lacks permission project.read", Right: "project.read"}}
		}, way: func(terminal) {}},
		{name: "away", namespace: "blog", way: func(term terminal) {
			term.Press("7")
			term.change(func() { term.down = true })
			term.Wait(6 * time.Second)
		}},
	}
}

func sampleEvents() []api.ProjectEvent {
	return []api.ProjectEvent{
		{ID: 1, Type: "Normal", Reason: "Serving", Message: "generation 2 is served", Generation: 2, Count: 1, FirstSeen: ago(time.Hour), LastSeen: ago(time.Hour)},
		{ID: 2, Type: "Warning", Reason: "JobFailed", Message: "the script ended with an error", Object: "job/cleanup", Count: 3, FirstSeen: ago(30 * time.Minute), LastSeen: ago(2 * time.Minute)},
		{ID: 3, Type: "Warning", Reason: "Invalid", Message: "the config is not valid", Count: 1, FirstSeen: ago(40 * time.Second), LastSeen: ago(40 * time.Second)},
	}
}

// TestScenes compares what is shown with golden files, in terminals of several widths, with and without color.
func TestScenes(t *testing.T) {
	t.Parallel()
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			sizes := [][2]int{{40, 20}, {60, 15}, {80, 24}, {140, 30}}
			if strings.HasPrefix(s.name, "snapshot") {
				sizes = [][2]int{{40, 20}, {80, 24}, {120, 30}, {200, 40}}
			}
			for _, color := range []bool{false, true} {
				service := sample()
				if s.change != nil {
					s.change(service)
				}
				inTerminal(t, service, s.namespace, color, func(t *testing.T, term terminal) {
					s.way(term)
					for _, size := range sizes {
						term.Resize(size[0], size[1])
						view := term.View()
						checkView(t, view, size[0], size[1], color)
						if strings.Contains(view, typedPassword) {
							t.Errorf("a password is shown: %s", view)
						}
						fmt.Fprintf(&got, "=== %d columns%s\n%s\n", size[0], map[bool]string{true: ", color"}[color], readable(view, color))
					}
				})
			}
			golden := filepath.Join("testdata", s.name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("go test ./cli/tui -update writes it anew: %s", diff)
			}
		})
	}
}

// TestPicture keeps the picture of docs/tui.md true.
func TestPicture(t *testing.T) {
	t.Parallel()
	const page = "../../docs/tui.md"
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Resize(100, 26)
		term.Press("7", "r", "y")
		term.run <- sampleProgress(96)
		term.Settle()
		picture := "```text\n" + readable(term.View(), false) + "\n```\n"
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		block := regexp.MustCompile("(?s)```text\n.*?```\n")
		if *update {
			if err := os.WriteFile(page, block.ReplaceAllLiteral(text, []byte(picture)), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(picture, string(block.Find(text))); diff != "" {
			t.Errorf("go test ./cli/tui -update draws it anew: %s", diff)
		}
	})
}

// readable makes lines that can be read and compared: with color, what paints them is spelled out.
func readable(view string, color bool) string {
	if !color {
		view = ansi.Strip(view)
	}
	var out []string
	for line := range strings.SplitSeq(strings.ReplaceAll(view, "\x1b", "␛"), "\n") {
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.Join(out, "\n")
}

var (
	paint    = regexp.MustCompile("\x1b\\[[0-9;]*m")
	coloring = regexp.MustCompile("\x1b\\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
)

// checkView holds for whatever is shown: it has room, nothing but paint is beside text, and there is no color where none is
// wanted.
func checkView(t *testing.T, view string, width, height int, color bool) {
	t.Helper()
	lines := strings.Split(view, "\n")
	if len(lines) > height {
		t.Errorf("%d lines in a terminal of %d", len(lines), height)
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > width {
			t.Errorf("%d columns in a terminal of %d: %q", w, width, line)
		}
		if text := paint.ReplaceAllString(line, ""); output.Escape(text) != text {
			t.Errorf("the terminal is told something: %q", line)
		}
	}
	if !color && coloring.MatchString(view) {
		t.Errorf("there is color: %q", view)
	}
}

// TestScenesInAnySize shows every scene in terminals down to nothing.
func TestScenesInAnySize(t *testing.T) {
	t.Parallel()
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			service := sample()
			if s.change != nil {
				s.change(service)
			}
			inTerminal(t, service, s.namespace, true, func(t *testing.T, term terminal) {
				s.way(term)
				for _, height := range []int{0, 1, 2, 3, 5, 7, 8, 12, 15, 16, 60} {
					for _, width := range []int{0, 1, 2, 3, 9, 20, 33, 61, 100, 300} {
						term.Resize(width, height)
						if view := term.View(); view != "" {
							checkView(t, view, width, height, true)
						}
					}
				}
			})
		})
	}
}

// TestDataCannotDriveTheTerminal has control characters in all that the service says.
func TestDataCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	for _, s := range scenes() {
		for _, refusing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, refusing %v", s.name, refusing), func(t *testing.T) {
				t.Parallel()
				inTerminal(t, evilSample(t, refusing), "blog", false, func(t *testing.T, term terminal) {
					s.way(term)
					for range 3 {
						for _, size := range [][2]int{{40, 20}, {80, 24}, {300, 60}} {
							term.Resize(size[0], size[1])
							checkView(t, term.View(), size[0], size[1], false)
							if strings.Contains(term.View(), "\nbelow") {
								t.Errorf("data began a line: %q", term.View())
							}
						}
						term.Press("enter")
					}
				})
			})
		}
	}
}
