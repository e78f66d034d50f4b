package tui_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

// strange is a service whose answers have now and then something else in them than svcd says: nothing, too much, numbers that make no sense, what a terminal would obey.
type strange struct {
	next http.RoundTripper

	mu    sync.Mutex
	rnd   *rand.Rand
	often int // one of so many values is strange; 0: none
}

// RoundTrip implements http.RoundTripper.
func (s *strange) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), api.MediaEvents) {
		resp.Body = &strangeLines{of: s, lines: bufio.NewReader(resp.Body), Closer: resp.Body}
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	refused := s.often > 0 && s.rnd.IntN(50) == 0
	if refused {
		resp.StatusCode = []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusFound, http.StatusNoContent}[s.rnd.IntN(7)]
	}
	s.mu.Unlock()
	body = s.spoil(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// strangeLines are the lines of a stream, with strange data.
type strangeLines struct {
	io.Closer

	of    *strange
	lines *bufio.Reader
	rest  []byte
}

func (l *strangeLines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			line = append(append([]byte("data: "), l.of.spoil(bytes.TrimSpace(data))...), '\n')
		}
		l.rest = line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// spoil makes JSON strange.
func (s *strange) spoil(data []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.often == 0 {
		return data
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return data
	}
	out, err := json.Marshal(s.value(value))
	if err != nil || s.rnd.IntN(200) == 0 {
		return []byte(`{"items":[{`)
	}
	return out
}

// value gives a value, or a strange one that can still be read as what it is.
func (s *strange) value(value any) any {
	odd := s.rnd.IntN(s.often) == 0
	switch v := value.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names) // so that a seed says what comes
		for _, name := range names {
			if v[name] = s.value(v[name]); s.rnd.IntN(s.often) == 0 {
				delete(v, name)
			}
		}
		if odd && s.rnd.IntN(3) == 0 {
			return map[string]any{}
		}
	case []any:
		for i := range v {
			v[i] = s.value(v[i])
		}
		if odd {
			return []any{nil, []any{}, append(v, v...), slices.Concat([]any{nil}, v)}[s.rnd.IntN(4)]
		}
	case json.Number:
		if odd {
			return json.Number([]string{"-1", "0", "1", "4611686018427387904", "-4611686018427387904", "1e300", "2147483648"}[s.rnd.IntN(7)])
		}
	case bool:
		return v != odd
	case string:
		if !odd {
			return v
		}
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return []any{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "1583-01-01T00:00:00Z", nil}[s.rnd.IntN(4)]
		}
		return []any{"", evil, v + evil, strings.Repeat("w", 5000), strings.Repeat("宽", 200), "e\u0301\u0301\u200b\u200d\U0001F468\u200d\U0001F469", " ", "\n", "-", nil}[s.rnd.IntN(10)]
	}
	return value
}

// monkey presses keys at random.
type monkey struct {
	terminal

	t      *testing.T
	rnd    *rand.Rand
	keys   []string // that were pressed last
	width  int
	height int
}

// monkeyKeys are keys that something may be bound to. Those that go from screen to screen are seldom enough for others to come in between.
func monkeyKeys() (keys []string) {
	for r := '!'; r <= '~'; r++ {
		keys = append(keys, string(r))
	}
	for _, often := range []string{"enter", "esc", "tab", "up", "down", "backspace", "home", "end", "pgup", "pgdown", "y", "n", "e", "c", "r", "s", "x", "p", "ctrl+d", "ctrl+r", "ctrl+l", "ctrl+z", "ctrl+c"} {
		keys = append(keys, often, often, often)
	}
	return append(keys, "space", "é", "宽")
}

func (m *monkey) step(keys []string) {
	switch n := m.rnd.IntN(40); n {
	case 0:
		m.width, m.height = []int{0, 1, 20, 40, 80, 81, 300}[m.rnd.IntN(7)], []int{0, 1, 5, 10, 24, 100}[m.rnd.IntN(6)]
		m.Resize(m.width, m.height)
	case 1:
		m.Wait(time.Duration(m.rnd.IntN(8000)) * time.Millisecond)
	case 2:
		m.note("(a paste)")
		m.Send(tea.PasteMsg{Content: []string{"blog", "articles\n", evil, strings.Repeat("x", 3000)}[m.rnd.IntN(4)]})
	case 3:
		m.event()
	case 4:
		word := []string{":documents blog articles", ":jobs", ":events", ":x", "/a", "blog", "articles", "ann", "deploy"}[m.rnd.IntN(9)]
		m.note(word)
		m.Type(word)
	default:
		key := keys[m.rnd.IntN(len(keys))]
		m.note(key)
		if key == "space" {
			m.Send(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
			break
		}
		m.Press(key)
	}
	view := m.View()
	if m.width >= 40 && m.height >= 10 {
		checkView(m.t, view, m.width, m.height, false)
	}
	if strings.Contains(view, "\nbelow") || strings.Contains(view, "svc_pat_a-token") {
		m.t.Errorf("it shows %q", view)
	}
}

func (m *monkey) note(key string) { m.keys = append(m.keys[max(len(m.keys)-60, 0):], key) }

// event has something happen in the service.
func (m *monkey) event() {
	i := m.rnd.IntN(1000)
	change := api.Change{Event: []string{api.EventCreate, api.EventUpdate, api.EventDelete}[i%3], Token: strconv.Itoa(i % 7), ID: docID(i % 150), Item: api.Record(sampleDoc(i%150, "Changed"))}
	run := api.RunEvent{Event: []string{api.EventProgress, api.EventLog, api.EventDone, api.EventError, api.EventStopping}[i%5], ID: int64(i % 9)}
	run.Data.Message, run.Data.Phase, run.Data.Done, run.Data.Total = "said", "records", int64(i), 500
	send(m.feed, change)
	for _, to := range []chan api.RunEvent{m.run, m.snaps, m.service.job} {
		send(to, run)
	}
	send(m.events, api.ProjectEvent{ID: int64(i % 9), Type: "Warning", Reason: "Odd", Message: "it happened", Count: int64(i)})
	m.Settle()
}

// send sends unless nobody has taken what was sent before.
func send[T any](to chan T, one T) {
	select {
	case to <- one:
	default:
	}
}

// TestMonkey has keys be pressed at random, in terminals of all sizes, while the service says strange things: nothing panics, nothing is drawn beyond the terminal, and no data
// drives it.
func TestMonkey(t *testing.T) {
	seeds, steps := 6, 700
	if os.Getenv("SOAK") != "" {
		seeds, steps = 60, 2000
	}
	if only, err := strconv.Atoi(os.Getenv("MONKEY_SEED")); err == nil {
		seeds = -only
	}
	for seed := range max(seeds, 1) {
		if seeds < 0 {
			seed = -seeds
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runMonkey(t, uint64(seed), steps) }) //nolint:gosec // it is no negative number
		})
	}
}

func runMonkey(t *testing.T, seed uint64, steps int) {
	t.Helper()
	s := sample()
	if seed%3 == 2 {
		s = evilSample(t, seed%2 == 0)
	}
	s.docs = sampleDocs(150)
	s.events, s.run, s.snaps = make(chan api.ProjectEvent, 10), make(chan api.RunEvent, 10), make(chan api.RunEvent, 10)
	s.feed, s.job = make(chan api.Change, 10), make(chan api.RunEvent, 10)
	rnd := rand.New(rand.NewPCG(seed, 1))                                                                        //nolint:gosec // it is for a test
	odd := &strange{next: s, rnd: rand.New(rand.NewPCG(seed, 2)), often: []int{0, 10, 100, 1000, 30, 5}[seed%6]} //nolint:gosec // it is for a test
	s.editor = func(file string) error {
		switch rnd.IntN(4) {
		case 0:
			return os.WriteFile(file, []byte("title: Other\nmore: [1, {a: b}]\n"), 0o600)
		case 1:
			return os.WriteFile(file, []byte(evil+": ["), 0o600)
		case 2:
			return fmt.Errorf("the editor has failed: %s", evil)
		}
		return nil
	}
	st := &command.State{
		InTTY: true, OutTTY: true, ErrTTY: true, Home: t.TempDir(), Version: "test", Now: time.Now, Transport: odd,
		Env: func(name string) (string, bool) {
			return map[string]string{"SVCCTL_TOKEN": "svc_pat_a-token"}[name], name == "SVCCTL_TOKEN"
		},
	}
	st.Flags.Color, st.Flags.RequestTimeout = "never", time.Minute
	model, closeAll, err := tui.New(t.Context(), st, testEditor{s}, []string{"", "blog"}[seed%2])
	if err != nil {
		t.Fatal(err)
	}
	m := &monkey{terminal: terminal{frametest.Drive(t, model, 80, 24), s}, t: t, rnd: rnd, width: 80, height: 24}
	defer func() {
		if r := recover(); r != nil {
			t.Logf("seed %d, behind the keys %q", seed, m.keys)
			panic(r)
		}
	}()
	for i := range steps {
		if m.step(monkeyKeys()); t.Failed() {
			t.Fatalf("seed %d, step %d, behind the keys %q", seed, i, m.keys)
		}
	}
	closeAll()
	m.Stop()
}

// TestPasteThenComplete has what is pasted be completed as what is typed is: the library's line still completed what stood there before, and panicked where the paste was longer.
func TestPasteThenComplete(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press(":", "j")
		term.Send(tea.PasteMsg{Content: "umble of words that is no command"})
		term.Press("tab")
		if view := term.View(); !strings.Contains(view, ":jumble of words that is no command") {
			t.Errorf("it shows %s", view)
		}
		term.Press("esc", ":")
		term.Send(tea.PasteMsg{Content: "jo\u202e\x1b[2J\n"})
		if view := term.View(); !strings.Contains(view, ":jo[2J") {
			t.Errorf("it shows %q", view)
		}
		term.Press("esc", ":")
		term.Send(tea.PasteMsg{Content: "job"})
		term.Press("tab", "enter")
		if view := term.View(); !strings.Contains(view, "cleanup") {
			t.Errorf("it shows %s", view)
		}
	})
}

// TestProfilesHaveNoPages has the key of a page do nothing where a profile is chosen: there is none to be drawn.
func TestProfilesHaveNoPages(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("6", "s")
		before := term.View()
		term.Press("d", "y")
		if view := term.View(); view != before || !strings.Contains(view, "By which profile?") {
			t.Errorf("it shows %s", view)
		}
	})
}

// TestRunOfNoKind shows a run of which the service says no kind.
func TestRunOfNoKind(t *testing.T) {
	t.Parallel()
	s := sample()
	s.snapRuns = []api.Run{{ID: "6b01a2b3c4d5e6f708192c00", Status: api.RunRunning}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("6")
		if view := term.View(); !strings.Contains(view, "run 6b01a2b3c4d5e6f708192c00") {
			t.Errorf("it shows %s", view)
		}
	})
}
