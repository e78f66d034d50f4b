package script

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"

	"github.com/svcctl/svc/pkg/errs"
)

// failure makes a failure of this run without a place.
func (r *run) failure(why Reason, message string) *Failure {
	return &Failure{Reason: why, Script: r.call.Program.name, Message: message}
}

// rejected is a value that the script's promise was rejected with.
type rejected struct{ v goja.Value }

func (rejected) Error() string { return "rejected" }

// explain turns an error of the runtime into *Thrown or *Failure.
func (r *run) explain(err error) error {
	if _, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		return r.failure(Depth, "calls nest deeper than "+strconv.Itoa(maxCalls))
	}
	if reason := r.meter.Reason(); reason != "" {
		why := Timeout
		r.why.CompareAndSwap(nil, &why)
	}
	if r.why.Load() == nil && isInterrupt(err) {
		if why, ok := r.ended(); ok {
			r.why.CompareAndSwap(nil, &why)
		}
	}
	if why := r.why.Load(); why != nil {
		f := r.failure(*why, r.stopText(*why))
		if e, ok := errors.AsType[*goja.InterruptedError](err); ok {
			r.place(f, e.String())
		}
		return f
	}
	if e, ok := errors.AsType[rejected](err); ok {
		return r.explainValue(e.v, "")
	}
	if e, ok := errors.AsType[*goja.Exception](err); ok {
		return r.explainValue(e.Value(), e.String())
	}
	return r.failure(Exception, err.Error())
}

func isInterrupt(err error) bool {
	_, ok := errors.AsType[*goja.InterruptedError](err)
	return ok
}

func (r *run) stopText(why Reason) string {
	switch why {
	case Timeout:
		if reason := r.meter.Reason(); reason != "" {
			return reason
		}
		return "it ran longer than " + r.call.Limits.Timeout.String()
	case Memory:
		return "it took more memory than " + strconv.FormatInt(r.call.Limits.Memory>>20, 10) + " MiB"
	default:
		return "it was stopped"
	}
}

// explainValue explains a thrown value. Reading it may run code of the script, which may throw, too.
func (r *run) explainValue(v goja.Value, stack string) error {
	var result error
	err := r.guarded(func() error {
		obj, ok := v.(*goja.Object)
		if ok && r.thrown[obj] {
			result = readThrown(obj)
			return nil
		}
		f := r.failure(Exception, "")
		if ok {
			f.Cause = r.causes[obj]
			if own := obj.Get("stack"); own != nil && !goja.IsUndefined(own) {
				stack = own.String()
			}
		}
		r.place(f, stack)
		result = f
		f.Message = shortenTo(v.String(), maxMessage)
		return nil
	})
	if result != nil {
		return result
	}
	if err != nil && r.why.Load() != nil {
		return r.explain(err)
	}
	return r.failure(Exception, "it threw a value that can't be shown")
}

// maxMessage bounds the text of a failure, and what is shown to a caller.
const maxMessage = 2000

func shortenTo(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// maxStack bounds the text of a stack trace, which a script may have written.
const maxStack = 32 << 10

// maxFrames bounds the calls that are shown of a stack.
const maxFrames = 20

// frame matches a line of goja's stack traces: "at name (file:line:column(pc))" or "at file:line:column(pc)".
var frame = regexp.MustCompile(`^\s*at (?:(.*) \()?(.+):(\d+):(\d+)\(-?\d+\)\)?$`)

// place puts the script's own position and stack into f.
func (r *run) place(f *Failure, stack string) {
	var lines []string
	for line := range strings.SplitSeq(stack[:min(len(stack), maxStack)], "\n") {
		m := frame.FindStringSubmatch(line)
		if m == nil || len(lines) > maxFrames || strings.HasPrefix(m[2], glueFile) {
			continue
		}
		at := file.Position{Filename: m[2]}
		at.Line, _ = strconv.Atoi(m[3])
		at.Column, _ = strconv.Atoi(m[4])
		own := r.call.Program.position(at)
		if f.Line == 0 {
			f.Script, f.Line, f.Column = own.Filename, own.Line, own.Column
		}
		text := own.Filename + ":" + strconv.Itoa(own.Line) + ":" + strconv.Itoa(own.Column)
		if m[1] != "" {
			text = m[1] + " (" + text + ")"
		}
		lines = append(lines, "at "+text)
	}
	f.Stack = strings.Join(lines, "\n")
}

// newThrown is ctx.error(status, message, errors?).
func (r *run) newThrown(call goja.FunctionCall) goja.Value {
	status := call.Argument(0).ToInteger()
	if status < 400 || status > 599 {
		panic(r.vm.NewTypeError("ctx.error takes a status from 400 to 599, a message, and a list of {path, message} if there are"))
	}
	e, err := r.vm.New(r.vm.Get("Error"), call.Argument(1).ToString())
	if err != nil {
		panic(err)
	}
	if r.thrown == nil {
		r.thrown = map[*goja.Object]bool{}
	}
	r.thrown[e] = true
	for name, v := range map[string]any{"status": status, "errors": call.Argument(2)} {
		if err := e.Set(name, v); err != nil {
			panic(err)
		}
	}
	return e
}

// maxThrownFields bounds the problems of one ctx.error.
const maxThrownFields = 100

func readThrown(e *goja.Object) *Thrown {
	t := &Thrown{Status: int(e.Get("status").ToInteger()), Message: shortenTo(e.Get("message").String(), maxMessage)}
	if t.Status < 400 || t.Status > 599 {
		t.Status = 500
	}
	list, ok := e.Get("errors").(*goja.Object)
	if !ok {
		return t
	}
	n := 0
	if length := list.Get("length"); length != nil {
		n = int(min(length.ToInteger(), maxThrownFields))
	}
	for i := range n {
		item := list.Get(strconv.Itoa(i))
		obj, ok := item.(*goja.Object)
		if !ok {
			if item != nil {
				t.Fields = append(t.Fields, errs.FieldError{Rule: "script", Message: shortenTo(item.String(), maxMessage)})
			}
			continue
		}
		text := func(name string) string {
			if v := obj.Get(name); v != nil && !goja.IsUndefined(v) {
				return shortenTo(v.String(), maxMessage)
			}
			return ""
		}
		f := errs.FieldError{Path: text("path"), Rule: text("rule"), Message: text("message")}
		if f.Rule == "" {
			f.Rule = "script"
		}
		t.Fields = append(t.Fields, f)
	}
	return t
}
