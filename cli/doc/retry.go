package doc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/client"
)

// Waits between attempts that the service says nothing about.
const (
	firstWait = time.Second
	maxWait   = 30 * time.Second
)

// retrier asks again what the service has put off. It is safe for concurrent use.
type retrier struct {
	limit time.Duration // how long a request is tried again
	now   func() time.Time
	wait  func(ctx context.Context, d time.Duration) error
	note  func(text string)

	mu    sync.Mutex
	noted time.Time // when the user was told last
}

// do calls fn, which may be carried out twice, until it works, fails for good, or the limit is over.
func (r *retrier) do(ctx context.Context, fn func() error) error {
	end := r.now().Add(r.limit)
	for pause := firstWait; ; pause = min(2*pause, maxWait) {
		err := fn()
		after, again := putOff(err)
		if !again || ctx.Err() != nil {
			return err
		}
		after = max(after, pause)
		if r.now().Add(after).After(end) {
			return err
		}
		r.tell(fmt.Sprintf("%v; again in %s", err, after))
		if err := r.wait(ctx, after); err != nil {
			return err
		}
	}
}

// tell notes a wait, once for all that wait at a time.
func (r *retrier) tell(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); now.Sub(r.noted) >= firstWait {
		r.noted = now
		r.note(text)
	}
}

// putOff says whether what failed may work later, and what the service said about when.
func putOff(err error) (after time.Duration, again bool) {
	if un, ok := errors.AsType[*client.UnreachableError](err); ok {
		return 0, !un.Permanent()
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return 0, false
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return refused.RetryAfter, true
	case http.StatusConflict: // the same request is under way, from before
		return refused.RetryAfter, refused.RetryAfter > 0
	}
	return 0, false
}

// wait sleeps unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
