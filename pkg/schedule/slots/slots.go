package slots

import (
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/schedule"
)

// Span is a stretch of time whose slots are done: run, or passed over.
type Span struct {
	From time.Time `bson:"from"`
	To   time.Time `bson:"to"`
}

// maxSpans is how many stretches are remembered. Each is begun by slots that were missed before it.
const maxSpans = 8

// Done are the slots of a schedule that are done, in order. There is usually one stretch, which grows: the first begins when the
// schedule was seen first. Slots that were missed are in none, so that they still come if it was the clock that was wrong. Its methods
// leave it as it is.
type Done []Span

// Base is where the next slot is looked for at a time: behind what is done before it, or at it. There is none when clocks
// were set back behind all that is known.
func (s Done) Base(now time.Time) (base time.Time, ok bool) {
	for _, x := range s {
		if !x.From.After(now) {
			base, ok = x.To, true
		}
	}
	return base, ok
}

// Next gives the first slot behind a time that is not done; zero if there is none.
func (s Done) Next(sched schedule.Schedule, t time.Time) time.Time {
	for {
		slot := sched.Next(t)
		i := slices.IndexFunc(s, func(x Span) bool { return !slot.Before(x.From) && !slot.After(x.To) })
		if slot.IsZero() || i < 0 {
			return slot
		}
		t = s[i].To
	}
}

// maxCounted bounds the counting of missed slots.
const maxCounted = 1000

// Due gives the newest slot that is due at a time, and how many others before it were missed, up to maxCounted. The slot
// is zero if none is due.
func (s Done) Due(sched schedule.Schedule, now time.Time) (slot time.Time, missed int) {
	base, ok := s.Base(now)
	if !ok {
		return time.Time{}, 0
	}
	next := s.Next(sched, base)
	for ; !next.IsZero() && !next.After(now); next = s.Next(sched, next) {
		if slot.IsZero() {
			slot = next
			continue
		}
		slot = next
		if missed++; missed == maxCounted {
			return newest(sched, slot, now), missed
		}
	}
	return slot, missed
}

// newest gives the last slot up to now, of which from is one. It steps back from now, further each time, so that years of
// seconds take no time.
func newest(sched schedule.Schedule, from, now time.Time) time.Time {
	for back := time.Second; ; back *= 2 {
		at := now.Add(-back)
		if at.Before(from) {
			at = from
		}
		slot := sched.Next(at.Add(-time.Nanosecond))
		if slot.After(now) {
			continue
		}
		for next := sched.Next(slot); !next.IsZero() && !next.After(now); next = sched.Next(slot) {
			slot = next
		}
		return slot
	}
}

// Add makes a slot done that is due at a time. If slots before it were missed, it begins a stretch of its own.
func (s Done) Add(slot time.Time, missed int, now time.Time) Done {
	out := slices.Clone(s)
	i := -1
	for n, x := range out {
		if !x.From.After(now) {
			i = n
		}
	}
	if i < 0 || missed > 0 {
		out = slices.Insert(out, i+1, Span{slot, slot})
	} else {
		out[i].To = slot
	}
	return out.tidy()
}

// Through makes all slots done up to a time, but for those that were missed long before.
func (s Done) Through(now time.Time) Done {
	return s.Add(now, 0, now).tidy()
}

// tidy joins stretches that touch, and the oldest of too many.
func (s Done) tidy() Done {
	slices.SortFunc(s, func(a, b Span) int { return a.From.Compare(b.From) })
	out := s[:0]
	for _, x := range s {
		if n := len(out); n > 0 && !x.From.After(out[n-1].To) {
			if x.To.After(out[n-1].To) {
				out[n-1].To = x.To
			}
			continue
		}
		out = append(out, x)
	}
	for len(out) > maxSpans {
		out[1].From = out[0].From
		out = out[1:]
	}
	return out
}
