package schema

import (
	"strconv"
	"time"
)

// Duration is a time in Go form (1m30s), with d and w for days and weeks, or an integer of milliseconds.
type Duration time.Duration

// Std gives the standard library's form.
func (x Duration) Std() time.Duration { return time.Duration(x) }

// Size is a number of bytes, or a string such as 25MB (powers of 1000) or 32MiB (powers of 1024).
type Size int64

// Schedule is a schedule in the text that pkg/schedule reads; "" is none.
type Schedule string

// Span is a stretch of calendar time such as 1y5m7d2h, where m means months.
type Span struct{ Years, Months, Days, Hours int }

// String gives the form that a config has, "0h" for none.
func (x Span) String() string {
	var s string
	for _, part := range []struct {
		n      int
		letter string
	}{{x.Years, "y"}, {x.Months, "m"}, {x.Days, "d"}, {x.Hours, "h"}} {
		if part.n != 0 {
			s += strconv.Itoa(part.n) + part.letter
		}
	}
	if s == "" {
		return "0h"
	}
	return s
}
