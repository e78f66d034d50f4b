package script

import (
	"fmt"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script/guard"
)

// boxed is a value that JavaScript has no type for. The script sees an object that can't be changed, and hands it on.
type boxed struct{ v any }

// Get has nothing: all is in the prototype.
func (*boxed) Get(string) goja.Value { return nil }

// Set refuses.
func (*boxed) Set(string, goja.Value) bool { return false }

// Has has nothing.
func (*boxed) Has(string) bool { return false }

// Delete refuses.
func (*boxed) Delete(string) bool { return false }

// Keys has nothing.
func (*boxed) Keys() []string { return nil }

func (b *boxed) text() string {
	switch v := b.v.(type) {
	case bson.ObjectID:
		return v.Hex()
	case bson.Decimal128:
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}

// class names the kinds of boxed values.
type class int

const (
	objectIDClass class = iota
	decimalClass
	opaqueClass
	classes
)

func (r *run) box(v any, c class) *goja.Object {
	obj := r.vm.NewDynamicObject(&boxed{v})
	if err := obj.SetPrototype(r.prototype(c)); err != nil {
		panic(err)
	}
	return obj
}

// prototype is made when the first value of its class is.
func (r *run) prototype(c class) *goja.Object {
	if r.prototypes[c] != nil {
		return r.prototypes[c]
	}
	p := r.vm.NewObject()
	r.prototypes[c] = p
	text := func(call goja.FunctionCall) goja.Value { return r.vm.ToValue(r.unbox(call.This).text()) }
	names := []string{"toString", "toJSON", "valueOf"}
	if c == objectIDClass {
		names = append(names, "toHexString")
	}
	for _, name := range names {
		r.method(p, name, text)
	}
	r.method(p, "equals", func(call goja.FunctionCall) goja.Value {
		other := call.Argument(0)
		if b, ok := guard.Exported(other).(*boxed); ok {
			return r.vm.ToValue(b.text() == r.unbox(call.This).text())
		}
		return r.vm.ToValue(other.String() == r.unbox(call.This).text())
	})
	return p
}

func (r *run) unbox(v goja.Value) *boxed {
	if b, ok := guard.Exported(v).(*boxed); ok {
		return b
	}
	panic(r.vm.NewTypeError("this is not a value of that class"))
}

// method defines a method that loops over members don't see.
func (r *run) method(obj *goja.Object, name string, f func(goja.FunctionCall) goja.Value) {
	if err := obj.DefineDataProperty(name, r.vm.ToValue(f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE); err != nil {
		panic(err)
	}
}
