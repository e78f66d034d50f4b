package script_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		"module.exports": {files: files{"a.js": `module.exports = (ctx) => ctx.n + 1`}, ctx: []script.Member{{Name: "n", Value: int32(4)}}, want: int32(5)},
		"export default": {files: files{"a.js": `export default function (ctx) { return ctx.n }`}, ctx: []script.Member{{Name: "n", Value: int64(1) << 60}}, want: int64(1) << 60},
		"async":          {files: files{"a.js": `export default async (ctx) => { await sleep(1); return 'x' }`}, want: "x"},
		"typescript": {
			files: files{"a.ts": `import { twice } from './lib/m'; import data from './d.json'; export default (ctx: {n: number}): number => twice(ctx.n) + data.k`,
				"lib/m.ts": `export function twice(n: number): number { return n * 2 }`, "d.json": `{"k": 100}`},
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
