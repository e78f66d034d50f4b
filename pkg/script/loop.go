package script

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script/guard"
)

// loop is the event loop of one run: answers of Host calls, and timers.
type loop struct {
	mu      sync.Mutex
	ready   []answer       // answers that came in, in order; the only thing that other goroutines touch
	wake    chan struct{}  // one slot: ready is not empty; nil before the first call
	waiting int            // Host calls without an answer
	calls   sync.WaitGroup // that are under way
	slots   chan struct{}  // bounds how many of them there are at once
	timers  timers
	nextID  int64
}

// maxHostCalls is how many calls of one run are under way at once; more wait.
const maxHostCalls = 32

// maxTimers bounds the timers, and maxWaiting the Host calls, that one run may wait for.
const (
	maxTimers  = 10_000
	maxWaiting = 10_000
)

// answer is what a Host call gave.
type answer struct {
	op     string
	err    error
	settle func() error // hands it to the script
}

// post hands an answer to the goroutine of the run.
func (l *loop) post(a answer) {
	l.mu.Lock()
	l.ready = append(l.ready, a)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loop) take() []answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := l.ready
	l.ready = nil
	return ready
}

// timer is one setTimeout or setInterval.
type timer struct {
	id       int64
	at       time.Time
	interval time.Duration
	fire     func() error
	index    int
}

type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at.Before(t[j].at) || t[i].at.Equal(t[j].at) && t[i].id < t[j].id
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i]; t[i].index, t[j].index = i, j }
func (t *timers) Push(x any)   { tm := x.(*timer); tm.index = len(*t); *t = append(*t, tm) } //nolint:errcheck // only timers are pushed
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}

// addTimer starts a timer.
func (r *run) addTimer(after, interval time.Duration, fire func() error) int64 {
	l := &r.loop
	if len(l.timers) >= maxTimers {
		panic(r.vm.NewTypeError("too many timers"))
	}
	l.nextID++
	heap.Push(&l.timers, &timer{id: l.nextID, at: time.Now().Add(after), interval: interval, fire: fire})
	return l.nextID
}

func (r *run) clearTimer(id int64) {
	for i, t := range r.loop.timers {
		if t.id == id {
			heap.Remove(&r.loop.timers, i)
			return
		}
	}
}

// await gives the value of a promise, running the loop until it has one; any other value is itself.
func (r *run) await(v goja.Value) (goja.Value, error) {
	promise, ok := guard.Exported(v).(*goja.Promise)
	if !ok {
		return v, nil
	}
	for {
		switch promise.State() {
		case goja.PromiseStateFulfilled:
			return promise.Result(), nil
		case goja.PromiseStateRejected:
			return nil, rejected{promise.Result()}
		case goja.PromiseStatePending:
		}
		if err := r.turn(); err != nil {
			return nil, err
		}
	}
}

// turn waits for the next event and handles it.
func (r *run) turn() error {
	if err := r.stopped(); err != nil {
		return err
	}
	l := &r.loop
	if ready := l.take(); len(ready) > 0 {
		for _, a := range ready {
			l.waiting--
			if err := a.settle(); err != nil {
				return err
			}
		}
		return nil
	}
	if l.waiting == 0 && len(l.timers) == 0 {
		return errStuck
	}
	r.pause()
	ctx := r.context()
	var due <-chan time.Time
	if len(l.timers) > 0 {
		wait := time.NewTimer(time.Until(l.timers[0].at))
		defer wait.Stop()
		due = wait.C
	}
	fire := false
	select {
	case <-l.wake:
	case <-due:
		fire = true
	case <-ctx.Done():
		return &goja.InterruptedError{}
	}
	if err := r.resume(); err != nil || !fire {
		return err
	}
	return r.fire()
}

// fire runs the timer that is due.
func (r *run) fire() error {
	t := r.loop.timers[0]
	if t.interval > 0 {
		t.at = time.Now().Add(t.interval)
		heap.Fix(&r.loop.timers, 0)
	} else {
		heap.Pop(&r.loop.timers)
	}
	return t.fire()
}

// hostCall starts a call of the Host and gives the promise of its answer. convert makes the answer a value of the script.
func (r *run) hostCall(op string, args bson.A, convert func(any) goja.Value) goja.Value {
	if r.call.Host == nil {
		panic(r.vm.NewTypeError(errNoHost(op).Message))
	}
	l := &r.loop
	if l.waiting >= maxWaiting {
		panic(r.vm.NewTypeError("too many calls without an await"))
	}
	if l.slots == nil {
		l.slots, l.wake = make(chan struct{}, maxHostCalls), make(chan struct{}, 1)
	}
	promise, resolve, reject := r.vm.NewPromise()
	asked := r.vm.CaptureCallStack(maxFrames, nil)
	l.waiting++
	l.calls.Add(1)
	r.engine.runs.run(func() {
		defer l.calls.Done()
		v, err := r.askHost(op, args)
		l.post(answer{op: op, err: err, settle: func() error {
			if err != nil {
				return reject(r.hostError(op, err, asked))
			}
			return resolve(convert(v))
		}})
	})
	return r.vm.ToValue(promise)
}

func (r *run) askHost(op string, args bson.A) (any, error) {
	ctx := r.context()
	select {
	case r.loop.slots <- struct{}{}:
		defer func() { <-r.loop.slots }()
		if err := ctx.Err(); err != nil { // both were ready
			return nil, err
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return askHost(ctx, r.call.Host, op, args)
}

// askHost calls the Host; a panic of it is an error.
func askHost(ctx context.Context, h Host, op string, args bson.A) (answer any, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &hostPanicError{op: op, value: x}
		}
	}()
	if h == nil {
		return nil, errNoHost(op)
	}
	return h.Call(ctx, op, args)
}

// finish waits for Host calls that nobody awaited: what a script has asked for is done or given up before its run ends.
func (l *loop) finish(r *run) {
	if l.waiting == 0 {
		return
	}
	r.pause()
	l.calls.Wait()
	for _, a := range l.take() {
		if a.err != nil && r.call.Log != nil && r.stopped() == nil {
			r.say("warn", "a call that the script did not await failed: "+a.op)
		}
	}
}
