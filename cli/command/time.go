package command

import (
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a moment as people give it: a time in RFC 3339, a date such as 2030-01-31, or a span such as 12h, 30d or
// 8w from now, towards 1 (the future) or -1 (the past).
func ParseTime(s string, now time.Time, towards int) (at time.Time, ok bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC(), true
		}
	}
	for unit, days := range map[string]int{"d": 1, "w": 7} {
		number, ok := strings.CutSuffix(s, unit)
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil {
			return now.UTC().AddDate(0, 0, towards*int(n)*days), true
		}
	}
	d, err := time.ParseDuration(s)
	return now.UTC().Add(time.Duration(towards) * d), err == nil && d > 0
}
