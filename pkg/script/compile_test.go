package script_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script"
)

// TestCompileProblems is what does not compile, with its own place.
func TestCompileProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entry string
		files files
		want  string
	}{
		"missing":           {"none.js", nil, "none.js: there is no such file"},
		"outside":           {"../x.js", nil, "../x.js: the path leaves the project"},
		"absolute":          {"/etc/x.js", nil, "/etc/x.js: the path leaves the project"},
		"extension":         {"x.txt", files{"x.txt": ""}, "x.txt: a script's file ends in .js, .cjs, .mjs, .ts, .cts or .mts"},
		"syntax":            {"", files{"a.js": "module.exports = (ctx) => {\n  let x = ;\n}"}, `a.js:2:11: Unexpected ";"`},
		"syntax of import":  {"", files{"a.js": "import './lib/b.ts'", "lib/b.ts": "\nlet x: = 1"}, `lib/b.ts:2:8: Unexpected "="`},
		"missing import":    {"", files{"a.js": "\nimport x from './b'\nx()"}, `a.js:2:15: "./b": there is no such file`},
		"import outside":    {"", files{"a.js": "import x from '../../b'\nx()"}, `a.js:1:15: "../../b" leaves the project`},
		"package":           {"", files{"a.js": "import x from 'lodash'\nx()"}, `a.js:1:15: a script can only import files of its project, by a path that begins with ./ or ../: "lodash" does not; db, http, crypto and the like are there without an import`},
		"builtin":           {"", files{"a.js": "const fs = require('fs')\nfs"}, `a.js:1:20: a script can only import files of its project, by a path that begins with ./ or ../: "fs" does not; db, http, crypto and the like are there without an import`},
		"file URL":          {"", files{"a.js": "import x from 'file:///etc/passwd'\nx()"}, `a.js:1:15: a script can only import files of its project, by a path that begins with ./ or ../: "file:///etc/passwd" does not; db, http, crypto and the like are there without an import`},
		"what is no script": {"", files{"a.js": "import x from './b.css'\nx()", "b.css": ""}, `a.js:1:15: a script imports .js, .cjs, .mjs, .ts, .cts, .mts and .json`},
		"bad JSON":          {"", files{"a.js": "import x from './b.json'\nx()", "b.json": "{"}, `a.js:1:15: "./b.json": not valid JSON`},
		"no export":         {"", files{"a.js": "const x = 1"}, "a.js:1:1: the script exports no function: write export default (ctx) => { … }, or module.exports = (ctx) => { … }"},
		"named export":      {"a.ts", files{"a.ts": "export const bind = (ctx: any) => 1"}, "a.ts:1:1: the script exports no function: write export default (ctx) => { … }, or module.exports = (ctx) => { … }"},
		"no such name":      {"a.ts", files{"a.ts": "import { slugifi } from './b'\nexport default () => slugifi('x')", "b.ts": "export const slugify = 1"}, `a.ts:1:10: No matching export in "b.ts" for import "slugifi"`},
		"deep":              {"", files{"a.js": "\nx = " + strings.Repeat("[", 20000)}, "a.js: line 2: more than 8 KiB without a comma, a semicolon or a closing brace; put data into a .json file or on lines of its own"},
		"large":             {"", files{"a.js": strings.Repeat("x;\n", 400000)}, "a.js: the file is larger than 1 MiB, which is the limit of a script"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := c.entry
			if entry == "" {
				entry = "a.js"
			}
			p, problems := script.Compile(entry, c.files.read)
			if p != nil || len(problems) == 0 {
				t.Fatal("it compiles")
			}
			if diff := cmp.Diff(c.want, problems[0].String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSyntax runs what modern scripts are written in.
func TestSyntax(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, c := range []struct {
		text string
		want any
	}{
		{"const {a, ...rest} = {a: 1, b: 2}; return {...rest, c: [...[1, 2]]}", bson.D{{Key: "b", Value: int32(2)}, {Key: "c", Value: bson.A{int32(1), int32(2)}}}},
		{"class A { #x = 1; static y = 2; get x() { return this.#x } }; return new A().x + A.y", int32(3)},
		{"return ctx?.none?.x ?? 'none'", "none"},
		{"let x = null; x ??= 5; return x ** 2", int32(25)},
		{"let s = 0; for await (const x of [1, Promise.resolve(2)]) s += x; return s", int32(3)},
		{"async function* g() { yield 1; yield 2 } let s = 0; for await (const x of g()) s += x; return s", int32(3)},
		{"function* g() { yield* [1, 2, 3] } return [...g()].length", int32(3)},
		{"return `a${1 + 1}b`", "a2b"},
		{"return 1_000", int32(1000)},
		{"return [3, 1, 2].toSorted().at(-1)", int32(3)},
		{"return [10, 9, 1].sort().join()", "1,10,9"},
		{"return 'a-b-c'.replaceAll('-', '')", "abc"},
		{"return 'x1y22'.replace(/\\d+/g, (d) => d.length)", "x1y2"},
		{"return /(?<y>\\d{4})-(?<m>\\d\\d)/.exec('2026-11').groups.m", "11"},
		{"return [..._matches()].length; function _matches() { return 'aXbX'.matchAll(/X/g) }", int32(2)},
		{"return Object.entries({a: 1}).map(([k, v]) => k + v)[0]", "a1"},
		{"return new Map([[1, 2]]).get(1) + new Set([1, 1]).size", int32(3)},
		{"const m = await import('./m.js'); return m.x", "m"},
		{"return (5 << 2) + (20 >> ctx.two) + (1 << 3)", int32(33)},
		{"return 10n << 2n", int64(40)},
		{"return Array.from({length: 3}, (_, i) => i * 2)", bson.A{int32(0), int32(2), int32(4)}},
		{"return JSON.stringify({a: [1, {b: null}], d: ctx.doc}, null, 1)", "{\n \"a\": [\n  1,\n  {\n   \"b\": null\n  }\n ],\n \"d\": {\n  \"t\": \"x\"\n }\n}"},
		{"return JSON.stringify({a: 1, b: {a: 2, c: 3}}, ['a', 'b'])", `{"a":1,"b":{"a":2}}`},
		{"return JSON.stringify({a: 1, b: 2}, (k, v) => k === 'a' ? undefined : v)", `{"b":2}`},
		{"return [[1, [2, [3]]]].flat(Infinity).length", int32(3)},
		{"return Array.prototype.slice.call({length: 2, 0: 'a', 1: 'b'}).join('')", "ab"},
		{"return Math.max.apply(null, [1, 5, 3])", int32(5)},
		{"return 'x'.repeat(3) + 'y'.padStart(3, '.')", "xxx..y"},
		{"return new Uint8Array([1, 2, 300])[2]", int32(44)},
		{"return new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"},
		{"return ctx.doc.hasOwnProperty('t') && 't' in ctx.doc && Object.keys(ctx.doc).length === 1 && !('u' in ctx.doc)", true},
		{"delete ctx.doc.t; ctx.doc.u = 1; return JSON.stringify(ctx.doc)", `{"u":1}`},
		{"const {doc} = ctx; doc.list = [1]; doc.list.push(2); return doc.list.length", int32(2)},
		{"try { null.x } catch (e) { return e instanceof TypeError }", true},
		{"label: for (const a of [1, 2]) { for (;;) continue label } return 'done'", "done"},
	} {
		text, want := c.text, c.want
		p, problems := script.Compile("a.ts", files{"a.ts": "export default async (ctx: any) => {\n" + text + "\n}", "m.js": "exports.x = 'm'"}.read)
		if len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
			continue
		}
		result, err := e.Run(t.Context(), script.Call{Program: p, Ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "t", Value: "x"}}}, {Name: "two", Value: 2}}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, result.Value); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// FuzzCompile holds compilation to ending without a panic, whatever the text.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{"module.exports = (ctx) => ctx.a", "export default async function () { await 1 }", "(", "`${", "/(/", "a<<b", "class A { #x }", "import x from './a.js'", "\x00\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		for _, entry := range []string{"a.js", "a.ts"} {
			_, problems := script.Compile(entry, files{entry: text}.read)
			_ = fmt.Sprint(problems)
		}
		_, problems := script.CompileExpr("e", text)
		_ = fmt.Sprint(problems)
	})
}

// BenchmarkCompile compiles as many scripts as a large project has, one after the other.
func BenchmarkCompile(b *testing.B) {
	project := files{"lib.ts": "export function slug(s: string): string { return s.toLowerCase().replace(/[^a-z0-9]+/g, '-') }"}
	for i := range 200 {
		project[fmt.Sprintf("hooks/%d.ts", i)] = fmt.Sprintf("import { slug } from '../lib'\nexport default (ctx: any) => {\n  ctx.doc.slug = slug(ctx.doc.title)\n  ctx.doc.n = %d\n}\n", i)
	}
	for b.Loop() {
		for i := range 200 {
			if _, problems := script.Compile(fmt.Sprintf("hooks/%d.ts", i), project.read); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	}
}

// TestSourceMapComment has a comment that names a source map outside of the project: nobody reads it.
func TestSourceMapComment(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.map")
	smap := `{"version": 3, "sources": ["/outside/secret.js"], "names": [], "mappings": "AAAA;AACA;AACA"}`
	if err := os.WriteFile(outside, []byte(smap), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{
		"//# sourceMappingURL=file://" + outside, "//@ sourceMappingURL=file://localhost" + outside, "/*# sourceMappingURL=file://" + outside + " */",
		"//# sourceMappingURL=" + outside, "//# sourceMappingURL=data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(smap)),
	} {
		for _, entry := range []string{"a.js", "a.ts"} {
			p, problems := script.Compile(entry, files{entry: "module.exports = () => {\n  throw new Error('x')\n}\n" + comment}.read)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			_, err := engine(t).Run(t.Context(), script.Call{Program: p})
			failure, ok := errors.AsType[*script.Failure](err)
			if !ok || failure.Script != entry || failure.Line != 2 {
				t.Errorf("%s: %v", comment, err)
			}
		}
	}
}

// TestCompileNested compiles functions in variables of functions: each is looked at once, or it would take for ever.
func TestCompileNested(t *testing.T) {
	t.Parallel()
	const levels = 200
	text := strings.Repeat("var f = function() {", levels) + "return 2 * x;" + strings.Repeat("};", levels)
	if _, problems := script.Compile("a.js", files{"a.js": "module.exports = () => {" + text + "}"}.read); len(problems) > 0 {
		t.Error(problems)
	}
}
