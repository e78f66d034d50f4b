package frame

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Tasks owns the goroutines of the terminal UI that wait for something. The program's own library lets its commands run on
// when it ends; these end with Close.
type Tasks struct {
	ctx    context.Context //nolint:containedctx // that of all tasks, from NewTasks to Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// NewTasks makes Tasks that end with ctx, or with Close.
func NewTasks(ctx context.Context) *Tasks {
	t := &Tasks{}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// Close ends all tasks, and returns when they have ended.
func (t *Tasks) Close() {
	t.cancel()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}

// begin says whether a task may begin, which then has to call t.wg.Done.
func (t *Tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	return true
}

// do makes the command that runs fn. It gives nil when ctx has ended.
func (t *Tasks) do(ctx context.Context, fn func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !t.begin() {
			return nil
		}
		defer t.wg.Done()
		msg := fn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return msg
	}
}

// after makes the command that gives msg after a while.
func (t *Tasks) after(ctx context.Context, d time.Duration, msg tea.Msg) tea.Cmd {
	return t.do(ctx, func(ctx context.Context) tea.Msg {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return msg
		}
	})
}

// streamed is one message of a stream, and what waits for the next.
type streamed struct {
	msg  tea.Msg
	next tea.Cmd
}

// panicked is what a stream ended with.
type panicked struct{ value any }

// stream makes the command that runs fn, and gives a streamed message for each that fn emits; the last is what end makes of the
// error of fn. emit blocks until the one before was taken.
func (t *Tasks) stream(ctx context.Context, fn func(ctx context.Context, emit func(tea.Msg)) error, end func(error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !t.begin() {
			return nil
		}
		ch := make(chan tea.Msg)
		emit := func(msg tea.Msg) {
			select {
			case ch <- msg:
			case <-ctx.Done():
			}
		}
		go func() {
			defer t.wg.Done()
			defer close(ch)
			defer func() {
				if r := recover(); r != nil {
					emit(panicked{r})
				}
			}()
			err := fn(ctx, emit)
			if ctx.Err() == nil {
				emit(end(err))
			}
		}()
		return t.next(ctx, ch)()
	}
}

func (t *Tasks) next(ctx context.Context, ch <-chan tea.Msg) tea.Cmd {
	return t.do(ctx, func(ctx context.Context) tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case msg, more := <-ch:
			if !more {
				return nil
			}
			if p, ok := msg.(panicked); ok {
				panic(p.value) // here the program's library catches it, and gives the terminal back
			}
			return streamed{msg, t.next(ctx, ch)}
		}
	})
}
