package project

import (
	"strconv"

	"github.com/svcctl/svc/pkg/schema"
)

// unsupported is one thing that configs may say and this version does not do. It is refused rather than ignored: a
// hook that never runs, or a hidden field that shows, would be worse than a config that does not load.
type unsupported struct {
	thing string
	find  func(w *walk)
}

// notYet is the table of what this version does not do. Whoever builds one of them deletes its row.
var notYet = []unsupported{
	{"a relation to another project", func(w *walk) {
		w.fields(func(f *schema.Field, at string) {
			foreign := f.Meta != nil && f.Meta.Foreign != nil && f.Meta.Foreign.Namespace != ""
			w.add(foreign && f.Meta.Foreign.Namespace != w.p.Namespace, at+".meta.foreign.namespace")
		})
	}},
}

// NotYet names what configs may say and this version refuses, for the reference of config files.
func NotYet() []string {
	things := make([]string, len(notYet))
	for i, row := range notYet {
		things[i] = row.thing
	}
	return things
}

// walk visits a config and collects the paths of what is found.
type walk struct {
	p     *schema.Project
	found []string
}

func (w *walk) add(found bool, at string) {
	if found {
		w.found = append(w.found, at)
	}
}

func (w *walk) collections(fn func(c *schema.Collection, at string)) {
	for i, c := range w.p.Collections {
		fn(c, "collections["+strconv.Itoa(i)+"]")
	}
}

func (w *walk) fields(fn func(f *schema.Field, at string)) {
	w.collections(func(c *schema.Collection, at string) {
		eachField(c.Fields, at+".fields", "", func(f *schema.Field, here, _ string) { fn(f, here) })
	})
}

// refuse gives a problem for every place of a config that this version would ignore.
func refuse(l *schema.Loaded) schema.Problems {
	var problems schema.Problems
	for _, row := range notYet {
		w := &walk{p: l.Project}
		row.find(w)
		for _, at := range w.found {
			if len(problems) > schema.MaxProblems { // which refuses the config, as any of them does
				return problems
			}
			problems = append(problems, l.Problem(at, schema.CodeUnsupported, "%s is not supported by this version of svcd; remove it", row.thing))
		}
	}
	return problems
}
