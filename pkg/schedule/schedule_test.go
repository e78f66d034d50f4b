package schedule_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/schedule"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, from string
		want             []string
	}{
		{"daily at three", "0 3 * * *", "2026-05-01T03:00:00Z", []string{"2026-05-02T03:00:00Z", "2026-05-03T03:00:00Z"}},
		{"no zone is UTC", "0 3 * * *", "2026-05-01T03:30:00+02:00", []string{"2026-05-01T03:00:00Z"}},
		{"steps", "*/20 8-9 * * 1-5", "2026-05-01T09:30:00Z", []string{"2026-05-01T09:40:00Z", "2026-05-04T08:00:00Z"}},
		{"either day", "0 0 13 * 5", "2026-05-09T00:00:00Z", []string{"2026-05-13T00:00:00Z", "2026-05-15T00:00:00Z"}},
		{"descriptor", "@daily", "2026-05-01T12:00:00Z", []string{"2026-05-02T00:00:00Z"}},
		{"descriptor with zone", "CRON_TZ=Europe/Berlin @daily", "2026-05-01T12:00:00Z", []string{"2026-05-01T22:00:00Z"}},
		{"zone", "CRON_TZ=America/New_York 0 9 * * *", "2026-01-01T00:00:00Z", []string{"2026-01-01T14:00:00Z"}},
		{
			"clocks set forward: right after the jump", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		},
		{
			"clocks set back: once", "CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		{
			"clocks set back: an hourly one goes on", "CRON_TZ=Europe/Berlin 30 * * * *", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		},
		{"leap day", "0 0 29 2 *", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"interval", "every 6h", "2026-05-01T07:00:00Z", []string{"2026-05-01T12:00:00Z", "2026-05-01T18:00:00Z"}},
		{"interval on the mark", "every 6h", "2026-05-01T12:00:00Z", []string{"2026-05-01T18:00:00Z"}},
		{"interval before the epoch", "every 6h", "1969-12-31T23:00:00Z", []string{"1970-01-01T00:00:00Z"}},
		{"interval of days", "@every 2d", "1970-01-02T00:00:00Z", []string{"1970-01-03T00:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := schedule.Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range tt.want {
				at = s.Next(at)
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if s.String() != tt.text {
				t.Errorf("String() = %q", s.String())
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "* * * *", "* * * * * *", "60 * * * *", "TZ=0", "TZ=0 * * * * *", "CRON_TZ=../etc * * * * *", "0 0 31 2 *",
		"every", "every ", "every -1h", "every 0s", "every 10ms", "every day", "@sometimes", "every 99999d", "every 367d", "every 9000h", "H * * * *",
	} {
		if s, err := schedule.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, s)
		}
	}
}

// A zone that is not there is told of once, in our words.
func TestParseNamesZone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"CRON_TZ=Europe/Nowhere 0 3 * * *", "TZ=Europe/Nowhere @daily"} {
		_, err := schedule.Parse(text)
		if want := `there is no time zone "Europe/Nowhere"; write one such as CRON_TZ=Europe/Berlin in front of the cron fields`; err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CRON_TZ=Europe/Berlin 0 3 * * *": "Europe/Berlin", "TZ=Asia/Tokyo @daily": "Asia/Tokyo", "0 3 * * *": "UTC", "every 6h": "UTC",
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := schedule.Zone(s).String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := schedule.Zone(nil); got != time.UTC {
		t.Errorf("of no schedule: %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 3 * * *", "CRON_TZ=Europe/Berlin 30 2 * * *", "every 6h", "@daily", "TZ=0 * * * * *", "*/0 * * * *", "0-99/9 * * * *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schedule.Parse(text)
		if err != nil {
			return
		}
		at := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
		for range 3 {
			next := s.Next(at)
			if !next.After(at) {
				t.Fatalf("%q: %v is not after %v", text, next, at)
			}
			at = next
		}
	})
}
