package frame

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/client"
)

// Config is what the frame is made of.
type Config struct {
	Client  *client.Client // bounds each answer
	Patient *client.Client // waits as long as its caller does; for what is done by the service meanwhile
	// Explain says what an error means, and what to do about it, which may be "". It may ask the service, and is called beside the loop.
	Explain func(ctx context.Context, err error) (message, hint string)
	// Reach gives a text for the user with commands of svcctl that are about the same service.
	Reach   func(text string) string
	Now     func() time.Time
	Color   bool
	Context string // its name; "": none
	// OfCollection says that the credential is that of a collection, or the admin token of a project.
	OfCollection bool
	// Names gives the namespaces of projects and, of one of them, the names of its collections, as far as they can be had: for completion. It is called
	// beside the loop; nil: there are none.
	Names func(ctx context.Context, namespace string) (namespaces, collections []string)
	// Screens are those that there are. The first one is opened, and beneath it the second if Namespace says of which project.
	Screens   []Def
	Namespace string
}

// Model is the program: a tea.Model. It is used by the loop of the program alone.
type Model struct {
	cfg   Config
	tasks *Tasks
	theme widget.Theme

	width, height int
	stack         []*layer // the last one is shown
	about         about
	notice        notice
	notices       int // that there were, to know which one a timer is for
	prompt        prompt
	question      *question
	help          *widget.Pager // nil: closed
	names         namesRead
}

// New makes the program. Close has to be called when it has ended.
func New(ctx context.Context, cfg Config) *Model {
	return &Model{cfg: cfg, tasks: NewTasks(ctx), theme: widget.NewTheme(cfg.Color, true)}
}

// Close ends what goes on beside the loop, and returns when it has ended.
func (m *Model) Close() { m.tasks.Close() }

// Init opens the first screen.
func (m *Model) Init() tea.Cmd {
	first := m.cfg.Screens[0]
	if m.cfg.Namespace != "" {
		if i := slices.IndexFunc(m.cfg.Screens, func(d Def) bool { return d.Of == OfProject && d.Parent == first.Name }); i >= 0 {
			first = m.cfg.Screens[i]
		}
	}
	cmds := []tea.Cmd{m.open(first, Place{Namespace: m.cfg.Namespace}), m.readAbout()}
	if m.cfg.Color {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return m, m.take(msg) }

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.theme = widget.NewTheme(m.cfg.Color, msg.IsDark())
	case resumed:
		return tea.Batch(tea.ClearScreen, m.refresh())
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg)
	case streamed:
		return tea.Batch(m.take(msg.msg), msg.next)
	case found:
		return m.found(msg)
	case wasRead:
		return m.wasRead(msg)
	case readDue:
		if m.current(msg.ticket) && msg.read == msg.to.read {
			return m.read(msg.to)
		}
	case followEnded:
		return m.followEnded(msg)
	case followDue:
		if m.current(msg.ticket) && msg.followed == msg.to.followed {
			return m.follow(msg.to)
		}
	case Exec:
		return tea.Exec(msg.Command, msg.Done)
	case namesRead:
		m.namesRead(msg)
	case acted:
		return m.acted(msg)
	case aboutRead:
		return m.aboutRead(msg)
	case aboutDue:
		return m.readAbout()
	case noticeOver:
		if msg.number == m.notices {
			m.notice = notice{}
		}
	}
	return nil
}

// resumed says that the program has the terminal again.
type resumed struct{}

// refresh reads anew what is shown.
func (m *Model) refresh() tea.Cmd {
	top := m.top()
	if top == nil {
		return nil
	}
	return m.read(top)
}

func (m *Model) top() *layer {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}
