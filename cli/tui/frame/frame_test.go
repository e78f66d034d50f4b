package frame_test

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// screen is one of a test. Nil functions do nothing.
type screen struct {
	title  string
	host   *frame.Host
	read   func(ctx context.Context) (tea.Msg, error)
	every  time.Duration
	follow func(ctx context.Context, emit func(tea.Msg)) error
	press  func(key string) tea.Cmd
	found  func() // of what was read
	typing bool
	got    []string // all that Update got
}

func (s *screen) Title() string { return s.title }

func (s *screen) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		s.got = append(s.got, msg.String())
		if s.press != nil {
			return s.press(msg.String())
		}
	case tea.PasteMsg:
		s.got = append(s.got, "paste "+msg.Content)
	case frame.Shown:
		s.got = append(s.got, "shown")
	case frame.Failed:
		s.got = append(s.got, "failed: "+msg.Err.Error())
	default:
		s.got = append(s.got, fmt.Sprint(msg))
		if s.found != nil {
			s.found()
		}
	}
	return nil
}

func (s *screen) View(int, int) string { return strings.Join(s.got, " ") }

func (s *screen) Keys() []key.Binding { return []key.Binding{frame.Binding("x", "do it")} }

func (s *screen) Typing() bool { return s.typing }

func (s *screen) Commands() []frame.Command {
	return []frame.Command{{Name: "own", Help: "own WORDS", Run: func(rest string) tea.Cmd {
		s.got = append(s.got, "own "+rest)
		return nil
	}}}
}

func (s *screen) Read(ctx context.Context) (tea.Msg, error) {
	if s.read == nil {
		return "read", nil
	}
	return s.read(ctx)
}

func (s *screen) Every() time.Duration { return s.every }

func (s *screen) Follow(ctx context.Context, emit func(tea.Msg)) error {
	if s.follow == nil {
		<-ctx.Done()
		return nil
	}
	return s.follow(ctx, emit)
}

// drive runs fn in a bubble, with a frame around two screens: the first one, and the second above it.
func drive(t *testing.T, first, second *screen, fn func(t *testing.T, d *frametest.Driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Options{Server: "http://127.0.0.1:8080", HTTPClient: &http.Client{Transport: frametest.Transport{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"v1","status":"ok"}`) },
		)}}})
		if err != nil {
			t.Fatal(err)
		}
		open := func(s *screen) func(*frame.Host, frame.Place) frame.Screen {
			return func(h *frame.Host, _ frame.Place) frame.Screen { s.host = h; return s }
		}
		m := frame.New(t.Context(), frame.Config{
			Client: c, Patient: c, Now: time.Now, Color: true,
			Explain: func(_ context.Context, err error) (string, string) { return err.Error(), "try something else" },
			Screens: []frame.Def{
				{Key: "1", Name: "first", Title: "the first", Open: open(first)},
				{Key: "2", Name: "second", Title: "the second", Parent: "first", Open: open(second)},
			},
		})
		d := frametest.Drive(t, m, 80, 24)
		fn(t, d)
		m.Close()
		d.Stop()
	})
}

func shows(t *testing.T, d *frametest.Driver, want string) {
	t.Helper()
	if view := ansi.Strip(d.View()); !strings.Contains(view, want) {
		t.Errorf("%q is not shown:\n%s", want, view)
	}
}

// times notes when something happens, in seconds.
type times struct {
	mu    sync.Mutex
	began time.Time
	at    []int
}

func (x *times) note() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.began.IsZero() {
		x.began = time.Now()
	}
	x.at = append(x.at, int(time.Since(x.began).Seconds()))
}

func (x *times) is(t *testing.T, want ...int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if diff := cmp.Diff(want, x.at); diff != "" {
		t.Error(diff)
	}
}

func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	var reads times
	fails := true
	s := &screen{every: 10 * time.Second, read: func(context.Context) (tea.Msg, error) {
		reads.note()
		if fails {
			return nil, errors.New("it failed")
		}
		return "well", nil
	}}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		shows(t, d, "error, trying again in 1s: it failed\nhint: try something else")
		d.Wait(50 * time.Second)
		reads.is(t, 0, 1, 3, 7, 15, 30, 45)
		shows(t, d, "trying again in 15s")
		fails = false
		d.Wait(31 * time.Second)
		reads.is(t, 0, 1, 3, 7, 15, 30, 45, 60, 70, 80)
		if view := d.View(); strings.Contains(view, "error") || !strings.Contains(view, "well") {
			t.Errorf("behind a success: %s", view)
		}
		if d.Press("ctrl+r"); len(reads.at) != 11 {
			t.Errorf("%d reads when it is to be read anew", len(reads.at))
		}
		d.Wait(9 * time.Second)
		reads.is(t, 0, 1, 3, 7, 15, 30, 45, 60, 70, 80, 81) // the timer of before does nothing any more
	})
}

func TestReadsThatAreSlow(t *testing.T) {
	t.Parallel()
	var reads times
	var at int
	s := &screen{every: time.Second, read: func(ctx context.Context) (tea.Msg, error) {
		if at++; at > 1 { // what runs beside it is a mistake, which the race detector finds, too
			t.Error("two reads at once")
		}
		defer func() { at-- }()
		reads.note()
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
		return "read", ctx.Err()
	}}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		shows(t, d, "asking the service")
		d.Wait(26 * time.Second)
		reads.is(t, 0, 25) // it rests four times as long as it works
		d.Press("ctrl+r", "ctrl+r", "ctrl+r")
		d.Wait(5 * time.Second)
		reads.is(t, 0, 25, 30) // once more, as soon as it has been read
		d.Press("2", "1", "2", "1")
		d.Wait(time.Second)
	})
}

// TestKeysBeforeTheFirstRead presses keys while a screen is not there yet.
func TestKeysBeforeTheFirstRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys   []string
		fails  bool
		typing bool   // after x
		want   string // what the screen has got in the end
	}{
		"they wait":                           {keys: []string{"x", "j", "k"}, want: "shown read x j k"},
		"those of the frame, too":             {keys: []string{"x", "2", "q", ":"}, want: "shown read x"},
		"a command":                           {keys: []string{"x", ":", "o", "w", "n", " ", "q", "enter", "j"}, want: "shown read x own q j"},
		"esc drops them":                      {keys: []string{"x", "2", "esc", "j"}, want: "shown read j"},
		"nobody answers what they do not see": {keys: []string{"d", "y", "j"}, want: "shown read d"},
		"nor types there":                     {keys: []string{"t", "a", "enter"}, want: "shown read t"},
		"none is left after an error":         {keys: []string{"x"}, fails: true, want: "shown read"},
		"some are enough":                     {keys: strings.Split(strings.Repeat("x", 200), ""), want: "shown read" + strings.Repeat(" x", 80)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			s := &screen{}
			s.read = func(context.Context) (tea.Msg, error) {
				time.Sleep(time.Second)
				if reads++; reads == 1 && tt.fails {
					return nil, errors.New("nobody there")
				}
				return "read", nil
			}
			s.press = func(key string) tea.Cmd {
				switch key {
				case "d":
					s.host.Confirm("Delete it?", func() tea.Cmd { s.got = append(s.got, "deleted"); return nil })
				case "t":
					s.typing = true
				}
				return nil
			}
			drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
				d.Press(tt.keys...)
				shows(t, d, "asking the service …")
				if len(s.got) > 1 {
					t.Errorf("before it was read the screen gets %v", s.got)
				}
				d.Wait(5 * time.Second)
				if got := strings.Join(s.got, " "); got != tt.want {
					t.Errorf("the screen gets %s, want %s", got, tt.want)
				}
			})
		})
	}
	t.Run("while an error is told", func(t *testing.T) {
		t.Parallel()
		reads := 0
		s := &screen{}
		s.read = func(context.Context) (tea.Msg, error) {
			if reads++; reads == 1 {
				return nil, errors.New("nobody there")
			}
			return "read", nil
		}
		drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
			shows(t, d, "nobody there")
			d.Press("x", "?") // which are not shown as held there
			shows(t, d, "do it")
			d.Press("esc")
			d.Wait(3 * time.Second)
			if got := strings.Join(s.got, " "); got != "shown read" {
				t.Errorf("the screen gets %s", got)
			}
		})
	})
	t.Run("before what is read asks", func(t *testing.T) {
		t.Parallel()
		s := &screen{}
		s.read = func(context.Context) (tea.Msg, error) { time.Sleep(time.Second); return "read", nil }
		s.found = func() { s.host.Confirm("Delete it?", func() tea.Cmd { return nil }) }
		drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
			d.Press("y", "y")
			d.Wait(3 * time.Second)
			shows(t, d, "Delete it? (y/n)")
		})
	})
	t.Run("that another one opens", func(t *testing.T) {
		t.Parallel()
		slow := func(context.Context) (tea.Msg, error) { time.Sleep(time.Second); return "read", nil }
		first, second := &screen{title: "first", read: slow}, &screen{title: "second", read: slow}
		first.press = func(string) tea.Cmd { return first.host.Open("second", frame.Place{}) }
		drive(t, first, second, func(t *testing.T, d *frametest.Driver) {
			d.Press("x", "y", "z")
			shows(t, d, "(keys pressed meanwhile: 3; esc drops them)")
			d.Wait(3 * time.Second)
			if got := strings.Join(second.got, " "); got != "shown read y z" {
				t.Errorf("the second one gets %s", got)
			}
		})
	})
}

func TestScreensThatAreLeft(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ended []string
	slow := func(what string) func(ctx context.Context) (tea.Msg, error) {
		return func(ctx context.Context) (tea.Msg, error) {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				mu.Lock()
				ended = append(ended, what)
				mu.Unlock()
			}
			return what, nil
		}
	}
	first, second := &screen{title: "first"}, &screen{title: "second"}
	first.press = func(key string) tea.Cmd {
		switch key {
		case "a":
			return first.host.Ask(slow("asked"))
		case "s":
			cmd, _ := first.host.Stream(func(ctx context.Context, emit func(tea.Msg)) error {
				emit("one")
				_, err := slow("streamed")(ctx)
				return err
			}, func(error) tea.Msg { return "over" })
			return cmd
		case "d":
			return first.host.Act("doing it", func(ctx context.Context) (string, error) {
				_, err := slow("done")(ctx)
				return "it is done", err
			})
		}
		return nil
	}
	drive(t, first, second, func(t *testing.T, d *frametest.Driver) {
		d.Press("a", "s", "d")
		shows(t, d, "doing it …")
		shows(t, d, "one")
		d.Press("2")
		slices.Sort(ended)
		if diff := cmp.Diff([]string{"asked", "streamed"}, ended); diff != "" {
			t.Error(diff)
		}
		shows(t, d, "first › second")
		shows(t, d, "doing it …")
		d.Wait(time.Minute)
		shows(t, d, "it is done") // it went on
		d.Press("esc")
		if got := strings.Join(first.got, " "); got != "shown read a s one d shown read" {
			t.Errorf("the screen that was left gets %s", got)
		}
	})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	s := &screen{}
	var stop func()
	s.press = func(key string) (cmd tea.Cmd) {
		cmd, stop = s.host.Stream(func(ctx context.Context, emit func(tea.Msg)) error {
			for i := range 3 {
				emit(i)
			}
			if key == "w" {
				<-ctx.Done()
			}
			return errors.New("it broke")
		}, func(err error) tea.Msg { return "over: " + err.Error() })
		return cmd
	}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press("x")
		shows(t, d, "shown read x 0 1 2 over: it broke")
		shows(t, d, "error: it broke\nhint: try something else")
		d.Press("esc", "w")
		shows(t, d, "w 0 1 2")
		stop()
		d.Settle()
		if got := strings.Join(s.got, " "); !strings.HasSuffix(got, "w 0 1 2") {
			t.Errorf("a stream that was stopped says %s", got)
		}
	})
}

func TestFollow(t *testing.T) {
	t.Parallel()
	var follows times
	n := 0
	s := &screen{follow: func(_ context.Context, emit func(tea.Msg)) error {
		follows.note()
		if n++; n == 4 {
			emit("heard")
		}
		return errors.New("it broke")
	}}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Wait(9 * time.Second)
		follows.is(t, 0, 1, 3, 7, 8) // behind what was heard it begins anew
		shows(t, d, "error, trying again in 2s: it broke")
		shows(t, d, "heard")
	})
}

func TestAskThatFails(t *testing.T) {
	t.Parallel()
	s := &screen{}
	s.press = func(string) tea.Cmd {
		return s.host.Ask(func(context.Context) (tea.Msg, error) { return "never", errors.New("it failed") })
	}
	drive(t, s, &screen{title: "second"}, func(t *testing.T, d *frametest.Driver) {
		d.Press("x")
		shows(t, d, "failed: it failed")
		shows(t, d, "error: it failed")
		d.Press("2")
		if strings.Contains(d.View(), "error") {
			t.Error("an error is shown on the next screen")
		}
	})
}

// TestEscOfAnError takes the error away, and goes back when it is pressed again.
func TestEscOfAnError(t *testing.T) {
	t.Parallel()
	second := &screen{title: "second"}
	second.press = func(string) tea.Cmd {
		return second.host.Ask(func(context.Context) (tea.Msg, error) { return nil, errors.New("it failed") })
	}
	drive(t, &screen{title: "first"}, second, func(t *testing.T, d *frametest.Driver) {
		d.Press("2", "x")
		shows(t, d, "error: it failed")
		d.Press("esc")
		shows(t, d, "first › second")
		if strings.Contains(d.View(), "error") {
			t.Error("the error is still shown")
		}
		d.Press("esc")
		if strings.Contains(d.View(), "second") {
			t.Error("esc does not go back")
		}
	})
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	s := &screen{}
	s.press = func(string) tea.Cmd {
		s.host.Confirm("Really\x1b?", func() tea.Cmd { s.got = append(s.got, "yes"); return s.host.Say("said so") })
		return nil
	}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		for _, no := range []string{"n", "N", "esc", "q"} {
			d.Press("x", "enter", "2", no)
		}
		if got := strings.Join(s.got, " "); got != "shown read x x x x" || d.Quit {
			t.Errorf("it gets %s", got)
		}
		d.Press("x")
		shows(t, d, `Really\x1b? (y/n)`)
		d.Press("y")
		shows(t, d, "x yes")
		shows(t, d, "said so")
		d.Press("j")
		if strings.Contains(d.View(), "said so") {
			t.Error("what was said stays")
		}
	})
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		keys []string
		want string
	}{
		{[]string{"s", "enter"}, "first › second"},
		{[]string{"s", "e", "tab", "enter"}, "first › second"},
		{[]string{"f", "i", "r", "s", "t", "enter"}, "first"},
		{[]string{"o", "w", "n", "space", "a", "space", "b", "enter"}, "own a b"},
		{[]string{"enter"}, "first"},
		{[]string{"z", "enter"}, `error: there is no command "z"`},
		{[]string{"z", "enter"}, "hint: there are first, second, own, help, quit"},
		{[]string{"h", "enter"}, "pgup pgdn g G"},
		{[]string{"h", "esc"}, "first"},
		{[]string{"backspace"}, "first"},
	} {
		t.Run(strings.Join(tc.keys, " "), func(t *testing.T) {
			t.Parallel()
			drive(t, &screen{title: "first"}, &screen{title: "second"}, func(t *testing.T, d *frametest.Driver) {
				d.Press(":")
				for _, k := range tc.keys {
					if k == "space" {
						k = " "
					}
					d.Press(k)
				}
				shows(t, d, tc.want)
				if strings.Contains(d.View(), "\n:") {
					t.Error("the command line is still open")
				}
			})
		})
	}
	drive(t, &screen{}, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press(":")
		d.Send(tea.PasteMsg{Content: "q\n"})
		if d.Press("enter"); !d.Quit {
			t.Error(":q does not quit")
		}
	})
}

func TestKeysWhileTyping(t *testing.T) {
	t.Parallel()
	s := &screen{typing: true}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press("q", ":", "/", "?", "2")
		d.Send(tea.PasteMsg{Content: "text"})
		shows(t, d, "shown read q : / ? 2 paste text")
		d.Send(tea.PasteMsg{Content: "ad\u200dmin می\u200cخواهم\u200c\u202e"})
		if last := s.got[len(s.got)-1]; last != "paste admin می\u200cخواهم" {
			t.Errorf("what is pasted comes as %q", last)
		}
		if d.Quit {
			t.Error("q quits while somebody types")
		}
		if d.Press("ctrl+z"); !d.Suspended {
			t.Error("ctrl+z does not suspend")
		}
		if d.Press("ctrl+c"); !d.Quit {
			t.Error("ctrl+c does not quit")
		}
	})
}

// TestJoinersTyped has a field end with a joiner that joins nothing any more, which it keeps for what comes behind it.
func TestJoinersTyped(t *testing.T) {
	t.Parallel()
	drive(t, &screen{}, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press(":")
		d.Send(tea.PasteMsg{Content: "می\u200cخ"})
		shows(t, d, ":می\u200cخ")
		d.Press("backspace")
		shows(t, d, ":می")
		if view := ansi.Strip(d.View()); strings.Contains(view, "\u200c") {
			t.Errorf("the terminal is told %q", view)
		}
	})
}

func TestHelp(t *testing.T) {
	t.Parallel()
	drive(t, &screen{title: "first"}, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press("?")
		for _, want := range []string{"x              do it", "1              the first", "2              the second", ":own WORDS", "esc close"} {
			shows(t, d, want)
		}
		d.Press("x", "q")
		shows(t, d, "shown read\n")
		if d.Quit {
			t.Error("q quits out of help")
		}
	})
}

func TestBackgrounds(t *testing.T) {
	t.Parallel()
	drive(t, &screen{title: "first"}, &screen{}, func(t *testing.T, d *frametest.Driver) {
		const dark, light = "38;5;75", "38;5;25"
		if !strings.Contains(d.View(), dark) {
			t.Errorf("at first: %q", d.View())
		}
		d.Send(tea.BackgroundColorMsg{Color: color.White})
		if !strings.Contains(d.View(), light+"m") {
			t.Errorf("on white: %q", d.View())
		}
		d.Send(tea.BackgroundColorMsg{Color: color.Black})
		if !strings.Contains(d.View(), dark) {
			t.Errorf("on black: %q", d.View())
		}
	})
}

// TestRefollow listens to something else, at once and without what was heard before.
func TestRefollow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var listening []int
	n := 0
	s := &screen{follow: func(ctx context.Context, emit func(tea.Msg)) error {
		mu.Lock()
		n++
		number := n
		listening = append(listening, number)
		mu.Unlock()
		emit(fmt.Sprint("heard by ", number))
		<-ctx.Done()
		return nil
	}}
	s.press = func(string) tea.Cmd { return s.host.Refollow() }
	second := &screen{title: "second"}
	drive(t, s, second, func(t *testing.T, d *frametest.Driver) {
		d.Press("x", "x")
		d.Wait(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]int{1, 2, 3}, listening); diff != "" {
			t.Error(diff)
		}
		shows(t, d, "heard by 3")
	})
}

// TestExec gives the terminal to a command, and tells the screen how it has ended.
func TestExec(t *testing.T) {
	t.Parallel()
	s := &screen{}
	ran := command{err: errors.New("exit status 3")}
	s.press = func(string) tea.Cmd {
		return s.host.Exec(&ran, func(err error) tea.Msg { return "it ended: " + err.Error() })
	}
	drive(t, s, &screen{}, func(t *testing.T, d *frametest.Driver) {
		d.Press("x")
		shows(t, d, "it ended: exit status 3")
		if ran.times != 1 {
			t.Errorf("it ran %d times", ran.times)
		}
	})
}

type command struct {
	tea.ExecCommand

	times int
	err   error
}

func (c *command) Run() error {
	c.times++
	return c.err
}

// asked is a service that answers who asks, and how it is, as a test says.
type asked struct {
	ready, me int // statuses; 0: nothing answers
	who       string
	version   string
}

func (s *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	if s.ready == 0 || strings.HasSuffix(path, "/me") && s.me == 0 {
		return nil, errors.New("nothing answers")
	}
	return frametest.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, body := http.StatusOK, fmt.Sprintf(`{"version":%q}`, s.version)
		switch {
		case strings.HasSuffix(path, api.RootReady):
			status, body = s.ready, `{"status":"ok"}`
		case strings.HasSuffix(path, "/me"):
			status, body = s.me, s.who
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})}.RoundTrip(r)
}

// headed runs fn in a bubble, with a frame around a screen, of a service and a config.
func headed(t *testing.T, s *asked, change func(*client.Options, *frame.Config), fn func(t *testing.T, d *frametest.Driver, first *screen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := client.Options{Server: "http://127.0.0.1:8080", Token: "x", HTTPClient: &http.Client{Transport: s}}
		first := &screen{}
		cfg := frame.Config{
			Now: time.Now, Explain: func(_ context.Context, err error) (string, string) { return err.Error(), "" },
			Screens: []frame.Def{{Key: "1", Name: "first", Title: "the first", Open: func(h *frame.Host, _ frame.Place) frame.Screen { first.host = h; return first }}},
		}
		if change != nil {
			change(&o, &cfg)
		}
		c, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Client, cfg.Patient = c, c
		m := frame.New(t.Context(), cfg)
		d := frametest.Drive(t, m, 80, 24)
		fn(t, d, first)
		m.Close()
		d.Stop()
	})
}

// header is the first line, with its gap as one |.
func header(d *frametest.Driver) string {
	line, _, _ := strings.Cut(ansi.Strip(d.View()), "\n")
	return regexp.MustCompile(` {3,}`).ReplaceAllString(strings.TrimRight(line, " "), " | ")
}

// TestHeader is what the header tells of the service, and of who asks.
func TestHeader(t *testing.T) {
	t.Parallel()
	const ann = `{"kind":"user","username":"ann"}`
	for name, tc := range map[string]struct {
		service asked
		change  func(*client.Options, *frame.Config)
		want    string
	}{
		"a user":                 {asked{200, 200, ann, "v1"}, nil, "http://127.0.0.1:8080  v1 | ann  ready"},
		"a token of a user":      {asked{200, 200, `{"kind":"pat","username":"ann"}`, "v1"}, nil, "http://127.0.0.1:8080  v1 | ann (token)  ready"},
		"a token of nobody":      {asked{200, 200, `{"kind":"pat"}`, "v1"}, nil, "http://127.0.0.1:8080  v1 | pat  ready"},
		"the admin token":        {asked{200, 200, `{"kind":"admin","username":"root"}`, "v1"}, nil, "http://127.0.0.1:8080  v1 | admin token  ready"},
		"with a context":         {asked{200, 200, ann, "v1"}, func(_ *client.Options, c *frame.Config) { c.Context = "prod" }, "prod  http://127.0.0.1:8080  v1 | ann  ready"},
		"without a credential":   {asked{200, 401, "{}", "v1"}, func(o *client.Options, _ *frame.Config) { o.Token = "" }, "http://127.0.0.1:8080  v1 | not logged in  ready"},
		"of a collection":        {asked{200, 403, "{}", "v1"}, func(_ *client.Options, c *frame.Config) { c.OfCollection = true }, "http://127.0.0.1:8080  v1 | collection token  ready"},
		"a credential that ends": {asked{401, 403, "{}", "v1"}, nil, "http://127.0.0.1:8080  v1 | credential refused"},
		"one that is denied":     {asked{403, 200, ann, "v1"}, nil, "http://127.0.0.1:8080  v1 | ann  credential refused"},
		"a refusal of who":       {asked{200, 403, "{}", "v1"}, nil, "http://127.0.0.1:8080  v1 | credential refused  ready"},
		"not ready":              {asked{503, 200, ann, "v1"}, nil, "http://127.0.0.1:8080  v1 | ann  not ready"},
		"not well":               {asked{500, 200, ann, "v1"}, nil, "http://127.0.0.1:8080  v1 | ann  not well"},
		"no answer about who":    {asked{200, 0, "", "v1"}, nil, "http://127.0.0.1:8080  v1 | ready"},
		"no answer":              {asked{0, 0, "", ""}, nil, "http://127.0.0.1:8080 | no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			headed(t, &tc.service, tc.change, func(t *testing.T, d *frametest.Driver, _ *screen) {
				d.Wait(3 * time.Second)
				if got := header(d); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestHeaderLater: the version is asked for again when the service was away, and what is shown is read again when it is back; that it refuses a credential for a while is neither.
func TestHeaderLater(t *testing.T) {
	t.Parallel()
	s := &asked{200, 200, `{"kind":"user","username":"ann"}`, "v1"}
	headed(t, s, nil, func(t *testing.T, d *frametest.Driver, first *screen) {
		next := func(want string, reads int, change func()) {
			t.Helper()
			change()
			before := strings.Count(strings.Join(first.got, " "), "read")
			d.Wait(8 * time.Second)
			if got := header(d); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := strings.Count(strings.Join(first.got, " "), "read") - before; got != reads {
				t.Errorf("%s: it reads %d times, want %d", want, got, reads)
			}
		}
		next("http://127.0.0.1:8080  v1 | ann  ready", 0, func() {})
		next("http://127.0.0.1:8080  v1 | ann  credential refused", 0, func() { s.ready, s.version = 401, "v2" })
		next("http://127.0.0.1:8080  v1 | ann  ready", 1, func() { s.ready = 200 })
		next("http://127.0.0.1:8080  v2 | ann  not ready", 0, func() { s.ready = 503 })
		next("http://127.0.0.1:8080  v2 | ann  ready", 0, func() { s.ready = 200 })
		next("http://127.0.0.1:8080 | ann  no answer", 0, func() { s.ready = 0 })
		next("http://127.0.0.1:8080  v3 | ann  ready", 1, func() { s.ready, s.version = 200, "v3" })
	})
}

// TestNarrowHeader has two lines where one has no room, each cut.
func TestNarrowHeader(t *testing.T) {
	t.Parallel()
	s := &asked{200, 200, `{"kind":"user","username":"ann"}`, "v1"}
	const left, right = "a-context-with-a-long-name  http://127.0.0.1:8080  v1", "ann  ready"
	headed(t, s, func(_ *client.Options, c *frame.Config) { c.Context = "a-context-with-a-long-name" }, func(t *testing.T, d *frametest.Driver, _ *screen) {
		d.Wait(time.Second)
		for width, want := range map[int][]string{
			len(left) + len(right) + 2: {left + "  " + right},
			len(left) + len(right) + 1: {left, right},
			40:                         {left[:39] + "…", right},
		} {
			d.Resize(width, 24)
			lines := strings.Split(ansi.Strip(d.View()), "\n")
			for i, line := range want {
				if strings.TrimRight(lines[i], " ") != line {
					t.Errorf("%d columns: line %d is %q, want %q", width, i, lines[i], line)
				}
			}
		}
	})
}
