package embedded

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// fail stops the store for good: see Options.OnFatal.
func (s *Store) fail(err error) {
	s.failed.CompareAndSwap(nil, &err)
	s.opts.OnFatal(err)
}

// write commits one batch durably: for changes of the catalog. fill adds to it.
func (s *Store) write(fill func(b *pebble.Batch) error) error {
	b := s.db.NewBatch()
	defer b.Close() //nolint:errcheck // returns memory only
	if err := fill(b); err != nil {
		return err
	}
	if err := s.apply(b); err != nil {
		return err
	}
	return s.wait(b)
}

// apply gives b its place in the log and makes it visible; wait must follow before anything is acknowledged.
func (s *Store) apply(b *pebble.Batch) error {
	err := s.commitBatch(b, func() error { return s.db.ApplyNoSyncWait(b, pebble.Sync) })
	if err == nil {
		s.inLog.Add(1)
	}
	return err
}

// An fsync costs as much as the rest of a small write. While crowd writers or more wait for one, the next comes syncGap
// after the last, so that more of them share it; a few don't wait longer than they have to.
const (
	crowd   = 3
	syncGap = 300 * time.Microsecond
)

// untilSync is how long the log waits after an fsync, those whom it was for still counted, with the next.
func (s *Store) untilSync() time.Duration {
	if s.inLog.Load() < crowd {
		return 0
	}
	return syncGap
}

// applyLazily applies b without asking for an fsync: it is durable with the next batch that does.
func (s *Store) applyLazily(b *pebble.Batch) error {
	return s.commitBatch(b, func() error { return s.db.Apply(b, pebble.NoSync) })
}

func (s *Store) commitBatch(b *pebble.Batch, apply func() error) error {
	if s.failed.Load() != nil {
		return errFailed.With(*s.failed.Load())
	}
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if err := s.noteOnDisk(b); err != nil {
		return internal(err, "stage a note")
	}
	if err := guarded("commit", apply); err != nil {
		return s.broken(err)
	}
	return nil
}

// guarded makes an error of a panic: the engine panics on files that failed just before, or that it can't sync.
func guarded(doing string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", doing, r)
		}
	}()
	return fn()
}

// wait returns when b, which was applied, is on disk.
func (s *Store) wait(b *pebble.Batch) error {
	defer s.inLog.Add(-1)
	if err := b.SyncWait(); err != nil {
		return s.broken(err)
	}
	// A log that failed reports to the logger, and not always to the batch.
	if s.failed.Load() != nil {
		return errFailed.With(*s.failed.Load())
	}
	s.knowOnDisk(b)
	return nil
}

func (s *Store) broken(err error) error {
	s.fail(err)
	return errFailed.With(err)
}
