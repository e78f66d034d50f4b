package gate

import "time"

// Instant is a moment by both clocks that a machine has. Steady is never set, and may stand still with the machine, such as while it is suspended
// or, as a virtual one, paused. Wall goes on then, and may be set, back or forward.
type Instant struct {
	Steady time.Duration // since a moment that is the same for all of a process
	Wall   time.Time
}

// Clock gives the present moment. It is called at the same time.
type Clock func() Instant

var started = time.Now()

// MachineClock is the Clock of this machine.
func MachineClock() Instant {
	now := time.Now()
	return Instant{Steady: now.Sub(started), Wall: now.Round(0)} // Round takes the steady part away
}

// Within says that less than d has passed since an earlier moment, by both clocks. After a wall clock was set it may be false though it is so, and
// never the other way but for a machine both of whose clocks stood still.
func (now Instant) Within(d time.Duration, since Instant) bool {
	wall := now.Wall.Sub(since.Wall)
	return now.Steady-since.Steady < d && 0 <= wall && wall < d
}
