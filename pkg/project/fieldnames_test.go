package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// withFields compiles a project of the collection c with some fields: "b<a" is b, renamed from a; "o(b<a)" is an object.
func withFields(t *testing.T, fields string) (*project.Project, string) {
	t.Helper()
	p, problems := project.Load(write(t, "-- project.yaml --\nnamespace: blog\ncollections:\n  - name: c\n    permissions: {public: {methods: {}}, user: {methods: {}}}\n    fields: "+
		list(fields)+"\n"), "project.yaml", env)
	return p, strings.Join(lines(problems), "\n")
}

// list is the YAML of fields.
func list(fields string) string {
	var out strings.Builder
	out.WriteString("[")
	name := ""
	end := func() {
		if name == "" {
			return
		}
		name, from, renamed := strings.Cut(name, "<")
		kind, isFile := strings.CutPrefix(name, "file:")
		if isFile {
			name = kind
		}
		out.WriteString("{name: " + name + ", type: " + map[bool]string{true: "file", false: "any"}[isFile])
		if renamed {
			out.WriteString(", renamedFrom: " + from)
		}
	}
	for _, r := range fields {
		switch r {
		case '(':
			end()
			out.WriteString(", subFields: [")
			name = ""
		case ' ':
			if end(); name != "" {
				out.WriteString("}, ")
			}
			name = ""
		case ')':
			if end(); name != "" {
				out.WriteString("}")
			}
			out.WriteString("]}, ")
			name = ""
		default:
			name += string(r)
		}
	}
	if end(); name != "" {
		out.WriteString("}")
	}
	return strings.ReplaceAll(out.String()+"]", ", ]", "]")
}

// Where the values of fields are while configs follow each other: each is held against the names that those before it made.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		configs []string
		there   string // what records have, of what is asked about
		want    []string
	}{
		"nothing is renamed":      {[]string{"a b"}, "", []string{"a=a b=b"}},
		"for ever":                {[]string{"a", "b<a", "b<a"}, "", []string{"a=a", "b=a", "b=a"}},
		"no longer said":          {[]string{"a", "b<a", "b"}, "", []string{"a=a", "b=a", "b=a"}},
		"a chain":                 {[]string{"a", "b<a", "c<b", "c"}, "", []string{"a=a", "b=a", "c=a", "c=a"}},
		"there and back":          {[]string{"a", "b<a", "a<b", "b<a"}, "", []string{"a=a", "b=a", "a=a", "b=a"}},
		"rolled back":             {[]string{"a", "b<a", "a"}, "", []string{"a=a", "b=a", "a=a"}},
		"the old name again":      {[]string{"a", "b<a", "a b"}, "", []string{"a=a", "b=a", "field_renamed"}},
		"onto another":            {[]string{"a b", "b<a"}, "", []string{"a=a b=b", "b=a"}},
		"two":                     {[]string{"a b", "c<a d<b"}, "", []string{"a=a b=b", "c=a d=b"}},
		"a new store":             {[]string{"b<a"}, "", []string{"b=b"}},
		"a store that has it":     {[]string{"b<a"}, "c:a", []string{"b=a"}},
		"done by hand":            {[]string{"b<a", "b"}, "c:b", []string{"b=b", "b=b"}},
		"what was deleted":        {[]string{"a x", "x", "b<a x"}, "c:a", []string{"a=a x=x", "x=x", "b=a x=x"}},
		"inside":                  {[]string{"o(a x)", "o(b<a x)"}, "", []string{"o=o o.a=o.a o.x=o.x", "o=o o.b=o.a o.x=o.x"}},
		"inside what is renamed":  {[]string{"o(a)", "p<o(a)", "p(b<a)", "q<p(c<b)"}, "", []string{"o=o o.a=o.a", "p=o p.a=o.a", "p=o p.b=o.a", "q=o q.c=o.a"}},
		"both at once":            {[]string{"o(a)", "p<o(b<a)"}, "", []string{"o=o o.a=o.a", "p=o p.b=o.a"}},
		"of two objects":          {[]string{"o(a) p(a)", "o(b<a) p(a)"}, "", []string{"o=o o.a=o.a p=p p.a=p.a", "o=o o.b=o.a p=p p.a=p.a"}},
		"inside, in a new store":  {[]string{"o(b<a)"}, "c:o.b", []string{"o=o o.b=o.b"}},
		"inside, in an old store": {[]string{"o(b<a)"}, "c:o.a", []string{"o=o o.b=o.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := func(collection, field string) (bool, error) {
				return field == "" || strings.Contains(tt.there, collection+":"+field), nil
			}
			var names project.Names
			var served *project.Project
			var got []string
			for _, config := range tt.configs {
				p, problems := withFields(t, config)
				if p == nil {
					t.Fatalf("%s: %s", config, problems)
				}
				next, err := names.Resolve(p, served, there)
				if err != nil {
					got = append(got, errs.From(err).Code)
					continue
				}
				same, _ := withFields(t, config)
				again, err := next.Resolve(same, p, there)
				if diff := cmp.Diff(next, again); diff != "" || err != nil {
					t.Errorf("%s again: %v\n%s", config, err, diff)
				}
				names, served = next, p
				got = append(got, storedFields(p))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func storedFields(p *project.Project) string {
	var out []string
	c := p.Collections["c"]
	for path := range level(c, "") {
		out = append(out, path+"="+c.FieldNames.Path(path))
	}
	return strings.Join(out, " ")
}

// level gives the paths of the fields of a collection.
func level(c *project.Collection, _ string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var paths []string
		for _, f := range c.Tree.Fields() {
			paths = append(paths, f.Path)
			if f.Sub != nil {
				for _, inner := range f.Sub.Fields() {
					paths = append(paths, inner.Path)
				}
			}
		}
		for _, path := range paths {
			if !yield(path) {
				return
			}
		}
	}
}

// Each field that is renamed from one that was not served is looked for in the records: there is an end to that.
func TestManyFieldNamesThatNothingHad(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{20: "", 21: "field_renamed"} {
		var fields, served []string
		for i := range n {
			fields, served = append(fields, fmt.Sprintf("f%d<g%d", i, i)), append(served, fmt.Sprintf("g%d", i))
		}
		asked := 0
		there := func(string, string) (bool, error) { asked++; return false, nil }
		p, problems := withFields(t, strings.Join(fields, " "))
		if p == nil {
			t.Fatal(problems)
		}
		_, err := project.Names{}.Resolve(p, nil, there)
		if got := errs.From(err); (got == nil) != (want == "") || got != nil && got.Code != want || asked > 20 {
			t.Errorf("%d: %v, asked %d times", n, err, asked)
		}
		before, _ := withFields(t, strings.Join(served, " "))
		names, err := project.Names{}.Resolve(before, nil, there)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := names.Resolve(p, before, nil); err != nil { // as they were served, nothing is asked
			t.Errorf("%d of a config that has them: %v", n, err)
		}
	}
}

// Files of a field that was renamed are where they were, at any address that was given out.
func TestFilesOfRenamedFields(t *testing.T) {
	t.Parallel()
	var names project.Names
	var served *project.Project
	for _, config := range []string{"file:a o(file:x)", "file:b<a p<o(file:x)", "file:c<b p(file:y<x)"} {
		p, problems := withFields(t, config)
		if p == nil {
			t.Fatal(problems)
		}
		next, err := names.Resolve(p, served, func(string, string) (bool, error) { return false, nil })
		if err != nil {
			t.Fatal(err)
		}
		names, served = next, p
	}
	c := served.Collections["c"]
	for path, want := range map[string][2]string{
		"a": {"a", "c"}, "b": {"a", "c"}, "c": {"a", "c"}, "o.x": {"o.x", "p.y"}, "p.x": {"o.x", "p.y"}, "p.y": {"o.x", "p.y"}, "o.y": {"o.x", "p.y"},
		"z": {"z", ""}, "p": {"o", ""}, "c.x": {"a.x", ""},
	} {
		if got := [2]string{c.StoredField(path), c.FileField(path)}; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// What renamedFrom of a field can't name.
func TestFieldRenamedFrom(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		"a<a":             "collections[0].fields[0].renamedFrom: is the name that the field has",
		"a<b b":           "collections[0].fields[0].renamedFrom: the field b is still there: what is renamed has one name, so leave out b, or renamedFrom",
		"a<b b<a":         "collections[0].fields[0].renamedFrom: the field b is still there",
		"a<c b<c":         "collections[0].fields[1].renamedFrom: a is renamed from it, too",
		"o(a<b b)":        "collections[0].fields[0].subFields[0].renamedFrom: the field b is still there",
		"a(b(c(d(e<f))))": "fields can be renamed",
		"a(b(c(d<e)))":    "",
		"b o(a<b)":        "",
		"a<_id":           "renamedFrom",
	} {
		_, problems := withFields(t, fields)
		if want == "" && problems != "" || !strings.Contains(strings.ReplaceAll(problems, "only fields that are at most 3 deep inside others can be renamed", "fields can be renamed"), want) {
			t.Errorf("%s: %s\nwant %s", fields, problems, want)
		}
	}
}
