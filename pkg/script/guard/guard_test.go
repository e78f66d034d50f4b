package guard_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"

	"github.com/svcctl/svc/pkg/script/guard"
)

// every lists every function that a script can get at from ROOTS, by walking.
const every = `(function () {
  const found = [], seen = new Set(), nothing = Object.getPrototypeOf(() => {}) // which gives undefined
  const walk = (path, v) => {
    if (v === null || (typeof v !== 'object' && typeof v !== 'function') || seen.has(v)) return
    seen.add(v)
    if (typeof v === 'function' && v !== nothing) found.push([path, v])
    for (const key of Reflect.ownKeys(v)) {
      const d = Object.getOwnPropertyDescriptor(v, key)
      const name = path + '.' + String(key)
      if (d.get) walk('get ' + name, d.get)
      if (d.set) walk('set ' + name, d.set)
      if ('value' in d) walk(name, d.value)
    }
    walk(path + '.__proto__', Object.getPrototypeOf(v))
  }
  ROOTS
  return found
})()`

// roots are where a script can begin, with how many functions there are at least. Those but the first come to the globals
// by what a literal makes, before anything has named them.
var roots = map[string]int{
	`walk('', globalThis)
	walk('/x/', /x/)
	walk('error', (() => { try { null.x } catch (e) { return e } })())
	walk('array iterator', [][Symbol.iterator]())
	walk('string iterator', ''[Symbol.iterator]())
	walk('map iterator', new Map().entries())
	walk('set iterator', new Set().entries())
	walk('matchAll', 'a'.matchAll(/a/g))
	walk('bound', Math.max.bind(null))`: 400,
	`walk('function', Object.getPrototypeOf(() => {}))`: 20,
	`walk('list', [])`: 50,
	`walk('text', ''.constructor); walk('prototype of text', Object.getPrototypeOf(''))`: 70,
	`walk('number', (1).constructor)`:                                                   20,
	`walk('big number', 1n.constructor)`:                                                20,
	`walk('symbol', Symbol.iterator.constructor)`:                                       20,
	`walk('pattern', /x/)`:                                                              30,
	`walk('buffer', new Uint8Array(1).buffer)`:                                          30,
	`walk('error', (() => { try { null.x } catch (e) { return e } })())`:                20,
	`walk('promise', (async () => {})())`:                                               20,
	`walk('iterator', [][Symbol.iterator]()); walk('of a text', ''[Symbol.iterator]())`: 20,
}

// TestEveryBuiltinIsGuarded holds every built-in to ending the run once the meter says so.
func TestEveryBuiltinIsGuarded(t *testing.T) {
	t.Parallel()
	for root, least := range roots {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			checkGuarded(t, root, least)
		})
	}
}

func checkGuarded(t *testing.T, root string, least int) {
	t.Helper()
	vm := goja.New()
	m := guard.Attach(vm)
	for _, global := range []string{"RegExp", "Error", "Promise"} { // what programs that have the syntax make first
		vm.Get(global)
	}
	v, err := vm.RunString(strings.Replace(every, "ROOTS", root, 1))
	if err != nil {
		t.Fatal(err)
	}
	list := v.ToObject(vm)
	n := int(list.Get("length").ToInteger())
	if n < least {
		t.Fatalf("found %d built-ins only", n)
	}
	m.Stop()
	vm.ClearInterrupt()
	for i := range n {
		pair := list.Get(strconv.Itoa(i)).ToObject(vm)
		path := pair.Get("0").String()
		if harmless[path] {
			continue
		}
		f, ok := goja.AssertFunction(pair.Get("1"))
		if !ok {
			t.Errorf("%s is no function", path)
			continue
		}
		if _, err := f(goja.Undefined()); !isInterrupt(err) {
			t.Errorf("%s does not look at the meter: %v", path, err)
		}
		vm.ClearInterrupt()
	}
}

func isInterrupt(err error) bool {
	_, ok := errors.AsType[*goja.InterruptedError](err)
	return ok
}

// harmless are built-ins that call nothing and do nothing worth a bound: a class of errors that goja makes by itself reads
// its arguments only, of which a built-in gives it none.
var harmless = map[string]bool{"error.__proto__.constructor": true}

// runaways are scripts that no interrupt of goja's ends. Each has to end by itself, or when it is told to.
var runaways = map[string]string{
	"toString that calls itself":         `({toString: String.prototype.trim}) + ''`,
	"toLocaleString that calls toString": `var o = {}; o.toString = Object.prototype.toLocaleString; '' + o`,
	"getter that reads itself":           `var o = {}; Object.defineProperty(o, 'x', {get: Reflect.get.bind(null, o, 'x')}); o.x`,
	"iterator without end":               `[...{[Symbol.iterator]: () => ({next: Object})}]`,
	"iterator in arguments":              `Math.max(...{[Symbol.iterator]: () => ({next: Object})})`,
	"iterator in a pattern":              `var [...r] = {[Symbol.iterator]: () => ({next: Object})}`,
	"iterator in Set":                    `new Set({[Symbol.iterator]: () => ({next: Object})})`,
	"iterator of the iterator itself":    `var m = new Map(); m.next = m.set; m[Symbol.iterator] = () => m; Array.from(m)`,
	"thenables without end":              `var o = {}; o.then = [].forEach.bind([o]); Promise.resolve(o)`,
	"promise storm":                      `var f = () => Promise.resolve().then(f); f()`,
	"error that names itself":            `var e = new Error(); e.name = e; '' + e`,
	"error from inside":                  `try { null.x } catch (e) { e.name = e; '' + e }`,
	"toJSON that stringifies":            `var o = {}; o.toJSON = JSON.stringify.bind(null, o); JSON.stringify(o)`,
	"species of a promise":               `var p = Promise.resolve(1); Object.defineProperty(p, 'constructor', {get: p.then}); p.then()`,
	"repeat":                             `'x'.repeat(1e9)`,
	"repeat of text that changes":        `var n = 0; ({toString() { return 'x' }, x: String.prototype.repeat}).x({valueOf() { return n++ ? 1e9 : 1e9 }})`,
	"padEnd":                             `'x'.padEnd(2e9)`,
	"padStart":                           `'x'.padStart(2e9, 'ab')`,
	"new Array":                          `new Array(1e9)`,
	"Array":                              `Array(4e9 - 1 | 0 ? 4e9 - 1 : 0)`,
	"fill of a long list":                `var a = []; a.length = 4e9; a.fill(0)`,
	"indexOf in a long list":             `var a = []; a.length = 4e9; a.indexOf(1)`,
	"forEach in a long list":             `var a = []; a.length = 4e9; a.forEach(Math.abs)`,
	"reverse of a long list":             `var a = []; a.length = 4e9; a.reverse()`,
	"join of a long list":                `var a = []; a.length = 4e9; a.join()`,
	"text of a long list":                `var a = []; a.length = 4e9; '' + a`,
	"spread of a long list":              `var a = []; a.length = 4e9; [...a]`,
	"concat of long lists":               `var a = []; a.length = 3e6; a.concat(a, a)`,
	"what is like a list":                `Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`,
	"filled what is like a list":         `Array.prototype.fill.call({length: 2 ** 53 - 1}, 1)`,
	"length that grows":                  `var n = 0; Array.prototype.includes.call({get length() { return n++ ? 2 ** 52 : 1 }}, 1); Array.prototype.fill.call({get length() { return n++ ? 2 ** 52 : 1 }})`,
	"Array.from of a length":             `Array.from({length: 1e9})`,
	"apply of a length":                  `Math.max.apply(null, {length: 1e9})`,
	"Reflect.apply of a length":          `Reflect.apply(Math.max, null, {length: 1e9})`,
	"Reflect.construct of a length":      `Reflect.construct(Array, {length: 1e9})`,
	"String.raw of a length":             `String.raw({raw: {length: 2 ** 53 - 1}})`,
	"flat that doubles":                  `var a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a.flat(Infinity)`,
	"join that doubles":                  `var a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a.join()`,
	"join of long texts":                 `var s = 'x'.repeat(1e6); new Array(1e6).fill(s).join()`,
	"JSON that doubles":                  `var a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; JSON.stringify(a)`,
	"JSON too deep":                      `var a = {}; for (let i = 0; i < 200000; i++) a = {a}; JSON.stringify(a)`,
	"JSON text too deep":                 `JSON.parse('['.repeat(200000) + ']'.repeat(200000))`,
	"JSON text too long":                 `JSON.parse('[' + '1,'.repeat(4e6) + '1]')`,
	"nested lists as text":               `var a = []; for (let i = 0; i < 200000; i++) a = [a]; '' + a`,
	"ArrayBuffer":                        `new ArrayBuffer(512 << 20)`,
	"Float64Array":                       `new Float64Array(1e8)`,
	"Uint8Array of a length":             `new Uint8Array({length: 1e9})`,
	"Uint8Array.from":                    `Uint8Array.from({length: 1e9})`,
	"set of a typed list":                `new Uint8Array(1).set({length: 1e9})`,
	"split into characters":              `'x'.repeat(8e6).split('')`,
	"replaceAll that grows":              `'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e6))`,
	"replace that grows":                 `'x'.repeat(1e6).replace(/x/g, 'y'.repeat(1e6))`,
	"replace with what follows":          `'x'.repeat(1e6).replace(/x/g, "$'")`,
	"BigInt of a long text":              `BigInt('9'.repeat(1e7))`,
	"BigInt.asUintN":                     `BigInt.asUintN(2 ** 40, -1n)`,
	"a regular expression too long":      `new RegExp('('.repeat(1e5))`,
	"a heavy regular expression":         `/(x{1,100}){1,10}y/.test('x'.repeat(1e6))`,
	"backtracking":                       `/^(?=(a+)+$)b|(a+)+$/.test('a'.repeat(40) + 'b'); /(?=x)(a+)+$/.test('a')` + `; /^(?!x)(a|aa)+$/.test('a'.repeat(60) + 'b')`,
	"backtracking from a text":           `'a'.repeat(60).concat('b').match('^(?!x)(a|aa)+$')`,
	"backtracking in replace":            `('a'.repeat(60) + 'b').replace(/^(?!x)(a|aa)+$/g, '')`,
	"sort of a long list":                `new Array(4e6).fill('x').sort()`,
	"Function":                           `Function('for(;;);')()`,
	"Function by its prototype":          `(() => {}).constructor('for(;;);')()`,
	"eval":                               `(0, eval)('for(;;);')`,
	"Proxy in its own chain":             `var t = {}, p = new Proxy(t, {}); Object.setPrototypeOf(t, p); p.x`,
	"forEach of a Map into itself":       `var m = new Map([[1, 2]]); m.forEach(function f(v, k) { m.set({}, f) })`,
	"members of bytes":                   `Object.entries(new Uint8Array(3e7))`,
	"bytes into an object":               `Object.assign({}, new Uint8Array(3e7))`,
	"names of bytes":                     `Reflect.ownKeys(new Uint8Array(3e7))`,
	"JSON of bytes":                      `JSON.stringify({a: new Uint8Array(3e7)})`,
	"JSON of a text that is an object":   `JSON.stringify([new String('x'.repeat(8e6))])`,
	"members of a text":                  `Object.keys('x'.repeat(8e6))`,
	"frozen text":                        `Object.freeze(new String('x'.repeat(8e6)))`,
	"wider copy of bytes":                `new Float64Array(new Uint8Array(3e7))`,
	"replaceAll with a function":         `'x'.repeat(8e6).replaceAll('x', () => 'y')`,
	"replaceAll of nothing":              `'x'.repeat(8e6).replaceAll('', 'y')`,
	"String.raw of long texts":           `var s = 'x'.repeat(1e6); String.raw({raw: new Array(1e5).fill(s)})`,
	"parseFloat of a long text":          `parseFloat('9'.repeat(8e6))`,
	"BigInt of an object":                `BigInt({toString: () => '9'.repeat(8e6)})`,
	"BigInt.asIntN of a text":            `BigInt.asIntN(64, '9'.repeat(8e6))`,
	"a pattern of many classes":          "new RegExp('[\\\\p{L}\\\\p{N}]'.repeat(150), 'u')",
	"a pattern of many groups":           `new RegExp('(x?)'.repeat(900)).exec('x'.repeat(100))`,
	"a sticky pattern in a long text":    `/(?:a|b|ab)*?c/y.exec('ab'.repeat(1e6))`,
	"localeCompare":                      `'ä'.repeat(5e6).localeCompare('ä'.repeat(5e6))`,
	"indexOf of long texts":              `'ä'.repeat(2e6).indexOf('ä'.repeat(1e6) + 'b')`,
	"a long chain of prototypes":         `var o = {}; for (let i = 0; i < 100000; i++) o = Object.create(o); o.x; throw 1`,
	"a long chain of bound functions":    `var f = () => 1; for (let i = 0; i < 100000; i++) f = f.bind(null); f()`,
}

// TestRunaways runs what would not end, or would end the process. It has to end with an error.
func TestRunaways(t *testing.T) {
	t.Parallel()
	only := os.Getenv("RUNAWAY")
	for name, text := range runaways {
		if only != "" && name != only {
			continue
		}
		t.Run(name, func(t *testing.T) {
			vm := goja.New()
			m := guard.Attach(vm)
			vm.SetMaxCallStackSize(1024)
			for _, global := range []string{"RegExp", "Error", "Promise"} {
				vm.Get(global)
			}
			timer := time.AfterFunc(300*time.Millisecond, m.Stop)
			defer timer.Stop()
			v, err := vm.RunString(text)
			if err == nil {
				t.Errorf("it ended with %.60v", v)
			}
			if err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("got %v", err)
			}
		})
	}
}
