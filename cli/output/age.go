package output

import (
	"fmt"
	"time"
)

// Age is how long ago something was, in one unit, as kubectl shows it: 12s, 5m, 3h, 8d. A zero time is unknown.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := max(now.Sub(then), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
