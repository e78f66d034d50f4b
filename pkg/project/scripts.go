package project

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
)

// Script is a compiled script of a config.
type Script struct {
	Program *script.Program
	Timeout time.Duration
}

// Eval is an expression that decides for each request whether a field is hidden or readonly.
type Eval struct {
	Paths  []string // of the field and its translations
	Hidden bool     // else it is readonly
	// OfDoc says that the expression may look at the record, so that it has to be asked for each one. An expression that
	// does not mention doc gets none, so this is never wrong the other way.
	OfDoc  bool
	Script *Script
}

// ruleTimeout is the time that filters, expressions and validators may take when they say nothing: they run with every
// request.
const ruleTimeout = 250 * time.Millisecond

// maxCompiling is how long the scripts of one project may take to compile, all together.
const maxCompiling = time.Minute

// ofDoc finds the word doc in the text of an expression.
var ofDoc = regexp.MustCompile(`\bdocs?\b`)

// hookSettings are the settings of a project's scripts, with defaults for what it doesn't say.
func hookSettings(config *schema.Project) *schema.Hook {
	if config.Hook != nil {
		return config.Hook
	}
	return schema.DefaultHook()
}

// script compiles the script that a member of the config names. Actions and jobs have theirs compiled here, too. It is
// nil if there are problems.
func (c *compiler) script(file, at string, timeout time.Duration) *Script {
	if file == "" { // was not decoded, which has been said
		return nil
	}
	name := c.Resolve(at, file)
	if name == "" {
		c.fail(at, schema.CodeReference, "%q can't be read: %s", file, schema.ErrOutside)
		return nil
	}
	if _, err := c.read(name); err != nil {
		c.fail(at, schema.CodeReference, "%q can't be read: %s", file, schema.ReadProblem(err))
		return nil
	}
	if c.took > maxCompiling {
		c.fail(at, schema.CodeReference, "%q is not compiled: the project's scripts take longer than %s to compile", file, maxCompiling)
		return nil
	}
	program, problems, took := c.programs.compile(c.dir, name, c.read)
	c.took += took
	for _, p := range problems {
		pos := schema.Position{File: p.File, Line: max(p.Line, 1), Column: max(p.Column, 1)}
		c.problems = append(c.problems, c.ScriptProblem(pos, at, p.Message))
	}
	if program == nil {
		return nil
	}
	for _, f := range program.Files() {
		if data, err := c.read(f); err == nil {
			sum := sha256.Sum256(data)
			c.scripts[f] = hex.EncodeToString(sum[:])
		}
	}
	return &Script{Program: program, Timeout: timeout}
}

// read reads a file of a script.
func (c *compiler) read(name string) ([]byte, error) { return c.reader.ReadFile(name) }

// scriptFiles lists the files of all scripts, sorted.
func (c *compiler) scriptFiles() []schema.File {
	var out []schema.File
	for _, name := range slices.Sorted(maps.Keys(c.scripts)) {
		if !slices.ContainsFunc(c.Files, func(f schema.File) bool { return f.Name == name }) {
			out = append(out, schema.File{Name: name, SHA256: c.scripts[name]})
		}
	}
	return out
}

// timeout is what an entry says, or else what all do.
func timeout(own schema.Duration, otherwise time.Duration) time.Duration {
	if own > 0 {
		return own.Std()
	}
	return otherwise
}

// hooks compiles a collection's hooks, by stage ("post.create").
func (c *compiler) hooks(col *schema.Collection, at string) map[string][]*Script {
	if col.Hooks == nil {
		return nil
	}
	otherwise := hookSettings(c.Loaded.Project).Timeout.Std()
	out := map[string][]*Script{}
	for _, group := range schema.HookGroups() {
		for _, stage := range group.Stages {
			entries := (*col.Hooks)[group.Name][stage.Name]
			for i, e := range entries {
				here := at + "." + group.Name + "." + stage.Name
				if len(entries) > 1 || c.Position(here+"[0]") != c.Position(here) {
					here += "[" + strconv.Itoa(i) + "]"
				}
				if s := c.script(e.File, here+".file", timeout(e.Timeout, otherwise)); s != nil {
					out[group.Name+"."+stage.Name] = append(out[group.Name+"."+stage.Name], s)
				}
			}
		}
	}
	return out
}

// filters compiles the scripts that make filters of permission sets.
func (c *compiler) filters(col *schema.Collection, at string) map[*schema.Script]*Script {
	out := map[*schema.Script]*Script{}
	if col.Permissions == nil {
		return nil
	}
	for key, set := range col.Permissions.Sets() {
		if set.Filter == nil || set.Filter.Script == nil {
			continue
		}
		s := set.Filter.Script
		if compiled := c.script(s.File, at+"."+key+".filter.file", timeout(s.Timeout, ruleTimeout)); compiled != nil {
			out[s] = compiled
		}
	}
	return out
}

// evals compiles the expressions that decide about fields.
func (c *compiler) evals(col *schema.Collection, tree *fieldtype.Tree, at string) (out []Eval, hidden *document.PathSet) {
	var paths []string
	eachField(col.Fields, at, "", func(f *schema.Field, here, path string) {
		for _, x := range []struct {
			member string
			value  schema.BoolOrEval
		}{{"hidden", f.Hidden}, {"readonly", f.Readonly}} {
			if x.value.Eval == "" {
				continue
			}
			if s, text := c.eval(x.value.Eval, here+"."+x.member+".eval", path+" "+x.member); s != nil {
				own := tree.WithTranslations([]string{path})
				out = append(out, Eval{Paths: own, Hidden: x.member == "hidden", OfDoc: ofDoc.MatchString(text), Script: s})
				if x.member == "hidden" {
					paths = append(paths, own...)
				}
			}
		}
	})
	if len(paths) > 0 {
		hidden = document.NewPathSet(paths...)
	}
	return out, hidden
}

// eval compiles an expression, or the file that it names, and gives all of its text.
func (c *compiler) eval(eval, at, name string) (s *Script, text string) {
	if ext := path.Ext(eval); ext == ".js" || ext == ".ts" {
		if s = c.script(eval, at, ruleTimeout); s == nil {
			return nil, ""
		}
		var all strings.Builder
		for _, f := range s.Program.Files() {
			data, err := c.read(f)
			if err != nil {
				return nil, ""
			}
			all.Write(data)
			all.WriteByte('\n')
		}
		return s, all.String()
	}
	program, problems := script.CompileExpr(c.Position(at).File+" ("+name+")", eval)
	for _, p := range problems {
		place := fmt.Sprintf("column %d", max(p.Column, 1))
		if p.Line > 1 {
			place = fmt.Sprintf("line %d, %s", p.Line, place)
		}
		c.fail(at, schema.CodeScript, "%s of the expression: %s", place, p.Message)
	}
	if program == nil {
		return nil, ""
	}
	return &Script{Program: program, Timeout: ruleTimeout}, eval
}

// validators compiles the scripts that judge values, by the path of their field.
func (c *compiler) validators(col *schema.Collection, tree *fieldtype.Tree, at string) map[string]*Script {
	var out map[string]*Script
	eachField(col.Fields, at, "", func(f *schema.Field, here, path string) {
		if f.Validator == nil {
			return
		}
		rules, _ := fieldtype.ParseRules(f.Validator.Value, nil)
		for _, r := range rules {
			file, ok := r.Arg.(string)
			if r.Name != "script" || !ok {
				continue
			}
			if s := c.script(file, here+".validator.script", ruleTimeout); s != nil {
				if out == nil {
					out = map[string]*Script{}
				}
				for _, own := range tree.WithTranslations([]string{path}) {
					out[own] = s
				}
			}
		}
	})
	return out
}

// Scripts gives every script of the project, in no order. One that is used in several places comes several times.
func (p *Project) Scripts() iter.Seq[*Script] {
	return func(yield func(*Script) bool) {
		var all []*Script
		for _, c := range p.Collections {
			for _, stage := range c.Hooks {
				all = append(all, stage...)
			}
			all = slices.AppendSeq(all, maps.Values(c.Filters))
			all = slices.AppendSeq(all, maps.Values(c.Validators))
			all = slices.AppendSeq(all, maps.Values(c.SearchScripts))
			for _, e := range c.Evals {
				all = append(all, e.Script)
			}
		}
		for _, a := range p.Actions {
			all = slices.Concat(all, a.Validate, a.Handle, a.Return)
		}
		for _, j := range p.Jobs {
			all = append(all, j.Script)
		}
		for _, s := range all {
			if s != nil && !yield(s) {
				return
			}
		}
	}
}
