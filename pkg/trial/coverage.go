package trial

import (
	"cmp"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/trial/report"
)

// tally counts what all cases have used of a project.
type tally struct {
	rules   map[ruleKey]int
	scripts map[scriptKey]int
}

func newTally(p *project.Project) *tally {
	t := &tally{rules: map[ruleKey]int{}, scripts: map[scriptKey]int{}}
	for name, c := range p.Collections {
		t.sets(name, c.Permissions)
		for stage, list := range c.Hooks {
			t.list(kindHook, name, stage, list...)
		}
		for _, s := range c.Filters {
			t.list(kindFilter, name, "", s)
		}
		for _, s := range c.Validators {
			t.list(kindValidator, name, "", s)
		}
		for _, s := range c.SearchScripts {
			t.list(kindSearch, name, "", s)
		}
		for _, e := range c.Evals {
			t.list(kindEval, name, "", e.Script)
		}
	}
	for name, a := range p.Actions {
		t.sets("actions."+name, a.Permissions)
		t.list(kindAction, name, "validate", a.Validate...)
		t.list(kindAction, name, "handle", a.Handle...)
		t.list(kindAction, name, "return", a.Return...)
	}
	for _, j := range p.Jobs {
		t.list(kindJob, j.Name, "", j.Script)
	}
	return t
}

func (t *tally) sets(of string, p *access.Permissions) {
	for set, methods := range p.Sets() {
		for _, m := range methods {
			t.rules[ruleKey{of, set, m}] = 0
		}
	}
}

func (t *tally) list(kind, of, place string, list ...*project.Script) {
	for _, s := range list {
		t.scripts[scriptKey{kind, of, place, s.Program.Name()}] = 0
	}
}

// add counts what a case has used. What is no rule of the sets, such as being an administrator, is left out.
func (t *tally) add(o *observer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, n := range o.rules {
		if _, known := t.rules[k]; known {
			t.rules[k] += n
		}
	}
	for k, n := range o.scripts {
		t.scripts[k] += n
	}
}

// coverage is the outcome, in a fixed order.
func (t *tally) coverage() *report.Coverage {
	out := &report.Coverage{Rules: []report.Rule{}, Scripts: []report.Usage{}}
	for k, n := range t.rules {
		out.Rules = append(out.Rules, report.Rule{Of: k.of, Set: k.set, Method: k.method.String(), Count: n})
	}
	slices.SortFunc(out.Rules, func(a, b report.Rule) int {
		return cmp.Or(strings.Compare(a.Of, b.Of), strings.Compare(a.Set, b.Set), methodOrder(a.Method)-methodOrder(b.Method))
	})
	for k, n := range t.scripts {
		out.Scripts = append(out.Scripts, report.Usage{Kind: k.kind, Of: k.of, Place: k.place, File: k.file, Count: n})
	}
	slices.SortFunc(out.Scripts, func(a, b report.Usage) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Of, b.Of), strings.Compare(a.Place, b.Place), strings.Compare(a.File, b.File))
	})
	return out
}

func methodOrder(name string) int {
	return slices.Index([]string{"get", "post", "put", "delete"}, name)
}

// observed is a project whose decisions are told of.
func observed(p *project.Project, o *observer) *project.Project {
	out := *p
	out.Collections = make(map[string]*project.Collection, len(p.Collections))
	for name, c := range p.Collections {
		own := *c
		own.Permissions = c.Permissions.Observed(func(m access.Method, x access.Explanation) { o.decided(name, m, x) })
		out.Collections[name] = &own
	}
	out.Actions = make(map[string]*project.Action, len(p.Actions))
	for name, a := range p.Actions {
		own := *a
		own.Permissions = a.Permissions.Observed(func(m access.Method, x access.Explanation) { o.decided("actions."+name, m, x) })
		out.Actions[name] = &own
	}
	return &out
}
