package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

const scripted = `
-- project.yaml --
namespace: scripted
hook: {timeout: 2s, env: [KEY]}
collections: [articles/collection.yaml]
-- articles/collection.yaml --
name: articles
hooks: hooks.yaml
bulk: {hooks: each}
permissions:
  public: {methods: {get: true}, filter: {type: javascript, file: public.ts}}
  user: {methods: {get: true}}
  token:abcd1234: {methods: {get: true}, filter: {type: javascript, file: public.ts, timeout: 100}}
fields:
  - {name: title, type: string, validator: {script: title.js}}
  - {name: pay, type: object, subFields: [{name: amount, type: number, hidden: {eval: "!ctx.user"}}]}
  - {name: note, type: string, readonly: {eval: "ctx.doc.locked"}}
  - {name: file, type: string, hidden: {eval: hide.js}}
-- articles/hooks.yaml --
post:
  bind: {type: javascript, file: ../hooks/slug.ts, timeout: 300}
  create: [{type: javascript, file: ../hooks/one.js}, {type: javascript, file: ../hooks/two.js}]
-- articles/public.ts --
export default (ctx: {user: any}) => ({active: true});
-- articles/title.js --
module.exports = (value) => value.length > 3 ? undefined : 'is too short';
-- articles/hide.js --
const { owns } = require('../lib/owns');
module.exports = (ctx) => !owns(ctx);
-- lib/owns.js --
exports.owns = (ctx) => ctx.doc.createdBy === ctx.user.id;
-- hooks/slug.ts --
import { slug } from '../lib/slug';
export default (ctx: any) => { ctx.data.slug = slug(ctx.data.title) };
-- hooks/one.js --
module.exports = () => {};
-- hooks/two.js --
module.exports = () => {};
-- lib/slug.ts --
export const slug = (s: string): string => s.toLowerCase();
`

func TestScriptsAreCompiled(t *testing.T) {
	t.Parallel()
	dir := write(t, scripted)
	p, problems := project.Load(dir, "project.yaml", env)
	if len(problems) > 0 {
		t.Fatal(strings.Join(lines(problems), "\n"))
	}
	c := p.Collections["articles"]
	got := map[string][]string{}
	for stage, list := range c.Hooks {
		for _, s := range list {
			got[stage] = append(got[stage], fmt.Sprint(s.Program.Name(), " ", s.Timeout))
		}
	}
	for _, s := range c.Filters {
		got["filter"] = append(got["filter"], fmt.Sprint(s.Program.Name(), " ", s.Timeout))
	}
	slices.Sort(got["filter"])
	for _, e := range c.Evals {
		got["eval"] = append(got["eval"], fmt.Sprint(strings.Join(e.Paths, " "), " hidden=", e.Hidden, " doc=", e.OfDoc, " ", e.Script.Timeout))
	}
	for path, s := range c.Validators {
		got["validator "+path] = []string{s.Program.Name()}
	}
	want := map[string][]string{
		"post.bind":       {"hooks/slug.ts 300ms"},
		"post.create":     {"hooks/one.js 2s", "hooks/two.js 2s"},
		"filter":          {"articles/public.ts 100ms", "articles/public.ts 250ms"},
		"eval":            {"pay.amount hidden=true doc=false 250ms", "note hidden=false doc=true 250ms", "file hidden=true doc=true 250ms"},
		"validator title": {"articles/title.js"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p.Hook.Memory != 64<<20 || p.Hook.Isolation != "auto" || !c.Bulk.EachHooks {
		t.Errorf("%+v, %+v", p.Hook, c.Bulk)
	}
	var files []string
	for _, f := range p.Files {
		if _, ok := p.Bundle.Files[f.Name]; !ok {
			t.Errorf("%s is not in the bundle", f.Name)
		}
		files = append(files, f.Name)
	}
	if !slices.Contains(files, "lib/slug.ts") || !slices.Contains(files, "lib/owns.js") || !slices.IsSorted(files) {
		t.Errorf("files: %q", files)
	}
	// A generation from the store needs no disk.
	again, problems := p.Bundle.Load(t.TempDir(), env)
	if len(problems) > 0 || again.Revision != p.Revision || again.Collections["articles"].Hooks["post.bind"] == nil {
		t.Errorf("from the bundle: %v", problems)
	}
	// What a script imports is part of the revision.
	if err := os.WriteFile(filepath.Join(dir, "lib", "slug.ts"), []byte("export const slug = (s: string) => s;"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, _ := project.Load(dir, "project.yaml", env); changed.Revision == p.Revision {
		t.Error("another script, the same revision")
	}
}

func TestScriptProblems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, text, want string }{
		"its own place": {"hooks/slug.ts", "export default (ctx: any) => {\n  let x = ;\n}", `hooks/slug.ts:2:11: collections[0].hooks.post.bind.file: Unexpected ";"`},
		"of an import":  {"lib/slug.ts", "export const slug = 1 +;", `lib/slug.ts:1:24: collections[0].hooks.post.bind.file: Unexpected ";"`},
		"no such import": {
			"hooks/one.js", "require('./three')",
			`hooks/one.js:1:9: collections[0].hooks.post.create[0].file: "./three": there is no such file`,
		},
		"an import outside": {"hooks/one.js", "require('../../x')", `hooks/one.js:1:9: collections[0].hooks.post.create[0].file: "../../x" leaves the project`},
		"an expression": {
			"articles/collection.yaml", "name: articles\npermissions: {public: {methods: {}}, user: {methods: {}}}\nfields:\n  - {name: a, type: string, hidden: {eval: \"ctx.user &&\"}}",
			"articles/collection.yaml:4:44: collections[0].fields[0].hidden.eval: column",
		},
		"no file": {
			"articles/hooks.yaml", "get:\n  return: {type: javascript, file: none.js}",
			`articles/hooks.yaml:2:36: collections[0].hooks.get.return.file: "none.js" can't be read: there is no such file`,
		},
		"a file outside": {
			"articles/hooks.yaml", "get:\n  return: {type: javascript, file: ../../none.js}",
			`articles/hooks.yaml:2:36: collections[0].hooks.get.return.file: "../../none.js" can't be read: it lies outside the project's directory`,
		},
		"another ending": {
			"articles/hooks.yaml", "get:\n  return: {type: javascript, file: collection.yaml}",
			`articles/collection.yaml:1:1: collections[0].hooks.get.return.file: a script's file ends in`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, scripted)
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(tt.file)), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, problems := project.Load(dir, "project.yaml", env)
			if p != nil || !slices.ContainsFunc(lines(problems), func(s string) bool { return strings.HasPrefix(s, tt.want) }) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines(problems), "\n"), tt.want)
			}
		})
	}
}

// A hook of the audit log does nothing without one.
func TestAuditHookWithoutAudit(t *testing.T) {
	t.Parallel()
	dir := write(t, scripted)
	if err := os.WriteFile(filepath.Join(dir, "articles", "hooks.yaml"), []byte("audit:\n  return: {type: javascript, file: ../hooks/one.js}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", env)
	want := "articles/hooks.yaml:2:11: warning: collections[0].hooks.audit.return: has no effect: the collection's writes are not in the audit log (audit.enabled)"
	if p == nil || len(problems) != 1 || problems[0].String() != want {
		t.Errorf("%v", lines(problems))
	}
}

// A script is compiled again only when something has changed for it.
func TestScriptsAreCached(t *testing.T) {
	t.Parallel()
	dir := write(t, scripted)
	l := &project.Loader{Env: env, Scripts: project.NewScripts(nil)}
	program := func(stage string) any {
		p, problems := l.Load(dir, "project.yaml")
		if problems.Err() {
			t.Fatal(problems)
		}
		return p.Collections["articles"].Hooks[stage][0].Program
	}
	bind, create := program("post.bind"), program("post.create")
	if program("post.bind") != bind {
		t.Error("compiled again for nothing")
	}
	for _, change := range []string{"lib/slug.ts", "lib/slug"} { // the second takes the place of the first
		path := filepath.Join(dir, filepath.FromSlash(change))
		if change == "lib/slug" {
			path = filepath.Join(dir, "lib", "slug.js")
			if err := os.Rename(filepath.Join(dir, "lib", "slug.ts"), filepath.Join(dir, "lib", "slug.mts")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, []byte("exports.slug = (s) => s;"), 0o600); err != nil {
			t.Fatal(err)
		}
		next := program("post.bind")
		if next == bind {
			t.Errorf("%s: not compiled again", change)
		}
		bind = next
		if program("post.create") != create {
			t.Errorf("%s: another script was compiled again", change)
		}
	}
}

func BenchmarkLoad200Scripts(b *testing.B) {
	dir := b.TempDir()
	var config strings.Builder
	config.WriteString("namespace: many\ncollections:\n- name: a\n  permissions: {public: {methods: {}}, user: {methods: {}}}\n  hooks:\n    post:\n      create:\n")
	for i := range 200 {
		name := fmt.Sprintf("s%d.ts", i)
		config.WriteString("      - {type: javascript, file: " + name + "}\n")
		text := "import { f } from './lib';\nexport default async (ctx: any) => {\n" + strings.Repeat("  ctx.doc.a = f(ctx.doc.a);\n", 50) + "};\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, text := range map[string]string{"project.yaml": config.String(), "lib.ts": "export const f = (x: number): number => x + 1;\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, cached := range []bool{false, true} {
		b.Run(fmt.Sprint("cached=", cached), func(b *testing.B) {
			l := &project.Loader{Env: env, Scripts: project.NewScripts(nil)}
			for b.Loop() {
				if !cached {
					l.Scripts = nil
				}
				if _, problems := l.Load(dir, "project.yaml"); problems.Err() {
					b.Fatal(problems[0])
				}
			}
		})
	}
}

// Scripts that take long to compile, all together, are not all compiled: a config has a bounded time.
func TestCompilingIsBounded(t *testing.T) {
	t.Parallel()
	var config strings.Builder
	config.WriteString("-- project.yaml --\nnamespace: many\ncollections:\n- name: a\n  permissions: {public: {methods: {}}, user: {methods: {}}}\n  hooks:\n    post:\n      create:\n")
	for i := range 5 {
		fmt.Fprintf(&config, "      - {type: javascript, file: s%d.js}\n", i)
	}
	for i := range 5 {
		fmt.Fprintf(&config, "-- s%d.js --\nmodule.exports = () => 1\n", i)
	}
	dir := write(t, config.String())
	var asked []string
	l := &project.Loader{Env: env, Scripts: project.NewScripts(func(of, entry string, read func(string) ([]byte, error)) (*script.Program, script.Problems, time.Duration) {
		asked = append(asked, entry)
		if of != dir {
			t.Errorf("the project is %s", of)
		}
		p, problems := script.Compile(entry, read)
		return p, problems, 25 * time.Second
	})}
	_, problems := l.Load(dir, "project.yaml")
	if len(asked) != 3 || len(problems) != 2 || !strings.Contains(problems[0].String(), `"s3.js" is not compiled: the project's scripts take longer than 1m0s to compile`) {
		t.Errorf("%v: %v", asked, lines(problems))
	}
	asked = nil
	if _, problems = l.Load(dir, "project.yaml"); problems.Err() || len(asked) != 2 { // three are known
		t.Errorf("%v: %v", asked, lines(problems))
	}
}
