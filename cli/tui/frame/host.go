package frame

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Host is what a screen has of the frame. Its methods are for the loop of the program, but for those of the clients.
type Host struct {
	Client  *client.Client // bounds each answer
	Patient *client.Client // waits as long as ctx allows

	m *Model
	l *layer
}

func (m *Model) host(l *layer) *Host { return &Host{m.cfg.Client, m.cfg.Patient, m, l} }

// Theme is how things look now.
func (h *Host) Theme() widget.Theme { return h.m.theme }

// Now is the time.
func (h *Host) Now() time.Time { return h.m.cfg.Now() }

// Ask has fn ask the service beside the loop. Update gets what it gives; of an error, which the frame tells, Failed. ctx ends, and
// nothing comes, when the screen is left.
func (h *Host) Ask(fn func(ctx context.Context) (tea.Msg, error)) tea.Cmd {
	t := h.l.ticket()
	return h.m.tasks.do(h.l.ctx, func(ctx context.Context) tea.Msg {
		msg, err := fn(ctx)
		if err != nil {
			msg = Failed{err}
		}
		return found{t, msg, h.m.trouble(ctx, err)}
	})
}

// Stream is Ask for many answers: Update gets what fn emits, and at last what ended makes of its error, which the frame tells if
// there is one. stop ends it without a word.
func (h *Host) Stream(fn func(ctx context.Context, emit func(tea.Msg)) error, ended func(error) tea.Msg) (cmd tea.Cmd, stop func()) {
	t := h.l.ticket()
	ctx, stop := context.WithCancel(h.l.ctx)
	return h.m.tasks.stream(ctx, func(ctx context.Context, emit func(tea.Msg)) error {
		return fn(ctx, func(msg tea.Msg) { emit(found{ticket: t, msg: msg}) })
	}, func(err error) tea.Msg { return found{t, ended(err), h.m.trouble(ctx, err)} }), stop
}

// Act has fn change something, which goes on when the screen is left. The frame says what is being done, and then what fn says, or
// what its error means, and reads what is shown anew.
func (h *Host) Act(doing string, fn func(ctx context.Context) (done string, err error)) tea.Cmd {
	m := h.m
	m.tell(notice{text: doing + " …", stays: true})
	return m.tasks.do(m.tasks.ctx, func(ctx context.Context) tea.Msg {
		done, err := fn(ctx)
		return acted{done, m.trouble(ctx, err)}
	})
}

type acted struct {
	done    string
	trouble *trouble
}

func (m *Model) acted(msg acted) tea.Cmd {
	if msg.trouble != nil {
		m.complain(*msg.trouble)
		return m.refresh()
	}
	return tea.Batch(m.say(notice{text: msg.done, tone: output.ToneGood}), m.refresh())
}

// Confirm asks the user, and calls yes if they want it.
func (h *Host) Confirm(text string, yes func() tea.Cmd) {
	h.m.question = &question{output.Escape(text), yes}
}

// Say tells the user something, for a while. Commands in it are about the same service (see Reach).
func (h *Host) Say(text string) tea.Cmd { return h.m.say(notice{text: h.Reach(text)}) }

// Lack tells the user which right they lack for what they have asked for.
func (h *Host) Lack(right string) tea.Cmd { return h.Say("you lack the right " + right) }

// Reach gives a text in which commands of svcctl are about the service that this program is about.
func (h *Host) Reach(text string) string {
	if h.m.cfg.Reach == nil {
		return text
	}
	return h.m.cfg.Reach(text)
}

// Open shows another screen, by the name of its Def.
func (h *Host) Open(name string, of Place) tea.Cmd {
	i := slices.IndexFunc(h.m.cfg.Screens, func(d Def) bool { return d.Name == name })
	return h.m.open(h.m.cfg.Screens[i], of)
}

// Back shows the screen beneath.
func (h *Host) Back() tea.Cmd { return h.m.back() }

// Push shows a screen above this one, to which esc leads back.
func (h *Host) Push(open func(*Host) Screen) tea.Cmd { return h.m.push(open) }

// Refresh reads anew what is shown.
func (h *Host) Refresh() tea.Cmd { return h.m.refresh() }

// Refollow has this screen, which is a Follower, listen anew, as to something else.
func (h *Host) Refollow() tea.Cmd { return h.m.refollow(h.l) }

// Fail tells of an error that was not found beside the loop.
func (h *Host) Fail(message, hint string) {
	h.m.complain(trouble{message: h.Reach(message), hint: h.Reach(hint)})
}

// Explain says what an error means, and what to do about it, which may be "". It may ask the service, and is for what Ask and Stream run.
func (h *Host) Explain(ctx context.Context, err error) (message, hint string) {
	return h.m.cfg.Explain(ctx, err)
}

// Exec gives the terminal to a command, as to an editor; done then tells Update how it has ended. The screen is still shown then.
func (h *Host) Exec(command tea.ExecCommand, done func(error) tea.Msg) tea.Cmd {
	t := h.l.ticket()
	return func() tea.Msg {
		return Exec{command, func(err error) tea.Msg { return found{ticket: t, msg: done(err)} }}
	}
}

// Exec is the message that has the program give the terminal to a command.
type Exec struct {
	Command tea.ExecCommand
	Done    tea.ExecCallback
}

// May says whether the user has a right, which is the name of a scope. It says so, too, where that is not known: then the service does.
func (h *Host) May(right string) bool {
	me := h.m.about.me
	return right == "" || me == nil || me.IsAdmin || slices.Contains(me.Scopes, right)
}

// Me is who asks; nil: it is not known, or nobody.
func (h *Host) Me() *api.Me { return h.m.about.me }

// notice is a line for the user, until the next key is pressed.
type notice struct {
	text, hint string
	tone       output.Tone
	stays      bool // until another one comes; an error until esc is pressed, or another screen is shown
}

// noticeTime is how long a notice that does not stay is shown at most.
const noticeTime = 10 * time.Second

type noticeOver struct{ number int }

// tell shows a notice until another one comes.
func (m *Model) tell(n notice) {
	n.text, n.hint = output.Escape(n.text), output.Escape(n.hint)
	m.notice = n
	m.notices++
}

// dismiss takes away what was told, but for what is being done.
func (m *Model) dismiss() {
	if !m.notice.stays || m.notice.tone == output.ToneBad {
		m.notice = notice{}
	}
}

// say shows a notice for a while.
func (m *Model) say(n notice) tea.Cmd {
	m.tell(n)
	return m.tasks.after(m.tasks.ctx, noticeTime, noticeOver{m.notices})
}

// complain shows an error.
func (m *Model) complain(t trouble) {
	m.tell(notice{"error: " + t.message, t.hint, output.ToneBad, true})
}

// question is what the user is asked.
type question struct {
	text string
	yes  func() tea.Cmd
}
