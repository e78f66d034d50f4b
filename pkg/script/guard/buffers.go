package guard

import (
	"github.com/dop251/goja"
)

// bufferRules bound buffers of bytes and the lists on them.
func bufferRules() map[string]rule {
	all := map[string]rule{
		"ArrayBuffer":     {construct: sized(1)},
		"TypedArray.from": {call: listFrom},
		"TypedArray.prototype.set": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			if obj, ok := c.Argument(0).(*goja.Object); ok && !isTyped(obj) {
				c.Arguments = append([]goja.Value{m.listOf(obj)}, c.Arguments[1:]...)
			}
			return next(c)
		}},
	}
	for name, width := range map[string]int64{
		"Uint8Array": 1, "Int8Array": 1, "Uint8ClampedArray": 1, "Uint16Array": 2, "Int16Array": 2, "Uint32Array": 4, "Int32Array": 4,
		"Float32Array": 4, "Float64Array": 8,
	} {
		all[name] = rule{construct: sized(width)}
		all[name+".from"] = rule{call: listFrom}
	}
	for _, name := range []string{"join", "sort", "toLocaleString", "toSorted", "toString"} {
		all["TypedArray.prototype."+name] = rule{call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			if obj, ok := c.This.(*goja.Object); ok {
				if n := lengthOf(obj); n > maxCopied {
					m.tooMuch("the list has %d items; %d is the limit", n, maxCopied)
				}
				if separator := c.Argument(0); name == "join" && !goja.IsUndefined(separator) {
					s := textOf(separator)
					m.checkText(int64(s.Length())+4, lengthOf(obj))
					c.Arguments = []goja.Value{s}
				}
			}
			return next(c)
		}}
	}
	return all
}

// sized bounds what a constructor allocates.
func sized(width int64) func(*Meter, ctor, []goja.Value, *goja.Object) *goja.Object {
	return func(m *Meter, next ctor, args []goja.Value, target *goja.Object) *goja.Object {
		if len(args) == 0 {
			return next(args, target)
		}
		obj, ok := args[0].(*goja.Object)
		switch {
		case !ok:
			n := args[0].ToInteger()
			if n > maxBytes/width {
				m.tooMuch("a buffer of that size is too large: %d bytes are the limit", maxBytes)
			}
		case isTyped(obj):
			if lengthOf(obj) > maxBytes/width {
				m.tooMuch("a buffer of that size is too large: %d bytes are the limit", maxBytes)
			}
		case isBuffer(obj):
		default:
			args = append([]goja.Value{m.listOf(obj)}, args[1:]...)
		}
		return next(args, target)
	}
}

// listOf makes a true list of what is like one or can be iterated.
func (m *Meter) listOf(obj *goja.Object) *goja.Object {
	if list, ok := isList(obj); ok {
		m.checkLength(list, maxLength)
		return list
	}
	if obj.GetSymbol(goja.SymIterator) == nil {
		return m.copied(obj, maxCopied)
	}
	var items []any
	m.vm.ForOf(obj, func(v goja.Value) bool {
		m.Check()
		if items = append(items, v); len(items) > maxCopied {
			m.tooMuch("the list is too long: %d items are the limit", maxCopied)
		}
		return true
	})
	return m.vm.NewArray(items...)
}

func isBuffer(obj *goja.Object) bool {
	_, ok := Exported(obj).(goja.ArrayBuffer)
	return ok
}

func isTyped(obj *goja.Object) bool {
	switch Exported(obj).(type) {
	case []byte, []int8, []uint16, []int16, []uint32, []int32, []float32, []float64, []int64, []uint64:
		return true
	}
	return false
}
