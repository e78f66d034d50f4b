package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errTimeout is the cause of the end of an attempt that took longer than Options.Timeout.
var errTimeout = fmt.Errorf("no answer within the request timeout: %w", context.DeadlineExceeded)

// bounded gives the context of one attempt. Call end when its answer was read.
func (c *Client) bounded(ctx context.Context) (_ context.Context, end func()) {
	switch {
	case c.timeout <= 0:
		return ctx, func() {}
	case c.patient:
		return c.WhileAnswering(ctx)
	}
	return context.WithTimeoutCause(ctx, c.timeout, errTimeout)
}

// Answers asks for what the service answers at once, and gives an error if no answer of it comes within Options.Timeout. A refusal is an answer.
func (c *Client) Answers(ctx context.Context) error {
	asking := *c
	asking.patient = false
	_, err := asking.Version(ctx)
	if _, refused := errors.AsType[*Error](err); refused {
		return nil
	}
	return err
}

// WhileAnswering is for an answer that may take as long as the work behind it does. It gives a context that ends when the service does not answer
// anything else either: Answers is called every Options.Timeout, if that is set. end ends it all, and waits for that.
func (c *Client) WhileAnswering(ctx context.Context) (_ context.Context, end func()) {
	ctx, _, rest, end := c.Stalling(ctx)
	rest()
	return ctx, end
}

// errStalled is the cause of the end of a transfer on which nothing moves.
var errStalled = fmt.Errorf("nothing moved within the request timeout: %w", context.DeadlineExceeded)

// Stalling is for a transfer, which may take any time as long as it goes on. It gives a context that ends when alive was not called for Options.Timeout, if that is
// set; its cause is then a context.DeadlineExceeded that says so. From a call of rest until the next of alive it is WhileAnswering: what is waited for then is
// work of the service. end ends it all, and waits for that. All three may be called from any goroutine.
func (c *Client) Stalling(ctx context.Context) (_ context.Context, alive, rest, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.timeout <= 0 {
		return ctx, func() {}, func() {}, func() { cancel(context.Canceled) }
	}
	var (
		timer    *time.Timer
		resting  atomic.Bool
		checking sync.Mutex // held by what the timer begins, which has to wait until timer is set
	)
	checking.Lock()
	timer = time.AfterFunc(c.timeout, func() {
		checking.Lock()
		defer checking.Unlock()
		if ctx.Err() != nil {
			return
		}
		if !resting.Load() {
			cancel(errStalled)
			return
		}
		err := c.Answers(ctx)
		switch {
		case !resting.Load(): // it goes on meanwhile, and alive has set the timer
		case err != nil:
			cancel(fmt.Errorf("it does not answer anything else either: %w", err))
		default:
			timer.Reset(c.timeout)
		}
	})
	checking.Unlock()
	alive = func() { resting.Store(false); timer.Reset(c.timeout) }
	rest = func() { resting.Store(true) }
	end = func() {
		cancel(context.Canceled)
		checking.Lock()
		defer checking.Unlock()
		timer.Stop()
	}
	return ctx, alive, rest, end
}
