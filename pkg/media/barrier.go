package media

import (
	"context"
	"sync"
	"time"
)

// Bytes of claimsFile that are no record's: byteOf gives smaller ones.
const (
	removalsByte = 1<<62 + iota
	uploadsByte
)

// barrier is passed by many at once, or closed by one, of all processes that work on the folder.
type barrier struct {
	claims *claims
	at     int64 // its byte

	mu      sync.Mutex
	passing int  // of this process
	closing bool // or closed
}

// pass never waits. While the barrier is closed, ok is false.
func (b *barrier) pass() (leave func(), ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return nil, false, nil
	}
	if b.passing == 0 {
		if ok, err := b.claims.lock(b.at, shared); !ok {
			return nil, false, err
		}
	}
	b.passing++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.passing--; b.passing == 0 {
			_, _ = b.claims.lock(b.at, unlocked) // that can't fail
		}
	}, true, nil
}

// close waits until nobody passes, and keeps all from passing until it is opened. Only one can close it at a time: others
// wait, for as long as ctx lets them.
func (b *barrier) close(ctx context.Context) (open func(), err error) {
	ours := false
	defer func() {
		if err != nil && ours {
			b.mu.Lock()
			b.closing = false
			b.mu.Unlock()
		}
	}()
	for {
		done, err := b.tryClose(&ours)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(claimRetry):
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closing = false
		_, _ = b.claims.lock(b.at, unlocked) // that can't fail
	}, nil
}

// tryClose keeps those of this process from passing, as soon as it can, and then waits for others.
func (b *barrier) tryClose(ours *bool) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing && !*ours {
		return false, nil
	}
	b.closing, *ours = true, true
	if b.passing > 0 {
		return false, nil
	}
	return b.claims.lock(b.at, exclusive)
}

// closedHere says that this process keeps others from passing.
func (b *barrier) closedHere() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}
