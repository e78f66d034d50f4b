package metrics

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/output"
)

// text shows a series: seconds as a time, bytes as a size, a moment as how long ago it was.
func (m metric) text(s series, now time.Time) string {
	if of := s.Spread; of != nil {
		if of.Count == 0 {
			return "0"
		}
		text := fmt.Sprintf("%d, mean %s", of.Count, m.amount(of.Sum/float64(of.Count)))
		if of.P50 != nil {
			text += ", p50 ≤ " + m.amount(*of.P50)
		}
		if of.P99 != nil {
			text += ", p99 ≤ " + m.amount(*of.P99)
		}
		return text
	}
	v := s.amount()
	if strings.HasSuffix(m.Name, "_timestamp_seconds") || strings.HasSuffix(m.Name, "_time_seconds") {
		return output.Age(now, time.Unix(int64(v), 0)) + " ago"
	}
	return m.amount(v)
}

// amount shows a number in the unit that the name of its metric has.
func (m metric) amount(v float64) string {
	name := strings.TrimSuffix(m.Name, "_total")
	switch {
	case strings.HasSuffix(name, "_seconds"):
		if v == 0 {
			return "0s"
		}
		d := time.Duration(v * float64(time.Second))
		for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
			if d >= unit {
				return d.Round(unit / 100).String()
			}
		}
		return d.String()
	case strings.HasSuffix(name, "_bytes") && v >= 0 && v < 1<<62:
		return output.Size(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 12, 64)
}
