package guard

import (
	"maps"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// The limits of what one call of a built-in may do by itself.
const (
	maxLength  = 1 << 20  // items of a list that a built-in goes through
	maxCopied  = 1 << 19  // items of what is like a list and is made one, of a sort, of the parts of a split text
	maxText    = 8 << 20  // characters of a text that is made
	maxBytes   = 32 << 20 // bytes of a buffer
	maxApplied = 100_000  // arguments of apply
	maxPattern = 4_000    // characters of a regular expression
	maxGroups  = 200      // that it captures
	maxClasses = 50       // of Unicode that it names
	maxMembers = 1 << 17  // of a text or a list of bytes that is taken apart
	maxNesting = 1000     // levels of JSON
	maxValues  = 300_000  // values of JSON
	maxBits    = 1 << 18  // of a BigInt
)

// rule is what a built-in does more than to look at the meter. nil: nothing more.
type rule struct {
	call      func(m *Meter, next native, c goja.FunctionCall) goja.Value
	construct func(m *Meter, next ctor, args []goja.Value, target *goja.Object) *goja.Object
}

// allRules are the built-ins that can loop, recurse or allocate by themselves, by their names.
func allRules() map[string]rule {
	all := map[string]rule{}
	for _, table := range []map[string]rule{listRules(), textRules(), regexpRules(), numberRules(), bufferRules(), functionRules(), jsonRules()} {
		maps.Copy(all, table)
	}
	for _, name := range []string{ // what makes iterators
		"Array.prototype.entries", "Array.prototype.keys", "Array.prototype.values", "Array.prototype.[Symbol.iterator]",
		"String.prototype.[Symbol.iterator]", "String.prototype.matchAll", "RegExp.prototype.[Symbol.matchAll]",
		"TypedArray.prototype.entries", "TypedArray.prototype.keys", "TypedArray.prototype.values", "TypedArray.prototype.[Symbol.iterator]",
		"Map.prototype.entries", "Map.prototype.keys", "Map.prototype.values", "Map.prototype.[Symbol.iterator]",
		"Set.prototype.entries", "Set.prototype.keys", "Set.prototype.values", "Set.prototype.[Symbol.iterator]",
	} {
		first := all[name].call
		all[name] = rule{call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			var it goja.Value
			if first != nil {
				it = first(m, next, c)
			} else {
				it = next(c)
			}
			m.guardIterator(it)
			return it
		}}
	}
	return all
}

// guardIterator guards next of an iterator: goja makes its prototype by itself.
func (m *Meter) guardIterator(v goja.Value) {
	if it, ok := v.(*goja.Object); ok {
		if p := it.Prototype(); p != nil && m.first(p) {
			m.adoptMembers("Iterator.prototype", p)
			if base := p.Prototype(); base != nil && base.Prototype() != nil && m.first(base) {
				m.adoptMembers("Iterator.prototype", base)
			}
		}
	}
}

// Guard guards a function that goja has made for syntax, with what it inherits from: the functions of async functions
// and generators are there without a name.
func (m *Meter) Guard(v goja.Value) {
	f, ok := v.(*goja.Object)
	if !ok {
		return
	}
	kind := f.Prototype() // such as AsyncFunction.prototype
	if kind == nil || !m.first(kind) {
		return
	}
	m.adoptMembers("SyntaxFunction.prototype", kind)
	if c := functionIn(member(kind, "constructor")); c != nil && m.first(c) {
		m.guard(in.rules["SyntaxFunction"], c)
	}
	for p := functionIn(member(kind, "prototype")); p != nil && p.Prototype() != nil && m.first(p); p = p.Prototype() {
		m.adoptMembers("Iterator.prototype", p)
	}
}

// isList says whether v is a true list: its length is a number, and reading it runs nothing.
func isList(v goja.Value) (*goja.Object, bool) {
	obj, ok := v.(*goja.Object)
	return obj, ok && obj.ClassName() == "Array"
}

func lengthOf(obj *goja.Object) int64 {
	if v := obj.Get("length"); v != nil {
		return v.ToInteger()
	}
	return 0
}

func (m *Meter) checkLength(list *goja.Object, limit int64) {
	if n := lengthOf(list); n > limit {
		m.tooMuch("the list has %d items; %d is the limit", n, limit)
	}
}

// copied makes a true list of what is like one.
func (m *Meter) copied(obj *goja.Object, limit int64) *goja.Object {
	n := lengthOf(obj)
	if n > limit {
		m.tooMuch("the list has %d items; %d is the limit", n, limit)
	}
	items := make([]any, max(n, 0))
	for i := range items {
		if i%256 == 0 {
			m.Check()
		}
		if items[i] = obj.Get(strconv.Itoa(i)); items[i] == goja.Value(nil) {
			items[i] = goja.Undefined()
		}
	}
	return m.vm.NewArray(items...)
}

// numberRules bound the size of BigInts.
func numberRules() map[string]rule {
	size := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		if n, ok := c.This.Export().(*big.Int); ok && n.BitLen() > maxBits {
			m.tooMuch("the number is too large")
		}
		return next(c)
	}
	bits := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		if n := c.Argument(0).ToInteger(); n > maxBits {
			m.tooMuch("the number is too large")
		} else if len(c.Arguments) > 0 {
			c.Arguments = append([]goja.Value{m.vm.ToValue(n)}, c.Arguments[1:]...)
		}
		if len(c.Arguments) > 1 {
			if obj, ok := c.Arguments[1].(*goja.Object); ok {
				c.Arguments[1] = textOf(obj)
			}
			m.Comparable(goja.FunctionCall{Arguments: c.Arguments[1:]})
		}
		return next(c)
	}
	set := func(m *Meter, next native, c goja.FunctionCall) goja.Value {
		if len(c.Arguments) > 1 {
			c.Arguments[1] = m.primitive(c.Arguments[1], "number")
			m.checkDigits(c.Arguments[1])
		}
		return next(c)
	}
	return map[string]rule{
		"DataView.prototype.setBigInt64": {call: set}, "DataView.prototype.setBigUint64": {call: set},
		"BigInt": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			if obj, ok := c.Argument(0).(*goja.Object); ok {
				c.Arguments = []goja.Value{textOf(obj)}
			}
			m.Comparable(goja.FunctionCall{Arguments: c.Arguments})
			return next(c)
		}},
		"BigInt.asIntN": {call: bits}, "BigInt.asUintN": {call: bits},
		"parseFloat": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			s := textOf(c.Argument(0))
			if s.Length() > maxCopied {
				m.tooMuch("the text is too long for a number")
			}
			return next(goja.FunctionCall{Arguments: []goja.Value{s}})
		}},
		"BigInt.prototype.toString": {call: size}, "BigInt.prototype.toLocaleString": {call: size},
	}
}

// The operators are instructions, which no built-in stands for, and take any BigInt, and the time and memory that it
// needs. A program is compiled to hand their operands and results through the functions below. A BigInt that passes has
// at most maxBits, so that everything else that is done to one is quick.

// Shift is the right operand of << and >>.
func (m *Meter) Shift(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	if obj, ok := v.(*goja.Object); ok {
		v = obj.ToNumber()
	}
	if goja.IsBigInt(v) {
		if n, ok := v.Export().(*big.Int); ok && (!n.IsInt64() || n.Int64() > maxBits || n.Int64() < -maxBits) {
			m.tooMuch("the number is too large")
		}
	}
	return v
}

// Exponent is the right operand of **, which is for numbers.
func (m *Meter) Exponent(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	if obj, ok := v.(*goja.Object); ok {
		v = obj.ToNumber()
	}
	if goja.IsBigInt(v) {
		m.refuse("** is for numbers: multiply a BigInt")
	}
	return v
}

// Product is the result of *, << and >>.
func (m *Meter) Product(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	if m.isHuge(v) {
		m.tooMuch("the number is too large")
	}
	return v
}

// Assigned is the result of *=, <<= and >>=, which is kept by now: the run ends, for an exception could be caught.
func (m *Meter) Assigned(c goja.FunctionCall) goja.Value {
	v := c.Argument(0)
	if m.isHuge(v) {
		m.StopFor("a number became too large")
		m.Check()
	}
	return v
}

func (m *Meter) isHuge(v goja.Value) bool {
	if !goja.IsBigInt(v) {
		return false
	}
	n, ok := v.Export().(*big.Int)
	return ok && n.BitLen() > maxBits
}

// Comparable is an operand of < and its like, and of what else reads a BigInt out of a text, for which a long one takes
// very long.
func (m *Meter) Comparable(c goja.FunctionCall) goja.Value {
	v := m.primitive(c.Argument(0), "number")
	m.checkDigits(v)
	return v
}

// Equals is the operator ==.
func (m *Meter) Equals(c goja.FunctionCall) goja.Value {
	a, b := c.Argument(0), c.Argument(1)
	_, aIs := a.(*goja.Object)
	_, bIs := b.(*goja.Object)
	switch {
	case aIs && !bIs && !isNothing(b):
		a = m.primitive(a, "default")
	case bIs && !aIs && !isNothing(a):
		b = m.primitive(b, "default")
	}
	if goja.IsBigInt(a) {
		m.checkDigits(b)
	} else if goja.IsBigInt(b) {
		m.checkDigits(a)
	}
	return m.vm.ToValue(a.Equals(b))
}

func isNothing(v goja.Value) bool { return goja.IsUndefined(v) || goja.IsNull(v) }

// checkDigits refuses a text that may be a very long number.
func (m *Meter) checkDigits(v goja.Value) {
	s, ok := v.(goja.String)
	if !ok || s.Length() <= maxBits/4 {
		return
	}
	start := strings.TrimSpace(s.Substring(0, 1000).String())
	if start == "" || start[0] >= '0' && start[0] <= '9' || start[0] == '-' || start[0] == '+' {
		m.tooMuch("the number is too large")
	}
}

// primitive is the value that operators take an object for.
func (m *Meter) primitive(v goja.Value, hint string) goja.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		return v
	}
	if exotic := o.GetSymbol(goja.SymToPrimitive); exotic != nil && !isNothing(exotic) {
		return m.primitiveBy(o, exotic, m.vm.ToValue(hint))
	}
	for _, name := range []string{"valueOf", "toString"} {
		if f := o.Get(name); f != nil {
			if _, callable := goja.AssertFunction(f); callable {
				if v := m.primitiveBy(o, f); v != nil {
					return v
				}
			}
		}
	}
	m.refuse("Cannot convert object to primitive value")
	return nil
}

// primitiveBy calls a function of an object for its value. It gives nil for one that is an object again.
func (m *Meter) primitiveBy(o *goja.Object, f goja.Value, args ...goja.Value) goja.Value {
	call, ok := goja.AssertFunction(f)
	if !ok {
		m.refuse("Symbol.toPrimitive is not a function")
	}
	v, err := call(o, args...)
	if err != nil {
		panic(err)
	}
	if _, again := v.(*goja.Object); !again {
		return v
	}
	if len(args) > 0 {
		m.refuse("Cannot convert object to primitive value")
	}
	return nil
}

// functionRules keep calls apart from code, and from lists without end.
func functionRules() map[string]rule {
	noCode := rule{
		call: func(m *Meter, _ native, _ goja.FunctionCall) goja.Value {
			m.refuse("a script can't make code from text")
			return nil
		},
		construct: func(m *Meter, _ ctor, _ []goja.Value, _ *goja.Object) *goja.Object {
			m.refuse("a script can't make code from text")
			return nil
		},
	}
	arguments := func(index int) rule {
		return rule{call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			if index >= len(c.Arguments) {
				return next(c)
			}
			if list, ok := isList(c.Arguments[index]); ok {
				m.checkLength(list, maxApplied)
			} else if obj, ok := c.Arguments[index].(*goja.Object); ok {
				c.Arguments = append([]goja.Value{}, c.Arguments...)
				c.Arguments[index] = m.copied(obj, maxApplied)
			}
			return next(c)
		}}
	}
	return map[string]rule{
		"Object.keys": {call: members}, "Object.values": {call: members}, "Object.entries": {call: members}, "Object.assign": {call: members},
		"Object.freeze": {call: members}, "Object.seal": {call: members}, "Object.isFrozen": {call: members}, "Object.isSealed": {call: members},
		"Object.getOwnPropertyNames": {call: members}, "Object.getOwnPropertyDescriptors": {call: members}, "Reflect.ownKeys": {call: members},
		"Object.defineProperties": {call: members}, "Object.create": {call: members},

		"Object.setPrototypeOf": {call: setPrototype}, "Reflect.setPrototypeOf": {call: setPrototype},
		"Object.prototype.__proto__": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			m.checkPrototype(c.This, c.Arguments)
			return next(c)
		}},
		"Function": noCode, "SyntaxFunction": noCode,
		"Function.prototype.apply": arguments(1),
		"Reflect.apply":            arguments(2),
		"Reflect.construct":        arguments(1),
		"Function.prototype.bind": {call: func(m *Meter, next native, c goja.FunctionCall) goja.Value {
			v := next(c)
			if f, ok := v.(*goja.Object); ok {
				m.guard(rule{}, f)
			}
			return v
		}},
	}
}

// item gives an item of a list, nil for a hole.
func item(list *goja.Object, i int) goja.Value { return list.Get(strconv.Itoa(i)) }

func setPrototype(m *Meter, next native, c goja.FunctionCall) goja.Value {
	if len(c.Arguments) > 1 {
		m.checkPrototype(c.Arguments[0], c.Arguments[1:])
	}
	return next(c)
}

// checkPrototype refuses to give an object of the service, such as ctx, another prototype: goja does not look for a circle
// there, and would go round it until the process dies.
func (m *Meter) checkPrototype(v goja.Value, prototype []goja.Value) {
	if _, dynamic := Exported(v).(goja.DynamicObject); dynamic && len(prototype) > 0 {
		m.refuse("the prototype of this object can't be changed")
	}
}

// Exported gives the Go value behind an object that is one, such as a date. Export itself copies all that a plain object,
// a list, a Map or a Set holds, however much that is, and runs its getters.
func Exported(v goja.Value) any {
	if obj, ok := v.(*goja.Object); ok {
		switch obj.ExportType() {
		case reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any](), reflect.TypeFor[[][2]any]():
			return nil
		}
	}
	return v.Export()
}

// members is for what goes through all members of its arguments.
func members(m *Meter, next native, c goja.FunctionCall) goja.Value {
	for _, v := range c.Arguments {
		m.checkMembers(v)
	}
	return next(c)
}

// Spread is what is spread in an object, an instruction that goes through all members by itself.
func (m *Meter) Spread(c goja.FunctionCall) goja.Value {
	m.checkMembers(c.Argument(0))
	return c.Argument(0)
}

// checkMembers refuses what has many members without taking the memory for them: a text, and a list of bytes.
func (m *Meter) checkMembers(v goja.Value) {
	n := 0
	switch v := v.(type) {
	case goja.String:
		n = v.Length()
	case *goja.Object:
		if v.ClassName() == "String" {
			n = textOf(v).Length()
		} else if isTyped(v) {
			n = int(lengthOf(v))
		}
	}
	if n > maxMembers {
		m.tooMuch("it has %d members; %d is the limit", n, maxMembers)
	}
}
