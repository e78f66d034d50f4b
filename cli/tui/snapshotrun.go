package tui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// snapshotRun is a run of snapshots, as far as it was told of.
type snapshotRun struct {
	run    api.Run
	phases runs.Phases
	now    api.RunEventData // the latest event of progress
	after  int64            // ID of the latest event
	log    []string
	read   bool   // it was asked for, with its events
	asked  bool   // it is being asked for
	stop   func() // ends watching; nil: nobody watches
	lost   bool   // the service tells no more of it
}

type (
	snapshotStarted struct{ run *api.Run }
	snapshotRunRead struct {
		of  *snapshotRun
		run *api.Run
	}
	snapshotRunTold struct {
		of    *snapshotRun
		event api.RunEvent
	}
	snapshotRunLeft struct {
		of  *snapshotRun
		err error
	}
)

// ended says that there is nothing more to be told.
func (r *snapshotRun) ended() bool { return r.lost || !r.run.Active() }

// take takes over how the run stands. While it is watched, events are newer than what is read.
func (r *snapshotRun) take(run *api.Run) {
	if run.Active() && (r.stop != nil || !r.run.Active()) {
		return
	}
	r.run = *run
	r.phases.Run(run)
}

// startRun starts a run; the screen gets snapshotStarted.
func startRun(h *frame.Host, fn func(ctx context.Context) (*api.Run, error)) tea.Cmd {
	return h.Ask(func(ctx context.Context) (tea.Msg, error) {
		run, err := fn(ctx)
		return snapshotStarted{run}, err
	})
}

// begin shows a run that was started. to says that the cursor moves to it.
func (s *snapshots) begin(run *api.Run, to bool) tea.Cmd {
	s.known(run)
	if s.read == nil {
		s.read = &snapshotsRead{}
	}
	if s.read.run(run.ID) == nil {
		s.read.runs = append([]api.Run{*run}, s.read.runs...)
	}
	s.of, s.closed, s.begun = "", "", ""
	s.list.Set(s.sections()...)
	if kind, _ := s.selected(); to || kind == kindRun {
		s.list.Select(kindRun + "/" + run.ID)
	}
	if s.list.Selected() != kindRun+"/"+run.ID { // where it is to stay, or where a filter hides the run
		s.begun = run.ID
	}
	return tea.Batch(s.follow(), s.host.Refresh())
}

// known is what is known of a run.
func (s *snapshots) known(run *api.Run) *snapshotRun {
	if s.runs[run.ID] == nil {
		one := &snapshotRun{}
		one.run = *run
		one.phases.Run(run)
		s.runs[run.ID] = one
	}
	return s.runs[run.ID]
}

// follow shows the run with the cursor, unless the user has closed it.
func (s *snapshots) follow() tea.Cmd {
	var wanted *snapshotRun
	if id := s.toShow(); id != "" && s.closed != id {
		s.closed = ""
		if run := s.read.run(id); run != nil {
			wanted = s.known(run)
		}
	}
	if s.pane != wanted {
		s.leave()
		s.pane = wanted
	}
	return s.attach()
}

// toShow is the id of the run that is shown below the list, unless the user has closed it: that with the cursor, or else the one that was begun
// last, such as the check of a snapshot. "": none.
func (s *snapshots) toShow() string {
	if kind, id := s.selected(); kind == kindRun {
		return id
	}
	return s.begun
}

// attach asks for the run that is shown, and watches it if it goes on.
func (s *snapshots) attach() tea.Cmd {
	one := s.pane
	switch {
	case one == nil || one.stop != nil || one.asked:
		return nil
	case !one.read:
		one.asked = true
		id := one.run.ID
		return s.host.Ask(func(ctx context.Context) (tea.Msg, error) {
			run, err := s.host.Client.SnapshotRun(ctx, s.namespace, id)
			return snapshotRunRead{one, run}, err
		})
	case one.ended():
		return nil
	}
	id, after := one.run.ID, one.after
	var cmd tea.Cmd
	cmd, one.stop = s.host.Stream(func(ctx context.Context, emit func(tea.Msg)) error {
		return s.host.Client.FollowSnapshotRun(ctx, s.namespace, id, after, func(e api.RunEvent) error {
			emit(snapshotRunTold{one, e})
			return nil
		})
	}, func(err error) tea.Msg { return snapshotRunLeft{one, err} })
	return cmd
}

// got takes a run that was asked for.
func (s *snapshots) got(msg snapshotRunRead) tea.Cmd {
	one := msg.of
	one.asked, one.read = false, true
	one.take(msg.run)
	for _, e := range msg.run.Events {
		if e.ID > one.after {
			one.hear(e, false)
		}
	}
	if one != s.pane {
		return nil
	}
	return s.attach()
}

// keptWarnings is how many lines of a run's log are shown.
const keptWarnings = 3

// hear takes an event. Those that a run was read with are in its phases already.
func (r *snapshotRun) hear(e api.RunEvent, live bool) {
	r.after = max(r.after, e.ID)
	if live {
		r.phases.Event(e)
	}
	switch e.Event {
	case api.EventProgress:
		r.now = e.Data
		if live && r.run.Status == api.RunQueued {
			r.run.Status = api.RunRunning
		}
	case api.EventLog:
		r.log = append(r.log, e.Data.Level+": "+e.Data.Message)
		r.log = r.log[max(len(r.log)-keptWarnings, 0):]
	}
}

func (s *snapshots) told(msg snapshotRunTold) tea.Cmd {
	one, e := msg.of, msg.event
	one.hear(e, true)
	if e.Event != api.EventDone && e.Event != api.EventError {
		return nil
	}
	if one.run.Status = e.Data.Status; one.run.Status == "" {
		one.run.Status = map[string]string{api.EventDone: api.RunSucceeded, api.EventError: api.RunFailed}[e.Event]
	}
	if e.Event == api.EventError && one.run.Error == nil {
		one.run.Error = &api.RunError{Code: e.Data.Code, Message: e.Data.Message}
	}
	one.read = false // what it came to is in the run
	return s.host.Refresh()
}

// left takes notice that a run is not watched any more. One that has not ended is looked for again with the next read, unless the
// service has refused that.
func (s *snapshots) left(msg snapshotRunLeft) tea.Cmd {
	msg.of.stop = nil
	if _, refused := errors.AsType[*client.Error](msg.err); refused {
		msg.of.lost = true
	}
	if msg.of == s.pane && msg.err == nil {
		return s.attach()
	}
	return nil
}

// leave stops watching. The run goes on.
func (s *snapshots) leave() {
	if s.pane != nil && s.pane.stop != nil {
		s.pane.stop()
		s.pane.stop = nil
	}
	s.pane = nil
}

// detach is leave for the user.
func (s *snapshots) detach() tea.Cmd {
	s.closed = s.pane.run.ID
	goesOn := !s.pane.ended()
	s.leave()
	if !goesOn {
		return nil
	}
	return s.host.Say("the run goes on; w shows it again, and so does svcctl snapshot attach " + s.namespace)
}

// askCancel asks whether the run that goes on is to be cancelled.
func (s *snapshots) askCancel() tea.Cmd {
	run := s.read.active()
	if run == nil {
		return tea.Batch(s.host.Say("no run goes on"), s.host.Refresh()) // one may have begun elsewhere
	}
	id := run.ID
	s.host.Confirm("Cancel "+titleOfRun(run)+", run "+id+"? It leaves nothing half.", func() tea.Cmd {
		return s.host.Act("cancelling "+id, func(ctx context.Context) (string, error) {
			_, err := s.host.Client.CancelSnapshotRun(ctx, s.namespace, id)
			return id + " ends", err
		})
	})
	return nil
}
