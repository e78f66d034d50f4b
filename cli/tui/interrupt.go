package tui

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

// shield keeps interrupts from the program that are typed while another one, such as an editor, has the terminal: they are for that one. Its own
// ctrl+c is a key.
type shield struct {
	away     atomic.Int32 // programs that have the terminal
	signals  chan os.Signal
	cancel   context.CancelCauseFunc
	done     chan struct{}
	watching sync.WaitGroup
}

// newShield gives a context that ends with ctx, but for interrupts that are kept from it. end has to be called.
func newShield(ctx context.Context) (shielded context.Context, s *shield, end func()) {
	s = &shield{signals: make(chan os.Signal, 1), done: make(chan struct{})}
	shielded, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM) // also behind the first one, which ends ctx
	s.watching.Go(func() { s.watch(ctx) })
	return shielded, s, func() {
		signal.Stop(s.signals)
		close(s.done)
		s.watching.Wait()
		s.cancel(nil)
	}
}

// watch passes on what ends ctx, and signals.
func (s *shield) watch(ctx context.Context) {
	for ended := ctx.Done(); ; {
		kept := false
		select {
		case <-s.done:
			return
		case sig := <-s.signals:
			kept = sig == os.Interrupt && s.away.Load() > 0
		case <-ended:
			ended = nil
			kept = s.away.Load() > 0 && strings.HasPrefix(context.Cause(ctx).Error(), os.Interrupt.String())
		}
		if !kept {
			s.cancel(context.Cause(ctx))
		}
	}
}

// around is a command that has the terminal, and its interrupts.
func (s *shield) around(command tea.ExecCommand) tea.ExecCommand { return shieldedCommand{command, s} }

type shieldedCommand struct {
	tea.ExecCommand

	s *shield
}

// Run implements tea.ExecCommand.
func (c shieldedCommand) Run() error {
	c.s.away.Add(1)
	defer c.s.away.Add(-1)
	return c.ExecCommand.Run()
}
