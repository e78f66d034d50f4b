package command_test

import (
	"testing"
	"time"

	"github.com/svcctl/svc/cli/command"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		in      string
		towards int
		want    string // "": refused
	}{
		{"1d", -1, "2026-01-30T12:00:00Z"},
		{"1d", 1, "2026-02-01T12:00:00Z"},
		{"2w", -1, "2026-01-17T12:00:00Z"},
		{"36h", 1, "2026-02-02T00:00:00Z"},
		{"2030-01-31", -1, "2030-01-31T00:00:00Z"},
		{"2030-01-31T01:00:00+01:00", 1, "2030-01-31T00:00:00Z"},
		{"d", 1, ""},
		{"-1d", 1, ""},
		{"-1h", 1, ""},
		{"soon", 1, ""},
	} {
		at, ok := command.ParseTime(tc.in, now, tc.towards)
		if got := at.Format(time.RFC3339); ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%s: %s, %v", tc.in, got, ok)
		}
	}
}
