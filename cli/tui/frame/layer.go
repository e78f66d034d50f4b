package frame

import (
	"context"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
)

// layer is a screen that is open: the one that is shown, or one beneath, which rests.
type layer struct {
	def    Def // of one that another screen has pushed it is empty
	place  Place
	screen Screen
	filter string
	loaded bool              // it has been read once
	held   []tea.KeyPressMsg // pressed before, which wait for that

	// Since it is shown, as the shows-th time.
	ctx    context.Context //nolint:containedctx // of what it asks for, until it is left
	cancel context.CancelFunc
	shows  int

	reading      bool
	again        bool               // it is to be read again when it has been
	read         int                // number of the read
	rest         context.CancelFunc // ends the pause before the next one; nil: there was none
	readFailures int
	readTrouble  trouble

	follow         context.CancelFunc // ends listening; nil: the screen does not listen
	followed       int                // number of the last follow
	followFailures int
	followTrouble  trouble

	readOnce, followOnce sync.Mutex // what was left may still be on its way out
}

// trouble is an error as it is shown.
type trouble struct{ message, hint, next string }

// ticket says for which layer a message is, and that of which time it was shown.
type ticket struct {
	to    *layer
	shows int
}

func (l *layer) ticket() ticket { return ticket{l, l.shows} }

// current says that what a message is for is still shown.
func (m *Model) current(t ticket) bool { return t.to == m.top() && t.shows == t.to.shows }

// Messages of the frame to itself.
type (
	found struct { // something that a screen has asked for
		ticket

		msg     tea.Msg
		trouble *trouble
	}
	wasRead struct {
		ticket

		msg     tea.Msg
		trouble *trouble
		took    time.Duration
	}
	readDue struct {
		ticket

		read int
	}
	followEnded struct {
		ticket

		followed int
		trouble  *trouble
	}
	followDue struct {
		ticket

		followed int
	}
)

// open shows a screen, with those above which it stands beneath it. What is open of them stays as it is.
func (m *Model) open(def Def, place Place) tea.Cmd {
	chain := []Def{def}
	for parent := def.Parent; parent != ""; {
		d := m.cfg.Screens[slices.IndexFunc(m.cfg.Screens, func(d Def) bool { return d.Name == parent })]
		if !place.lacks(d.Of) {
			chain = slices.Insert(chain, 0, d)
		}
		parent = d.Parent
	}
	kept := 0
	for kept < len(chain) && kept < len(m.stack) && m.stack[kept].is(chain[kept], place) {
		kept++
	}
	m.leave()
	m.stack = m.stack[:kept]
	for _, d := range chain[kept:] {
		l := &layer{def: d, place: place.within(d.Of)}
		l.screen = d.Open(m.host(l), l.place)
		l.loaded = !l.reads()
		m.stack = append(m.stack, l)
	}
	return m.enter()
}

// reads says that the screen shows what the service says.
func (l *layer) reads() bool {
	_, ok := l.screen.(Reader)
	return ok
}

// typing says that text is typed into the screen.
func (l *layer) typing() bool {
	t, ok := l.screen.(Typer)
	return ok && t.Typing()
}

func (l *layer) is(d Def, place Place) bool {
	return l.def.Name == d.Name && l.place == place.within(d.Of)
}

// push shows a screen above the one that is shown.
func (m *Model) push(open func(*Host) Screen) tea.Cmd {
	l := &layer{place: m.top().place}
	l.screen = open(m.host(l))
	l.loaded = !l.reads()
	m.leave()
	m.stack = append(m.stack, l)
	return m.enter()
}

// back shows the screen beneath the one that is shown, if there is one.
func (m *Model) back() tea.Cmd {
	if len(m.stack) < 2 {
		return nil
	}
	m.leave()
	m.stack = m.stack[:len(m.stack)-1]
	return m.enter()
}

// leave ends what the screen that is shown has going on.
func (m *Model) leave() {
	if l := m.top(); l != nil && l.cancel != nil {
		l.cancel()
		l.shows++
		l.held = nil
	}
}

// enter begins with the screen that is shown now.
func (m *Model) enter() tea.Cmd {
	l := m.top()
	if m.notice.tone == output.ToneBad { // which was about what was shown before
		m.notice = notice{}
	}
	l.ctx, l.cancel = context.WithCancel(m.tasks.ctx)
	l.shows++
	l.reading, l.again, l.readFailures, l.readTrouble = false, false, 0, trouble{}
	l.followFailures, l.followTrouble = 0, trouble{}
	return tea.Batch(l.screen.Update(Shown{}), m.read(l), m.follow(l))
}

// read has the screen ask for what it shows.
func (m *Model) read(l *layer) tea.Cmd {
	r, ok := l.screen.(Reader)
	if !ok {
		return nil
	}
	if l.reading {
		l.again = true
		return nil
	}
	l.reading = true
	l.read++
	t := l.ticket()
	return m.tasks.do(l.ctx, func(ctx context.Context) tea.Msg {
		t.to.readOnce.Lock()
		defer t.to.readOnce.Unlock()
		began := m.cfg.Now()
		msg, err := r.Read(ctx)
		return wasRead{t, msg, m.trouble(ctx, err), m.cfg.Now().Sub(began)}
	})
}

// trouble explains an error; nil: there is none.
func (m *Model) trouble(ctx context.Context, err error) *trouble {
	if err == nil {
		return nil
	}
	message, hint := m.cfg.Explain(ctx, err)
	return &trouble{message: message, hint: hint}
}

// maxBackoff is the longest pause after failures in a row.
const maxBackoff = 15 * time.Second

func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 10), maxBackoff)
}

// restFactor is how many times as long as a read took the pause behind it is at least, so that a service with many projects is
// not kept busy by those who look at them.
const restFactor = 4

func (m *Model) wasRead(msg wasRead) tea.Cmd {
	l := msg.to
	if !m.current(msg.ticket) {
		return nil
	}
	l.reading = false
	if l.rest != nil { // what was read in between by other reasons has a pause of its own
		l.rest()
	}
	var cmd tea.Cmd
	var pause time.Duration
	if msg.trouble != nil {
		l.readFailures++
		l.held = nil // the service may be back in a minute, with nobody there
		pause = backoff(l.readFailures)
		l.readTrouble = *msg.trouble
		l.readTrouble.next = "trying again in " + pause.String()
	} else {
		l.readFailures, l.readTrouble, l.loaded = 0, trouble{}, true
		cmd = tea.Batch(l.screen.Update(msg.msg), m.release(l))
		if r, ok := l.screen.(Reader); ok && r.Every() > 0 {
			pause = max(r.Every(), restFactor*msg.took)
		}
	}
	switch {
	case !m.current(msg.ticket): // a key that was held has left it
		return cmd
	case l.again:
		l.again = false
		return tea.Batch(cmd, m.read(l))
	}
	if pause > 0 {
		var ctx context.Context
		ctx, l.rest = context.WithCancel(l.ctx)
		cmd = tea.Batch(cmd, m.tasks.after(ctx, pause, readDue{msg.ticket, l.read}))
	}
	return cmd
}

// follow has the screen listen.
func (m *Model) follow(l *layer) tea.Cmd {
	f, ok := l.screen.(Follower)
	if !ok {
		return nil
	}
	t := l.ticket()
	l.followed++
	number := l.followed
	var ctx context.Context
	ctx, l.follow = context.WithCancel(l.ctx)
	return m.tasks.stream(ctx, func(ctx context.Context, emit func(tea.Msg)) error {
		t.to.followOnce.Lock()
		defer t.to.followOnce.Unlock()
		return f.Follow(ctx, func(msg tea.Msg) { emit(found{ticket: t, msg: heard{msg}}) })
	}, func(err error) tea.Msg { return followEnded{t, number, m.trouble(ctx, err)} })
}

// refollow has the screen listen anew, as to something else.
func (m *Model) refollow(l *layer) tea.Cmd {
	if l.follow == nil || l != m.top() {
		return nil
	}
	l.follow()
	l.followFailures, l.followTrouble = 0, trouble{}
	return m.follow(l)
}

// heard is what a Follower has emitted.
type heard struct{ msg tea.Msg }

func (m *Model) followEnded(msg followEnded) tea.Cmd {
	l := msg.to
	if !m.current(msg.ticket) || msg.followed != l.followed {
		return nil
	}
	l.followFailures++
	pause := backoff(l.followFailures)
	if msg.trouble != nil {
		l.followTrouble = *msg.trouble
		l.followTrouble.next = "trying again in " + pause.String()
	}
	return m.tasks.after(l.ctx, pause, followDue{msg.ticket, l.followed})
}

func (m *Model) found(msg found) tea.Cmd {
	l := msg.to
	if !m.current(msg.ticket) {
		return nil
	}
	if h, ok := msg.msg.(heard); ok {
		l.followFailures, l.followTrouble = 0, trouble{}
		msg.msg = h.msg
	}
	if msg.trouble != nil {
		m.complain(*msg.trouble)
	}
	return l.screen.Update(msg.msg)
}
