package script_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script"
)

// files is a project in memory.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// compile compiles one file.
func compile(tb testing.TB, text string) *script.Program {
	tb.Helper()
	p, problems := script.Compile("hook.js", files{"hook.js": text}.read)
	if len(problems) > 0 {
		tb.Fatalf("compile: %v", problems)
	}
	return p
}

func engine(tb testing.TB) *script.Engine {
	tb.Helper()
	e := script.NewEngine(script.Options{})
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return e
}

func TestForms(t *testing.T) {
	t.Parallel()
	id := bson.NewObjectID()
	for name, c := range map[string]struct {
		files files
		entry string
		args  []any
		ctx   []script.Member
		want  any
		out   map[string]any
	}{
		"module.exports":    {files: files{"a.js": `module.exports = (ctx) => ctx.n + 1`}, ctx: []script.Member{{Name: "n", Value: int32(4)}}, want: int32(5)},
		"export default":    {files: files{"a.js": `export default function (ctx) { return ctx.n }`}, ctx: []script.Member{{Name: "n", Value: int64(1) << 60}}, want: int64(1) << 60},
		"async":             {files: files{"a.js": `export default async (ctx) => { await sleep(1); return 'x' }`}, want: "x"},
		"made when touched": {files: files{"a.js": `module.exports = (ctx) => ctx.user.name + (ctx.user === ctx.user)`}, ctx: []script.Member{{Name: "user", Make: func() any { return bson.D{{Key: "name", Value: "ann"}} }}}, want: "anntrue"},
		"members that come and go": {
			files: files{"a.js": `module.exports = ({ doc }) => { delete doc.a; doc.b = 1; delete doc.b; doc.b = 2; doc.a = 3; doc.d = 4; delete doc.d; delete doc.none; return Object.keys(doc).join() + doc.d + ('c' in doc) + ('d' in doc) + doc.a }`},
			ctx:   []script.Member{{Name: "doc", Value: bson.D{{Key: "a", Value: 1.0}, {Key: "c", Value: int64(5)}}, Out: true}},
			want:  "c,b,aundefinedtruefalse3",
			out:   map[string]any{"doc": bson.D{{Key: "c", Value: int64(5)}, {Key: "b", Value: int32(2)}, {Key: "a", Value: int32(3)}}},
		},
		"a getter that deletes": {
			files: files{"a.js": `module.exports = ({ doc }) => { doc.x = { get y() { delete doc.z; delete doc.w; return 1 } }; doc.z = 2; doc.w = 3; return Object.keys(doc).join() }`},
			ctx:   []script.Member{{Name: "doc", Value: bson.D{{Key: "a", Value: 1.0}}, Out: true}},
			want:  "a,x,z,w",
			out:   map[string]any{"doc": bson.D{{Key: "a", Value: 1.0}, {Key: "x", Value: bson.D{{Key: "y", Value: int32(1)}}}}},
		},
		"more exports":  {files: files{"a.js": `export const a = 'a'; export default () => a; export let b = 2`}, want: "a"},
		"export list":   {files: files{"a.js": "const f = () => 'f'\nexport { f as default, f as g }"}, want: "f"},
		"export later":  {files: files{"a.js": "let f = () => 1\nexport { f as default }\nf = () => 2"}, want: int32(2)},
		"export by way": {entry: "a.ts", files: files{"a.ts": "export * from './b'; export { default } from './b'", "b.ts": "export const k = 'k'; export default () => k"}, want: "k"},
		"import of CommonJS": {
			files: files{"a.js": "import m from './m.js'\nexport default () => m.name", "m.js": `exports.name = 'm'`}, want: "m",
		},
		"require in a module": {
			files: files{"a.js": "export default () => require('./m.js').name", "m.js": `exports.name = 'm'`}, want: "m",
		},
		"a word in a comment":   {files: files{"a.js": "/*\nexport default\n*/\nmodule.exports = () => 1"}, want: int32(1)},
		"function that has one": {files: files{"a.js": `module.exports = f; function f(n) { return n > 0 ? f(n - 1) : 'end' }`}, want: "end"},
		"variable that has one": {files: files{"a.js": `const f = function (n) { return n > 0 ? f(n - 1) : 'end' }; module.exports = f`}, want: "end"},
		"variable of its own":   {files: files{"a.js": "const f = () => 'f'\nmodule.exports = f"}, want: "f"},
		"helpers":               {files: files{"a.js": "'use strict'\nconst one = 1\nmodule.exports = () => two() + one\nfunction two() { return 2 }"}, want: int32(3)},
		"exports.default":       {files: files{"a.js": `module.exports = { default: () => 'd' }`}, want: "d"},
		"behind its export":     {files: files{"a.js": "module.exports = () => n\nlet n = 1\nn++"}, want: int32(2)},
		"module elsewhere":      {files: files{"a.js": `module.exports = () => ({ module }).module.exports.name`}, want: ""},
		"this":                  {files: files{"a.js": `module.exports = () => String(this)`}, want: "[object Object]"},
		"own this":              {files: files{"a.js": `module.exports = function () { return String(this) + arguments.length }`}, want: "undefined1"},
		"typescript": {
			files: files{
				"a.ts":     `import { twice } from './lib/m'; import data from './d.json'; export default (ctx: {n: number}): number => twice(ctx.n) + data.k`,
				"lib/m.ts": `export function twice(n: number): number { return n * 2 }`, "d.json": `{"k": 100}`,
			},
			entry: "a.ts", ctx: []script.Member{{Name: "n", Value: 2.5}}, want: int32(105),
		},
		"require":     {files: files{"a.js": `const m = require('./m'); module.exports = () => m.name`, "m.js": `exports.name = 'm'`}, want: "m"},
		"arguments":   {files: files{"a.js": `module.exports = (value, ctx) => value + ctx.x`}, args: []any{"v"}, ctx: []script.Member{{Name: "x", Value: "x"}}, want: "vx"},
		"out changed": {files: files{"a.js": `module.exports = (ctx) => { ctx.doc.slug = ctx.doc.title.toLowerCase() }`}, ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "_id", Value: id}, {Key: "title", Value: "ABC"}, {Key: "n", Value: 2.0}}, Out: true}}, out: map[string]any{"doc": bson.D{{Key: "_id", Value: id}, {Key: "title", Value: "ABC"}, {Key: "n", Value: 2.0}, {Key: "slug", Value: "abc"}}}},
		"out read":    {files: files{"a.js": `module.exports = (ctx) => { JSON.stringify(ctx.doc) }`}, ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "a", Value: bson.A{int64(1), 2.0, bson.D{{Key: "b", Value: id}}}}}, Out: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := c.entry
			if entry == "" {
				entry = "a.js"
			}
			p, problems := script.Compile(entry, c.files.read)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			result, err := engine(t).Run(t.Context(), script.Call{Program: p, Args: c.args, Ctx: c.ctx})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, result.Value); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.out, result.Out); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	p, problems := script.CompileExpr("eval", "ctx.user && ctx.user.isAdmin // yes")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	result, err := engine(t).Run(t.Context(), script.Call{Program: p, Each: [][]script.Member{
		{{Name: "user", Value: bson.D{{Key: "isAdmin", Value: true}}}},
		{{Name: "user", Value: nil}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{true, nil}, result.Values); diff != "" {
		t.Error(diff)
	}
	for bad, want := range map[string]string{ // what follows a problem comes of it, and what we put around is no part of it
		"": "1:1: the expression is empty", "ctx.user &&": "1:12: the expression ends too early", "ctx.user\n &&": "2:4: the expression ends too early",
		"a b": "1:3: Unexpected identifier", "ctx.user && )": "1:13: Unexpected token )", "ctx.user\n && )": "2:5: Unexpected token )",
	} {
		_, problems := script.CompileExpr("eval", bad)
		if len(problems) != 1 || fmt.Sprintf("%d:%d: %s", problems[0].Line, problems[0].Column, problems[0].Message) != want {
			t.Errorf("%q: %v, want %s", bad, problems, want)
		}
	}
	for _, bad := range []string{"", "a b", "1); (2", "1) }); (function(){ return (2", "if (x) y", "{", "import x from 'x'"} {
		if _, problems := script.CompileExpr("eval", bad); len(problems) == 0 {
			t.Errorf("%q compiles", bad)
		}
	}
}

func TestErrorsHaveTheScriptsOwnPlace(t *testing.T) {
	t.Parallel()
	project := files{
		"hooks/a.ts": "import { check } from '../lib/check'\n\nexport default (ctx: any) => {\n  check(ctx.doc)\n}\n",
		"lib/check.ts": "// a comment\ninterface Doc { a: number }\nexport function check(d: Doc) {\n" +
			"  if (d.a > 1) throw new Error('too much')\n}\n",
	}
	p, problems := script.Compile("hooks/a.ts", project.read)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	_, err := engine(t).Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "a", Value: 2}}}}})
	f, ok := errors.AsType[*script.Failure](err)
	if !ok {
		t.Fatalf("got %T %v", err, err)
	}
	if f.Script != "lib/check.ts" || f.Line != 4 || f.Reason != script.Exception || !strings.Contains(f.Message, "too much") {
		t.Errorf("got %+v", f)
	}
	if !strings.Contains(f.Stack, "hooks/a.ts:4:") {
		t.Errorf("stack %q", f.Stack)
	}
}

// TestRefusedCallsHaveThePlaceOfTheCall: the answer comes when nothing of the script runs, and the glue is no place in it.
func TestRefusedCallsHaveThePlaceOfTheCall(t *testing.T) {
	t.Parallel()
	refuse := func(context.Context, bson.A) (any, error) { return nil, errs.New(errs.NotFound, "not_found", "no") }
	h := host{"db.find": refuse, "db.begin": refuse, "http.fetch": refuse}
	for text, line := range map[string]int{
		"export default async () => {\n  await sleep(1)\n  await db.collection('a').find()\n}":                3,
		"export default async () => {\n  const p = db.collection('a').find()\n  await sleep(1)\n  await p\n}": 2,
		"export default async () => {\n\n\n  await http.fetch('http://a')\n}":                                 4,
		"export default async () => {\n  await db.transaction(async () => {})\n}":                             2,
		"export default () => {\n\n  db.collection('a').insert({s: Symbol()})\n}":                             3,
	} {
		_, err := engine(t).Run(t.Context(), script.Call{Program: compile(t, text), Host: h})
		if f := failure(t, err); f.Script != "hook.js" || f.Line != line || strings.Contains(f.Stack, "svc:") {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

func TestThrown(t *testing.T) {
	t.Parallel()
	p := compile(t, `module.exports = async (ctx) => { throw ctx.error(409, 'taken', [{path: 'slug', message: 'is taken'}, 'more']) }`)
	_, err := engine(t).Run(t.Context(), script.Call{Program: p})
	want := &script.Thrown{Status: 409, Message: "taken", Fields: []errs.FieldError{{Path: "slug", Rule: "script", Message: "is taken"}, {Rule: "script", Message: "more"}}}
	thrown, ok := errors.AsType[*script.Thrown](err)
	if diff := cmp.Diff(want, thrown); !ok || diff != "" {
		t.Errorf("got %v: %s", err, diff)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`module.exports = () => { for(;;); }`,
		`module.exports = async () => { await new Promise(() => setInterval(() => {}, 5)) }`,
		`module.exports = () => { for(;;) try { for(;;); } catch {} finally { continue } }`,
	} {
		p := compile(t, text)
		_, err := engine(t).Run(t.Context(), script.Call{Program: p, Limits: script.Limits{Timeout: 50 * time.Millisecond}})
		if f, ok := errors.AsType[*script.Failure](err); !ok || f.Reason != script.Timeout {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestStuck(t *testing.T) {
	t.Parallel()
	_, err := engine(t).Run(t.Context(), script.Call{Program: compile(t, `module.exports = async () => { await new Promise(() => {}) }`)})
	if err == nil || !strings.Contains(err.Error(), "nothing can settle") {
		t.Errorf("got %v", err)
	}
}

// host answers by functions.
type host map[string]func(context.Context, bson.A) (any, error)

func (h host) Call(ctx context.Context, op string, args bson.A) (any, error) { return h[op](ctx, args) }

func TestDB(t *testing.T) {
	t.Parallel()
	var log []string
	conflicts := 2
	record := func(op string, answer any) func(context.Context, bson.A) (any, error) {
		return func(_ context.Context, args bson.A) (any, error) {
			text, err := bson.MarshalExtJSON(bson.D{{Key: op, Value: args}}, false, false)
			log = append(log, string(text))
			return answer, errors.Join(err)
		}
	}
	h := host{
		"db.find": record("find", bson.A{bson.D{{Key: "n", Value: int32(1)}}}), "db.insert": record("insert", nil), "db.begin": record("begin", "tx1"), "db.rollback": record("rollback", nil),
		"db.commit": func(ctx context.Context, args bson.A) (any, error) {
			conflicts--
			return record("commit", conflicts > 0)(ctx, args)
		},
	}
	p := compile(t, `export default async () => {
		const found = await db.collection('a').find({x: 1}, {limit: 2})
		await db.transaction(async (tx) => { await tx.collection('b', {asUser: true}).insert(found[0]) })
		return found.length
	}`)
	result, err := engine(t).Run(t.Context(), script.Call{Program: p, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	if result.Value != int32(1) {
		t.Errorf("got %v", result.Value)
	}
	commit, insert := `{"commit":["tx1"]}`, `{"insert":[{"collection":"b","asUser":true,"tx":"tx1"},{"n":1}]}`
	want := []string{`{"find":[{"collection":"a","asUser":false},{"x":1},{"limit":2}]}`, `{"begin":[]}`, insert, commit, insert, commit}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for text, want := range map[string]any{
		`crypto.hash('sha256', 'abc')`:                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		`crypto.hmac('sha256', 'k', 'v', 'base64')`:         "xdS+GZLVDTtB+aISkvxnoooUhvxkoFF9N/mvhH4HMt4=",
		`crypto.uuid().length`:                              int32(36),
		`crypto.randomBytes(8).length`:                      int32(8),
		`crypto.timingSafeEqual('a', new Uint8Array([97]))`: true,
		`env.KEY + typeof env.OTHER`:                        "vundefined",
		`String(new ObjectId('0123456789abcdef01234567'))`:  "0123456789abcdef01234567",
		`new Decimal128('1.50').toString()`:                 "1.50",
		`embeddings.similarity([3, 4], [4, 3])`:             0.96,
		`embeddings.similarity([1, 0], [-2, 0])`:            int32(-1),
		`embeddings.similarity([0, 0], [4, 3])`:             int32(0),
		`embeddings.similarity({a: 3, b: 4}, {b: 2, c: 0})`: 0.8,
		`embeddings.similarity({toString: 1}, {a: 1})`:      int32(0),
		`[[[1], [1, 2]], [[1], {a: 1}], [[1], null], ['1', '1'], [['a'], [1]], [{a: 'b'}, {a: 1}], [{a: 1}, {a: {}}]].filter(([a, b]) => { try { embeddings.similarity(a, b) } catch (e) { return e instanceof TypeError } }).length`: int32(7),
		`(console.log('a', {b: [1]}), 1)`: int32(1),
	} {
		result, err := e.Run(t.Context(), script.Call{Program: compile(t, "export default () => "+text), Env: map[string]string{"KEY": "v"}})
		if err != nil || result.Value != want {
			t.Errorf("%s: got %v, %v; want %v", text, result.Value, err, want)
		}
	}
}

// What a search looks for goes to the host as the options of a find, from a worker process too; without a host there is none.
func TestSearchAndEmbeddings(t *testing.T) {
	t.Parallel()
	t.Run("here", func(t *testing.T) { testSearchAndEmbeddings(t, engine(t), false) })
	t.Run("in a worker", func(t *testing.T) { testSearchAndEmbeddings(t, workerEngine(t), true) })
	for _, text := range []string{`search.find('a', 'b')`, `search.count('a', 'b')`, `embeddings.query('a', 'b')`, `embeddings.documents('a', ['b'])`} {
		_, err := engine(t).Run(t.Context(), script.Call{Program: compile(t, "module.exports = () => "+text)})
		if f := failure(t, err); !strings.Contains(f.Message, "is not there in filters, validators and expressions") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func testSearchAndEmbeddings(t *testing.T, e *script.Engine, isolate bool) {
	t.Helper()
	var log []string
	record := func(op string, answer any) func(context.Context, bson.A) (any, error) {
		return func(_ context.Context, args bson.A) (any, error) {
			text, err := bson.MarshalExtJSON(bson.D{{Key: op, Value: args}}, false, false)
			log = append(log, string(text))
			return answer, err
		}
	}
	h := host{
		"search.find": record("find", bson.A{}), "search.count": record("count", int64(3)),
		"embeddings.query": func(ctx context.Context, args bson.A) (any, error) {
			if args[0] != "texts" {
				return nil, errs.New(errs.Unavailable, "embedding_offline", "the embedding group %s is offline", args[0])
			}
			return record("query", bson.A{0.5, -0.25})(ctx, args)
		},
		"embeddings.documents": record("documents", bson.A{bson.A{0.5, -0.25}, nil}),
	}
	p := compile(t, `export default async () => {
		await search.find('a', 'red fox')
		await search.find('a', 'red fox', {name: 'main', filter: {x: 1}, limit: 2, asUser: true})
		const n = await search.count('a', 'red fox', {lang: 'de'})
		const [v, w] = await embeddings.documents('texts', ['b', ''])
		const code = await embeddings.query('none', 'b').catch((e) => e.code)
		return [n, embeddings.similarity(v, await embeddings.query('texts', 'b')), w, code]
	}`)
	result, err := e.Run(t.Context(), script.Call{Project: "p", Program: p, Host: h, Isolate: isolate})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bson.A{int32(3), int32(1), nil, "embedding_offline"}, result.Value); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`{"find":[{"collection":"a","asUser":false},{},{"q":"red fox"}]}`, `{"find":[{"collection":"a","asUser":true},{"x":1},{"limit":2,"q":"red fox","qName":"main"}]}`,
		`{"count":[{"collection":"a","asUser":false},{},{"lang":"de","q":"red fox"}]}`, `{"documents":["texts",["b",""]]}`, `{"query":["texts","b"]}`,
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
	_, err = e.Run(t.Context(), script.Call{Project: "p", Program: compile(t, "\nexport default () => embeddings.query('none', 'b')"), Host: h, Isolate: isolate})
	if f := failure(t, err); f.Line != 2 || errs.From(f.Cause).Code != "embedding_offline" {
		t.Errorf("%+v", f)
	}
}

// TestRequireOfAnything is a path that is known only when it runs.
func TestRequireOfAnything(t *testing.T) {
	t.Parallel()
	_, err := engine(t).Run(t.Context(), script.Call{Program: compile(t, `module.exports = (ctx) => require(ctx.x)`), Ctx: []script.Member{{Name: "x", Value: "fs"}}})
	if err == nil || !strings.Contains(err.Error(), "require takes a path that is written out") {
		t.Errorf("got %v", err)
	}
}

// TestTypes has a declaration of every global that scripts find.
func TestTypes(t *testing.T) {
	t.Parallel()
	types := script.Types()
	for _, name := range []string{"db", "search", "embeddings", "http", "crypto", "cache", "files", "env", "console"} {
		if !strings.Contains(types, "declare const "+name+":") {
			t.Errorf("%s is not declared", name)
		}
	}
	for _, name := range []string{"setTimeout", "setInterval", "clearTimeout", "clearInterval", "sleep"} {
		if !strings.Contains(types, "declare function "+name+"(") {
			t.Errorf("%s is not declared", name)
		}
	}
	for _, name := range []string{"ObjectId", "Decimal128"} {
		if !strings.Contains(types, "declare class "+name+" {") {
			t.Errorf("%s is not declared", name)
		}
	}
}

// TestHosts hands operations to the host of their module.
func TestHosts(t *testing.T) {
	t.Parallel()
	hosts := script.Hosts{"cache": host{"cache.get": func(context.Context, bson.A) (any, error) { return "v", nil }}}
	p := compile(t, `export default async () => { try { await files.list() } catch (e) { return [await cache.get('k'), e.code] } }`)
	result, err := engine(t).Run(t.Context(), script.Call{Program: p, Host: hosts})
	if diff := cmp.Diff(bson.A{"v", "no_module"}, result.Value); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// What operators are compiled to does what they do.
func TestOperatorsAreThemselves(t *testing.T) {
	t.Parallel()
	p := compile(t, `module.exports = () => {
		let a = 3, b = 4n; const o = {n: 2, get m() { return this.n }}
		a *= o.n; b *= 5n; o.n <<= a; b <<= 2n
		const {x, ...others} = {...{x: 1, y: 2}, ...null, ...'ab', ...[7]}
		return [a, b, o.n, a * o.m, a ** 2, a << 1, -a >> 1, b * b, b >> 1n, '7' * '2', 'a' * 1, 1n == '1', 2n < '10', b > 3, a == '6', x, others, Math.max(...'12')]
	}`)
	result, err := engine(t).Run(t.Context(), script.Call{Program: p})
	if err != nil {
		t.Fatal(err)
	}
	want := bson.A{
		int32(6), int64(80), int32(128), int32(768), int32(36), int32(12), int32(-3), int64(6400), int64(40), int32(14), math.NaN(), true, true, true, true,
		int32(1),
		bson.D{{Key: "0", Value: int32(7)}, {Key: "1", Value: "b"}, {Key: "y", Value: int32(2)}},
		int32(2),
	}
	if diff := cmp.Diff(want, result.Value, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}
