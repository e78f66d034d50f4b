package script

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/svcctl/svc/pkg/errs"
)

// errStuck is a script that awaits what can't come.
var errStuck = errors.New("the script awaits a promise that nothing can settle")

// hostPanic is a panic inside a Host call.
type hostPanic struct {
	op    string
	value any
}

func (p *hostPanic) Error() string { return fmt.Sprintf("panic in %s: %v", p.op, p.value) }

// globals gives the script what is there without an import.
func (r *run) globals() error {
	console := r.logger()
	for name, v := range map[string]any{
		"console":    console,
		"setTimeout": r.setTimer(false), "setInterval": r.setTimer(true),
		"clearTimeout": r.clear, "clearInterval": r.clear, "sleep": r.sleep,
	} {
		if err := r.vm.Set(name, v); err != nil {
			return err
		}
	}
	return nil
}

// logger is console and ctx.log.
func (r *run) logger() *goja.Object {
	obj := r.vm.NewObject()
	for name, level := range map[string]string{"debug": "debug", "log": "info", "info": "info", "warn": "warn", "error": "error"} {
		r.method(obj, name, func(call goja.FunctionCall) goja.Value {
			if r.call.Log != nil {
				texts := make([]string, len(call.Arguments))
				for i, a := range call.Arguments {
					texts[i] = a.String()
				}
				r.call.Log(Line{Time: r.engine.now(), Level: level, Message: shortenTo(strings.Join(texts, " "), 8<<10)})
			}
			return goja.Undefined()
		})
	}
	return obj
}

func (r *run) setTimer(repeat bool) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		f, ok := goja.AssertFunction(call.Argument(0))
		if !ok {
			panic(r.vm.NewTypeError("a timer takes a function"))
		}
		var args []goja.Value
		if len(call.Arguments) > 2 {
			args = call.Arguments[2:]
		}
		after := max(time.Millisecond, time.Duration(call.Argument(1).ToInteger())*time.Millisecond)
		interval := time.Duration(0)
		if repeat {
			interval = after
		}
		return r.vm.ToValue(r.addTimer(after, interval, func() error {
			_, err := f(goja.Undefined(), args...)
			return err
		}))
	}
}

func (r *run) clear(call goja.FunctionCall) goja.Value {
	r.clearTimer(call.Argument(0).ToInteger())
	return goja.Undefined()
}

func (r *run) sleep(call goja.FunctionCall) goja.Value {
	promise, resolve, _ := r.vm.NewPromise()
	r.addTimer(time.Duration(call.Argument(0).ToInteger())*time.Millisecond, 0, func() error { return resolve(goja.Undefined()) })
	return r.vm.ToValue(promise)
}

// hostError is what the script sees of an error of the Host: public text only.
func (r *run) hostError(op string, err error) *goja.Object {
	message, code := "internal error", "internal"
	var fields []errs.FieldError
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind != errs.Internal {
		message, code, fields = e.Message, e.Code, e.Fields
	}
	obj, newErr := r.vm.New(r.vm.Get("Error"), r.vm.ToValue(op+": "+message))
	if newErr != nil {
		panic(newErr)
	}
	list := make([]any, len(fields))
	for i, f := range fields {
		item := r.vm.NewObject()
		_ = item.Set("path", f.Path)
		_ = item.Set("rule", f.Rule)
		_ = item.Set("message", f.Message)
		list[i] = item
	}
	_ = obj.Set("code", code)
	_ = obj.Set("errors", r.vm.NewArray(list...))
	if r.causes == nil {
		r.causes = map[*goja.Object]error{}
	}
	r.causes[obj] = err
	return obj
}
