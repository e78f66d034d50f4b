package script

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// errStuck is a script that awaits what can't come.
var errStuck = errors.New("the script awaits a promise that nothing can settle")

// hostPanicError is a panic inside a Host call.
type hostPanicError struct {
	op    string
	value any
}

func (p *hostPanicError) Error() string { return fmt.Sprintf("panic in %s: %v", p.op, p.value) }

// maxToldFields is how many problems the message of an error lists.
const maxToldFields = 10

// hostError is what the script sees of an error of the Host: public text only. Its place is where the script asked: the
// answer comes when nothing of it runs.
func (r *run) hostError(op string, err error, asked []goja.StackFrame) *goja.Object {
	message, code := "internal error", "internal"
	var fields []errs.FieldError
	if e, ok := errors.AsType[*errs.Error](err); ok {
		message, code, fields = e.Message, e.Code, e.Fields
	}
	if len(fields) > 1 { // the message of the error itself has the first alone
		var told []string
		for _, f := range fields[:min(len(fields), maxToldFields)] {
			told = append(told, strings.TrimPrefix(f.Path+": "+f.Message, ": "))
		}
		message = strings.Join(told, "; ")
		if n := len(fields) - maxToldFields; n > 0 {
			message += fmt.Sprintf(" (and %d more)", n)
		}
	}
	obj, newErr := r.vm.New(r.vm.Get("Error"), r.vm.ToValue(op+": "+strings.TrimPrefix(message, op+": ")))
	if newErr != nil {
		panic(newErr)
	}
	list := make([]any, len(fields))
	for i, f := range fields {
		list[i] = r.plainObject(bson.D{{Key: "path", Value: f.Path}, {Key: "rule", Value: f.Rule}, {Key: "message", Value: f.Message}})
	}
	var stack bytes.Buffer
	for _, frame := range asked {
		stack.WriteString("at ")
		frame.Write(&stack)
		stack.WriteByte('\n')
	}
	_ = obj.Set("stack", stack.String())
	_ = obj.Set("code", code)
	_ = obj.Set("errors", r.vm.NewArray(list...))
	if r.causes == nil {
		r.causes = map[*goja.Object]error{}
	}
	r.causes[obj] = err
	return obj
}

// plainObject makes an object of names and values.
func (r *run) plainObject(members bson.D) *goja.Object {
	obj := r.vm.NewObject()
	for _, e := range members {
		_ = obj.Set(e.Key, e.Value) // a plain object takes every member
	}
	return obj
}
