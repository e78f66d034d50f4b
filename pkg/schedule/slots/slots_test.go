package slots

import (
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/schedule"
)

// TestDueAfterLong has slots be looked for after times that hold more of them than are counted.
func TestDueAfterLong(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 34, 56, 0, time.UTC)
	for _, tt := range []struct {
		schedule string
		since    time.Duration
		slot     string
		missed   int
	}{
		{"every 1s", time.Second, "2026-05-01T12:34:56Z", 0},
		{"every 1s", 10 * 365 * 24 * time.Hour, "2026-05-01T12:34:56Z", maxCounted},
		{"*/5 * * * *", time.Hour, "2026-05-01T12:30:00Z", 11},
		{"*/5 * * * *", 365 * 24 * time.Hour, "2026-05-01T12:30:00Z", maxCounted},
		{"* * * 1 *", 365 * 24 * time.Hour, "2026-01-31T23:59:00Z", maxCounted},
		{"0 0 1 1 *", 24 * time.Hour, "0001-01-01T00:00:00Z", 0},
	} {
		sched, err := schedule.Parse(tt.schedule)
		if err != nil {
			t.Fatal(err)
		}
		slot, missed := Done{{From: now.Add(-tt.since), To: now.Add(-tt.since)}}.Due(sched, now)
		if slot.Format(time.RFC3339) != tt.slot || missed != tt.missed {
			t.Errorf("%s after %s: %s, %d missed; want %s, %d", tt.schedule, tt.since, slot.Format(time.RFC3339), missed, tt.slot, tt.missed)
		}
	}
}

// TestSpansStayFew has the clock be wrong again and again.
func TestSpansStayFew(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s := Done{}.Through(at)
	for range 100 {
		at = at.Add(time.Hour)
		s = s.Add(at, 3, at)
	}
	if len(s) != maxSpans || !s[maxSpans-1].To.Equal(at) {
		t.Errorf("%d spans, the last to %s", len(s), s[len(s)-1].To)
	}
	for i := range s[1:] {
		if !s[i].To.Before(s[i+1].From) {
			t.Errorf("span %d: %v", i, s)
		}
	}
}
