package embedded

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// sweeps lets documents expire and truncates feeds, over and over, until the store closes.
func (s *Store) sweeps(ctx context.Context) {
	tick := time.NewTicker(s.opts.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep(ctx)
		}
	}
}

// sweep does it once. What fails is tried again with the next one.
func (s *Store) sweep(ctx context.Context) {
	if err := s.expire(ctx); err != nil && ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "store documents not expired", slog.Any("error", err))
	}
	if err := s.truncateFeeds(ctx); err != nil && ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "store feeds not truncated", slog.Any("error", err))
	}
}

// feedSpan is what is kept of a feed.
type feedSpan struct {
	feed        *feed
	first, last feedEntry
}

func (f feedSpan) size() uint64 {
	if f.last.total < f.first.total { // it went on behind a damaged entry
		return 0
	}
	return f.last.total - f.first.total
}

// truncateFeeds removes what is older than the store's feeds are kept, and while they are too large together the
// oldest of the largest one: a busy database does not take the history of the quiet ones.
func (s *Store) truncateFeeds(ctx context.Context) error {
	spans, err := s.feedSpans()
	if err != nil {
		return err
	}
	oldest := millis(s.opts.Now().Add(-s.opts.FeedAge))
	var total uint64
	for i := range spans {
		first, err := s.firstSince(ctx, &spans[i], oldest)
		if err == nil {
			err = s.cutFeed(&spans[i], first)
		}
		if err != nil {
			return err
		}
		total += spans[i].size()
	}
	limit := uint64(s.opts.FeedBytes)                                                   //nolint:gosec // checked to be positive
	bySize := func(a, b feedSpan) int { return int(int64(b.size()) - int64(a.size())) } //nolint:gosec // far less than the limit of an int64
	slices.SortFunc(spans, bySize)
	for i := range spans {
		if total <= limit {
			return nil
		}
		before, excess := spans[i], total-limit
		first, err := s.firstBehind(&spans[i], excess)
		if err == nil {
			err = s.cutFeed(&spans[i], first)
		}
		if err != nil {
			return err
		}
		total -= before.size() - spans[i].size()
	}
	return nil
}

// feedSpans finds the first and the last entry of each feed that has some. Only what is on disk counts.
func (s *Store) feedSpans() ([]feedSpan, error) {
	s.feeds.mu.Lock()
	all := slices.Collect(maps.Values(s.feeds.m))
	s.feeds.mu.Unlock()
	var spans []feedSpan
	for _, f := range all {
		end, _ := f.onDisk(false)
		if end.seq == 0 {
			continue
		}
		first, err := s.firstEntry(f)
		if err != nil {
			return nil, err
		}
		spans = append(spans, feedSpan{feed: f, first: first, last: feedEntry{feedHead: end}})
	}
	return spans, nil
}

func (s *Store) firstEntry(f *feed) (e feedEntry, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: f.prefix, UpperBound: document.KeyAfter(f.prefix)})
	if err != nil {
		return e, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	if it.First() {
		e, err = decodeEntry(it.Key(), it.Value())
	} else {
		err = it.Error()
	}
	return e, internal(err, "read the feed")
}

// firstSince finds the first entry that is not older than a time, or the last one. Times may go down where the clock was
// set back: what is behind an entry that stays stays too.
func (s *Store) firstSince(ctx context.Context, span *feedSpan, oldest uint64) (e feedEntry, err error) {
	if e = span.first; e.time >= oldest || e.seq >= span.last.seq {
		return e, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: feedKey(span.feed.prefix, e.seq+1), UpperBound: feedKey(span.feed.prefix, span.last.seq+1),
	})
	if err != nil {
		return e, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	for ok := it.First(); ok; ok = it.Next() {
		if e, err = decodeEntry(it.Key(), it.Value()); err != nil || e.time >= oldest {
			return e, internal(err, "read the feed")
		}
		if e.seq%checkEvery == 0 && ctx.Err() != nil {
			return e, store.Ended(ctx)
		}
	}
	return e, internal(it.Error(), "read the feed")
}

// firstBehind finds the first entry with so many bytes before it, or the last one, by halving: totals only go up.
func (s *Store) firstBehind(span *feedSpan, size uint64) (feedEntry, error) {
	low, high := span.first.seq, span.last.seq
	for low < high {
		middle := low + (high-low)/2
		e, err := s.feedEntryAt(span.feed, middle)
		switch {
		case err != nil:
			return e, err
		case e.total-span.first.total >= size:
			high = middle
		default:
			low = middle + 1
		}
	}
	return s.feedEntryAt(span.feed, low)
}

// cutFeed removes the entries before first.
func (s *Store) cutFeed(span *feedSpan, first feedEntry) error {
	if first.seq == span.first.seq {
		return nil
	}
	b := s.db.NewBatch()
	defer b.Close() //nolint:errcheck // returns memory only
	if err := b.DeleteRange(span.feed.prefix, feedKey(span.feed.prefix, first.seq), nil); err != nil {
		return internal(err, "truncate a feed")
	}
	span.first = first
	return s.applyLazily(b)
}

func (s *Store) feedEntryAt(f *feed, seq uint64) (feedEntry, error) {
	key := feedKey(f.prefix, seq)
	value, err := s.get(key)
	if err != nil {
		return feedEntry{}, internal(err, "read the feed")
	}
	e, err := decodeEntry(key, value)
	return e, internal(err, "read the feed")
}
