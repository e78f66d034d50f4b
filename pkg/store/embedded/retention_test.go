package embedded_test

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func lost(t *testing.T, db store.Database, p store.Position) bool {
	t.Helper()
	err := db.Watch(t.Context(), store.Watch{After: p, OnIdle: func(store.Position) error { return errEnough }},
		func(store.Event) error { return nil })
	if !errors.Is(err, errEnough) && !errors.Is(err, store.ErrHistoryLost) {
		t.Fatalf("Watch: %v", err)
	}
	return errors.Is(err, store.ErrHistoryLost)
}

func TestFeedAge(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	opts := embedded.Options{Dir: t.TempDir(), Ballast: -1, Now: func() time.Time { return now }}
	s := open(t, opts)
	db := s.Database("db")
	start := first(t, db)
	var positions []store.Position
	for i := range 10 {
		must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: i}}))
		positions = append(positions, first(t, db))
		now = now.Add(10 * time.Hour)
	}
	embedded.Sweep(t.Context(), s) // events 3 to 9 are of the last 72 h
	check := func(db store.Database, kept int) {
		t.Helper()
		if !lost(t, db, start) {
			t.Error("the beginning is still there")
		}
		for i, p := range positions {
			if got := lost(t, db, p); got != (i+1 < kept) {
				t.Errorf("behind event %d: lost is %v", i, got)
			}
		}
	}
	check(db, 3)
	now = now.Add(1000 * time.Hour)
	embedded.Sweep(t.Context(), s)
	check(db, 9)
	validateAndClose(t, s)
	s = open(t, opts)
	check(s.Database("db"), 9)
	must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: 10}}))
	if got := events(t, s.Database("db"), store.Watch{After: positions[9]}); len(got) != 1 {
		t.Errorf("after the truncation of all but the last: %q", texts(got))
	}
}

// The largest feed is cut, others stay as they are.
func TestFeedBytes(t *testing.T) {
	const limit = 100 << 10
	s := open(t, embedded.Options{InMemory: true, FeedBytes: limit})
	quiet, busy := s.Database("quiet"), s.Database("busy")
	start, busyStart := first(t, quiet), first(t, busy)
	fill(t, quiet.Collection("c"), 10)
	fill(t, busy.Collection("c"), 1000)
	embedded.Sweep(t.Context(), s)
	if lost(t, busy, busyStart) {
		t.Error("cut while there was room")
	}
	middle := first(t, busy)
	for i := range 10 {
		fill(t, busy.Collection(string(rune('d'+i))), 1000)
	}
	embedded.Sweep(t.Context(), s)
	if lost(t, quiet, start) {
		t.Error("the quiet database has lost its history")
	}
	if !lost(t, busy, busyStart) || !lost(t, busy, middle) {
		t.Error("the busy database has not lost any")
	}
	if n := embedded.FeedSize(t, s, "busy"); n > limit || n < limit*9/10 {
		t.Errorf("%d bytes are kept of the busy feed", n)
	}
}

// A watcher who is slower than truncation is told so.
func TestTruncatedUnderAWatcher(t *testing.T) {
	now := time.Now()
	s := open(t, embedded.Options{InMemory: true, Now: func() time.Time { return now }})
	db := s.Database("db")
	start := first(t, db)
	fill(t, collection(s), 1000)
	n := 0
	err := db.Watch(t.Context(), store.Watch{After: start}, func(store.Event) error {
		if n++; n == 10 {
			now = now.Add(100 * time.Hour)
			embedded.Sweep(t.Context(), s)
		}
		return nil
	})
	if !errors.Is(err, store.ErrHistoryLost) || n < 10 || n == 1000 {
		t.Errorf("after %d events: %v", n, err)
	}
}
