package embedded

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/svcctl/svc/pkg/document"
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
	if err := s.truncateFeeds(); err != nil && ctx.Err() == nil {
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
func (s *Store) truncateFeeds() error {
	spans, err := s.feedSpans()
	if err != nil {
		return err
	}
	oldest := millis(s.opts.Now().Add(-s.opts.FeedAge))
	var total uint64
	for i := range spans {
		err := s.truncateFeed(&spans[i], func(e feedEntry) bool { return e.time >= oldest })
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
		err := s.truncateFeed(&spans[i], func(e feedEntry) bool { return e.total-before.first.total >= excess })
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

// truncateFeed removes entries up to the first that is to be kept, but for the last one. Entries behind one to keep are
// kept too, so the place is found by halving.
func (s *Store) truncateFeed(span *feedSpan, keep func(feedEntry) bool) error {
	low, high := span.first.seq, span.last.seq
	for low < high {
		middle := low + (high-low)/2
		e, err := s.feedEntryAt(span.feed, middle)
		switch {
		case err != nil:
			return err
		case keep(e):
			high = middle
		default:
			low = middle + 1
		}
	}
	if low == span.first.seq {
		return nil
	}
	first, err := s.feedEntryAt(span.feed, low)
	if err != nil {
		return err
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
