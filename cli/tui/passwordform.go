package tui

import (
	"context"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// passwordForm is where a user is given another password.
type passwordForm struct {
	form

	of   *accounts
	user api.User
}

func newPasswordForm(h *frame.Host, of *accounts, user api.User) frame.Screen {
	return &passwordForm{of: of, user: user, form: newForm(h, false,
		secretLine("New password  ", "left empty: one is made up, and shown once"), secretLine("Again         ", "the same password"))}
}

func (f *passwordForm) Title() string { return "Password of " + f.user.Username }

// passwordSet says that there is another password; generated is that, if it was made up.
type passwordSet struct{ generated string }

func (f *passwordForm) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case passwordSet:
		f.wipe()
		back := f.host.Back()
		done := "The password of " + f.user.Username + " is changed; their logins and personal access tokens have ended."
		if msg.generated != "" {
			return tea.Batch(back, showSecret(f.of.host, secret{title: "The password", about: done, value: msg.generated}))
		}
		return tea.Batch(back, f.of.host.Say(done))
	default:
		return f.take(msg, f.submit)
	}
}

func (f *passwordForm) submit() tea.Cmd {
	password, generated, ok := f.password(0, 1)
	if !ok {
		return nil
	}
	f.asked = true
	id := f.user.ID
	return tea.Batch(f.host.Say("changing the password of "+f.user.Username+" …"), f.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		_, err := f.host.Client.Users().Update(ctx, id, api.UserWrite{Password: &password})
		return passwordSet{generated}, err
	}))
}

func (f *passwordForm) Keys() []key.Binding { return f.keys("change it") }

func (f *passwordForm) View(width, height int) string {
	about := "Give the user " + f.user.Username + " another password. Their logins and personal access tokens end."
	if me := f.host.Me(); me != nil && me.Kind == "user" && me.ID == f.user.ID {
		about = "Give yourself another password. Your logins and personal access tokens end, and this one, too: svcctl login begins another."
	}
	out := widget.Wrap(output.Escape(f.host.Reach(about)), width)
	if height < len(out)+3 {
		out = nil
	} else {
		out = append(out, "")
	}
	return lines(append(out, f.view(width, height-len(out))))
}
