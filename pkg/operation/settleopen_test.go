package operation_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/operation"
)

// TestSettleOfOpen: a run whose work goes on when it has ended gets the end of that, once, also where it is known before, and whatever else it was ended for.
func TestSettleOfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		i := w.instance(operation.Options{})
		opens := func(while func(r *operation.Live)) operation.Ref {
			return i.start(spec(w), func(_ context.Context, r *operation.Live) (operation.Outcome, error) {
				while(r)
				return operation.Outcome{}, errors.Join(operation.ErrCancelled, operation.Open(errBack))
			})
		}
		nothing := func(*operation.Live) {}
		forward, back := opens(nothing), opens(nothing)
		known := opens(func(r *operation.Live) { i.settle(operation.Ref{ID: r.Run().ID}, came, nil) })
		for _, ref := range []operation.Ref{forward, back, known} {
			i.wait(ref)
		}
		synctest.Wait()
		wantEnd(t, "for now", i, forward, "failed", "taken_back", "", "", "error failed")
		wantEnd(t, "known before", i, known, "succeeded", "", `"restored"`, "snap", "done succeeded")
		i.settle(forward, came, nil)
		i.settle(back, operation.Outcome{}, errs.New(errs.Conflict, "undone", "it was undone"))
		for range 2 {
			wantEnd(t, "done", i, forward, "succeeded", "", `"restored"`, "snap", "done succeeded")
			wantEnd(t, "undone", i, back, "failed", "undone", "", "", "error failed")
			i.settle(forward, operation.Outcome{}, errBack)
			i.settle(back, came, nil)
		}
	})
}

// held is a log by which a run that is over waits before its process lets go of it.
type held struct {
	slog.Handler

	until chan struct{}
}

func (held) Enabled(context.Context, slog.Level) bool { return true }

func (h held) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "run ended" {
		<-h.until
	}
	return nil
}

// TestSettleOfOver: a run that is settled while its process still has it is told of as it was settled.
func TestSettleOfOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory(t)
		until := make(chan struct{})
		i := w.instance(operation.Options{Logger: slog.New(held{slog.DiscardHandler, until})})
		ref := i.start(spec(w), func(context.Context, *operation.Live) (operation.Outcome, error) {
			return operation.Outcome{}, operation.Open(errBack)
		})
		synctest.Wait()
		wantEnd(t, "for now", i, ref, "failed", "taken_back", "", "", "error failed")
		i.settle(ref, came, nil)
		wantEnd(t, "settled", i, ref, "succeeded", "", `"restored"`, "snap", "done succeeded")
		close(until)
	})
}
