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

// watchdog looks after the runs that compute: it moves long ones to the slow lane, and stops the one that makes the heap
// grow. Go does not tell which goroutine allocates, so the youngest of those that have run since before the growth is
// taken for it. It only runs while scripts do.
type watchdog struct {
	lanes *lanes
	limit uint64 // of the process's memory, from GOMEMLIMIT

	mu     sync.Mutex
	runs   map[*run]*watched
	armed  bool
	closed bool
	ticks  sync.WaitGroup
}

type watched struct {
	since   time.Time
	objects uint64 // bytes of the heap when it was first looked at; 0: not yet
	live    uint64 // bytes that the last collection before that had left
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
	w.runs[r] = &watched{since: time.Now()}
	w.arm()
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
		w.mu.Lock()
		defer w.mu.Unlock()
		w.armed = false
		if len(w.runs) > 0 {
			w.arm()
		}
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
type memory struct{ objects, live, total uint64 }

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	stacks := samples[1].Value.Uint64()
	return memory{
		objects: samples[0].Value.Uint64() + stacks,
		live:    samples[2].Value.Uint64() + stacks,
		total:   samples[3].Value.Uint64() - samples[4].Value.Uint64(),
	}
}

// look is one tick.
func (w *watchdog) look() {
	now, m := time.Now(), readMemory()
	if r := w.suspect(now, m); r == nil {
		return
	}
	runtime.GC() // what grew may be garbage, and not the script's at all
	after := readMemory()
	w.mu.Lock()
	defer w.mu.Unlock()
	var guilty *run
	for r, at := range w.runs {
		if at.objects == 0 {
			continue
		}
		grown := int64(after.live)-int64(at.live) > r.call.Limits.Memory //nolint:gosec // sizes of memory
		if (grown || after.total > w.limit) && (guilty == nil || w.runs[guilty].since.Before(at.since)) {
			guilty = r
		}
		at.objects = after.objects
	}
	if guilty != nil {
		guilty.stop(Memory)
	}
}

// suspect finds a run during which the heap has grown by more than it may, and moves long runs to the slow lane.
func (w *watchdog) suspect(now time.Time, m memory) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found *run
	for r, at := range w.runs {
		if at.objects == 0 {
			at.objects, at.live = m.objects, m.live
			continue
		}
		if int64(m.objects)-int64(at.objects) > r.call.Limits.Memory || m.total > w.limit { //nolint:gosec // sizes of memory
			found = r
		}
		if r.lane.Load() == fast && now.Sub(at.since) > slowAfter && w.lanes.slowDown() {
			r.lane.Store(slow)
		}
	}
	return found
}
