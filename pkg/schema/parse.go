package schema

import (
	"fmt"
	"strconv"
	"time"
)

// ParseDuration reads a duration as configs and settings write it: Go's form (also with d and w), or an integer of
// milliseconds.
func ParseDuration(s string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		if ms < 0 || ms > maxDuration.Milliseconds() {
			return 0, fmt.Errorf("%q is out of range", s)
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	d, ok := parseDuration(s)
	if !ok {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	return d, nil
}

// ParseSize reads a number of bytes as configs and settings write it: an integer, or a form such as 25MB or 32MiB.
func ParseSize(s string) (int64, error) {
	n, ok := parseSize(s)
	if !ok {
		return 0, fmt.Errorf("%q is no size", s)
	}
	return n, nil
}
