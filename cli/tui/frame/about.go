package frame

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// about is what the header tells of the service and the user. Empty members are not known yet.
type about struct {
	version, who string
	me           *api.Me
	health       string
	tone         output.Tone
}

// aboutEvery is the pause between two looks at the health of the service.
const aboutEvery = 5 * time.Second

type (
	aboutRead struct{ about }
	aboutDue  struct{}
)

// readAbout asks how the service is, and once, which version it has and who asks.
func (m *Model) readAbout() tea.Cmd {
	known := m.about
	return m.tasks.do(m.tasks.ctx, func(ctx context.Context) tea.Msg {
		a := known
		a.health, a.tone = health(m.cfg.Client.Ready(ctx))
		if known.health != "" && known.health != healthRefused && a.health != known.health && a.health != healthRefused { // perhaps another version was started
			a.version = ""
		}
		if v, err := m.version(ctx, a.version); err == nil {
			a.version = v
		}
		if a.who == "" {
			a.who, a.me = m.who(ctx)
		}
		return aboutRead{a}
	})
}

// healthRefused is the word for a service that answers nobody with such a credential, as when that has ended.
const healthRefused = "credential refused"

// health is the word for an answer to the question whether the service is ready.
func health(err error) (string, output.Tone) {
	switch {
	case err == nil:
		return "ready", output.ToneGood
	case client.IsStatus(err, http.StatusUnauthorized), client.IsStatus(err, http.StatusForbidden):
		return healthRefused, output.ToneBad
	case client.IsStatus(err, http.StatusServiceUnavailable):
		return "not ready", output.ToneWarn
	}
	if _, ok := errors.AsType[*client.Error](err); ok {
		return "not well", output.ToneBad
	}
	return "no answer", output.ToneBad
}

func (m *Model) version(ctx context.Context, known string) (string, error) {
	if known != "" {
		return known, nil
	}
	v, err := m.cfg.Client.Version(ctx)
	if err != nil {
		return "", err
	}
	return v.Version, nil
}

// who is the user, as far as the service knows; "": it does not say now.
func (m *Model) who(ctx context.Context) (string, *api.Me) {
	if !m.cfg.Client.HasCredential() {
		return "not logged in", nil
	}
	me, err := m.cfg.Client.Me(ctx)
	switch {
	case client.IsStatus(err, http.StatusForbidden) && m.cfg.OfCollection: // which only their project knows
		return "collection token", nil
	case client.IsStatus(err, http.StatusForbidden):
		return healthRefused, nil
	case err != nil:
		return "", nil
	}
	return named(me), me
}

// named gives the name of a caller.
func named(me *api.Me) string {
	switch {
	case me.Kind == "admin":
		return "admin token"
	case me.Kind == "pat" && me.Username != "":
		return me.Username + " (token)"
	case me.Username != "":
		return me.Username
	}
	return me.Kind
}

func (m *Model) aboutRead(msg aboutRead) tea.Cmd {
	back := m.about.tone == output.ToneBad && msg.tone != output.ToneBad
	m.about = msg.about
	cmd := m.tasks.after(m.tasks.ctx, aboutEvery, aboutDue{})
	if back { // what is shown need not wait for its own next try
		cmd = tea.Batch(cmd, m.refresh())
	}
	return cmd
}

// header is one line, or two where one has no room.
func (m *Model) header() []string {
	left := []string{output.Escape(m.cfg.Client.Server())}
	if m.cfg.Context != "" {
		left = append([]string{m.theme.Title.Render(output.Escape(m.cfg.Context))}, left...)
	}
	if m.about.version != "" {
		left = append(left, output.Escape(m.about.version))
	}
	var right []string
	if m.about.who != "" && m.about.who != m.about.health {
		right = append(right, output.Escape(m.about.who))
	}
	if m.about.health == "" {
		right = append(right, m.theme.Faint.Render("asking"))
	} else {
		right = append(right, m.theme.Paint(m.about.tone, m.about.health))
	}
	a, b := strings.Join(left, "  "), strings.Join(right, "  ")
	if gap := m.width - widget.Width(a) - widget.Width(b); gap >= 2 {
		return []string{a + strings.Repeat(" ", gap) + b}
	}
	return []string{widget.Cut(a, m.width), widget.Cut(b, m.width)}
}
