package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/svcctl/svc/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// files are config files in memory.
type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return []byte(data), nil
	}
	return nil, fs.ErrNotExist
}

func (f files) Glob(pattern string) (names []string, err error) {
	for name := range f {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if matches {
			names = append(names, name)
		}
	}
	return names, nil
}

// section is one object of testdata/rows.txt.
type section struct {
	name    string
	path    []string
	minimal map[string]any
	rows    []row
}

// row is one member.
type row struct {
	member      string
	good, wrong any
	hasWrong    bool
	required    bool
	enum        []string
	list        bool // the enum is of the elements of a list
	pattern     any
	hasPattern  bool
	semantic    bool // the good value alone does not pass the checks across members
}

func parseJSON(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("rows.txt: %v in %s", err, s)
	}
	return v
}

func readSections(t *testing.T) []section {
	t.Helper()
	data, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []section
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "# "); ok {
			name, rest, _ := strings.Cut(head, " @ ")
			path, minimal, _ := strings.Cut(rest, "{")
			minimal, _, _ = strings.Cut("{"+minimal, " (")
			s := section{name: name, minimal: parseJSON(t, minimal).(map[string]any)}
			if path = strings.TrimSpace(path); path != "" {
				s.path = strings.Split(path, ".")
			}
			out = append(out, s)
			continue
		}
		if len(out) == 0 || line == "" {
			continue
		}
		s := &out[len(out)-1]
		s.rows = append(s.rows, parseRow(t, line))
	}
	return out
}

func parseRow(t *testing.T, line string) row {
	t.Helper()
	cells := strings.Split(line, " | ")
	r := row{member: cells[0], good: parseJSON(t, strings.TrimSuffix(cells[1], " |"))}
	for i, cell := range cells[2:] {
		switch {
		case cell == "required":
			r.required = true
		case cell == "invalid":
			r.semantic = true
		case strings.HasPrefix(cell, "[]= "):
			r.list, r.enum = true, strings.Split(cell[4:], ",")
		case strings.HasPrefix(cell, "= "):
			r.enum = strings.Split(cell[2:], ",")
		case strings.HasPrefix(cell, "pattern "):
			r.pattern, r.hasPattern = parseJSON(t, cell[8:]), true
		case i == 0:
			r.wrong, r.hasWrong = parseJSON(t, cell), true
		default:
			t.Fatalf("rows.txt: unknown cell %q", cell)
		}
	}
	return r
}

// put sets the value at a path of maps and lists, making what is missing.
func put(in any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	if i, err := strconv.Atoi(path[0]); err == nil {
		list, _ := in.([]any)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = put(list[i], path[1:], v)
		return list
	}
	m, _ := in.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	m[path[0]] = put(m[path[0]], path[1:], v)
	return m
}

// config makes the least config that holds an object at the section's place.
func (s section) config(t *testing.T, sections []section, object map[string]any) any {
	t.Helper()
	var config any = map[string]any{"namespace": "blog"}
	config = put(config, []string{"collections", "0"}, minimalOf(t, sections, "collections.0"))
	for i := 1; i < len(s.path); i++ {
		if m := minimalOf(t, sections, strings.Join(s.path[:i], ".")); m != nil && i > 2 || i == 2 && s.path[0] != "collections" && m != nil {
			config = put(config, s.path[:i], m)
		}
	}
	if slices.Contains(s.path, "rrf") {
		config = put(config, []string{"collections", "0", "search", "1"}, map[string]any{"name": "other", "mode": "text"})
	}
	if len(s.path) == 0 {
		return object
	}
	return put(config, s.path, object)
}

// minimalOf gives a copy of the least object of the section at a path.
func minimalOf(t *testing.T, sections []section, path string) any {
	t.Helper()
	for _, s := range sections {
		if strings.Join(s.path, ".") == path && len(s.path) > 0 {
			return clone(t, s.minimal)
		}
	}
	return nil
}

func clone(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return parseJSON(t, string(data)).(map[string]any)
}

func compileSchema(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	data, err := schema.JSONSchema(kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(kind+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// structural are the codes of problems that JSON Schema finds as well.
var structural = []string{
	schema.CodeType, schema.CodeUnknownKey, schema.CodeRequired, schema.CodeEnum, schema.CodePattern, schema.CodeRange,
}

// TestRows takes every row of the config tables through the loader and the JSON Schema: a valid value, a wrong type,
// a missing required member, a value outside the list or the pattern. What the loader says is in testdata/rows.
func TestRows(t *testing.T) {
	t.Parallel()
	sections := readSections(t)
	project := compileSchema(t, "project")
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var golden strings.Builder
			try := func(name string, object map[string]any, want string) {
				t.Helper()
				config := s.config(t, sections, object)
				data, err := json.MarshalIndent(config, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				loaded, problems := schema.LoadProject(files{"project.json": string(data)}, "project.json", nil, nil)
				if loaded == nil {
					t.Fatalf("%s: %v\n%s", name, problems, data)
				}
				invalid := project.Validate(parseJSON(t, string(data)))
				if want == "" {
					if problems.Err() || invalid != nil {
						t.Errorf("%s: loader says %v, JSON Schema says %v\n%s", name, problems, invalid, data)
					}
					return
				}
				if !problems.Err() || invalid == nil {
					t.Errorf("%s: loader says %v, JSON Schema says %v\n%s", name, problems, invalid, data)
				}
				for _, p := range problems {
					if !slices.Contains(structural, p.Code) {
						t.Errorf("%s: %v has the code %s", name, p, p.Code)
					}
					fmt.Fprintf(&golden, "%s\n  %s\n", name, p)
				}
			}
			with := func(member string, v any) map[string]any {
				o := clone(t, s.minimal)
				o[member] = v
				return o
			}
			for _, r := range s.rows {
				if !r.semantic {
					try(r.member, with(r.member, r.good), "")
				}
				if r.hasWrong {
					try(r.member+" of a wrong type", with(r.member, r.wrong), "wrong")
				}
				if r.required {
					o := clone(t, s.minimal)
					delete(o, r.member)
					try(r.member+" missing", o, "required")
				}
				if r.hasPattern {
					try(r.member+" of a wrong form", with(r.member, r.pattern), "pattern")
				}
				wrap := func(s string) any {
					if r.list {
						return []any{s}
					}
					return s
				}
				for _, v := range r.enum {
					try(r.member+" "+v, with(r.member, wrap(v)), "")
				}
				if r.enum != nil {
					try(r.member+" outside the list", with(r.member, wrap("bogus")), "enum")
				}
			}
			if s.name != "ProjectMeta" && s.name != "Legacy" {
				try("an unknown key", with("bogus", 1), "unknown")
			}
			compareGolden(t, filepath.Join("testdata", "rows", s.name+".golden"), golden.String())
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestRowsAreComplete walks the Go types: every member of every config object has its row, and every row of such an
// object is a member, so that neither a table nor a type can forget one.
func TestRowsAreComplete(t *testing.T) {
	t.Parallel()
	rows := map[string][]string{}
	for _, s := range readSections(t) {
		for _, r := range s.rows {
			rows[s.name] = append(rows[s.name], r.member)
		}
	}
	rows["AdminToken"] = append(rows["AdminToken"], rows["AdminTokenHash"]...)
	seen := map[reflect.Type]bool{}
	var walk func(t2 reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ.PkgPath() != reflect.TypeFor[schema.Project]().PkgPath() {
			return
		}
		seen[typ] = true
		var members []string
		for f := range typ.Fields() {
			walk(f.Type)
			if name, _, _ := strings.Cut(f.Tag.Get("cfg"), ","); name != "" {
				members = append(members, name)
			}
		}
		if len(members) == 0 {
			return
		}
		have := slices.Sorted(slices.Values(rows[typ.Name()]))
		slices.Sort(members)
		if diff := cmp.Diff(members, have); diff != "" {
			t.Errorf("%s (-Go type +rows.txt):\n%s", typ.Name(), diff)
		}
	}
	walk(reflect.TypeFor[schema.Project]())
	for _, g := range schema.HookGroups() {
		if diff := cmp.Diff(schema.StageNames(g.Stages), rows["Hooks"+strings.ToUpper(g.Name[:1])+g.Name[1:]]); diff != "" {
			t.Errorf("hook stages of %s (-table +rows.txt):\n%s", g.Name, diff)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d types were found", len(seen))
	}
}
