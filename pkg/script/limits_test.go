package script_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script"
)

// reason is why a run failed.
func reason(err error) script.Reason {
	if f, ok := errors.AsType[*script.Failure](err); ok {
		return f.Reason
	}
	return ""
}

// TestS61RunawaysEnd is the runtime's part of row S61: what takes time, depth or memory without bound ends with an error.
func TestS61RunawaysEnd(t *testing.T) {
	t.Parallel()
	e := script.NewEngine(script.Options{Parallel: 64}) // a run whose turn comes late is not stopped for its own time
	t.Cleanup(func() { _ = e.Close() })
	for name, c := range map[string]struct {
		text string
		want script.Reason
	}{
		"loop":                   {`module.exports = () => { for(;;); }`, script.Timeout},
		"loop that catches":      {`module.exports = () => { for(;;) try { for(;;); } catch {} finally { continue } }`, script.Timeout},
		"loop at the top":        {`for(;;); module.exports = 1`, script.Timeout},
		"loop after an await":    {`module.exports = async () => { await null; for(;;); }`, script.Timeout},
		"loop in a timer":        {`module.exports = async () => { setTimeout(() => { for(;;); }, 1); await sleep(1000) }`, script.Timeout},
		"loop in a getter":       {`module.exports = () => ({get x() { for(;;); }})`, script.Timeout},
		"loop in toJSON":         {`class A { toJSON() { for(;;); } } module.exports = () => new A()`, script.Timeout},
		"loop in an error":       {`module.exports = () => { throw {toString() { for(;;); }} }`, script.Timeout},
		"promise storm":          {`module.exports = () => new Promise(() => { const f = () => Promise.resolve().then(f); f() })`, script.Timeout},
		"storm without code":     {`module.exports = async () => { const o = {}; o.then = [].forEach.bind([o]); await o }`, script.Timeout},
		"timer without end":      {`module.exports = () => new Promise(() => { setInterval(() => {}, 1) })`, script.Timeout},
		"sleep":                  {`module.exports = () => sleep(3600000)`, script.Timeout},
		"recursion":              {`module.exports = () => { const f = () => f() + 1; return f() }`, script.Depth},
		"recursion of builtins":  {`module.exports = () => ({toString: String.prototype.trim}) + ''`, script.Depth},
		"repeat":                 {`module.exports = () => 'x'.repeat(1e9)`, script.Exception},
		"list":                   {`module.exports = () => new Array(1e9)`, script.Exception},
		"JSON":                   {`module.exports = () => { let a = {}; for (let i = 0; i < 200000; i++) a = {a}; return JSON.stringify(a) }`, script.Exception},
		"deep result":            {`module.exports = () => { let a = {}; for (let i = 0; i < 200; i++) a = {a}; return a }`, script.Exception},
		"result in itself":       {`module.exports = () => { const a = {}; a.a = a; return a }`, script.Exception},
		"large result":           {`module.exports = () => { const s = 'x'.repeat(1e6); return new Array(100).fill(s) }`, script.Exception},
		"sum of products":        {`module.exports = () => { let n = 3n; for (;;) n = n * n }`, script.Exception},
		"product kept":           {`module.exports = (ctx) => { const o = {n: ctx.n}; for (;;) try { o.n *= o.n } catch {} }`, script.Timeout},
		"shift kept":             {`module.exports = (ctx) => { const o = {n: ctx.n}; for (;;) try { o.n <<= 100000n } catch {} }`, script.Timeout},
		"power":                  {`module.exports = () => 3n ** 1000000000n`, script.Exception},
		"number in a text":       {`module.exports = () => 1n == '9'.repeat(8e6)`, script.Exception},
		"number before a text":   {`module.exports = () => 1n < '9'.repeat(8e6)`, script.Exception},
		"spread text":            {`module.exports = () => ({...'x'.repeat(8e6)})`, script.Exception},
		"spread bytes":           {`module.exports = () => ({...new Uint8Array(3e7)})`, script.Exception},
		"ctx in its own chain":   {`module.exports = (ctx) => { Object.setPrototypeOf(ctx, ctx.doc); Object.setPrototypeOf(ctx.doc, ctx); return ctx.nothing }`, script.Exception},
		"record in its chain":    {`module.exports = (ctx) => { const o = Object.create(ctx.doc); ctx.doc.__proto__ = o; return ctx.doc.nothing }`, script.Exception},
		"class in its chain":     {`module.exports = () => { const i = new ObjectId(); Object.setPrototypeOf(Object.getPrototypeOf(i), i); return i.nothing }`, script.Exception},
		"long sparse result":     {`module.exports = () => { const a = []; a.length = 1e7; return a }`, script.Exception},
		"result many times":      {`module.exports = () => { const a = new Array(1e6).fill(null); return new Array(1e3).fill(a) }`, script.Exception},
		"long stack":             {`module.exports = () => { const e = new Error(); e.stack = 'at ' + ' (:1:1'.repeat(1e6) + ':1:1(1'; throw e }`, script.Exception},
		"thrown getters":         {`module.exports = (ctx) => { throw Object.defineProperty(ctx.error(400, 'x'), 'message', {get() { for(;;); }}) }`, script.Timeout},
		"thrown errors":          {`module.exports = (ctx) => { throw ctx.error(400, 'x', [{get path() { for(;;); }}]) }`, script.Timeout},
		"stack that loops":       {`module.exports = () => { throw {get stack() { for(;;); }} }`, script.Timeout},
		"generator's end":        {`module.exports = () => { function* g() { try { yield 1 } finally { for(;;); } } for (const x of g()) break }`, script.Timeout},
		"iterator's end":         {`module.exports = () => { const [a] = {[Symbol.iterator]: () => ({next: () => ({}), return() { for(;;); }})} }`, script.Timeout},
		"labels":                 {`module.exports = () => { a: for(;;) { b: do { try { continue a } finally { continue b } } while (true) } }`, script.Timeout},
		"microtasks":             {`module.exports = async () => { for(;;) await null }`, script.Timeout},
		"microtasks that double": {`module.exports = async () => { const f = () => { Promise.resolve().then(f); return Promise.resolve() }; f(); await sleep(1e6) }`, script.Timeout},
		"thenable":               {`module.exports = async () => { const t = {then(r) { r(t) }}; await t }`, script.Timeout},
		"then that loops":        {`module.exports = async () => { await {get then() { for(;;); }} }`, script.Timeout},
		"timers by thousands":    {`module.exports = async () => { for (let i = 0; i < 9000; i++) setInterval(() => {}, 1); await sleep(1e6) }`, script.Timeout},
		"all prototypes":         {`module.exports = () => { Object.defineProperty(Object.prototype, 'toJSON', {get() { for(;;); }}); return {a: 1} }`, script.Timeout},
		"reviver":                {`module.exports = () => JSON.parse('[1,[2]]', function (k, v) { if (Array.isArray(this)) this[1] = [1, [2]]; return v })`, script.Timeout},
		"look-ahead":             {`module.exports = () => /^(?!x)(a|aa)+$/.test('a'.repeat(60) + 'b')`, script.Timeout},
		"shift":                  {`module.exports = (ctx) => { let n = ctx.n; n <<= 1n << 40n; return 1n }`, script.Exception},
		"Function":               {`module.exports = () => Function('return 1')()`, script.Exception},
		"pattern by its name":    {`module.exports = () => new globalThis['Reg' + 'Exp']('^(?!x)(a|aa)+$').test('a'.repeat(60) + 'b')`, script.Timeout},
		"pattern of a text":      {`module.exports = () => ('a'.repeat(60) + 'b')['ma' + 'tch']('^(?!x)(a|aa)+$')`, script.Timeout},
		"stuck":                  {`module.exports = () => new Promise(() => {})`, script.Exception},
		"many timers":            {`module.exports = () => { for (;;) setTimeout(() => {}, 1e6) }`, script.Exception},
		"many calls":             {`module.exports = () => { for (;;) db.collection('x').find() }`, script.Exception},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host{"db.find": func(ctx context.Context, _ bson.A) (any, error) { <-ctx.Done(); return nil, ctx.Err() }}
			timeout := 10 * time.Minute // by far more than a loaded machine needs
			if c.want == script.Timeout {
				timeout = 300 * time.Millisecond
			}
			call := script.Call{Program: compile(t, c.text), Host: h, Limits: script.Limits{Timeout: timeout, Memory: 8 << 30}, Ctx: []script.Member{{Name: "n", Value: int64(1) << 60}, {Name: "doc", Value: bson.D{{Key: "a", Value: 1}}}}}
			_, err := e.Run(t.Context(), call)
			for reason(err) == script.Busy { // a loaded machine: what waited longer than its time has not run
				_, err = e.Run(t.Context(), call)
			}
			if got := reason(err); got != c.want {
				t.Errorf("got %v, want %v: %v", got, c.want, err)
			}
		})
	}
}

// TestS61BuiltinsOfLiterals comes to built-ins by what a literal makes, which names no global.
func TestS61BuiltinsOfLiterals(t *testing.T) {
	t.Parallel()
	here, worker := engine(t), workerEngine(t)
	for name, c := range map[string]struct {
		text string
		want script.Reason
	}{
		"AsyncFunction":          {`module.exports = () => (async () => {}).constructor('return 1')()`, script.Exception},
		"GeneratorFunction":      {`module.exports = () => (function* () {}).constructor('return 1')()`, script.Exception},
		"AsyncFunction, method":  {`module.exports = () => ({ async m() {} }).m['const' + 'ructor']('return 1')()`, script.Exception},
		"AsyncFunction, module":  {`export default () => Object.getPrototypeOf(class { static async m() {} }.m).constructor('return 1')()`, script.Exception},
		"generator, method":      {`module.exports = () => ({ *m() {} }).m['const' + 'ructor']('return 1')()`, script.Exception},
		"generator, class":       {`export default () => class { static *m() {} }.m.constructor('return 1')()`, script.Exception},
		"Function of a method":   {`module.exports = () => 'x'.trim['const' + 'ructor']('for(;;);')()`, script.Exception},
		"String of a text":       {`module.exports = () => ''['const' + 'ructor'].raw({ raw: { length: 2 ** 53 - 1 } })`, script.Exception},
		"text of a text":         {`module.exports = () => ({ toString: ''['const' + 'ructor'].prototype.trim }) + ''`, script.Depth},
		"Function of a function": {`module.exports = () => (() => {}).constructor('return 1')()`, script.Exception},
		"Function of an object":  {`module.exports = () => ({}).constructor.constructor('return 1')()`, script.Exception},
		"Function of ctx":        {`module.exports = (ctx) => ctx.error.constructor('return 1')()`, script.Exception},
		"Array of a list":        {`module.exports = () => [].constructor(1e9)`, script.Exception},
		"BigInt of a number":     {`module.exports = () => (1n).constructor('9'.repeat(1e6))`, script.Exception},
		"buffer of a buffer":     {`module.exports = () => new (new Uint8Array(1).buffer.constructor)(512 << 20).byteLength`, script.Exception},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, c.text)
			for in, e := range map[string]*script.Engine{"this process": here, "a worker": worker} {
				_, err := e.Run(t.Context(), script.Call{Project: "p", Program: p, Isolate: e == worker, Limits: script.Limits{Timeout: 10 * time.Minute}})
				if got := reason(err); got != c.want {
					t.Errorf("in %s: got %v, want %v: %v", in, got, c.want, err)
				}
			}
		})
	}
}

// TestS61Memory is about memory that no single built-in takes.
func TestS61Memory(t *testing.T) { // alone: the heap is one for all
	e := engine(t)
	for name, text := range map[string]string{
		"objects":            `module.exports = () => { const a = []; for (;;) a.push({x: [1, 2, 3]}) }`,
		"text":               `module.exports = () => { let s = 'x'; for (let i = 0; i < 60; i++) s += s; return s.length }`,
		"buffers":            `module.exports = () => { const a = []; for (;;) a.push(new Uint8Array(1 << 20)) }`,
		"a little at a time": `module.exports = async () => { const a = []; for (;;) { a.push(new Uint8Array(1 << 20)); await sleep(0) } }`,
		"much, and a rest":   `module.exports = async () => { const a = []; for (;;) { a.push(new Uint8Array(8 << 20)); await sleep(10) } }`,
		"map":                `module.exports = () => { const m = new Map(); for (let i = 0; ; i++) m.set(i, {i}) }`,
	} {
		_, err := e.Run(t.Context(), script.Call{Program: compile(t, text), Limits: script.Limits{Timeout: time.Minute}})
		if got := reason(err); got != script.Memory {
			t.Errorf("%s: got %v: %v", name, got, err)
		}
	}
	// Garbage is not memory.
	_, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = () => { for (let i = 0; i < 150; i++) new Array(20000).fill(i) }`), Limits: script.Limits{Timeout: time.Minute}})
	if err != nil {
		t.Errorf("garbage: %v", err)
	}
}

// TestNothingCrossesRuns runs a program that changes all it can, and then one that looks.
func TestNothingCrossesRuns(t *testing.T) {
	t.Parallel()
	e := engine(t)
	p := compile(t, `
		let count = 0
		module.exports = (ctx) => {
			count++
			const own = [typeof JSON.parse, Symbol.for('x').description, new Date(0).getTime(), /(y)/.test('n'), typeof db.collection, Object.getPrototypeOf(new ObjectId()).leak,
				crypto.leak, db.leak, (() => { try { null.x } catch (e) { return e.leak } })(), (() => {}).leak, Promise.resolve().leak].join()
			const seen = own + '|' + [count, globalThis.leak, [].leak, typeof [].map, 'x'.leak, JSON.leak, Math.max(1, 2), typeof console.log, typeof setTimeout].join()
			globalThis.leak = Array.prototype.leak = String.prototype.leak = JSON.leak = 'leak'
			Object.getPrototypeOf(new ObjectId()).leak = crypto.leak = db.leak = Error.prototype.leak = Function.prototype.leak = Promise.prototype.leak = 'leak'
			Date.prototype.getTime = () => 1; JSON.parse = null; RegExp.prototype.test = () => true
			Array.prototype.map = Math.max = console.log = globalThis.setTimeout = 1
			Object.prototype.polluted = 'yes'
			setInterval(() => { globalThis.late = 1 }, 1)
			return seen + ctx.polluted + ctx.doc.polluted
		}`)
	var first any
	for i := range 5 {
		result, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "a", Value: 1}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = result.Value
		}
		if result.Value != first || !strings.HasPrefix(first.(string), "function,x,0,false,function,,,,,,|1,,,function,,,2,function,function") {
			t.Errorf("run %d: %v", i, result.Value)
		}
	}
}

// TestS22PrototypeKeysAreData is the runtime's part of row S22.
func TestS22PrototypeKeysAreData(t *testing.T) {
	t.Parallel()
	doc := bson.D{{Key: "__proto__", Value: bson.D{{Key: "isAdmin", Value: true}}}, {Key: "constructor", Value: "c"}, {Key: "prototype", Value: "p"}, {Key: "toString", Value: "t"}}
	p := compile(t, `module.exports = (ctx) => {
		if (ctx.doc.isAdmin || ({}).isAdmin || ctx.isAdmin) throw new Error('polluted')
		if (ctx.doc.__proto__.isAdmin !== true || ctx.doc.constructor !== 'c' || ctx.doc.toString !== 't') throw new Error('not data')
		ctx.doc.n = 1
		const copy = {...ctx.doc, inner: JSON.parse('{"__proto__": {"isAdmin": true}}')}
		if (copy.isAdmin || copy.inner.isAdmin) throw new Error('polluted copy')
		return copy
	}`)
	result, err := engine(t).Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: doc, Out: true}}})
	if err != nil {
		t.Fatal(err)
	}
	want := append(append(bson.D{}, doc...), bson.E{Key: "n", Value: int32(1)})
	if diff := cmp.Diff(want, result.Out["doc"]); diff != "" {
		t.Error(diff)
	}
	inner := bson.E{Key: "inner", Value: bson.D{{Key: "__proto__", Value: bson.D{{Key: "isAdmin", Value: true}}}}}
	if diff := cmp.Diff(append(want, inner), result.Value); diff != "" {
		t.Error(diff)
	}
}

// TestS57PanicsAreContained is the runtime's part of row S57: a panic under a script is a failure that is counted.
func TestS57PanicsAreContained(t *testing.T) {
	t.Parallel()
	m := &counted{}
	e := script.NewEngine(script.Options{Metrics: m})
	defer func() { _ = e.Close() }()
	_, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = () => console.log(1)`), Log: func(script.Line) { panic("injected") }})
	if reason(err) != script.Panic {
		t.Errorf("a panic of the log: %v", err)
	}
	h := host{"db.find": func(context.Context, bson.A) (any, error) { panic("injected") }}
	result, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = async () => { try { await db.collection('x').find() } catch (e) { return e.message } }`), Host: h})
	if err != nil || result.Value != "db.find: internal error" {
		t.Errorf("a panic of the host: %v, %v", result.Value, err)
	}
	if got := m.get(string(script.Panic)); got != 1 {
		t.Errorf("%d panics are counted", got)
	}
}

// counted counts outcomes.
type counted struct {
	mu       sync.Mutex
	outcomes map[string]int
}

func (c *counted) Ran(_, _ string, _ time.Duration, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcomes == nil {
		c.outcomes = map[string]int{}
	}
	c.outcomes[outcome]++
}

func (c *counted) Abandoned(string) { c.Ran("", "", 0, "abandoned") }

func (c *counted) get(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcomes[outcome]
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	e := script.NewEngine(script.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	defer func() { _ = e.Close() }()
	p := compile(t, `module.exports = (ctx) => { if (ctx.bad === 'throw') throw 1; while (ctx.bad) ; }`)
	run := func(bad any) script.Reason {
		_, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "bad", Value: bad}}, Limits: script.Limits{Timeout: 200 * time.Millisecond}})
		return reason(err)
	}
	var got []script.Reason
	for _, bad := range []any{true, true, "throw", true, true, true, true, true, false} {
		got = append(got, run(bad))
	}
	if p.Fresh().State(time.Unix(29, 0)).Suspended {
		t.Error("what is known of a program is known of a fresh one")
	}
	if !p.State(time.Unix(29, 0)).Suspended {
		t.Errorf("state: %+v", p.State(time.Unix(0, 0)))
	}
	now.Store(31)
	got = append(got, run(true), run(false)) // the trial fails
	now.Store(62)
	got = append(got, run(false), run(true), run(false))
	want := []script.Reason{"timeout", "timeout", "exception", "timeout", "timeout", "timeout", "timeout", "timeout", "suspended", "timeout", "suspended", "", "timeout", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAbandoned has a run that can't be stopped: the caller has its answer, and others run.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	m := &counted{}
	e := script.NewEngine(script.Options{Parallel: 1, Metrics: m})
	release := make(chan struct{})
	_, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = () => console.log(1)`), Limits: script.Limits{Timeout: 10 * time.Millisecond}, Log: func(script.Line) { <-release }})
	if reason(err) != script.Timeout || m.get("abandoned") != 1 {
		t.Errorf("got %v, %d abandoned", err, m.get("abandoned"))
	}
	if _, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = () => 1`)}); err != nil {
		t.Errorf("the next run: %v", err)
	}
	close(release)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Run(t.Context(), script.Call{Program: compile(t, `module.exports = () => 1`)}); reason(err) != script.Canceled {
		t.Errorf("after Close: %v", err)
	}
}

// TestWaitingRunsHoldNoPlace has more runs wait for their host than may compute at once.
func TestWaitingRunsHoldNoPlace(t *testing.T) {
	t.Parallel()
	e := script.NewEngine(script.Options{Parallel: 1})
	defer func() { _ = e.Close() }()
	const runs = 20
	var waiting sync.WaitGroup
	waiting.Add(runs)
	all := make(chan struct{})
	go func() { waiting.Wait(); close(all) }()
	h := host{"db.find": func(context.Context, bson.A) (any, error) { waiting.Done(); <-all; return bson.A{}, nil }}
	p := compile(t, `module.exports = async () => (await db.collection('x').find()).length`)
	var group sync.WaitGroup
	for range runs {
		group.Go(func() {
			if _, err := e.Run(t.Context(), script.Call{Program: p, Host: h}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestBusy fills the queue of one project; another one's run has its turn.
func TestBusy(t *testing.T) {
	t.Parallel()
	e := script.NewEngine(script.Options{Parallel: 1})
	defer func() { _ = e.Close() }()
	hold := make(chan struct{})
	began := make(chan struct{})
	blocker := compile(t, `module.exports = () => console.log(1)`)
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = e.Run(t.Context(), script.Call{Project: "a", Program: blocker, Log: func(script.Line) { close(began); <-hold }, Limits: script.Limits{Timeout: time.Minute}})
	})
	<-began
	p := compile(t, `module.exports = () => 1`)
	var busy atomic.Int32
	var answered sync.WaitGroup
	for range 130 {
		answered.Add(1)
		group.Go(func() {
			defer answered.Done()
			_, err := e.Run(t.Context(), script.Call{Project: "a", Program: p, Limits: script.Limits{Timeout: time.Minute}})
			if reason(err) == script.Busy {
				busy.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	group.Wait()
	if _, err := e.Run(t.Context(), script.Call{Project: "b", Program: p}); err != nil {
		t.Error(err)
	}
}

func TestHostErrors(t *testing.T) {
	t.Parallel()
	cause := errs.Validation([]errs.FieldError{{Path: "a", Rule: "min", Message: "too small"}})
	h := host{"db.insert": func(context.Context, bson.A) (any, error) { return nil, cause }, "db.find": func(context.Context, bson.A) (any, error) { return nil, errors.New("secret") }}
	e := engine(t)
	result, err := e.Run(t.Context(), script.Call{Host: h, Program: compile(t, `module.exports = async () => {
		try { await db.collection('x').insert({}) } catch (e) { return [e instanceof Error, e.code, e.errors[0].path, e.message] }
	}`)})
	if diff := cmp.Diff(bson.A{true, "validation_failed", "a", "db.insert: a: too small"}, result.Value); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = e.Run(t.Context(), script.Call{Host: h, Program: compile(t, `module.exports = async () => { await db.collection('x').insert({}) }`)})
	if !errors.Is(err, cause) || reason(err) != script.Exception {
		t.Errorf("got %v", err)
	}
	_, err = e.Run(t.Context(), script.Call{Host: h, Program: compile(t, `module.exports = async () => { await db.collection('x').find() }`)})
	if f, _ := errors.AsType[*script.Failure](err); f == nil || strings.Contains(f.Message, "secret") {
		t.Errorf("got %v", err)
	}
}

// TestHostErrorsHaveThePlaceOfTheCall: behind an await there is no stack, so the call's own is kept.
func TestHostErrorsHaveThePlaceOfTheCall(t *testing.T) {
	t.Parallel()
	h := host{
		"db.insert": func(context.Context, bson.A) (any, error) {
			return nil, errs.New(errs.NotFound, "x", "collection not found")
		},
		"http.fetch": func(context.Context, bson.A) (any, error) { return nil, errs.New(errs.Denied, "x", "http.fetch: no") },
	}
	project := files{
		"hooks/a.ts": "import { save } from '../lib/save'\nexport default async (ctx: any) => {\n  await sleep(1)\n  await save()\n}\n",
		"hooks/b.ts": "export default async (ctx: any) => {\n  const all = [http.fetch('http://x')]\n  await Promise.all(all)\n}\n",
		"hooks/c.js": "module.exports = async () => {\n\n  await db.collection('x').insert({})\n}\n",
		"lib/save.ts": "export async function save(): Promise<void> {\n  // a comment\n" +
			"  await db.collection('x').insert({})\n}\n",
	}
	for entry, want := range map[string]string{
		"hooks/a.ts": "lib/save.ts:3:28: exception: Error: db.insert: collection not found",
		"hooks/b.ts": "hooks/b.ts:2:21: exception: Error: http.fetch: no",
		"hooks/c.js": "hooks/c.js:3:28: exception: Error: db.insert: collection not found",
	} {
		p, problems := script.Compile(entry, project.read)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		_, err := engine(t).Run(t.Context(), script.Call{Host: h, Program: p})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", entry, err, want)
		}
	}
}

// TestCallsRunAtTheSameTime has Promise.all wait for calls that wait for each other.
func TestCallsRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	h := host{"db.count": func(context.Context, bson.A) (any, error) { both.Done(); both.Wait(); return int64(3), nil }}
	result, err := engine(t).Run(t.Context(), script.Call{Host: h, Program: compile(t, `export default async () => {
		const [a, b] = await Promise.all([db.collection('x').count(), db.collection('y').count()])
		return a + b
	}`)})
	if err != nil || result.Value != int32(6) {
		t.Errorf("got %v, %v", result.Value, err)
	}
}

// TestCallsNobodyAwaits are finished before the run ends.
func TestCallsNobodyAwaits(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	var lines []string
	h := host{
		"db.insert": func(context.Context, bson.A) (any, error) { done.Store(true); return nil, nil },
		"db.delete": func(context.Context, bson.A) (any, error) { return nil, errs.ErrDenied },
	}
	_, err := engine(t).Run(t.Context(), script.Call{
		Host: h, Log: func(l script.Line) { lines = append(lines, l.Level+" "+l.Message) },
		Program: compile(t, `export default () => { db.collection('x').insert({}); db.collection('x').delete('1') }`),
	})
	if err != nil || !done.Load() {
		t.Errorf("got %v, done %v", err, done.Load())
	}
	if diff := cmp.Diff([]string{"warn a call that the script did not await failed: db.delete"}, lines); diff != "" {
		t.Error(diff)
	}
}

// TestLogIsBounded has scripts log without end, here and in a worker process: the last line says how much is left out.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	for name, c := range map[string]struct {
		text  string
		lines int
		last  string
	}{
		"lines":  {`export default () => { for (let i = 0; i < 12000; i++) console.log(i) }`, 10_000, "lines left out: 2000;"},
		"bytes":  {`export default (ctx) => { for (let i = 0; i < 200; i++) ctx.log.info('x'.repeat(8192)) }`, 128, "lines left out: 72;"},
		"throws": {`export default (ctx) => { for (let i = 0; i < 10001; i++) console.log(i); throw 1 }`, 10_000, "lines left out: 1;"},
	} {
		for _, isolate := range []bool{false, true} {
			var lines []script.Line
			_, err := e.Run(t.Context(), script.Call{
				Program: compile(t, c.text), Isolate: isolate, Log: func(l script.Line) { lines = append(lines, l) }, Limits: script.Limits{Timeout: time.Minute},
			})
			if got := reason(err); got != "" && name != "throws" {
				t.Errorf("%s: %v", name, err)
			}
			if len(lines) != c.lines+1 || !strings.HasPrefix(lines[c.lines].Message, c.last) || lines[c.lines].Level != "warn" {
				t.Errorf("%s, isolate %v: %d lines, the last is %+v", name, isolate, len(lines), lines[len(lines)-1])
			}
		}
	}
}

// TestRunawaysGoToWorkers has a script run away: its next runs are in a worker process, until it has behaved for long.
// Those that only wait for too long stay.
func TestRunawaysGoToWorkers(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	where := func(p *script.Program, bad bool) (worker bool) {
		h := host{"db.find": func(ctx context.Context, _ bson.A) (any, error) {
			worker = script.InWorker(ctx)
			return bson.A{}, nil
		}}
		_, err := e.Run(t.Context(), script.Call{
			Project: "p", Program: p, Host: h, Ctx: []script.Member{{Name: "bad", Value: bad}}, Limits: script.Limits{Timeout: 2 * time.Second},
		})
		if got := reason(err); bad != (got == script.Timeout) || !bad && got != "" {
			t.Errorf("bad %v: %v", bad, err)
		}
		return worker
	}
	loops := compile(t, `export default async (ctx) => { await db.collection('x').find(); while (ctx.bad) ; }`)
	waits := compile(t, `export default async (ctx) => { await db.collection('x').find(); if (ctx.bad) await sleep(1e6) }`)
	got := []bool{where(loops, true), where(loops, true), where(loops, false), where(waits, true), where(waits, false)}
	if diff := cmp.Diff([]bool{false, true, true, false, false}, got); diff != "" {
		t.Error(diff)
	}
	for range 49 {
		where(loops, false)
	}
	if where(loops, false) {
		t.Error("a script that has behaved for long is still in a worker process")
	}
}

// TestS61LongNumbers has a BigInt meet a text that would take minutes to become one, wherever either comes from. The same
// with short texts is what JavaScript says.
func TestS61LongNumbers(t *testing.T) {
	t.Parallel()
	e := engine(t)
	text := strings.Repeat("7", 8<<20)
	for _, code := range []string{
		"ctx.big == ctx.text", "ctx.text != ctx.big", "ctx.big < ctx.text", "ctx.text >= ctx.big", "ctx.list.some((big) => big > ctx.text)",
		"ctx.big == {valueOf: () => ctx.text}", "ctx.big <= {toString: () => ctx.text}", "({[Symbol.toPrimitive]: () => ctx.text}) > ctx.big", "Object(ctx.big) == ctx.text",
		"(() => { for (let i = 0; i < ctx.text; i++) i = ctx.big })()", "(() => { for (let i = 0; i < ctx.text; i++) [i] = [ctx.big] })()", "(() => { for (let i = 0; i < ctx.text; i++) ({i} = {i: ctx.big}) })()",
		"(() => { for (let i = 0; i < ctx.text; i++) for (i of ctx.list) ; })()", "(() => { for (let i = 0; i < ctx.text; i++) (() => { i = ctx.big })() })()",
		"new DataView(new ArrayBuffer(8)).setBigInt64(0, ctx.text)", "new DataView(new ArrayBuffer(8)).setBigUint64(0, {toString: () => ctx.text})", "ctx.big.constructor(ctx.text)",
	} {
		for _, c := range []struct {
			text string
			want script.Reason
		}{{text, script.Exception}, {"7", ""}} {
			p := compile(t, "module.exports = (ctx) => { "+code+"; return 1 }")
			_, err := e.Run(t.Context(), script.Call{Program: p, Limits: script.Limits{Timeout: time.Minute}, Ctx: []script.Member{
				{Name: "big", Value: int64(1) << 60}, {Name: "list", Value: bson.A{int64(1) << 60}}, {Name: "text", Value: c.text},
			}})
			if reason(err) != c.want || c.want != "" && !strings.Contains(err.Error(), "the number is too large") {
				t.Errorf("%s with %d digits: %v", code, len(c.text), err)
			}
		}
	}
}

// TestS61ObjectsTakenApart has no program keep {...rest} = object, which no interrupt ends.
func TestS61ObjectsTakenApart(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"const {...r} = ctx.text; return r", "let r; ({...r} = ctx.text); return r", "const {a = 1, ...r} = ctx.text; return r", "const f = ({...r}) => r; return f(ctx.text)",
		"for (const {...r} of [ctx.text]) return r", "const [{...r}] = [ctx.text]; return r", "const {x: {...r} = ctx.text} = {}; return r", "try { throw ctx.text } catch ({...r}) { return r }",
	} {
		p := compile(t, "module.exports = (ctx) => { "+text+" }")
		if script.TakesApart(p) {
			t.Errorf("%s: as it was written", text)
		}
		result, err := engine(t).Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "text", Value: "ab"}}})
		if want := (bson.D{{Key: "0", Value: "a"}, {Key: "1", Value: "b"}}); err != nil || !reflect.DeepEqual(result.Value, want) {
			t.Errorf("%s: %v, %v", text, result.Value, err)
		}
	}
	if _, problems := script.CompileExpr("hidden", "(({...r}) => r)(ctx.doc)"); len(problems) != 1 || !strings.Contains(problems[0].Message, "put it into a file") {
		t.Errorf("%v", problems)
	}
}
