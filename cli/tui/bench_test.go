package tui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

// loaded is svcctl tui on a collection, with so many of its records loaded.
func loaded(b *testing.B, records, width, height int) tea.Model {
	b.Helper()
	s := sample()
	s.docs = sampleDocs(records)
	s.fail = map[string]api.Problem{"/_/blog/articles/_changes": {Status: 400, Code: "unsupported", Detail: "no feed"}}
	st := &command.State{
		InTTY: true, OutTTY: true, ErrTTY: true, Home: b.TempDir(), Version: "test", Now: time.Now, Transport: frametest.Transport{Handler: s.handler()},
		Env: func(name string) (string, bool) {
			return map[string]string{"SVCCTL_TOKEN": "a-token"}[name], name == "SVCCTL_TOKEN"
		},
	}
	st.Flags.Color, st.Flags.RequestTimeout = "always", time.Minute
	model, closeAll, err := tui.New(b.Context(), st, testEditor{s}, "blog")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(closeAll)
	msgs := make(chan tea.Msg, 100)
	var run func(cmd tea.Cmd)
	run = func(cmd tea.Cmd) {
		if cmd == nil {
			return
		}
		go func() {
			switch msg := cmd().(type) {
			case tea.BatchMsg:
				for _, one := range msg {
					run(one)
				}
			default:
				select {
				case msgs <- msg:
				case <-b.Context().Done():
				}
			}
		}()
	}
	update := func(msg tea.Msg) {
		_, cmd := model.Update(msg)
		run(cmd)
	}
	until := func(what string) {
		for range 1000 {
			if strings.Contains(model.View().Content, what) {
				return
			}
			update(<-msgs)
		}
		b.Fatalf("it never shows %q: %s", what, model.View().Content)
	}
	run(model.Init())
	update(tea.WindowSizeMsg{Width: width, Height: height})
	until("Phase")
	update(tea.KeyPressMsg{Code: '3', Text: "3"})
	until("articles")
	update(tea.KeyPressMsg{Code: tea.KeyEnter})
	for n := 100; n <= records; n += 100 {
		until(fmt.Sprintf("%d of", n))
		if n < records {
			update(tea.KeyPressMsg{Code: tea.KeyEnd})
		}
	}
	return model
}

// BenchmarkKey is what a key takes that moves in a list, until the screen is drawn.
func BenchmarkKey(b *testing.B) {
	for _, records := range []int{100, 10_000} {
		model := loaded(b, records, 160, 50)
		for name, keys := range map[string][2]tea.KeyPressMsg{
			"down": {{Code: tea.KeyUp}, {Code: tea.KeyDown}}, "page": {{Code: tea.KeyPgUp}, {Code: tea.KeyPgDown}}, "ends": {{Code: tea.KeyHome}, {Code: tea.KeyEnd}},
		} {
			b.Run(fmt.Sprintf("%s/records=%d", name, records), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					model.Update(keys[i%2])
					_ = model.View().Content
				}
			})
		}
	}
}
