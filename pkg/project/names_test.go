package project_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// named compiles a project of some collections: "b<a" is b, renamed from a.
func named(t *testing.T, collections string) *project.Project {
	t.Helper()
	var text strings.Builder
	text.WriteString("-- project.yaml --\nnamespace: blog\ncollections:\n")
	for c := range strings.FieldsSeq(collections) {
		name, from, _ := strings.Cut(c, "<")
		text.WriteString("  - name: " + name + "\n    fields: [{name: t, type: string}]\n    permissions: {public: {methods: {}}, user: {methods: {}}}\n")
		if from != "" {
			text.WriteString("    renamedFrom: " + from + "\n")
		}
	}
	p, problems := project.Load(write(t, text.String()), "project.yaml", env)
	if p == nil {
		t.Fatalf("%s:\n%s", collections, strings.Join(lines(problems), "\n"))
	}
	return p
}

// Where the records of collections are while configs follow each other: each is held against the names that those before it made.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		configs []string
		there   string // collections of the store
		want    []string
	}{
		"nothing is renamed": {[]string{"a b"}, "a b", []string{"a=a b=b"}},
		"for ever":           {[]string{"a", "b<a", "b<a"}, "a", []string{"a=a", "b=a(a)", "b=a(a)"}},
		"no longer said":     {[]string{"a", "b<a", "b"}, "a", []string{"a=a", "b=a(a)", "b=a(a)"}},
		"a chain":            {[]string{"a", "b<a", "c<b", "c"}, "a", []string{"a=a", "b=a(a)", "c=a(a b)", "c=a(a b)"}},
		"there and back":     {[]string{"a", "b<a", "a<b", "b<a"}, "a", []string{"a=a", "b=a(a)", "a=a(b)", "b=a(a)"}},
		"rolled back":        {[]string{"a", "b<a", "a"}, "a", []string{"a=a", "b=a(a)", "a=a(b)"}},
		"the old name again": {[]string{"a", "b<a", "a b"}, "a", []string{"a=a", "b=a(a)", "collection_renamed"}},
		"onto another":       {[]string{"a b", "b<a"}, "a b", []string{"a=a b=b", "b=a(a)"}},
		"from another":       {[]string{"a", "b<a", "b<x"}, "a x", []string{"a=a", "b=a(a)", "b=x(x)"}},
		"a new store":        {[]string{"b<a"}, "", []string{"b=a(a)"}},
		"done by hand":       {[]string{"b<a", "b"}, "b", []string{"b=b", "b=b"}},
		"without records":    {[]string{"a", "b<a"}, "b", []string{"a=a", "b=a(a)"}}, // b is of an earlier config
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := func(name, _ string) (bool, error) { return strings.Contains(tt.there, name), nil }
			var names project.Names
			var served *project.Project
			var got []string
			for _, config := range tt.configs {
				p := named(t, config)
				next, err := names.Resolve(p, served, there)
				if err != nil {
					got = append(got, errs.From(err).Code)
					continue
				}
				again, err := next.Resolve(named(t, config), p, there)
				if diff := cmp.Diff(next, again); diff != "" || err != nil {
					t.Errorf("%s again: %v\n%s", config, err, diff)
				}
				names, served = next, p
				got = append(got, stored(p))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// stored tells where the records of a project's collections are, and which names these had.
func stored(p *project.Project) string {
	var out []string
	for _, c := range p.Config.Collections {
		own := p.Collections[c.Name]
		text := []string{c.Name + "=" + own.StoredName()}
		if len(own.Before) > 0 {
			text[0] += "(" + strings.Join(own.Before, " ") + ")"
		}
		if own.Uploads.Dir != own.StoredName() {
			text = append(text, "files in "+own.Uploads.Dir)
		}
		for _, name := range append(own.Before, c.Name) {
			if p.Addressed(name) != own {
				text = append(text, "not at "+name)
			}
		}
		out = append(out, strings.Join(text, " "))
	}
	return strings.Join(out, " ")
}

// A store that can't say what it has is no reason to guess.
func TestNamesOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	p, failure := named(t, "b<a"), errors.New("it fails")
	if _, err := (project.Names{}).Resolve(p, nil, func(string, string) (bool, error) { return false, failure }); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
}

// An index is not renamed from one that is still there.
func TestIndexRenamedFrom(t *testing.T) {
	t.Parallel()
	_, problems := project.Load(write(t, `
-- project.yaml --
namespace: blog
collections:
  - name: a
    permissions: {public: {methods: {}}, user: {methods: {}}}
    fields: [{name: t, type: string, index: [single]}, {name: u, type: string}]
    indexes: [{name: x, key: [u], renamedFrom: t_1}, {name: y, key: [u, t], renamedFrom: gone}]
`), "project.yaml", env)
	const want = "collections[0].indexes[0].renamedFrom: the index t_1 is still there: leave it out, or renamedFrom"
	if got := strings.Join(lines(problems), "\n"); !strings.Contains(got, want) || strings.Contains(got, "indexes[1]") {
		t.Errorf("%s", got)
	}
}

// What renamedFrom can't name.
func TestRenamedFrom(t *testing.T) {
	t.Parallel()
	const collection = "  - {name: NAME, renamedFrom: FROM, fields: [{name: t, type: string}], permissions: {public: {methods: {}}, user: {methods: {}}}}\n"
	of := func(pairs ...string) string {
		text := []string{"-- project.yaml --\nnamespace: blog\ncollections:\n"}
		for i := 0; i < len(pairs); i += 2 {
			text = append(text, strings.NewReplacer("NAME", pairs[i], "FROM", pairs[i+1]).Replace(collection))
		}
		return strings.Join(text, "")
	}
	for name, tt := range map[string]struct{ config, want string }{
		"itself":           {of("a", "a"), "collections[0].renamedFrom: is the name that the collection has"},
		"still there":      {of("a", "b", "b", "c"), "collections[0].renamedFrom: the collection b is still there: what is renamed has one name, so leave out b, or renamedFrom"},
		"a swap":           {of("a", "b", "b", "a"), "collections[0].renamedFrom: the collection b is still there"},
		"from one, twice":  {of("a", "c", "b", "c"), "collections[1].renamedFrom: a is renamed from it, too"},
		"each from others": {of("a", "c", "b", "d"), ""},
	} {
		_, problems := project.Load(write(t, tt.config), "project.yaml", env)
		got := strings.Join(lines(problems), "\n")
		if tt.want == "" && problems.Err() || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
