package script

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/svcctl/svc/pkg/script/guard"
)

// maxCalls is how deep calls of a script may nest.
const maxCalls = 1024

// run is one run of a program in a runtime of its own. Its goroutine owns everything but stopping and the loop's queue.
type run struct {
	engine *Engine
	call   *Call
	parent context.Context //nolint:containedctx // the run is what lives as long as it
	until  time.Time       // its time is over then
	scope  scope
	vm     *goja.Runtime
	meter  *guard.Meter
	loop   loop
	why    atomic.Pointer[Reason] // set: the run has to stop
	lane   atomic.Int32           // where its place is

	holds    atomic.Bool   // it has a place in a lane
	began    time.Time     // computing, since it last got its place
	computed time.Duration // before that
	queued   time.Duration // for a place, after it began
	watched  watched       // by the watchdog, whose lock is for it

	lines, logged, unsaid int // of the log: lines, their bytes, and lines left out

	native     *goja.Object // the functions of natives.go
	prototypes [classes]*goja.Object
	thrown     map[*goja.Object]bool  // errors that ctx.error made
	causes     map[*goja.Object]error // errors of Host calls

	events chan bool // true: it has ended; false: it was told to stop. Each comes once at most
	result Result
	err    error
}

func newRun(ctx context.Context, until time.Time, e *Engine, c *Call) *run {
	r := &run{engine: e, call: c, parent: ctx, until: until, vm: goja.New(), events: make(chan bool, 2)}
	r.meter = guard.Attach(r.vm)
	return r
}

// scope is the context of a run. It is made when something needs it, for most runs end before.
type scope struct {
	mu     sync.Mutex
	over   bool            // the run has ended, or was told to
	ctx    context.Context //nolint:containedctx // as in run
	cancel context.CancelFunc
	forget func() bool
}

// context gives what ends when the run ends, is told to stop, or has no more time. While a run computes it is the
// watchdog that looks at the time.
func (r *run) context() context.Context {
	s := &r.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		ctx, cancel := context.WithDeadline(context.WithValue(r.parent, withinKey{}, inService), r.until)
		s.ctx, s.cancel = ctx, cancel
		s.forget = context.AfterFunc(ctx, func() { r.stop(endOf(ctx)) })
		if s.over {
			r.scope.end()
		}
	}
	return s.ctx
}

// end ends the context, if there is one. The caller holds mu.
func (s *scope) end() {
	s.over = true
	if s.ctx != nil {
		s.forget()
		s.cancel()
	}
}

// release gives up what the run has asked for.
func (r *run) release() {
	r.scope.mu.Lock()
	defer r.scope.mu.Unlock()
	r.scope.end()
}

// ended says why the run has to end, if nobody has told it yet.
func (r *run) ended() (why Reason, ok bool) {
	switch {
	case r.parent.Err() != nil:
		return endOf(r.parent), true
	case !time.Now().Before(r.until):
		return Timeout, true
	}
	return "", false
}

// stop makes the run end with this reason. Only the first counts. Any goroutine may call it.
func (r *run) stop(why Reason) {
	if r.why.CompareAndSwap(nil, &why) {
		r.meter.Stop()
		r.release()
		r.events <- false
	}
}

func (r *run) canceled() { r.stop(Canceled) }

func (r *run) reason() Reason {
	if why := r.why.Load(); why != nil {
		return *why
	}
	return Canceled
}

// stopped is the error of a run that has to stop.
func (r *run) stopped() error {
	if r.why.Load() != nil {
		return &goja.InterruptedError{}
	}
	return nil
}

// main is the goroutine of the run.
func (r *run) main() {
	defer func() { r.events <- true }()
	defer r.release()
	defer r.end()
	defer func() {
		if x := recover(); x != nil {
			r.err = r.panicked(x)
			r.release()
			r.loop.finish(r)
		}
	}()
	defer r.sayRest()
	result, err := r.program()
	if err != nil {
		r.err = r.explain(err)
		r.release() // what it has asked for meanwhile is given up
	}
	r.loop.finish(r)
	if err == nil {
		r.result = result
	}
}

// firstLane is the lane that the run begins in.
func (r *run) firstLane() int {
	which := r.call.Program.record.lane()
	r.lane.Store(int32(which)) //nolint:gosec // one of two
	return which
}

// computing notes that the run has its place.
func (r *run) computing() {
	r.began = time.Now()
	r.holds.Store(true)
	r.engine.watchdog.watch(r)
}

// pause gives the place up while the run waits.
func (r *run) pause() {
	if r.count() {
		r.engine.watchdog.rest(r)
		r.leavePlace()
	}
}

// end is the last thing that a run does.
func (r *run) end() {
	r.count()
	r.engine.watchdog.leave(r)
	r.leavePlace()
}

// count adds up what the run has computed, and says whether it did.
func (r *run) count() bool {
	if r.began.IsZero() {
		return false
	}
	r.computed += time.Since(r.began)
	r.began = time.Time{}
	return true
}

// leavePlace gives the place back, if there is one still.
func (r *run) leavePlace() {
	if r.holds.CompareAndSwap(true, false) {
		r.engine.lanes.release(int(r.lane.Load()))
	}
}

// resume waits for a place again.
func (r *run) resume() error {
	asked := time.Now()
	defer func() { r.queued += time.Since(asked) }()
	if ok, _ := r.engine.lanes.acquire(r.context().Done(), time.Time{}, r.call.Project, int(r.lane.Load()), false); !ok {
		return &goja.InterruptedError{}
	}
	r.computing()
	return nil
}

// panicked turns a panic into the failure it stands for.
func (r *run) panicked(x any) error {
	if err, ok := x.(error); ok {
		if _, ok := errors.AsType[*goja.InterruptedError](err); ok {
			return r.explain(err)
		}
		if _, ok := errors.AsType[*goja.StackOverflowError](err); ok {
			return r.explain(err)
		}
		if _, ok := errors.AsType[*goja.Exception](err); ok {
			return r.explain(err)
		}
	}
	f := r.failure(Panic, fmt.Sprint(x))
	f.Stack = string(debug.Stack())
	return f
}

// program runs the script from its first line to its result.
func (r *run) program() (Result, error) {
	r.vm.SetMaxCallStackSize(maxCalls)
	r.vm.SetTimeSource(r.engine.now)
	if still := r.call.Still; !still.IsZero() {
		r.vm.SetTimeSource(func() time.Time { return still })
		r.vm.SetRandSource(rand.New(rand.NewPCG(uint64(still.UnixMilli()), 0)).Float64) //nolint:gosec // no secrets are made of it
	}
	if err := r.makeUsed(); err != nil {
		return Result{}, err
	}
	if err := r.globals(); err != nil {
		return Result{}, err
	}
	f, err := r.load()
	if err != nil {
		return Result{}, err
	}
	if r.call.Each != nil {
		return r.each(f)
	}
	ctx := r.newContext(nil)
	v, err := r.callFunction(f, ctx.object)
	if err != nil {
		return Result{}, err
	}
	return r.collect(v, ctx)
}

// load runs the top level of the program and gives its function.
func (r *run) load() (goja.Callable, error) {
	v, err := r.vm.RunProgram(r.call.Program.code)
	if err != nil {
		return nil, err
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errors.New("the compiled program is damaged")
	}
	switch r.call.Program.form {
	case bare:
		return f, nil
	case returns:
		v, err := f(goja.Undefined())
		if err != nil {
			return nil, err
		}
		return r.exported(v)
	default:
		return r.commonJS(f)
	}
}

// commonJS calls what is around a module, and gives the function that it exports.
func (r *run) commonJS(f goja.Callable) (goja.Callable, error) {
	module, exports := r.vm.NewObject(), r.vm.NewObject()
	if err := module.Set("exports", exports); err != nil {
		return nil, err
	}
	require := goja.Undefined()
	if r.call.Program.uses&usesRequire != 0 {
		require = r.vm.ToValue(r.require)
	}
	if _, err := f(goja.Undefined(), module, exports, require); err != nil {
		return nil, err
	}
	var exported goja.Value
	if ex := r.vm.Try(func() { exported = module.Get("exports") }); ex != nil {
		return nil, ex
	}
	return r.exported(exported)
}

// exported is the function of what a module exports.
func (r *run) exported(v goja.Value) (goja.Callable, error) {
	f, ok := goja.AssertFunction(v)
	if obj, is := v.(*goja.Object); is && !ok {
		var member goja.Value
		if ex := r.vm.Try(func() { member = obj.Get("default") }); ex != nil {
			return nil, ex
		}
		f, ok = goja.AssertFunction(member)
	}
	if !ok {
		return nil, errors.New("the script exports no function: write module.exports = (ctx) => { … } or export default")
	}
	return f, nil
}

// require is what is left of require calls that the bundle did not take in.
func (r *run) require(call goja.FunctionCall) goja.Value {
	panic(r.vm.NewTypeError("require takes a path that is written out, such as './x': got " + shorten(call.Argument(0).String())))
}

// callFunction calls the program's function and awaits its result.
func (r *run) callFunction(f goja.Callable, ctx goja.Value) (goja.Value, error) {
	args := make([]goja.Value, 0, len(r.call.Args)+1)
	for _, a := range r.call.Args {
		args = append(args, r.js(a))
	}
	v, err := f(goja.Undefined(), append(args, ctx)...)
	if err != nil {
		return nil, err
	}
	return r.await(v)
}

func (r *run) each(f goja.Callable) (Result, error) {
	result := Result{Values: make([]any, 0, len(r.call.Each))}
	o := &out{r: r, left: r.call.Limits.MaxResult}
	for _, members := range r.call.Each {
		v, err := r.callFunction(f, r.newContext(members).object)
		if err != nil {
			return Result{}, err
		}
		var value any
		if err := r.guarded(func() error {
			value, _, err = o.value(v, nil, false, 0)
			return err
		}); err != nil {
			return Result{}, err
		}
		result.Values = append(result.Values, value)
	}
	return result, nil
}

// collect converts what the script gives back.
func (r *run) collect(v goja.Value, ctx *contextObject) (Result, error) {
	result := Result{Returned: !goja.IsUndefined(v)}
	o := &out{r: r, left: r.call.Limits.MaxResult}
	err := r.guarded(func() error {
		var err error
		o.filter = r.call.Filter
		if result.Value, _, err = o.value(v, nil, false, 0); err != nil {
			return fmt.Errorf("the returned value: %w", err)
		}
		o.filter = false
		result.Out, err = ctx.collect(o)
		return err
	})
	return result, err
}

// guarded runs what may run code of the script, such as a getter, outside a call.
func (r *run) guarded(f func() error) error {
	var err error
	if ex := r.vm.Try(func() { err = f() }); ex != nil {
		return ex
	}
	return err
}
