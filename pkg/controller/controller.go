package controller

import (
	"context"
	"errors"
	"time"
)

// Result says what should happen to a key whose reconcile succeeded.
type Result struct {
	// RequeueAfter asks for another run after this long; 0 for none.
	RequeueAfter time.Duration
}

// Reconciler brings actual to desired for one key. It is idempotent, safe to repeat, and reads both sides itself. The
// manager never calls it twice at once with one key. ctx ends when the manager stops.
//
// An error is tried again after a growing delay, one made by TerminalError is not.
type Reconciler interface {
	Reconcile(ctx context.Context, key string) (Result, error)
}

// ReconcilerFunc makes a function a Reconciler.
type ReconcilerFunc func(ctx context.Context, key string) (Result, error)

// Reconcile calls f.
func (f ReconcilerFunc) Reconcile(ctx context.Context, key string) (Result, error) {
	return f(ctx, key)
}

// Source names the keys to reconcile as they change. Start blocks until ctx ends. When it returns an error before, it is
// started again after a growing delay; when it returns nil, it has said all it had to say.
type Source interface {
	Start(ctx context.Context, enqueue func(key string)) error
}

// SourceFunc makes a function a Source.
type SourceFunc func(ctx context.Context, enqueue func(key string)) error

// Start calls f.
func (f SourceFunc) Start(ctx context.Context, enqueue func(key string)) error {
	return f(ctx, enqueue)
}

// Controller is one concern: a Reconciler and what feeds it.
type Controller struct {
	// Name identifies the controller in logs, metrics and calls: lower case, such as "project".
	Name       string
	Reconciler Reconciler
	Sources    []Source
	// Workers is how many keys run at once; 0 means 1.
	Workers int
	// List gives every key there is. They are all enqueued at start, and again every Resync, which repairs what an
	// event missed. nil: only sources and calls name keys.
	List func(ctx context.Context) ([]string, error)
	// Resync is the time between two passes over List; 0 means at start only.
	Resync time.Duration
}

func (c Controller) validate() error {
	switch {
	case c.Name == "":
		return errors.New("controller without a name")
	case c.Reconciler == nil:
		return errors.New("controller " + c.Name + " has no reconciler")
	case c.Resync > 0 && c.List == nil:
		return errors.New("controller " + c.Name + " has Resync but no List")
	case c.Workers < 0 || c.Resync < 0:
		return errors.New("controller " + c.Name + " has a negative setting")
	}
	return nil
}

// TerminalError marks an error that another try won't cure, such as an invalid config: the key waits for the next
// event. TerminalError(nil) is nil.
func TerminalError(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type terminalError struct{ err error }

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

func isTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}
