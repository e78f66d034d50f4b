package script

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// tick is how often the watchdog looks while scripts run.
const tick = 5 * time.Millisecond

// watchdog looks after the runs that compute: it stops those whose time is over, moves long ones to the slow lane, and
// stops the one that makes the heap grow. Go does not tell which goroutine allocates, so the youngest of those that have run since before the growth is
// taken for it, and a short one last. It only runs while scripts do.
type watchdog struct {
	lanes *lanes
	limit uint64 // of the heap, from GOMEMLIMIT

	mu      sync.Mutex
	runs    map[*run]*watched
	after   uint64 // bytes of the heap after the last collection that a look has made
	armed   bool
	judging bool // one look goes on, the next ones only look at the time
	closed  bool
	ticks   sync.WaitGroup
}

type watched struct {
	since   time.Time // computing, since it last got its place
	objects uint64    // bytes of the heap when it was first looked at; 0: not yet
	rests   bool      // it waits
	live    uint64    // bytes that the last collection before that had left
}

func newWatchdog(l *lanes) *watchdog {
	w := &watchdog{lanes: l, runs: map[*run]*watched{}, limit: math.MaxUint64}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		w.limit = uint64(limit) / 100 * 85 //nolint:gosec // it is not negative
	}
	return w
}

// watch begins to look after a run that computes.
func (w *watchdog) watch(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.watched.since, r.watched.rests = r.began, false // what it has taken before it waited is still its own
	w.runs[r] = &r.watched
	w.arm()
}

// rest notes that a run waits. There is one more look at it: what it has taken by then may be too much, however short
// the time was.
func (w *watchdog) rest(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.watched.rests = true
}

// leave ends it.
func (w *watchdog) leave(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, r)
}

// arm makes the next look due. The caller holds mu.
func (w *watchdog) arm() {
	if w.armed || w.closed {
		return
	}
	w.armed = true
	w.ticks.Add(1)
	time.AfterFunc(tick, func() {
		defer w.ticks.Done()
		w.look()
	})
}

// close waits for a look that is under way.
func (w *watchdog) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.ticks.Wait()
}

// memory is what the heap holds, with what is garbage by now, and what the last collection left.
type memory struct{ objects, live uint64 }

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	stacks := samples[1].Value.Uint64()
	return memory{
		objects: samples[0].Value.Uint64() + stacks,
		live:    samples[2].Value.Uint64() + stacks,
	}
}

// look is one tick. The next one is due before the heap is collected, which can take long.
func (w *watchdog) look() {
	now, m := time.Now(), readMemory()
	w.mu.Lock()
	found := w.suspect(now, m) && !w.judging
	w.judging = w.judging || found
	w.armed = false
	if len(w.runs) > 0 {
		w.arm()
	}
	w.mu.Unlock()
	if found {
		w.judge()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if found {
		w.judging = false
	}
	if w.judging {
		return
	}
	for r, at := range w.runs {
		if at.rests {
			delete(w.runs, r)
		}
	}
}

// judge finds the run that has made the heap grow, and stops it. What is live being close to the limit of the process, whose end would
// be that of all, it stops every one of the slow lane that may have: one by one would be too slow, for the others go on meanwhile.
func (w *watchdog) judge() {
	runtime.GC() // what grew may be garbage, and not the script's at all
	after := readMemory()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = after.objects
	var guilty *run
	for r, at := range w.runs {
		if at.objects == 0 {
			continue
		}
		bound := r.call.Limits.Memory
		if after.live > w.limit {
			bound /= 4
		}
		grown := int64(after.live) - int64(at.live) //nolint:gosec // sizes of memory
		if grown > bound {
			if after.live > w.limit && r.lane.Load() == slow {
				r.stop(Memory)
			}
			if guilty == nil || guilty.lessSuspect(r) {
				guilty = r
			}
		}
		at.objects = after.objects
	}
	if guilty != nil {
		guilty.stop(Memory)
	}
}

// lessSuspect compares two runs during which the heap has grown: a short one was only there meanwhile, and of long ones
// the youngest did it.
func (r *run) lessSuspect(than *run) bool {
	if a, b := r.lane.Load(), than.lane.Load(); a != b {
		return b == slow
	}
	return r.watched.since.Before(than.watched.since)
}

// suspect says whether the heap has grown by more than it may during a run. It stops runs whose time is over, and moves
// long ones to the slow lane. The caller holds mu.
func (w *watchdog) suspect(now time.Time, m memory) bool {
	found := m.objects > w.limit && m.objects > w.after+defaultMemory/4
	for r, at := range w.runs {
		if !at.rests && !now.Before(r.until) {
			r.stop(Timeout)
		}
		if at.objects == 0 {
			at.objects, at.live = m.objects, m.live
		}
		at.objects, at.live = min(at.objects, m.objects), min(at.live, m.live) // what others have left may be collected meanwhile
		if int64(m.objects)-int64(at.objects) > r.call.Limits.Memory {         //nolint:gosec // sizes of memory
			found = true
		}
		if !at.rests && r.lane.Load() == fast && now.Sub(at.since) > slowAfter && w.lanes.slowDown() {
			r.lane.Store(slow)
			r.call.Program.record.slowed()
		}
	}
	return found
}
