package runs_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
)

// progress is an event that says how far a run is.
func progress(id int64, phase, collection string, done, total int64) api.RunEvent {
	return api.RunEvent{ID: id, Event: api.EventProgress, Data: api.RunEventData{
		Phase: phase, Collection: collection, Done: done, Total: total, BytesDone: done * 1000, PerSecond: 50, ETASeconds: new(float64(total-done) / 50),
		RunCounters: api.RunCounters{Written: 1, Linked: done},
	}}
}

func warning(text string) api.RunEvent {
	return api.RunEvent{Event: api.EventLog, Data: api.RunEventData{Level: "warn", Message: text}}
}

// script is a run that takes a snapshot, event by event, and how it stands behind the last.
func script() ([]api.RunEvent, *api.Run) {
	return []api.RunEvent{
			progress(1, "plan", "", 0, 1), progress(2, "collections", "articles", 60, 240), progress(3, "collections", "articles", 120, 240),
			warning("the file \x1b[31ma.jpg\nbelow is missing"), progress(5, "media", "", 250, 500), progress(6, "media", "", 400, 500),
		}, &api.Run{
			Status: api.RunSucceeded, Progress: api.RunProgress{RunCounters: api.RunCounters{Written: 3, Linked: 500, Warnings: 1}},
			Phases: []api.RunPhase{
				{Phase: "plan", Done: 1, Total: 1}, {Phase: "collections", Done: 240, Total: 240, BytesDone: 240_000},
				{Phase: "media", Done: 500, Total: 500, BytesDone: 500_000}, {Phase: "manifest", Done: 1, Total: 1},
			},
			Events: []api.RunEvent{{ID: 9}},
		}
}

// show has a Display tell of a run, with so many seconds between two events.
func show(t *testing.T, change func(st *command.State), seconds int) (stdout, stderr string, d *runs.Display) {
	t.Helper()
	var out, err bytes.Buffer
	st := commandtest.State(t)
	now := st.Now()
	st.Out, st.Err, st.Now = &out, &err, func() time.Time { return now }
	change(st)
	d = runs.NewDisplay(st, func() *api.Run { return nil })
	events, run := script()
	for _, e := range events {
		now = now.Add(time.Duration(seconds) * time.Second)
		if err := d.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	d.End(run)
	return out.String(), err.String(), d
}

// TestBars draws on a terminal, where what is left in the end is looked at, and what was there on the way.
func TestBars(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		100: `warning: the file \x1b[31ma.jpg\nbelow is missing
plan         [######################] 100%
collections  [######################] 100%  240 records  234.4 KiB
media        [######################] 100%  500 files  488.3 KiB
manifest     [######################] 100%
             files: written 3, hardlinked 500`,
		40: `warning: the file \x1b[31ma.jpg\nbelow i
s missing
plan         [#######] 100%
collections  [#######] 100%  234.4 KiB
media        [#######] 100%  500 files
manifest     [#######] 100%
             files: written 3, hardlin…`,
	} {
		_, stderr, d := show(t, func(st *command.State) { st.ErrTTY, st.ErrWidth = true, width }, 1)
		screen := vt.NewEmulator(width, 30)
		if _, err := screen.WriteString(strings.ReplaceAll(stderr, "\n", "\r\n")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(screen.String()) {
			got = append(got, strings.TrimRight(line, " \r\n"))
		}
		if diff := cmp.Diff(want, strings.TrimRight(strings.Join(got, "\n"), "\n ")); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
		if width == 100 && !strings.Contains(stderr, "collections  [###########...........]  50%  120 of 240 records  2s left  117.2 KiB  50/s  articles\n") {
			t.Errorf("what it shows on the way: %q", stderr)
		}
		if d.Warned() != 1 {
			t.Errorf("it has told of %d warnings", d.Warned())
		}
	}
}

// TestLines tells by lines where there is no terminal, every five seconds.
func TestLines(t *testing.T) {
	t.Parallel()
	const warned = `warning: the file \x1b[31ma.jpg\nbelow is missing` + "\n"
	for _, tc := range []struct {
		name    string
		change  func(st *command.State)
		seconds int
		want    string
	}{
		{"slow", func(*command.State) {}, 3, "collections articles  25%  60 of 240 records  4s left  58.6 KiB  50/s\n" + warned +
			"collections articles  50%  120 of 240 records  2s left  117.2 KiB  50/s\n" + "media  80%  400 of 500 files  2s left  390.6 KiB  50/s\n"},
		{"quick", func(*command.State) {}, 0, warned},
		{"quiet", func(st *command.State) { st.Flags.Quiet, st.ErrTTY, st.Flags.NoColor = true, true, true }, 6, warned},
	} {
		stdout, stderr, _ := show(t, tc.change, tc.seconds)
		if diff := cmp.Diff(tc.want, stderr); diff != "" || stdout != "" {
			t.Errorf("%s: stdout %q, %s", tc.name, stdout, diff)
		}
	}
}

// TestEventsForPrograms are lines of JSON on stdout, and nothing else is told.
func TestEventsForPrograms(t *testing.T) {
	t.Parallel()
	stdout, stderr, _ := show(t, func(st *command.State) { st.Flags.Output, st.ErrTTY = "json", true }, 6)
	if n := strings.Count(stdout, "\n"); n != 6 || stderr != "" {
		t.Errorf("%d lines, stderr %q", n, stderr)
	}
	if want := `{"id":2,"event":"progress","data":{`; !strings.Contains(stdout, "\n"+want) {
		t.Errorf("%s is not in %s", want, stdout)
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("the terminal is told something: %q", stdout)
	}
}

// TestPhases has a run go through phases several times, and be come back to.
func TestPhases(t *testing.T) {
	t.Parallel()
	var p runs.Phases
	summary := func() string {
		var all []string
		for _, one := range p.All() {
			all = append(all, one.Name+" "+strings.Join(one.Facts(), ", "))
		}
		return strings.Join(all, "; ")
	}
	for _, e := range []api.RunEvent{progress(1, "load", "a", 40, 40), progress(2, "index", "a", 1, 1), progress(3, "load", "b", 10, 20)} {
		e.Data.PerSecond, e.Data.ETASeconds, e.Data.BytesDone = 0, nil, 0
		p.Event(e)
	}
	if got, want := summary(), "load 50 of 60 records; index "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	run := &api.Run{Status: api.RunRunning, Phases: []api.RunPhase{{Phase: "load", Done: 40, Total: 40}, {Phase: "index"}, {Phase: "load", Done: 15, Total: 20}}}
	p.Run(run)
	e := progress(4, "load", "b", 20, 20)
	e.Data.PerSecond, e.Data.ETASeconds, e.Data.BytesDone = 0, nil, 0
	p.Event(e)
	if got, want := summary(), "load 60 of 60 records; index "; got != want {
		t.Errorf("come back to: got %q, want %q", got, want)
	}
	run.Status = api.RunFailed
	p.Run(run)
	p.Event(api.RunEvent{Event: api.EventError})
	if got, want := summary(), "load 55 of 60 records; index "; got != want || p.Now() != nil {
		t.Errorf("it has failed: got %q, want %q", got, want)
	}
	if part, known := p.All()[0].Part(); part >= 1 || !known {
		t.Errorf("it has failed in a phase that is shown as whole: %v %v", part, known)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0.0123: "12ms", 2.345: "2.3s", 75.4: "1m15s"} {
		if got := runs.Span(seconds); got != want {
			t.Errorf("%v: got %s, want %s", seconds, got, want)
		}
	}
	for seconds, want := range map[float64]string{-1: "0s left", 0.4: "0s left", 1.6: "2s left"} {
		if got := runs.Left(seconds); got != want {
			t.Errorf("%v: got %s, want %s", seconds, got, want)
		}
	}
}
