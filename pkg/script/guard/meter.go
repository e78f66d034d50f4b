package guard

import (
	"fmt"
	"sync/atomic"

	"github.com/dop251/goja"
)

// maxDepth is how deep calls of built-ins may nest. Calls of the script's own functions have a limit of their own.
const maxDepth = 1200

// Meter watches one runtime.
type Meter struct {
	vm      *goja.Runtime
	stop    atomic.Pointer[string]
	depth   int
	seen    []*goja.Object // built-ins that several names share, once guarded
	joining []*goja.Object // lists whose join is under way
}

// Attach puts a new meter on a runtime that nothing has run in yet.
func Attach(vm *goja.Runtime) *Meter {
	Install()
	m := &Meter{vm: vm}
	vm.SetAsyncContextTracker(m)
	m.prepareTexts()
	return m
}

// Stop makes every built-in end the run from now on, as an interrupt of the runtime does. Any goroutine may call it.
func (m *Meter) Stop() { m.StopFor("") }

// StopFor is Stop with a reason, which Reason gives. The first reason stays.
func (m *Meter) StopFor(reason string) {
	m.stop.CompareAndSwap(nil, &reason)
	m.vm.Interrupt(reason)
}

// Reason is why a rule has stopped the run; empty if none has.
func (m *Meter) Reason() string {
	if reason := m.stop.Load(); reason != nil {
		return *reason
	}
	return ""
}

// Check ends the run if it has to stop.
func (m *Meter) Check() {
	if m.stop.Load() != nil {
		panic(&goja.InterruptedError{})
	}
}

// enter begins a call of a built-in.
func (m *Meter) enter() {
	if m.stop.Load() != nil {
		panic(&goja.InterruptedError{})
	}
	m.depth++
	if m.depth > maxDepth {
		m.depth-- // leave is not deferred yet
		panic(&goja.StackOverflowError{})
	}
}

func (m *Meter) leave() { m.depth-- }

// Grab is called when the script schedules a job of a promise.
func (m *Meter) Grab() any { return nil }

// Resumed is called before each job: a storm of promises may never run an instruction of the script.
func (m *Meter) Resumed(any) { m.Check() }

// Exited is called after each job.
func (m *Meter) Exited() {}

// tooMuch throws a RangeError.
func (m *Meter) tooMuch(format string, args ...any) {
	m.throw("RangeError", fmt.Sprintf(format, args...))
}

// refuse throws a TypeError.
func (m *Meter) refuse(text string) {
	panic(m.vm.NewTypeError(text))
}

func (m *Meter) throw(class, message string) {
	e, err := m.vm.New(m.vm.Get(class), m.vm.ToValue(message))
	if err != nil {
		panic(m.vm.NewTypeError(message))
	}
	panic(e)
}
