package tui

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// snapshots shows the snapshots of a project and the runs that take, check, restore and prune them; of the run with the cursor, how far it is. It
// starts and cancels such runs.
type snapshots struct {
	table

	namespace string
	reader    *snapshotReader
	read      *snapshotsRead // nil: not yet
	runs      map[string]*snapshotRun
	pane      *snapshotRun // that is shown below the list; nil: none
	begun     string       // id of the run that was begun last: it is shown while the cursor is on no run
	most      int          // how many runs are in the list
	closed    string       // id of the run whose pane the user has closed
}

func newSnapshots(h *frame.Host, of frame.Place) frame.Screen {
	s := &snapshots{
		table: table{host: h}, namespace: of.Namespace, runs: map[string]*snapshotRun{},
		reader: &snapshotReader{client: h.Client, namespace: of.Namespace, now: h.Now},
	}
	s.value = s.valueOf
	return s
}

func (s *snapshots) Title() string { return "Snapshots" }

// Every implements frame.Reader: it looks more often while something is going on.
func (s *snapshots) Every() time.Duration {
	if s.read != nil && s.read.active() != nil {
		return time.Second
	}
	return 3 * time.Second
}

func (s *snapshots) Read(ctx context.Context) (tea.Msg, error) { return s.reader.read(ctx) }

func (s *snapshots) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		if s.pane != nil { // nobody has watched while another screen was shown
			s.pane.stop, s.pane.asked = nil, false
		}
		return s.attach()
	case *snapshotsRead:
		return s.take(msg)
	case snapshotStarted: // of what has the cursor, which stays there
		return s.begin(msg.run, false)
	case snapshotRunRead:
		return s.got(msg)
	case snapshotRunTold:
		return s.told(msg)
	case snapshotRunLeft:
		return s.left(msg)
	case frame.Failed: // that of a run which was asked for
		if s.pane != nil {
			s.pane.asked = false
		}
	case tea.KeyPressMsg:
		return s.press(msg.String())
	}
	return nil
}

// take shows what was read.
func (s *snapshots) take(read *snapshotsRead) tea.Cmd {
	first, active := s.read == nil, read.active()
	s.read = read
	for i := range read.runs {
		run := &read.runs[i]
		if known := s.runs[run.ID]; known != nil {
			known.take(run)
		}
	}
	s.list.Set(s.sections()...)
	switch kind, _ := s.selected(); {
	case first && active != nil:
		s.list.Select(kindRun + "/" + active.ID)
	case first && len(read.snapshots) > 0: // which most of the keys are about
		s.list.Select(kindSnapshot + "/" + read.snapshots[0].ID)
	case active != nil && kind != kindRun: // somebody has begun it meanwhile
		s.begun = active.ID
	}
	return s.follow()
}

func (s *snapshots) press(pressed string) tea.Cmd {
	if s.key(pressed) {
		if s.of != "" {
			return nil
		}
		return s.follow()
	}
	if s.of != "" {
		return nil
	}
	switch snap := s.snapshot(); pressed {
	case "enter":
		if s.list.Selected() != "" {
			s.open()
		}
	case "s":
		return s.host.Push(func(h *frame.Host) frame.Screen { return newProfileChoice(h, s) })
	case "x":
		return s.askCancel()
	case "w":
		s.closed = ""
		return s.follow()
	case "R", "v", "t", "D", "p":
		if snap == nil {
			return s.host.Say("move to a snapshot first")
		}
		return s.act(pressed, *snap)
	}
	return nil
}

// act does what a key means for a snapshot.
func (s *snapshots) act(pressed string, snap api.Snapshot) tea.Cmd {
	switch pressed {
	case "R":
		return s.host.Push(func(h *frame.Host) frame.Screen { return newRestore(h, s, snap) })
	case "D":
		return s.host.Push(func(h *frame.Host) frame.Screen { return newSnapshotDiff(h, s.namespace, snap.ID) })
	case "v":
		s.host.Confirm("Check "+snap.ID+"? All its files are read.", func() tea.Cmd {
			return s.start(func(ctx context.Context) (*api.Run, error) {
				return s.host.Client.VerifySnapshot(ctx, s.namespace, snap.ID, api.SnapshotVerify{})
			})
		})
	case "t":
		s.host.Confirm("Restore "+snap.ID+" on trial? It takes the room of its records in the store meanwhile; nothing that is served changes.", func() tea.Cmd {
			return s.start(func(ctx context.Context) (*api.Run, error) {
				return s.host.Client.DrillSnapshot(ctx, s.namespace, snap.ID)
			})
		})
	case "p":
		does, done := "pinning ", " is pinned: it can't be deleted"
		if snap.Pinned {
			does, done = "letting go of ", " is not pinned any more"
		}
		s.reader.again.Store(true)
		return s.host.Act(does+snap.ID, func(ctx context.Context) (string, error) {
			_, err := s.host.Client.PinSnapshot(ctx, s.namespace, snap.ID, !snap.Pinned)
			return snap.ID + done, err
		})
	}
	return nil
}

// start starts a run, which is then shown.
func (s *snapshots) start(fn func(ctx context.Context) (*api.Run, error)) tea.Cmd {
	return startRun(s.host, fn)
}

// selected gives what the row with the cursor is about: the kind and the id.
func (s *snapshots) selected() (kind, id string) {
	kind, id, _ = strings.Cut(s.list.Selected(), "/")
	return kind, id
}

// snapshot is that with the cursor, nil where the cursor is on something else, or one that can't be read.
func (s *snapshots) snapshot() *api.Snapshot {
	if kind, id := s.selected(); kind == kindSnapshot && s.read != nil {
		return s.read.snapshot(id)
	}
	return nil
}

// Back implements frame.Backer.
func (s *snapshots) Back() (cmd tea.Cmd, used bool) {
	if cmd, used := s.table.Back(); used || s.pane == nil {
		return cmd, used
	}
	return s.detach(), true
}

func (s *snapshots) Keys() []key.Binding {
	if s.of != "" {
		return s.pageKeys()
	}
	snap := s.snapshot()
	pin := "pin"
	if snap != nil && snap.Pinned {
		pin = "unpin"
	}
	const onSnapshot = "the cursor is on a snapshot"
	return []key.Binding{ // a narrow terminal shows the first ones: those that are about what goes on
		frame.When(s.list.Selected() != "", "enter", "details", "there is a row"),
		frame.When(s.read != nil && s.read.active() != nil, "x", "cancel the run", "one goes on"),
		frame.When(s.toShow() != "" && s.closed == s.toShow(), "w", "watch the run", "one was left by esc"),
		frame.Binding("s", "take a snapshot"),
		frame.When(snap != nil, "R", "restore", onSnapshot), frame.When(snap != nil, "v", "check", onSnapshot), frame.When(snap != nil, "t", "rehearse", onSnapshot),
		frame.When(snap != nil, "D", "diff", onSnapshot), frame.When(snap != nil, "p", pin, onSnapshot),
		frame.When(s.list.Selected() != "", "y", "YAML", "there is a row"),
	}
}

func (s *snapshots) View(width, height int) string {
	s.fewer(height)
	if s.pane == nil || s.of != "" {
		return s.view(width, height, s.doc)
	}
	room := max(height-min(s.rows(), max(height*7/10, linesForList)), linesForRun)
	pane := s.pane.draw(width, room, s.host.Theme())
	if height <= len(pane)+3 {
		return lines(pane[:min(len(pane), height)])
	}
	list := lines(fill(s.view(width, height-len(pane), s.doc), height-len(pane)))
	return list + "\n" + lines(pane)
}

// How many lines the list has beside a run, and a run beside the list, at least.
const (
	linesForList = 6
	linesForRun  = 4
)

// rows is how many lines the list would take: titles and headings, what is in it, and one in between.
func (s *snapshots) rows() int {
	n := -1
	for _, section := range s.sections() {
		n += 1 + 2 + max(len(section.Rows), 1)
	}
	return n
}

// fewer has fewer runs be in the list where there are few lines, so that snapshots are seen, too.
func (s *snapshots) fewer(height int) {
	most := min(max(height/5, 3), shownRuns)
	if s.most != most {
		s.most = most
		s.list.Set(s.sections()...)
	}
}

// doc is the page about a row.
func (s *snapshots) doc(id string) (widget.Doc, bool) {
	kind, id, _ := strings.Cut(id, "/")
	if kind == kindRun {
		return s.read.runDoc(id)
	}
	return s.read.snapshotDoc(s.namespace, id, s.host.Now(), s.host.Reach)
}
