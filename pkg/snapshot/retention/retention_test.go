package retention_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/snapshot/retention"
)

// past makes snapshots from local times such as "2026-03-29 02:30", whose ids these texts are. Behind a text may be
// "pinned", "verified" and "damaged", or an offset ("+0200") where a local time comes twice.
func past(t *testing.T, zone *time.Location, texts ...string) []retention.Snapshot {
	t.Helper()
	var out []retention.Snapshot
	for _, text := range texts {
		s := retention.Snapshot{ID: text}
		words := strings.Fields(text)
		at, err := time.ParseInLocation("2006-01-02 15:04", words[0]+" "+words[1], zone)
		for _, word := range words[2:] {
			switch word {
			case "pinned":
				s.Pinned = true
			case "verified":
				s.Verified = true
			case "damaged":
				s.Damaged = true
			default:
				at, err = time.Parse("2006-01-02 15:04 -0700", words[0]+" "+words[1]+" "+word)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Time = at.UTC() // what a manifest has
		out = append(out, s)
	}
	return out
}

// kept shows what is kept, the newest first, each with its reasons.
func kept(decisions []retention.Decision) (lines []string) {
	for _, d := range decisions {
		if d.Keep {
			lines = append(lines, d.ID+": "+strings.Join(d.Reasons, ", "))
		}
	}
	return lines
}

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// documented are the snapshots of the example in restic's documentation of forget: each weekday of two weeks but for one
// Wednesday, and twice on Fridays.
var documented = []string{
	"2025-04-21 11:00", "2025-04-22 11:00", "2025-04-23 11:00", "2025-04-24 11:00", "2025-04-25 11:00", "2025-04-25 23:00",
	"2025-04-28 11:00", "2025-04-29 11:00", "2025-05-01 11:00", "2025-05-02 11:00", "2025-05-02 23:00",
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone string
		policy     *schema.Retention
		now        string // after all by default
		snapshots  []string
		want       []string
	}{
		{
			name: "restic's example of days that have one", policy: &schema.Retention{KeepDaily: 5}, snapshots: documented,
			want: []string{
				"2025-05-02 23:00: daily 2025-05-02", "2025-05-01 11:00: daily 2025-05-01", "2025-04-29 11:00: daily 2025-04-29",
				"2025-04-28 11:00: daily 2025-04-28", "2025-04-25 23:00: daily 2025-04-25",
			},
		},
		{
			name: "within counts back from the newest, and leaves out what is as old as that", policy: &schema.Retention{KeepWithin: schema.Span{Days: 4, Hours: 12}},
			snapshots: documented,
			want:      []string{"2025-05-02 23:00: within 4d12h", "2025-05-02 11:00: within 4d12h", "2025-05-01 11:00: within 4d12h", "2025-04-29 11:00: within 4d12h"},
		},
		{
			name: "any rule", policy: &schema.Retention{KeepLast: 2, KeepHourly: 1, KeepWeekly: 2, KeepMonthly: 2, KeepYearly: 1}, snapshots: documented,
			want: []string{
				"2025-05-02 23:00: last snapshot, hourly 2025-05-02 23:00, weekly 2025-W18, monthly 2025-05, yearly 2025", "2025-05-02 11:00: last snapshot",
				"2025-04-29 11:00: monthly 2025-04", "2025-04-25 23:00: weekly 2025-W17",
			},
		},
		{
			name: "a rule that is not full keeps the oldest", policy: &schema.Retention{KeepWeekly: 3, KeepMonthly: 3, KeepYearly: 1}, snapshots: documented,
			want: []string{
				"2025-05-02 23:00: weekly 2025-W18, monthly 2025-05, yearly 2025", "2025-04-29 11:00: monthly 2025-04",
				"2025-04-25 23:00: weekly 2025-W17", "2025-04-21 11:00: oldest weekly snapshot (fewer than 3 weeks have one), oldest monthly snapshot (fewer than 3 months have one)",
			},
		},
		{
			name: "pinned and the newest verified", policy: &schema.Retention{KeepLast: 1},
			snapshots: []string{"2026-01-01 00:00 pinned", "2026-01-02 00:00 verified", "2026-01-03 00:00 verified", "2026-01-04 00:00", "2026-01-05 00:00"},
			want:      []string{"2026-01-05 00:00: last snapshot", "2026-01-03 00:00 verified: newest verified", "2026-01-01 00:00 pinned: pinned"},
		},
		{
			name: "what is in the future is kept and not counted", policy: &schema.Retention{KeepLast: 1, KeepWithin: schema.Span{Hours: 1}}, now: "2026-01-03 12:00",
			snapshots: []string{"2026-01-01 00:00 verified", "2026-01-02 00:00", "2026-01-03 12:00", "2026-01-03 12:01 verified", "2030-01-01 00:00 pinned"},
			want: []string{
				"2030-01-01 00:00 pinned: in the future, pinned", "2026-01-03 12:01 verified: in the future",
				"2026-01-03 12:00: last snapshot, within 1h", "2026-01-01 00:00 verified: newest verified",
			},
		},
		{
			name: "all are in the future", policy: &schema.Retention{KeepDaily: 1, KeepWithin: schema.Span{Hours: 1}}, now: "2026-01-01 00:00",
			snapshots: []string{"2026-01-02 00:00", "2026-01-03 00:00"}, want: []string{"2026-01-03 00:00: in the future", "2026-01-02 00:00: in the future"},
		},
		{
			name: "what is damaged is not counted, and goes when it is old and a newer one is verified", policy: &schema.Retention{KeepLast: 2},
			snapshots: []string{
				"2026-01-01 00:00 damaged verified", "2026-01-02 00:00 damaged pinned", "2026-01-03 00:00 verified", "2026-01-04 00:00 damaged", "2026-01-05 00:00",
				"2026-01-06 00:00 damaged", "2026-01-07 00:00",
			},
			want: []string{
				"2026-01-07 00:00: last snapshot", "2026-01-06 00:00 damaged: damaged, last snapshot", "2026-01-05 00:00: last snapshot",
				"2026-01-04 00:00 damaged: damaged, none that is newer is verified", "2026-01-03 00:00 verified: newest verified",
				"2026-01-02 00:00 damaged pinned: damaged, pinned",
			},
		},
		{
			name: "what is damaged stays while nothing is verified, or only what is in the future", policy: &schema.Retention{KeepLast: 1}, now: "2026-01-03 00:00",
			snapshots: []string{"2026-01-01 00:00 damaged", "2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00 verified", "2026-01-05 00:00 damaged"},
			want: []string{
				"2026-01-05 00:00 damaged: damaged, in the future", "2026-01-04 00:00 verified: in the future", "2026-01-03 00:00: last snapshot",
				"2026-01-01 00:00 damaged: damaged, none that is newer is verified",
			},
		},
		{
			name: "all are damaged", policy: &schema.Retention{KeepLast: 1}, snapshots: []string{"2026-01-01 00:00 damaged verified", "2026-01-02 00:00 damaged"},
			want: []string{"2026-01-02 00:00 damaged: damaged, last snapshot", "2026-01-01 00:00 damaged verified: damaged, none that is newer is verified"},
		},
		{
			name: "no policy keeps all", snapshots: []string{"2026-01-02 00:00", "2026-01-01 00:00 pinned"},
			want: []string{"2026-01-02 00:00: no retention policy", "2026-01-01 00:00 pinned: pinned, no retention policy"},
		},
		{
			name: "no snapshots", policy: &schema.Retention{KeepLast: 1, KeepDaily: 1, KeepWithin: schema.Span{Years: 1}},
		},
		{
			name: "of one time, the greater id is the newer", policy: &schema.Retention{KeepLast: 1},
			snapshots: []string{"2026-01-01 00:00", "2026-01-01 00:00 +0000", "2025-12-31 23:00 -0100"}, want: []string{"2026-01-01 00:00 +0000: last snapshot"},
		},
		{
			name: "a day ends with the zone's", zone: "Asia/Kathmandu", policy: &schema.Retention{KeepDaily: 2},
			snapshots: []string{"2026-05-01 18:14 +0000", "2026-05-01 18:15 +0000", "2026-05-02 18:14 +0000"}, // midnight is at 18:15
			want:      []string{"2026-05-02 18:14 +0000: daily 2026-05-02", "2026-05-01 18:14 +0000: daily 2026-05-01"},
		},
		{
			name: "an hour that comes twice is one", zone: "Europe/Berlin", policy: &schema.Retention{KeepHourly: 2},
			snapshots: []string{"2026-10-25 01:59 +0200", "2026-10-25 02:10 +0200", "2026-10-25 02:50 +0200", "2026-10-25 02:10 +0100"},
			want:      []string{"2026-10-25 02:10 +0100: hourly 2026-10-25 02:00", "2026-10-25 01:59 +0200: hourly 2026-10-25 01:00"},
		},
		{
			name: "a day of 23 hours is one", zone: "Europe/Berlin", policy: &schema.Retention{KeepDaily: 2},
			snapshots: []string{"2026-03-28 23:59", "2026-03-29 00:00", "2026-03-29 03:00", "2026-03-29 23:59"},
			want:      []string{"2026-03-29 23:59: daily 2026-03-29", "2026-03-28 23:59: daily 2026-03-28"},
		},
		{
			name: "half an hour back", zone: "Australia/Lord_Howe", policy: &schema.Retention{KeepHourly: 2}, // 02:00 becomes 01:30
			snapshots: []string{"2026-04-05 00:59 +1100", "2026-04-05 01:10 +1100", "2026-04-05 01:40 +1100", "2026-04-05 01:40 +1030"},
			want:      []string{"2026-04-05 01:40 +1030: hourly 2026-04-05 01:00", "2026-04-05 00:59 +1100: hourly 2026-04-05 00:00"},
		},
		{
			name: "a day that was left out", zone: "Pacific/Apia", policy: &schema.Retention{KeepDaily: 2}, // no December 30
			snapshots: []string{"2011-12-28 12:00", "2011-12-29 12:00", "2011-12-31 12:00"},
			want:      []string{"2011-12-31 12:00: daily 2011-12-31", "2011-12-29 12:00: daily 2011-12-29"},
		},
		{
			name: "a minute of the next day, and the day again", zone: "America/St_Johns", policy: &schema.Retention{KeepDaily: 3}, // 00:01 became 23:01
			snapshots: []string{"2010-11-05 12:00", "2010-11-06 23:30 -0230", "2010-11-07 00:00 -0230", "2010-11-06 23:30 -0330", "2010-11-07 00:00 -0330"},
			want: []string{
				"2010-11-07 00:00 -0330: daily 2010-11-07", "2010-11-06 23:30 -0330: daily 2010-11-06", "2010-11-05 12:00: daily 2010-11-05",
			},
		},
		{
			name: "the week of the year before", policy: &schema.Retention{KeepWeekly: 2, KeepYearly: 2},
			snapshots: []string{"2026-12-27 12:00", "2026-12-28 12:00", "2026-12-31 12:00", "2027-01-03 12:00"},
			want: []string{
				"2027-01-03 12:00: weekly 2026-W53, yearly 2027", "2026-12-31 12:00: yearly 2026", "2026-12-27 12:00: weekly 2026-W52",
			},
		},
		{
			name: "a month before March 30 is March 2", policy: &schema.Retention{KeepWithin: schema.Span{Months: 1}},
			snapshots: []string{"2026-03-02 12:00", "2026-03-02 12:01", "2026-03-30 12:00"},
			want:      []string{"2026-03-30 12:00: within 1m", "2026-03-02 12:01: within 1m"},
		},
		{
			name: "a year before a leap day is March 1", policy: &schema.Retention{KeepWithin: schema.Span{Years: 1}},
			snapshots: []string{"2023-03-01 12:00", "2023-03-01 12:01", "2024-02-29 12:00"},
			want:      []string{"2024-02-29 12:00: within 1y", "2023-03-01 12:01: within 1y"},
		},
		{
			name: "a day of a span is one of the calendar", zone: "Europe/Berlin", policy: &schema.Retention{KeepWithin: schema.Span{Days: 1}},
			snapshots: []string{"2026-03-28 12:00", "2026-03-28 12:01", "2026-03-29 12:00"}, // 23 hours
			want:      []string{"2026-03-29 12:00: within 1d", "2026-03-28 12:01: within 1d"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := location(t, tt.zone)
			now := past(t, zone, "2100-01-01 00:00")[0].Time
			if tt.now != "" {
				now = past(t, zone, tt.now)[0].Time
			}
			decisions, err := retention.Decide(tt.policy, zone, now, past(t, zone, tt.snapshots...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, kept(decisions)); diff != "" {
				t.Error(diff)
			}
			for _, d := range decisions {
				why := []string{"no rule keeps it"}
				if d.Damaged {
					why = []string{"damaged", "a newer one is verified", "no rule keeps it"}
				}
				if !d.Keep && !slices.Equal(d.Reasons, why) {
					t.Errorf("%s is removed for %q", d.ID, d.Reasons)
				}
			}
		})
	}
}

// TestAHundredYears is the other example of restic's documentation: a snapshot each day for 100 years. The last day is a
// Sunday, so that the seven days are one week.
func TestAHundredYears(t *testing.T) {
	t.Parallel()
	var snapshots []retention.Snapshot
	last := time.Date(2026, 10, 11, 12, 0, 0, 0, time.UTC)
	for day := last.AddDate(-100, 0, 0); !day.After(last); day = day.AddDate(0, 0, 1) {
		snapshots = append(snapshots, retention.Snapshot{ID: day.Format(time.DateOnly), Time: day})
	}
	var want []string
	for day := 11; day >= 5; day-- {
		want = append(want, fmt.Sprintf("2026-10-%02d", day))
	}
	want = append(want, "2026-10-04", "2026-09-30", "2026-09-27", "2026-09-20", "2026-09-13", "2026-08-31", "2026-07-31", "2026-06-30",
		"2026-05-31", "2026-04-30", "2026-03-31", "2026-02-28", "2026-01-31", "2025-12-31", "2025-11-30")
	for year := 2024; year > 2026-75; year-- {
		want = append(want, fmt.Sprintf("%d-12-31", year))
	}
	decisions, err := retention.Decide(&schema.Retention{KeepDaily: 7, KeepWeekly: 5, KeepMonthly: 12, KeepYearly: 75}, time.UTC, last, snapshots)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range decisions {
		if d.Keep {
			got = append(got, d.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPolicyThatKeepsNothing(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]schema.Retention{
		"none":       {},
		"a count":    {KeepLast: 1, KeepYearly: -1},
		"a last one": {KeepLast: -1},
		"a span":     {KeepDaily: 3, KeepWithin: schema.Span{Days: 1, Hours: -30}},
	} {
		for _, snapshots := range [][]retention.Snapshot{nil, past(t, time.UTC, "2026-01-01 00:00 pinned")} {
			got, err := retention.Decide(&policy, time.UTC, time.Now(), snapshots)
			e, ok := errors.AsType[*errs.Error](err)
			if got != nil || !ok || e.Kind != errs.Limit || e.Code != "bad_retention" || !strings.Contains(e.Message, "nothing is pruned; ") {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}
