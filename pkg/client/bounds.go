package client

import (
	"context"
	"errors"
	"fmt"
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
	if c.timeout <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(c.timeout)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := c.Answers(ctx); err != nil {
				cancel(fmt.Errorf("it does not answer anything else either: %w", err))
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
	}
}
