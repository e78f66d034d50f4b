package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// jobRuns shows the runs of a job, and the log of the one with the cursor, as it is written.
type jobRuns struct {
	table

	namespace, job string
	runs           []api.Run // newest first
	logs           map[string]*runLog
	shown          *runLog // nil: none
}

// runLog is what is known of a run.
type runLog struct {
	run    api.Run
	events []api.RunEvent
	read   bool   // it was asked for, with its events
	asked  bool   // it is being asked for
	stop   func() // ends listening; nil: nobody listens
	lost   bool   // the service tells no more of it
}

func newJobRuns(h *frame.Host, namespace, job string) *jobRuns {
	j := &jobRuns{table: table{host: h}, namespace: namespace, job: job, logs: map[string]*runLog{}}
	j.value = func(id string) any {
		if one := j.logs[id]; one != nil {
			run := one.run
			run.Events = one.events
			return run
		}
		return nil
	}
	return j
}

func (j *jobRuns) Title() string { return j.job }

// shownJobRuns is how many runs are listed; the service keeps 100.
const shownJobRuns = 100

// Every implements frame.Reader: it looks more often while something is going on.
func (j *jobRuns) Every() time.Duration {
	if j.active() != nil {
		return time.Second
	}
	return 3 * time.Second
}

// active is the run that goes on; nil: none does.
func (j *jobRuns) active() *api.Run {
	return first(j.runs, (*api.Run).Active)
}

func (j *jobRuns) Read(ctx context.Context) (tea.Msg, error) {
	return j.host.Client.ListJobRuns(ctx, j.namespace, j.job, "", client.Query{Limit: shownJobRuns})
}

type (
	jobRunRead struct {
		of  *runLog
		run *api.Run
	}
	jobRunTold struct {
		of    *runLog
		event api.RunEvent
	}
	jobRunLeft struct {
		of  *runLog
		err error
	}
)

func (j *jobRuns) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		if j.shown != nil { // nobody has listened while another screen was shown
			j.shown.stop, j.shown.asked = nil, false
		}
		return j.attach()
	case frame.Failed:
		if j.shown != nil {
			j.shown.asked = false
		}
	case *api.List[api.Run]:
		return j.took(msg.Items)
	case jobRunRead:
		one := msg.of
		one.asked, one.read, one.run = false, true, *msg.run
		one.events = msg.run.Events
		return j.attach()
	case jobRunTold:
		return j.told(msg.of, msg.event)
	case jobRunLeft:
		msg.of.stop = nil
		if _, refused := errors.AsType[*client.Error](msg.err); refused {
			msg.of.lost = true
		}
		if msg.err == nil {
			return j.attach()
		}
	case tea.KeyPressMsg:
		return j.press(msg.String())
	}
	return nil
}

// took takes the runs that there are.
func (j *jobRuns) took(all []api.Run) tea.Cmd {
	follows := j.list.Selected() == "" || len(j.runs) > 0 && j.list.Selected() == j.runs[0].ID // the newest one
	newer := len(j.runs) > 0 && len(all) > 0 && all[0].ID != j.runs[0].ID
	j.runs = all
	for i := range all {
		one := j.logs[all[i].ID]
		if one == nil {
			one = &runLog{run: all[i]}
			j.logs[all[i].ID] = one
		}
		if one.run.Active() && !all[i].Active() { // its last lines, and what it came to
			one.read = false
		}
		events := one.run.Events
		one.run = all[i]
		one.run.Events = events
	}
	j.list.Set(j.section())
	if follows && newer {
		j.list.Select(all[0].ID)
	}
	return j.attach()
}

func (j *jobRuns) press(pressed string) tea.Cmd {
	if j.key(pressed) {
		return j.attach()
	}
	if j.of != "" {
		return nil
	}
	switch pressed {
	case "enter":
		if j.list.Selected() != "" {
			j.open()
		}
	case "x":
		return askRun(j.host, j.namespace, j.job, j.active())
	}
	return nil
}

// attach asks for the run with the cursor, and listens to it while it goes on.
func (j *jobRuns) attach() tea.Cmd {
	one := j.logs[j.list.Selected()]
	if j.shown != one {
		if j.shown != nil && j.shown.stop != nil {
			j.shown.stop()
			j.shown.stop = nil
		}
		j.shown = one
	}
	switch {
	case one == nil || one.asked || one.stop != nil:
		return nil
	case !one.read:
		one.asked = true
		id := one.run.ID
		return j.host.Ask(func(ctx context.Context) (tea.Msg, error) {
			run, err := j.host.Client.JobRun(ctx, j.namespace, j.job, id)
			return jobRunRead{one, run}, err
		})
	case one.lost || !one.run.Active():
		return nil
	}
	id, after := one.run.ID, int64(0)
	if n := len(one.events); n > 0 {
		after = one.events[n-1].ID
	}
	var cmd tea.Cmd
	cmd, one.stop = j.host.Stream(func(ctx context.Context, emit func(tea.Msg)) error {
		return j.host.Client.FollowJobRun(ctx, j.namespace, j.job, id, after, func(e api.RunEvent) error {
			emit(jobRunTold{one, e})
			return nil
		})
	}, func(err error) tea.Msg { return jobRunLeft{one, err} })
	return cmd
}

// keptRunEvents is how many events of a run are shown, more than the service keeps.
const keptRunEvents = 1000

// told takes an event of a run.
func (j *jobRuns) told(one *runLog, e api.RunEvent) tea.Cmd {
	if n := len(one.events); n > 0 && e.ID > 0 && e.ID <= one.events[n-1].ID {
		return nil
	}
	one.events = append(one.events, e)
	one.events = one.events[max(len(one.events)-keptRunEvents, 0):]
	if e.Event != api.EventDone && e.Event != api.EventError {
		return nil
	}
	if e.Data.Status != "" {
		one.run.Status = e.Data.Status
	}
	return j.host.Refresh()
}
