package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// native and ctor are the forms of goja's built-in functions.
type (
	native = func(goja.FunctionCall) goja.Value
	ctor   = func([]goja.Value, *goja.Object) *goja.Object
)

// factory makes the value of a built-in property for a runtime.
type factory = func(*goja.Runtime) goja.Value

// insides is where goja keeps what it does not export; see find.
type insides struct {
	tracker  uintptr // in Runtime: asyncContextTracker
	text     uintptr // in Runtime: stringSingleton
	self     uintptr // in Object: self
	property uintptr // the type word of *valueProperty as a Value
	value    uintptr // in valueProperty
	getter   uintptr
	setter   uintptr
	first    uintptr // in orderedMap, which holds members by symbols
	next     uintptr // in mapEntry
	key      uintptr
	entry    uintptr                            // in mapEntry: its value
	layouts  atomic.Pointer[map[uintptr]layout] // by the type word of what self holds; copied to add one
	rules    map[string]rule
	members  map[string]map[string]rule // the same by what the member is of, and its name
}

// layout is where an implementation of objects has its functions and members.
type layout struct {
	f, construct, values, symbols uintptr
	callable, constructs, members bool
	templated                     bool // most members are made by a template
}

var (
	once sync.Once //nolint:gochecknoglobals // goja's templates are global to the process, too
	in   insides   //nolint:gochecknoglobals // set once
)

// Install wraps the templates of this process, and bounds the time of the regular expressions that are compiled from
// then on. Attach does it, too; who compiles before that has to call it.
func Install() { once.Do(wrapTemplates) }

// words are the two words of an interface value.
type words struct {
	kind uintptr
	data unsafe.Pointer
}

func wordsOf(v *goja.Value) *words { return (*words)(unsafe.Pointer(v)) } //nolint:gosec // the point of this file

// at gives the address of a field.
func at[T any](base unsafe.Pointer, offset uintptr) *T { return (*T)(unsafe.Add(base, offset)) }

// offset finds a field by its name, and panics if goja has changed: that is a defect to find before anything runs.
func offset(t reflect.Type, name string, want reflect.Type) uintptr {
	f, ok := t.FieldByName(name)
	if !ok || want != nil && f.Type != want {
		panic(fmt.Sprintf("goja's %v has no field %s of type %v: package guard has to follow", t, name, want))
	}
	at := uintptr(0)
	for i := range f.Index { // through embedded structs, none of them a pointer
		at += t.FieldByIndex(f.Index[:i+1]).Offset
	}
	return at
}

// selfOf gives the implementation of an object: its type word and its address.
func selfOf(obj *goja.Object) words { return *at[words](unsafe.Pointer(obj), in.self) } //nolint:gosec // the point of this file

// implementation gives the implementation of an object by reflection.
func implementation(obj *goja.Object) reflect.Value {
	field, _ := reflect.TypeFor[goja.Object]().FieldByName("self")
	return reflect.NewAt(field.Type, unsafe.Add(unsafe.Pointer(obj), field.Offset)).Elem().Elem() //nolint:gosec // the point of this file
}

// layoutOf finds the layout of an object's implementation.
func layoutOf(obj *goja.Object) layout {
	kind := selfOf(obj).kind
	known := in.layouts.Load()
	if l, ok := (*known)[kind]; ok {
		return l
	}
	t := implementation(obj).Type().Elem()
	var l layout
	if _, ok := t.FieldByName("f"); ok {
		l.callable, l.f = true, offset(t, "f", reflect.TypeFor[native]())
	}
	if _, ok := t.FieldByName("construct"); ok {
		l.constructs, l.construct = true, offset(t, "construct", reflect.TypeFor[ctor]())
	}
	if _, ok := t.FieldByName("values"); ok {
		l.members, l.values = true, offset(t, "values", reflect.TypeFor[map[unistring.String]goja.Value]())
		l.symbols = offset(t, "symValues", nil)
	}
	_, l.templated = t.FieldByName("tmpl")
	more := maps.Clone(*known)
	more[kind] = l
	in.layouts.Store(&more) // a layout that another goroutine adds meanwhile is found again
	return l
}

// templateOf gives the template an object was made from, nil if there is none.
func templateOf(obj *goja.Object) *template {
	self := implementation(obj).Elem()
	field := self.FieldByName("tmpl")
	if !field.IsValid() {
		return nil
	}
	t := field.Type().Elem()
	address := *(*unsafe.Pointer)(unsafe.Pointer(field.UnsafeAddr())) //nolint:gosec // the point of this file
	props, _ := t.FieldByName("props")
	syms, _ := t.FieldByName("symProps")
	if props.Type.Elem().NumIn() != 1 || props.Type.Elem().In(0) != reflect.TypeFor[*goja.Runtime]() || props.Type.Key() != reflect.TypeFor[unistring.String]() ||
		syms.Type.Key() != reflect.TypeFor[*goja.Symbol]() || syms.Type.Elem() != props.Type.Elem() {
		panic("goja's templates have changed: package guard has to follow")
	}
	return &template{
		names: at[[]unistring.String](address, offset(t, "propNames", reflect.TypeFor[[]unistring.String]())),
		props: *at[map[unistring.String]factory](address, props.Offset),
		syms:  *at[map[*goja.Symbol]factory](address, syms.Offset),
	}
}

// template is a template of goja's, shared by all runtimes of the process.
type template struct {
	names *[]unistring.String
	props map[unistring.String]factory
	syms  map[*goja.Symbol]factory
}

// meterOf gives the meter of a runtime, nil if it has none.
func meterOf(r *goja.Runtime) *Meter {
	m, _ := (*at[goja.AsyncContextTracker](unsafe.Pointer(r), in.tracker)).(*Meter) //nolint:gosec // the point of this file
	return m
}

// wrapTemplates finds all templates, from the global object, in a runtime that is then thrown away.
func wrapTemplates() {
	vm := goja.New()
	in.rules, in.members = allRules(), map[string]map[string]rule{}
	for path, r := range in.rules {
		i := strings.Index(path, ".[")
		if i < 0 {
			i = strings.LastIndex(path, ".")
		}
		if i > 0 {
			if in.members[path[:i]] == nil {
				in.members[path[:i]] = map[string]rule{}
			}
			in.members[path[:i]][path[i+1:]] = r
		}
	}
	in.layouts.Store(&map[uintptr]layout{})
	setMatchTimeout()
	in.tracker = offset(reflect.TypeFor[goja.Runtime](), "asyncContextTracker", reflect.TypeFor[goja.AsyncContextTracker]())
	in.self = offset(reflect.TypeFor[goja.Object](), "self", nil)
	in.text = offset(reflect.TypeFor[goja.Runtime](), "stringSingleton", implementation(vm.ToValue("").ToObject(vm)).Type())
	global := vm.GlobalObject()
	top := templateOf(global)
	if top == nil {
		panic("goja's global object has no template: package guard has to follow")
	}
	sample := top.props["Object"](vm)
	in.property = wordsOf(&sample).kind
	property := reflect.TypeOf(sample).Elem()
	in.value = offset(property, "value", reflect.TypeFor[goja.Value]())
	in.getter = offset(property, "getterFunc", reflect.TypeFor[*goja.Object]())
	in.setter = offset(property, "setterFunc", reflect.TypeFor[*goja.Object]())

	base, _ := implementation(vm.NewObject()).Type().Elem().FieldByName("symValues")
	in.first = offset(base.Type.Elem(), "iterFirst", nil)
	entry, _ := base.Type.Elem().FieldByName("iterFirst")
	in.next = offset(entry.Type.Elem(), "iterNext", entry.Type)
	in.key = offset(entry.Type.Elem(), "key", reflect.TypeFor[goja.Value]())
	in.entry = offset(entry.Type.Elem(), "value", reflect.TypeFor[goja.Value]())

	found := map[*unistring.String]bool{} // templates by their list of names
	wrap := func(path string, t *template) {
		if t == nil || len(*t.names) == 0 || found[&(*t.names)[0]] {
			return
		}
		found[&(*t.names)[0]] = true
		t.wrap(vm, path)
	}
	for _, name := range *top.names {
		v, ok := vm.Get(name.String()).(*goja.Object)
		if !ok || v == global {
			continue
		}
		for path, obj := range around(vm, name.String(), v) {
			wrap(path, templateOf(obj))
		}
	}
	wrap("", top)
	top.remove("Proxy", "GoError", "eval", "BigInt64Array", "BigUint64Array") // what the limits could not be kept with
}

// prepareTexts gives a runtime the object that it reads the members of texts through. goja would make the constructor
// String for it, with its members, which costs a fifth of a short run.
func (m *Meter) prepareTexts() {
	text := m.vm.ToValue("").ToObject(m.vm)
	*at[unsafe.Pointer](unsafe.Pointer(m.vm), in.text) = selfOf(text).data //nolint:gosec // the point of this file
}

// around gives a global with what belongs to it: its prototype member, and what it inherits from where that is no global.
func around(vm *goja.Runtime, name string, v *goja.Object) map[string]*goja.Object {
	objects := map[string]*goja.Object{name: v}
	if p, ok := v.Get("prototype").(*goja.Object); ok {
		objects[name+".prototype"] = p
	}
	parent := v.Prototype()
	if p, ok := parent.Get("prototype").(*goja.Object); ok && name != "Object" { // %TypedArray%
		if typed, is := vm.Get("Uint8Array").ToObject(vm).Prototype(), true; is && parent == typed {
			objects["TypedArray"], objects["TypedArray.prototype"] = parent, p
		}
	}
	return objects
}

func (t *template) remove(names ...string) {
	for _, name := range names {
		delete(t.props, unistring.NewFromString(name))
	}
	kept := (*t.names)[:0:0]
	for _, name := range *t.names {
		if _, ok := t.props[name]; ok {
			kept = append(kept, name)
		}
	}
	*t.names = kept
}

// wrap makes the factories of a template guard what they make.
func (t *template) wrap(vm *goja.Runtime, path string) {
	for name, f := range t.props {
		t.props[name] = wrapFactory(vm, join(path, name.String()), f)
	}
	for symbol, f := range t.syms {
		t.syms[symbol] = wrapFactory(vm, join(path, "["+symbol.String()+"]"), f)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func wrapFactory(vm *goja.Runtime, path string, f factory) factory {
	a, b := f(vm), f(vm)
	shared := functionIn(a) != nil && functionIn(a) == functionIn(b)
	path = strings.TrimSuffix(path, ".prototype.constructor") // 'x'.constructor is the global, which may not have been made by its name
	whole := functionIn(a) != nil && path == topName(path)    // a global: with its members
	if functionIn(a) == nil && !isObject(a) && !isAccessor(a) {
		return f
	}
	rule := in.rules[path]
	return func(r *goja.Runtime) goja.Value {
		v := f(r)
		if m := meterOf(r); m != nil {
			obj := m.adopt(rule, v, shared)
			if whole && obj != nil && obj != r.GlobalObject() {
				m.adoptWhole(path, obj)
			}
		}
		return v
	}
}

func topName(path string) string {
	for i := range path {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return path
}

// functionIn gives the object that a property holds, nil if it holds none.
func functionIn(v goja.Value) *goja.Object {
	if w := wordsOf(&v); w.kind == in.property {
		v = *at[goja.Value](w.data, in.value)
	}
	obj, _ := v.(*goja.Object)
	return obj
}

func isObject(v goja.Value) bool {
	_, ok := v.(*goja.Object)
	return ok
}

func isAccessor(v goja.Value) bool {
	w := wordsOf(&v)
	return w.kind == in.property && (*at[*goja.Object](w.data, in.getter) != nil || *at[*goja.Object](w.data, in.setter) != nil)
}

// adopt guards the function or functions that a property holds, and gives the object that it holds, if it is a new one.
func (m *Meter) adopt(r rule, v goja.Value, shared bool) *goja.Object {
	if w := wordsOf(&v); w.kind == in.property {
		if obj := *at[*goja.Object](w.data, in.getter); obj != nil {
			m.guard(rule{}, obj)
		}
		if obj := *at[*goja.Object](w.data, in.setter); obj != nil {
			m.guard(r, obj)
		}
	}
	obj := functionIn(v)
	if obj == nil || shared && !m.first(obj) {
		return nil
	}
	m.guard(r, obj)
	return obj
}

// first says whether an object that several names share is met for the first time.
func (m *Meter) first(obj *goja.Object) bool {
	if slices.Contains(m.seen, obj) {
		return false
	}
	m.seen = append(m.seen, obj)
	return true
}

// adoptWhole guards the members of a global and of its prototype, as far as they do not come from templates.
func (m *Meter) adoptWhole(path string, obj *goja.Object) {
	m.adoptMembers(path, obj)
	if p := functionIn(member(obj, "prototype")); p != nil && m.first(p) {
		m.adoptMembers(path+".prototype", p)
	}
	if strings.HasSuffix(path, "Array") && path != "Array" { // what its buffers lead to
		m.vm.Get("ArrayBuffer")
	}
	if parent := obj.Prototype(); parent != nil && len(path) > 5 && path[len(path)-5:] == "Array" && m.first(parent) {
		m.adoptMembers("TypedArray", parent)
	}
}

// member gives an own member that has been made.
func member(obj *goja.Object, name string) goja.Value {
	l := layoutOf(obj)
	if !l.members {
		return nil
	}
	return (*at[map[unistring.String]goja.Value](selfOf(obj).data, l.values))[unistring.NewFromString(name)]
}

func (m *Meter) adoptMembers(path string, obj *goja.Object) {
	l := layoutOf(obj)
	if l.templated || !l.members {
		return
	}
	rules := in.members[path]
	for name, v := range *at[map[unistring.String]goja.Value](selfOf(obj).data, l.values) {
		if name != "constructor" && name != "prototype" && v != nil {
			m.adopt(rules[name.String()], v, false)
		}
	}
	if list := *at[unsafe.Pointer](selfOf(obj).data, l.symbols); list != nil {
		for e := *at[unsafe.Pointer](list, in.first); e != nil; e = *at[unsafe.Pointer](e, in.next) {
			symbol, _ := (*at[goja.Value](e, in.key)).(*goja.Symbol)
			if v := *at[goja.Value](e, in.entry); v != nil && symbol != nil {
				m.adopt(rules["["+symbol.String()+"]"], v, false)
			}
		}
	}
}

// guard wraps the function of an object in place, so that it stays the same object.
func (m *Meter) guard(r rule, obj *goja.Object) {
	l := layoutOf(obj)
	self := selfOf(obj).data
	if l.callable {
		if f := at[native](self, l.f); *f != nil {
			*f = m.native(*f, r.call)
		}
	}
	if l.constructs {
		if f := at[ctor](self, l.construct); *f != nil {
			*f = m.ctor(*f, r.construct)
		}
	}
}

func (m *Meter) native(next native, rule func(*Meter, native, goja.FunctionCall) goja.Value) native {
	if rule == nil {
		return func(c goja.FunctionCall) goja.Value {
			m.enter()
			defer m.leave()
			return next(c)
		}
	}
	return func(c goja.FunctionCall) goja.Value {
		m.enter()
		defer m.leave()
		return rule(m, next, c)
	}
}

func (m *Meter) ctor(next ctor, rule func(*Meter, ctor, []goja.Value, *goja.Object) *goja.Object) ctor {
	return func(args []goja.Value, target *goja.Object) *goja.Object {
		m.enter()
		defer m.leave()
		if rule != nil {
			return rule(m, next, args, target)
		}
		return next(args, target)
	}
}
