package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/schema"
)

// What a suite says, and where.
func TestLoadSuite(t *testing.T) {
	t.Parallel()
	suite, problems := schema.LoadSuite(files{"a.yaml": `name: A
cases:
  - name: one
    as: { token: secret }
    when: { get: "/a/${id}" }
    expect: { body: { items: [{ b: 1 }] } }
  - name: two
    as: { user: ann, pat: [namespace.a] }
    when: [{ advance: 2h }, { post: /a, body: { c: "${env:NOT}" } }]
    expect: expect.yaml
`, "expect.yaml": "status: 201\n"}, "a.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	one, two := suite.Cases[0], suite.Cases[1]
	if verb, target := one.When[0].Verb(); verb != "get" || target != "/a/${id}" || one.When[0].Path != "cases[0].when" {
		t.Errorf("%s %s at %s", verb, target, one.When[0].Path)
	}
	if verb, target := two.When[0].Verb(); verb != "advance" || target != "2h0m0s" || two.When[1].Path != "cases[1].when[1]" {
		t.Errorf("%s %s at %s", verb, target, two.When[1].Path)
	}
	if one.As.Kind != schema.CallerToken || two.As.Kind != schema.CallerUser || two.Expect.Status != 201 {
		t.Errorf("%+v, %+v, %+v", one.As, two.As, two.Expect)
	}
	for at, want := range map[string]string{
		"cases[0].expect.body.items[0].b": "a.yaml:6:36", "cases[1].expect.status": "expect.yaml:1:9", "cases[1].when[1].body.c": "a.yaml:9:52",
		"cases[0].expect.body.items[7].x": "a.yaml:6:30",
	} {
		if got := suite.Position(at).String(); got != want {
			t.Errorf("%s is at %s, want %s", at, got, want)
		}
	}
}

// What makes no sense is refused with its place.
func TestLoadSuiteRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`cases: []`:                                                        "a.yaml:1:8: cases: must have at least 1 elements",
		`cases: [{ name: a, when: [] }]`:                                   "at least one step",
		`cases: [{ name: a, when: {} }]`:                                   "needs one of get, post",
		`cases: [{ name: a, when: { get: /a, put: /a } }]`:                 "needs one of get, post",
		`cases: [{ name: a, when: { get: a } }]`:                           "must begin with /",
		`cases: [{ name: a, when: { get: /a, body: {} } }]`:                "a get has none",
		`cases: [{ name: a, when: { job: a, as: admin } }]`:                "job is no request",
		`cases: [{ name: a, when: { post: /a, method: get } }]`:            "is of actions only",
		`cases: [{ name: a, when: { get: /a }, as: { user: a, id: 5 } }]`:  "must be a string",
		`cases: [{ name: a, when: { get: /a }, as: { id: aa } }]`:          "24 lowercase hex digits",
		`cases: [{ name: a, when: { get: /a }, as: {} }]`:                  "needs user or token",
		`cases: [{ name: a, when: { get: /a }, as: { user: a, token: b}}]`: "needs user or token",
		`cases: [{ name: a, when: { get: /a }, expect: { statuss: 1 } }]`:  `did you mean "status"?`,
		`cases: [{ name: a, when: { get: /a, save: { "a.b": c } } }]`:      "the name must be",
		`cases: [{ name: a, when: { advance: soon } }]`:                    "must be a duration",
		`cases: [{ name: a, given: { clock: noon }, when: { get: /a } }]`:  "must be a date",
		`cases: [{ when: { get: /a } }]`:                                   "cases[0].name: is required",
		`name: a`:                                                          "cases: is required",
	} {
		_, problems := schema.LoadSuite(files{"a.yaml": text}, "a.yaml")
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

// addSamples adds the files of sample projects that pattern names to what a fuzz test begins with.
func addSamples(f *testing.F, pattern string) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "projects", filepath.FromSlash(pattern)))
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
}

// FuzzLoadSuite holds that no text takes the loader down, and that what it passes is whole.
func FuzzLoadSuite(f *testing.F) {
	addSamples(f, "blog/tests/*.yaml")
	addSamples(f, "shop/tests/*.yaml")
	f.Add("cases: [{ name: a, when: a.yaml }]")
	f.Add("cases: [{ name: a, when: [a.yaml], expect: a.yaml, as: a.yaml }]")
	f.Fuzz(func(t *testing.T, text string) {
		suite, problems := schema.LoadSuite(files{"a.yaml": text}, "a.yaml")
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 {
				t.Fatalf("no such place: %v", p)
			}
		}
		if problems.Err() {
			return
		}
		for _, c := range suite.Cases {
			if c.Name == "" || len(c.When) == 0 || c.At.Line < 1 {
				t.Fatalf("no case: %+v", c)
			}
			for _, s := range c.When {
				if verb, _ := s.Verb(); verb == "" || s.Path == "" {
					t.Fatalf("no step: %+v", s)
				}
			}
		}
	})
}
